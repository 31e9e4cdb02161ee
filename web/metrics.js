// What tensors are coloured, sorted and compared by.

const METRICS = {
  norm: {label: 'RMS', title: 'root of the mean square', of: (s) => s.rms},
  std: {label: 'Std', title: 'standard deviation', of: (s) => s.std},
  max: {label: 'Max', title: 'largest magnitude', of: (s) => s.max_abs},
  zeros: {label: 'Zeros', title: 'share of zeros', of: (s) => (s.count ? s.zeros / s.count : NaN), share: true},
  nans: {label: 'NaN', title: 'values that are no finite numbers', of: (s) => s.nans + s.infinities, count: true},
  mean: {label: 'Mean', title: 'mean', of: (s) => s.mean, signed: true},
};

/** A metric of a tensor of the store; NaN if it is not known. */
function metric(store, key, i) {
  if (key === 'change') return changeOf(store, i);
  const stats = store.stats(i);
  if (!stats || stats.none) return NaN;
  const value = METRICS[key].of(stats);
  return value === null || value === undefined ? NaN : value;
}

function metricText(key, value) {
  if (Number.isNaN(value)) return '–';
  if (key === 'change') return changeText(value);
  return METRICS[key].share ? shareText(value) : METRICS[key].count ? countText(value) : numberText(value);
}

/** ‖A−B‖/‖A‖ of a tensor: 0 if it is equal, NaN if there is no such number. */
function changeOf(store, i) {
  if (!store.diff || store.where(i) !== 'both') return NaN;
  const change = store.change.get(i);
  if (!change) return 0;
  if (change.relative_change !== null && change.relative_change !== undefined) return Number(change.relative_change);
  return change.norm_change > 0 ? Infinity : NaN;
}

const changeText = (value) =>
  value === 0 ? 'equal' : value === Infinity ? 'from zero' : Number.isNaN(value) ? '–' : numberText(value, 3);

/** A tensor's statistics as `ballast stats --json` has them, from a row of it. */
function statsOfRow(row) {
  if (!row.supported) return {none: row.why_not || `there are no statistics of ${row.dtype}`};
  const numbers = {...row};
  for (const key of ['min', 'max', 'mean', 'std', 'l1', 'l2', 'max_abs', 'rms']) {
    if (typeof numbers[key] === 'string') numbers[key] = Number(numbers[key]);
  }
  return numbers;
}

const LETTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_';

/** The statistics of a report, from its columns. */
function statsOfColumns(columns, side) {
  const read = (key) => columns[key].split(' ').map((text) => (text === 'null' ? null : Number(text)));
  const [min, max, mean, std, l2] = ['min', 'max', 'mean', 'std', 'l2'].map(read);
  for (let i = 0; i < side.count; ++i) {
    if (columns.why_not[i] !== undefined) {
      side.stats.set(i, {none: columns.why_not[i]});
      continue;
    }
    const nans = columns.nans[i] || 0,
      infinities = columns.infinities[i] || 0;
    const count = columns.counts[i] || side.numel(i),
      finite = count - nans - infinities;
    side.stats.set(i, {
      count,
      nans,
      infinities,
      zeros: columns.zeros[i] || 0,
      min: min[i],
      max: max[i],
      mean: mean[i],
      std: std[i],
      l2: l2[i],
      rms: finite ? l2[i] / Math.sqrt(finite) : null,
      max_abs: min[i] === null ? null : Math.max(Math.abs(min[i]), Math.abs(max[i])),
      letters: columns.histograms.slice(i * columns.bins, (i + 1) * columns.bins),
      sampled: columns.sample > 0 && columns.counts[i] < side.numel(i),
    });
  }
}

/** The bins of a histogram: counts, or shares of the largest. */
function binsOf(stats) {
  if (stats.histogram) return stats.histogram;
  if (!stats.letters) return [];
  return [...stats.letters].map((letter) => (LETTERS.indexOf(letter) / 63) ** 2);
}

/** The middle of some numbers, and how far they usually are from it: neither minds a few odd ones. */
function medianAndSpread(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (sorted.length === 0) return [NaN, NaN];
  const middle = (list) => (list[(list.length - 1) >> 1] + list[list.length >> 1]) / 2;
  const median = middle(sorted);
  return [median, middle(sorted.map((value) => Math.abs(value - median)).sort((a, b) => a - b))];
}
