// What colours mean: chips of the dtypes, which also choose among them, or a ramp.

import {css, kindColor, rampRgb} from './color';
import {find, h, replace} from './dom';
import {rampStart} from './map_color';
import {metricText, type Measure} from './metrics';
import type {Spread} from './scale';
import {go, state, store} from './state';
import {bytesText} from './text';
import {themeColor} from './theme';

export function drawDtypeChips(): void {
  const legend = find('legend');
  if (!legend) return;
  replace(
    legend,
    store.allDtypes().map((dtype) =>
      h(
        'button',
        {
          'type': 'button',
          'class': 'chip',
          'aria-pressed': state.dtypes.includes(dtype.name) ? 'true' : 'false',
          'title': 'only tensors of ' + dtype.name,
          'onclick': () =>
            go({
              dtypes: state.dtypes.includes(dtype.name)
                ? state.dtypes.filter((d) => d !== dtype.name)
                : [...state.dtypes, dtype.name],
            }),
        },
        h('i', {style: {background: kindColor(dtype.color)}}),
        dtype.name,
        h('small', {}, bytesText(dtype.bytes)),
      ),
    ),
  );
}

export function drawRamp(color: Measure, spread: Spread): void {
  const legend = find('legend');
  if (!legend) return;
  const start = rampStart(color);
  const ramp = h('span', {
    class: 'ramp',
    style: {background: `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map((at) => css(rampRgb(start + (1 - start) * at))).join(',')})`},
  });
  const kinds =
    color === 'change'
      ? [
          ['equal', themeColor('equal')],
          ['another shape', themeColor('bad')],
          ['only in A', kindColor(3)],
          ['only in B', kindColor(1)],
        ]
      : [];
  replace(
    legend,
    Number.isFinite(spread.low)
      ? [metricText(color, spread.low), ramp, metricText(color, spread.high), spread.isLog ? h('small', {}, 'log') : null]
      : h('small', {}, 'not known yet'),
    kinds.map(([word, background]) => h('span', {class: 'kind'}, h('i', {style: {background}}), word)),
    color === 'change' ? null : h('small', {}, store.sampleText()),
  );
}
