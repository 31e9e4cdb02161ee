// Parts of a tensor's panel: where it lies, its values, what changed, and the lines that give the same elsewhere.

import {factList} from './cards';
import {whyNoDifference} from './difference';
import {copyButton, h, replace, type Child} from './dom';
import {HeatMap} from './heat';
import {changeOf, changeText} from './metrics';
import {spectrumBox} from './spectrum';
import {draw, source, store} from './state';
import type {Side} from './store';
import {bytesText, countText, numberText, quoted, shapeText, shellWord, visible} from './text';
import {allow, askAgain, isHeldBack} from './wanted';

export function factsOf(side: Side, k: number): HTMLElement {
  const odd = side.odd[k] ?? {},
    offset = side.offset[k],
    file = side.file(k);
  const rows: [string, string][] = [['elements', countText(side.numel(k))]];
  if (odd.strides) rows.push(['strides', shapeText(odd.strides)]);
  if (odd.layout) rows.push(['part of', odd.layout]);
  if (odd.alias_of) rows.push(['the same as', visible(odd.alias_of)]);
  if (odd.data === false) rows.push(['data', 'none, only a shape']);
  if (file) rows.push(['file', visible(file)]);
  if (offset >= 0) rows.push(['bytes', `${offset} – ${offset + side.bytes[k]}`]);
  else if (file) rows.push(['bytes', 'packed or computed']);
  return factList(rows);
}

export function commandsOf(i: number): [label: string, text: string][] {
  const [{target}] = store.of(i),
    name = store.names[i],
    {root, isDequantized} = store;
  const options = (root ? ` --root ${shellWord(root)}` : '') + (isDequantized ? ' --dequantize' : '');
  const python = (root ? `, root=${quoted(root)}` : '') + (isDequantized ? ', dequantize=True' : '');
  const fields = [root ? `.root = ${quoted(root)}` : '', isDequantized ? '.dequantize = true' : ''].filter(Boolean);
  // A name that looks like an option is none behind "--".
  const words = `${shellWord(target)} ${shellWord(name)}`;
  return [
    ['shell', `ballast cat${name.startsWith('-') ? `${options} -- ${words}` : ` ${words}${options}`}`],
    ['Python', `ballast.open(${quoted(target)}${python})[${quoted(name)}]`],
    ['C++', `ballast::open(${quoted(target)}${fields.length ? `, {${fields.join(', ')}}` : ''}).at(${quoted(name)})`],
  ];
}

const part = (title: string, ...content: Child[]): HTMLElement => h('section', {}, h('h3', {}, title), content);

let leaving = new AbortController();

/** What was asked for the panel of a tensor is not wanted any more. */
export const leaveTensor = (): void => leaving.abort();

/** The heat map, at once or when somebody says that so much should be read. */
function heatBox(side: Side, k: number, signal: AbortSignal): HTMLElement {
  const box = h('div', {});
  const begin = (): void => {
    const heat = new HeatMap(side.number, k, side.shape(k), side.dtype(k), signal);
    replace(box, heat.element);
    requestAnimationFrame(() => heat.start());
  };
  const read = (): void => {
    allow(side, k);
    begin();
    draw({});
    askAgain();
  };
  if (isHeldBack(side, k))
    replace(box, h('div', {class: 'spectrum'}, h('button', {type: 'button', onclick: read}, `Read ${bytesText(side.bytes[k])}`)));
  else begin();
  return box;
}

/** First values, the heat map and singular values need the bytes; a report shows how to get them. */
export function valuesOf(side: Side, k: number, name: string): Child {
  const shape = side.shape(k),
    isEmpty = shape.includes(0) || !side.hasData(k);
  if (isEmpty) return part('Values', h('p', {class: 'none'}, 'There are none.'));
  if (!source.canRead) {
    const command = `ballast view ${store.isDequantized ? '--dequantize ' : ''}${shellWord(side.target)}`;
    return part(
      'Values',
      h('p', {class: 'hint'}, 'This page is a report and has no single values. With the checkpoint at hand, this shows them:'),
      h('div', {class: 'code'}, h('code', {tabindex: 0}, command), copyButton('view', command)),
    );
  }
  leaving = new AbortController();
  const {signal} = leaving;
  const first = h('code', {class: 'values'}, '…');
  source.document<{text: string}>(`first/${side.number}/${k}`).then(
    (answer) => {
      first.textContent = answer?.text ?? '';
    },
    (error: Error) => {
      first.textContent = error.message;
    },
  );
  const parts = [part('First values', h('div', {class: 'scroll', tabindex: 0}, first))];
  if (shape.length >= 1) parts.unshift(part('Heat map', heatBox(side, k, signal)));
  if (shape.length === 2) parts.push(part('Singular values', spectrumBox(side.number, k, name, signal)));
  return parts;
}

export function differenceOf(i: number): Child {
  const change = store.change.get(i),
    where = store.where(i);
  if (where !== 'both') return h('p', {class: 'only'}, `Only ${where === 'a' ? 'A' : 'B'} has this tensor.`);
  if (!store.diff) return h('p', {class: 'hint'}, whyNoDifference || 'Comparing…');
  if (!change) return h('p', {class: 'only equal'}, 'Both sides are equal.');
  const rows: [string, string][] = [['what', change.what]];
  if (change.dtype_a !== change.dtype_b) rows.push(['dtype', `${change.dtype_a} → ${change.dtype_b}`]);
  if (change.what === 'shape') rows.push(['shape', `${shapeText(change.shape_a)} → ${shapeText(change.shape_b)}`]);
  rows.push(['‖A−B‖ / ‖A‖', changeText(changeOf(store, i))]);
  if (change.cosine !== undefined && change.cosine !== null) rows.push(['cosine', numberText(Number(change.cosine), 7)]);
  if (change.different !== undefined)
    rows.push(['different', countText(change.different)], ['max |A−B|', numberText(Number(change.max_abs))]);
  if (change.max_at) rows.push(['at', shapeText(change.max_at)]);
  return part('Difference', factList(rows));
}
