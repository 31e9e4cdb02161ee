// One tensor: what is known of it, how its values are spread, what they look like, and how to get them elsewhere.

import {byId, choice, copyButton, h, replace, type Child} from './dom';
import {histogramOf} from './histogram';
import {hasHistogram, type Stats} from './metrics';
import {go, source, state, store} from './state';
import {partNote} from './quantized';
import type {Side} from './store';
import {commandsOf, differenceOf, factsOf, leaveTensor, valuesOf} from './tensor_parts';
import {bytesText, countText, numberText, shapeText, shareText, visible} from './text';
import {askAgain, isHeldBack} from './wanted';

let shown = -1,
  isLog = false,
  update = (): void => {};

/** What is shown has to be drawn anew, not only its numbers. */
export function forgetTensor(): void {
  shown = -1;
}

export function drawTensor(): void {
  const aside = byId('aside');
  if (state.tensor < 0 || state.tensor >= store.count) {
    leaveTensor();
    aside.hidden = true;
    shown = -1;
    return;
  }
  if (shown === state.tensor && !aside.hidden) return update();
  leaveTensor();
  shown = state.tensor;
  aside.hidden = false;
  const i = state.tensor,
    [side, k] = store.of(i),
    name = store.names[i];
  const numbers = h('div', {}),
    picture = h('div', {class: 'bins-box'});
  const heads = h(
    'div',
    {class: 'tensor-head'},
    h(
      'button',
      {'type': 'button', 'class': 'close', 'aria-label': 'Close', 'title': 'Close (Esc)', 'onclick': () => go({tensor: -1})},
      '×',
    ),
    h('h2', {tabindex: -1}, visible(name) || '(a tensor without a name)'),
    h(
      'p',
      {class: 'type'},
      h('i', {class: 'dot', style: {background: store.dtypeColor(store.dtype(i))}}),
      `${store.dtype(i)} ${shapeText(store.shape(i))}`,
      h('span', {}, bytesText(store.bytes(i))),
    ),
  );
  const copied = commandsOf(i);
  replace(
    aside,
    heads,
    factsOf(side, k),
    partNote(side, k),
    store.isPair ? differenceOf(i) : null,
    h('section', {}, h('h3', {}, 'Statistics'), numbers),
    h(
      'section',
      {},
      h(
        'div',
        {class: 'row-head'},
        h('h3', {}, 'Histogram'),
        choice(
          'Scale',
          [
            {value: false, label: 'Linear'},
            {value: true, label: 'Log'},
          ],
          isLog,
          (value) => {
            isLog = value;
            shown = -1;
            drawTensor();
          },
        ),
      ),
      picture,
    ),
    valuesOf(side, k, name),
    h(
      'section',
      {},
      h('h3', {}, 'Take it along'),
      copied.map(([label, text]) =>
        h(
          'div',
          {class: 'code'},
          h('span', {class: 'label'}, label),
          h('code', {tabindex: 0}, visible(text)),
          copyButton(label, text),
        ),
      ),
    ),
  );
  update = () => {
    replace(
      numbers,
      store.sides.map((one) => statsTable(one, i)),
    );
    replace(picture, pictureOf(i));
  };
  update();
  askAgain();
}

function pictureOf(i: number): Child {
  const series = [];
  let isComing = false;
  for (const side of store.sides) {
    const stats = statsOn(side, i);
    if (stats && hasHistogram(stats))
      series.push({stats, className: 'side-' + side.number, label: store.isPair ? 'AB'[side.number] : 'values'});
    else if (store.on(side.number, i) >= 0 && !stats?.none) isComing = true;
  }
  return series.length === 0 && isComing ? null : histogramOf(series, isLog);
}

function statsOn(side: Side, i: number): Stats | undefined {
  return side.stats[store.on(side.number, i)];
}

function statsTable(side: Side, i: number): Child[] {
  const stats = statsOn(side, i);
  const title = store.isPair ? h('h4', {}, h('i', {class: 'dot side-' + side.number}), side.number ? 'B' : 'A') : null;
  if (store.on(side.number, i) < 0) return [title, h('p', {class: 'none'}, 'This side does not have it.')];
  if (!stats)
    return [title, h('p', {class: 'hint'}, isHeldBack(side, store.on(side.number, i)) ? 'Not read yet.' : source.trouble || 'Reading…')];
  if (stats.none) return [title, h('p', {class: 'none'}, stats.none)];
  const rows = [
    ['min', numberText(stats.min, 6)],
    ['max', numberText(stats.max, 6)],
    ['mean', numberText(stats.mean, 6)],
    ['std', numberText(stats.std, 6)],
    ['rms', numberText(stats.rms, 6)],
    ['norm', numberText(stats.l2, 6)],
    ['zeros', `${countText(stats.zeros)} (${shareText(stats.count ? stats.zeros / stats.count : 0)})`],
    ['NaN', countText(stats.nans)],
    ['Inf', countText(stats.infinities)],
  ];
  return [
    title,
    h(
      'dl',
      {class: 'numbers'},
      rows.map(([key, value]) =>
        h(
          'div',
          {class: (key === 'NaN' || key === 'Inf') && value !== '0' ? 'bad' : null},
          h('dt', {}, key),
          h('dd', {}, value),
        ),
      ),
    ),
    stats.sampled ? h('p', {class: 'hint'}, `From ${countText(stats.count)} of its values.`) : null,
  ];
}
