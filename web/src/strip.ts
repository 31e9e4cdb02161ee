// One strip of the layers: the values of a role over depth, with a mark for each layer.

import {scaleLinear} from 'd3-scale';
import {h, hideTip, showTip, svg} from './dom';
import {extent, medianAndSpread, metricText, titleOf} from './metrics';
import {go, state, store} from './state';
import {countText, plural, visible} from './text';

export interface Strip {
  pattern: string;
  layers: [depth: number, tensors: number[]][];
  values: number[]; // of each layer; NaN while nothing is known
  odd: boolean[]; // the layers that are far from the others, or broken
  broken: number[]; // how many values of each layer are not finite
}

const WIDTH = 640,
  HEIGHT = 46;

/** Where values lie in the strip. A line that hardly moves should look so. */
function heightOf(finite: number[]): (value: number) => number {
  const [low, high] = finite.length ? extent(finite) : [0, 1];
  const room = Math.max(high - low, Math.abs(high) * 0.25, 1e-30);
  const bottom = Math.max(low >= 0 ? 0 : -Infinity, (low + high) / 2 - room * 0.6);
  return scaleLinear([bottom, Math.max(bottom + room * 1.2, high)], [HEIGHT - 5, 5]).clamp(true);
}

function lineOf(points: ([number, number] | null)[]): SVGElement {
  let path = '';
  points.forEach((point, k) => {
    if (point) path += (path && points[k - 1] ? 'L' : 'M') + point[0].toFixed(1) + ' ' + point[1].toFixed(1);
  });
  return svg(
    'svg',
    {'viewBox': `0 0 ${WIDTH} ${HEIGHT}`, 'preserveAspectRatio': 'none', 'class': 'strip', 'aria-hidden': 'true'},
    svg('path', {'d': path, 'class': 'line', 'vector-effect': 'non-scaling-stroke'}),
  );
}

export function stripOf({pattern, layers, values, odd, broken}: Strip): HTMLElement {
  const key = state.metric,
    finite = values.filter(Number.isFinite),
    [median] = medianAndSpread(values);
  const x = scaleLinear([layers[0][0], layers[layers.length - 1][0]], [6, WIDTH - 6]),
    [low, high] = extent(finite),
    y = heightOf(finite);
  const marks = h('div', {'class': 'marks', 'role': 'group', 'aria-label': visible(pattern)});
  const tip = (x: number, y: number, depth: number, tensors: number[], k: number): void =>
    showTip(x, y, `layer ${depth}`, [
      [titleOf(key), metricText(key, values[k])],
      ...(broken[k] ? [['NaN or Inf', countText(broken[k])] as [string, string]] : []),
      ['tensors', countText(tensors.length)],
      ['median of the role', metricText(key, median)],
    ]);
  const markOf = (depth: number, tensors: number[], k: number): HTMLElement => {
    const isKnown = Number.isFinite(values[k]) || values[k] === Infinity;
    return h('button', {
      'type': 'button',
      'tabindex': k === 0 || odd[k] ? 0 : -1,
      'class': 'mark-at' + (odd[k] ? ' odd' : '') + (isKnown ? '' : ' unknown'),
      'style': {
        left: ((100 * x(depth)) / WIDTH).toFixed(2) + '%',
        top: (isKnown ? (100 * y(Math.min(values[k], 1e300))) / HEIGHT : 50).toFixed(1) + '%',
      },
      'aria-label':
        `${visible(pattern)}, layer ${depth}: ${metricText(key, values[k])}` + (broken[k] ? `, ${plural(broken[k], 'value')} not finite` : odd[k] ? ', far from the others' : ''),
      'onpointerenter': (event) => tip(event.clientX, event.clientY, depth, tensors, k),
      'onpointerleave': hideTip,
      'onfocus': (event) => {
        const {left, bottom} = (event.target as Element).getBoundingClientRect();
        tip(left, bottom, depth, tensors, k);
      },
      'onblur': hideTip,
      'onkeydown': (event) => {
        const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
        const next = step && (marks.children[k + step] as HTMLElement | undefined);
        if (!next) return;
        event.preventDefault();
        next.focus();
      },
      'onclick': () => openLayer(tensors),
    });
  };
  marks.append(...layers.map(([depth, tensors], k) => markOf(depth, tensors, k)));
  const line = lineOf(layers.map(([depth], k) => (Number.isFinite(values[k]) ? [x(depth), y(values[k])] : null)));
  const count = odd.filter(Boolean).length;
  return h(
    'section',
    {class: 'role' + (count ? ' has-odd' : '')},
    h(
      'div',
      {class: 'role-name'},
      h('h2', {title: visible(pattern)}, h('bdi', {dir: 'ltr'}, visible(pattern))),
      h(
        'p',
        {},
        `median ${metricText(key, median)}`,
        count ? h('b', {}, ` · ${plural(count, 'layer')} stand${count === 1 ? 's' : ''} out`) : null,
      ),
    ),
    h('div', {class: 'strip-box'}, line, marks),
    h(
      'div',
      {class: 'range'},
      h('span', {}, finite.length ? metricText(key, high) : '–'),
      h('span', {}, finite.length ? metricText(key, low) : '–'),
    ),
  );
}

function openLayer(tensors: number[]): void {
  if (tensors.length === 1) return go({tensor: tensors[0]});
  go({view: 'table', query: '', prefix: commonPrefix(tensors), folded: false});
}

function commonPrefix(tensors: number[]): string {
  let prefix = store.names[tensors[0]];
  for (const i of tensors) {
    while (!store.names[i].startsWith(prefix)) prefix = prefix.slice(0, -1);
  }
  return prefix.slice(0, Math.max(prefix.lastIndexOf('.'), prefix.lastIndexOf('/')) + 1);
}
