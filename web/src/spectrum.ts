// Singular values of a matrix, on request: they take a while.

import {scaleLinear, scaleLog} from 'd3-scale';
import type {Spectrum} from './documents';
import {h, replace, say, svg, tellAlong} from './dom';
import {extent} from './metrics';
import {source} from './state';
import {countText, numberText, visible} from './text';

export function spectrumBox(side: number, number: number, name: string, signal: AbortSignal): HTMLElement {
  const box = h('div', {class: 'spectrum'});
  const ask = async (): Promise<void> => {
    replace(box, h('p', {class: 'hint'}, 'Reading the matrix…'));
    try {
      const progress = (share: number): void =>
        replace(box, h('p', {class: 'hint'}, share < 1 ? `Reading the matrix: ${Math.round(share * 100)} %` : 'Computing…'));
      const answer = await source.document<Spectrum>(`spectrum/${side}/${number}`, progress, signal);
      if (!answer) return;
      replace(box, drawingOf(answer.values), h('p', {class: 'hint'}, sentenceOf(answer)));
      say('Singular values of ' + visible(name));
    } catch (error) {
      replace(box, h('p', {class: 'none'}, (error as Error).message));
    }
  };
  replace(box, h('button', {type: 'button', onclick: ask}, 'Compute singular values'));
  return box;
}

function sentenceOf({values, complete, of, stable_rank, of_90, of_99}: Spectrum): string {
  return (
    `${complete ? 'All' : 'The largest'} ${countText(values.length)} of ${countText(of)}` +
    `: the largest is ${numberText(values[0])}, stable rank ${numberText(stable_rank, 3)}` +
    (of_90 ? `; ${countText(of_90)} hold 90 % of the squares` : '') +
    (of_99 ? `, ${countText(of_99)} hold 99 %` : '') +
    (complete ? '.' : '. The last of these may be a little too small.')
  );
}

const WIDTH = 420,
  HEIGHT = 110;

function drawingOf(values: number[]): SVGElement {
  const most = values[0] || 1,
    least = Math.max(extent(values.filter((value) => value > 0))[0], most * 1e-7);
  const x = scaleLinear([0, values.length - 1], [0, WIDTH]),
    y = scaleLog([Math.min(least, most * 0.999), most], [HEIGHT - 6, 6]).clamp(true);
  const path = values.map((value, i) => `${i ? 'L' : 'M'}${x(i).toFixed(1)} ${y(Math.max(value, least)).toFixed(1)}`);
  const drawing = svg(
    'svg',
    {
      'viewBox': `0 0 ${WIDTH} ${HEIGHT}`,
      'class': 'histogram',
      'role': 'img',
      'aria-label': 'Singular values, the largest first, on a logarithmic scale',
    },
    svg('path', {'d': path.join(''), 'class': 'line', 'vector-effect': 'non-scaling-stroke'}),
    svg('line', {x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5, class: 'axis'}),
  );
  return tellAlong(drawing, values.length, (i) => [numberText(values[i], 6), [['number', String(i + 1)]]]);
}
