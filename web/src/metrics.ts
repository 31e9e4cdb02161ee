// What tensors are coloured, sorted and compared by.

import type {StatsColumns, StatsRow} from './documents';
import type {Side, Store} from './store';
import {countText, entryOf, numberText, shareText} from './text';

/** Statistics of a tensor, or why there are none. */
export interface Stats {
  none?: string;
  refused?: boolean; // there are none because reading failed
  count: number;
  zeros: number;
  nans: number;
  infinities: number;
  min: number | null;
  max: number | null;
  mean: number | null;
  std: number | null;
  l2: number | null;
  rms: number | null;
  max_abs: number | null;
  histogram?: number[];
  letters?: string;
  sampled?: boolean;
}

export type MetricKey = 'norm' | 'std' | 'max' | 'zeros' | 'nans' | 'mean';
/** What a view measures: also how much a tensor changed, if there are two checkpoints. */
export type Measure = MetricKey | 'change';

interface Metric {
  label: string;
  title: string;
  of(stats: Stats): number | null;
  share?: boolean;
  count?: boolean;
}

export const METRICS: Record<MetricKey, Metric> = {
  norm: {label: 'RMS', title: 'root of the mean square', of: (s) => s.rms},
  std: {label: 'Std', title: 'standard deviation', of: (s) => s.std},
  max: {label: 'Max', title: 'largest magnitude', of: (s) => s.max_abs},
  zeros: {label: 'Zeros', title: 'share of zeros', of: (s) => (s.count ? s.zeros / s.count : NaN), share: true},
  nans: {label: 'NaN', title: 'values that are no finite numbers', of: (s) => s.nans + s.infinities, count: true},
  mean: {label: 'Mean', title: 'mean', of: (s) => s.mean},
};

export const isMetric = (word: string): word is MetricKey => Object.keys(METRICS).includes(word);

export const titleOf = (key: Measure): string => (key === 'change' ? '‖A−B‖ / ‖A‖' : METRICS[key].title);
export const labelOf = (key: Measure): string => (key === 'change' ? 'Change' : METRICS[key].label);

/** A metric of a tensor of the store; NaN if it is not known. */
export function metric(store: Store, key: Measure, i: number): number {
  if (key === 'change') return changeOf(store, i);
  const stats = store.stats(i);
  if (!stats || stats.none) return NaN;
  return METRICS[key].of(stats) ?? NaN;
}

let kept: {version: number; of: Map<Measure, Float64Array>} = {version: -1, of: new Map()};

/** A metric of every tensor of the store, computed anew only if something came to be known. */
export function metrics(store: Store, key: Measure): Float64Array {
  if (kept.version !== store.version) kept = {version: store.version, of: new Map()};
  return entryOf(kept.of, key, () => Float64Array.from(store.names, (_, i) => metric(store, key, i)));
}

export function metricText(key: Measure, value: number): string {
  if (Number.isNaN(value)) return '–';
  if (key === 'change') return changeText(value);
  return METRICS[key].share ? shareText(value) : METRICS[key].count ? countText(value) : numberText(value);
}

/** ‖A−B‖/‖A‖ of a tensor: 0 if it is equal, Infinity if A is zero or values are NaN or infinite on one side only, NaN if there is no such number. */
export function changeOf(store: Store, i: number): number {
  if (!store.diff || store.where(i) !== 'both') return NaN;
  const change = store.change.get(i);
  if (!change) return 0;
  if (change.nan_mismatch || Number(change.max_abs) === Infinity) return Infinity;
  if (change.relative_change !== null && change.relative_change !== undefined) return Number(change.relative_change);
  return change.norm_change > 0 ? Infinity : NaN;
}

export const changeText = (value: number): string =>
  value === 0 ? 'equal' : value === Infinity ? '∞' : Number.isNaN(value) ? '–' : numberText(value, 3);

const NOTHING = {count: 0, zeros: 0, nans: 0, infinities: 0, min: null, max: null, mean: null, std: null};

export const noStats = (why: string): Stats => ({...NOTHING, l2: null, rms: null, max_abs: null, none: why});

/** A tensor's statistics as `ballast stats --json` has them, from a row of it. */
export function statsOfRow(row: StatsRow): Stats {
  if (!row.supported) return noStats(row.why_not || `there are no statistics of ${row.dtype}`);
  const numbers: Record<string, unknown> = {...row};
  for (const key of ['min', 'max', 'mean', 'std', 'l1', 'l2', 'max_abs', 'rms']) {
    if (typeof numbers[key] === 'string') numbers[key] = Number(numbers[key]);
  }
  return numbers as unknown as Stats;
}

const LETTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_';

/** The statistics of a report, from its columns. */
export function statsOfColumns(columns: StatsColumns, side: Side): void {
  side.sample = columns.sample;
  const read = (key: 'min' | 'max' | 'mean' | 'std' | 'l2') =>
    columns[key].split(' ').map((text) => (text === 'null' ? null : Number(text)));
  const [min, max, mean, std, l2] = (['min', 'max', 'mean', 'std', 'l2'] as const).map(read);
  for (let i = 0; i < side.count; ++i) {
    if (columns.why_not[i] !== undefined) {
      side.stats[i] = noStats(columns.why_not[i]);
      continue;
    }
    const nans = columns.nans[i] || 0,
      infinities = columns.infinities[i] || 0;
    const count = columns.counts[i] || side.numel(i),
      finite = count - nans - infinities;
    side.stats[i] = {
      count,
      nans,
      infinities,
      zeros: columns.zeros[i] || 0,
      min: min[i],
      max: max[i],
      mean: mean[i],
      std: std[i],
      l2: l2[i],
      rms: finite ? l2[i]! / Math.sqrt(finite) : null,
      max_abs: min[i] === null ? null : Math.max(Math.abs(min[i]!), Math.abs(max[i]!)),
      letters: columns.histograms.slice(i * columns.bins, (i + 1) * columns.bins),
      sampled: columns.sample > 0 && columns.counts[i] < side.numel(i),
    };
  }
}

/** The bins of a histogram: counts, or shares of the largest. */
export function binsOf(stats: Stats): number[] {
  if (stats.histogram) return stats.histogram;
  if (!stats.letters) return [];
  return [...stats.letters].map((letter) => (LETTERS.indexOf(letter) / 63) ** 2);
}

/** A server gives a histogram of the chosen tensor only. */
export const hasHistogram = (stats: Stats): boolean => Boolean(stats.letters ?? stats.histogram?.length);

/** The largest of many numbers: too many to be the arguments of Math.max. */
export const largest = (values: number[]): number => values.reduce((a, b) => Math.max(a, b), -Infinity);

/** The smallest and the largest of many numbers, none of which is NaN. */
export function extent(values: number[]): [low: number, high: number] {
  let low = Infinity,
    high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

/** The middle of some numbers, and how far they usually are from it: neither minds a few odd ones. */
export function medianAndSpread(values: number[]): [median: number, spread: number] {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (sorted.length === 0) return [NaN, NaN];
  const middle = (list: number[]) => (list[(list.length - 1) >> 1] + list[list.length >> 1]) / 2;
  const median = middle(sorted);
  return [median, middle(sorted.map((value) => Math.abs(value - median)).sort((a, b) => a - b))];
}
