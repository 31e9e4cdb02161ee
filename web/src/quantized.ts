// What is said of weights that other programs keep quantized: what is shown are the parts that they are packed in.

import type {Quantization} from './documents';
import {copyButton, h} from './dom';
import {store} from './state';
import type {Side} from './store';
import {countText, plural, shellWord, visible} from './text';

/** "gptq, 4 bits, groups of 32" */
export const schemeText = ({scheme, bits, group_size}: Quantization): string =>
  visible(scheme) + (bits ? `, ${bits} bits` : '') + (group_size && group_size > 0 ? `, groups of ${group_size}` : '');

/** Above every view, if a checkpoint has such weights. */
export function quantizedNote(side: Side): HTMLElement | null {
  const of = store.isPair ? 'AB'[side.number] + ': ' : '';
  if (side.dequantized)
    return h(
      'p',
      {class: 'banner'},
      `${of}Weights are kept quantized with ${visible(side.dequantized)}, and shown as the numbers that they stand for.`,
    );
  if (!side.quantization) return null;
  const {modules, parts} = side.quantization;
  return h(
    'p',
    {class: 'banner'},
    `${of}${plural(modules, 'weight')} ${modules === 1 ? 'is' : 'are'} kept quantized with ${schemeText(side.quantization)}. `,
    `What is shown are the ${countText(parts)} parts that they are packed in; this shows the weights: `,
    commandOf(),
  );
}

/** In the panel of a tensor that is such a part. */
export function partNote(side: Side, k: number): HTMLElement | null {
  if (!side.odd[k]?.packed || !side.quantization) return null;
  return h(
    'p',
    {class: 'only'},
    `A part of a weight that is kept quantized with ${visible(side.quantization.scheme)}: its values are codes, scales or places, and not weights. `,
    commandOf(),
    ' shows the weight.',
  );
}

function commandOf(): HTMLElement {
  const command = 'ballast view --dequantize ' + store.sides.map((side) => shellWord(side.target)).join(' ');
  return h('span', {class: 'command'}, h('code', {}, visible(command)), ' ', copyButton('the command', command));
}
