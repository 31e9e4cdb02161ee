// Histograms of one tensor, or of the same tensor on two sides over each other.

import {scaleLinear, scaleLog} from 'd3-scale';
import {h, svg, tellAlong} from './dom';
import {binsOf, extent, type Stats} from './metrics';
import {countText, numberText, shareText} from './text';

export interface Series {
  stats: Stats;
  className: string;
  label: string;
}

interface Known extends Series {
  min: number;
  step: number; // the width of a bin
  bins: number[];
  densities: number[];
}

const WIDTH = 420,
  HEIGHT = 150,
  BASE = HEIGHT - 18;

/** Two sides have bins of two widths, so what is compared is how dense values are. */
function knownOf(series: Series): Known | null {
  const bins = binsOf(series.stats),
    {min, max} = series.stats;
  if (bins.length === 0 || min === null || max === null) return null;
  const total = sum(bins) || 1;
  // One value everywhere: a bar in the middle of what is around it.
  if (max === min) {
    const step = Math.abs(min) / 10 || 1;
    return {...series, min: min - 1.5 * step, step, bins: [0, total, 0], densities: [0, 1 / step, 0]};
  }
  const step = (max - min) / bins.length;
  return {...series, min, step, bins, densities: bins.map((count) => count / total / step)};
}

const sum = (values: number[]): number => values.reduce((a, b) => a + b, 0);

/** Where a density lies: of a logarithmic picture, the least that is there is still seen. */
function heightOf(densities: number[], isLog: boolean): (density: number) => number {
  const [least, largest] = extent(densities.filter((density) => density > 0)),
    most = Math.max(largest, 1e-300);
  const y = isLog
    ? scaleLog([Math.min(least, most * 0.999), most], [BASE - 0.04 * (BASE - 8), 8])
    : scaleLinear([0, most], [BASE, 8]);
  return (density) => (density <= 0 ? BASE : y(density));
}

export function histogramOf(series: Series[], isLog: boolean): Element {
  const known = series.map(knownOf).filter((one) => one !== null);
  if (known.length === 0) return h('p', {class: 'none'}, 'There is no histogram.');
  const low = Math.min(...known.map((one) => one.min)),
    high = Math.max(...known.map((one) => one.min + one.step * one.bins.length));
  const x = scaleLinear([low, high], [0, WIDTH]),
    y = heightOf(
      known.flatMap((one) => one.densities),
      isLog,
    );
  const drawing = svg('svg', {
    'viewBox': `0 0 ${WIDTH} ${HEIGHT}`,
    'class': 'histogram',
    'role': 'img',
    'aria-label': `Histogram from ${numberText(low)} to ${numberText(high)}`,
  });
  for (const {min, step, densities, className} of known) {
    const edge = (i: number): string => x(min + i * step).toFixed(1);
    const tops = densities.map((density, i) => `L${edge(i)} ${y(density).toFixed(1)}L${edge(i + 1)} ${y(density).toFixed(1)}`);
    drawing.append(
      svg('path', {d: `M${edge(0)} ${BASE}${tops.join('')}L${edge(densities.length)} ${BASE}Z`, class: 'bins ' + className}),
    );
  }
  drawing.append(...axisOf(x));
  const places = extent(known.map((one) => one.bins.length))[1];
  return tellAlong(drawing, places, (i) => {
    const value = x.invert((WIDTH * (i + 0.5)) / places);
    return ['near ' + numberText(value), known.map((one) => [one.label, amountAt(one, value)])];
  });
}

function axisOf(x: ReturnType<typeof scaleLinear<number, number>>): SVGElement[] {
  const line = svg('line', {x1: 0, x2: WIDTH, y1: BASE + 0.5, y2: BASE + 0.5, class: 'axis'});
  const ticks = x.ticks(5).flatMap((tick) => {
    const at = x(tick),
      anchor = at < 20 ? 'start' : at > WIDTH - 20 ? 'end' : 'middle';
    return [
      svg('line', {x1: at, x2: at, y1: BASE, y2: BASE + 4, class: 'axis'}),
      svg('text', {'x': at, 'y': HEIGHT - 3, 'text-anchor': anchor}, numberText(tick)),
    ];
  });
  return [line, ...ticks];
}

function amountAt({bins, min, step, stats}: Known, value: number): string {
  const count = bins[Math.floor((value - min) / step)];
  if (count === undefined) return '0';
  return stats.histogram ? countText(count) : shareText(count / sum(bins));
}
