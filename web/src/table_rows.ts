// The rows of the table: tensors, or patterns of names that unfold to them, in the order of a column.

import {largest, medianAndSpread, metricText, metrics, type Measure} from './metrics';
import {shown, state, store} from './state';
import type {Where} from './store';
import {bytesText, entryOf, numberText, shapeText} from './text';

export interface Row {
  key: string; // of a pattern, to know it again
  name: string;
  tensors: number[];
  level: 0 | 1;
  bytes: number;
  dtype: string;
  shape: number[];
  where: Where;
}

export interface Column {
  key: string;
  label: string;
  right?: boolean;
  of(row: Row): string | number;
  text(row: Row): string;
}

/** The patterns that are unfolded, by their keys. */
export const openPatterns = new Set<string>();

// What a column shows of a row that stands for several tensors.
export const OF_PATTERNS: Record<string, string> = {
  min: 'of a pattern: the smallest',
  max: 'of a pattern: the largest',
  std: 'of a pattern: the median',
  zeros: 'of a pattern: the median',
  nans: 'of a pattern: the sum',
  change: '‖A−B‖ / ‖A‖; of a pattern: the largest',
};

export function tableColumns(): Column[] {
  const stat = (key: Measure, label: string): Column => ({
    key,
    label,
    right: true,
    of: (row) => rowValue(row, key),
    text: (row) => metricText(key, rowValue(row, key)),
  });
  const raw = (key: 'min' | 'max', label: string): Column => ({
    key,
    label,
    right: true,
    of: (row) => rowStat(row, key),
    text: (row) => numberText(rowStat(row, key)),
  });
  const columns: Column[] = [
    {key: 'name', label: 'Name', of: (row) => store.sortKey(row.tensors[0]), text: (row) => row.name},
    {key: 'dtype', label: 'dtype', of: (row) => row.dtype, text: (row) => changeText(row, 'dtype')},
    {key: 'shape', label: 'Shape', of: (row) => row.shape.reduce((a, b) => a * b, 1), text: (row) => changeText(row, 'shape')},
    {key: 'bytes', label: 'Bytes', right: true, of: (row) => row.bytes, text: (row) => bytesText(row.bytes)},
  ];
  if (store.isPair)
    columns.push(stat('change', 'Change'), {
      key: 'where',
      label: 'In',
      of: (row) => row.where,
      text: (row) => ({a: 'only A', b: 'only B', both: 'both'})[row.where],
    });
  columns.push(raw('min', 'Min'), raw('max', 'Max'), stat('std', 'Std'), stat('zeros', 'Zeros'), stat('nans', 'NaN'));
  return columns;
}

interface Known {
  version: number; // of the store, when these were computed
  values: Map<string, number>;
}
const knownOf = new WeakMap<Row, Known>();

/** A number of a pattern, which may be of many thousand tensors: computed anew only if something came to be known. */
function remembered(row: Row, key: string, compute: () => number): number {
  if (row.tensors.length === 1) return compute();
  let known = knownOf.get(row);
  if (known?.version !== store.version) knownOf.set(row, (known = {version: store.version, values: new Map()}));
  return entryOf(known.values, key, compute);
}

/** A number of a row: of its tensor, or the worst of a pattern where that is what matters. */
function rowValue(row: Row, key: Measure): number {
  return remembered(row, key, () => {
    const all = metrics(store, key),
      values = row.tensors.map((i) => all[i]).filter((value) => !Number.isNaN(value));
    if (values.length === 0) return NaN;
    if (values.length === 1) return values[0];
    if (key === 'change') return largest(values);
    return key === 'nans' ? values.reduce((a, b) => a + b, 0) : medianAndSpread(values)[0];
  });
}

function rowStat(row: Row, key: 'min' | 'max'): number {
  return remembered(row, key, () => {
    let best = NaN;
    for (const i of row.tensors) {
      const value = store.stats(i)?.[key] ?? null;
      if (value !== null && !(key === 'min' ? value >= best : value <= best)) best = value;
    }
    return best;
  });
}

/** A dtype or a shape, and that on the other side if it is another one there. */
function bothOf(i: number, key: 'dtype' | 'shape'): string[] {
  const [a, b] = store.sides.map((side) => {
    const k = store.on(side.number, i);
    return k < 0 ? undefined : key === 'dtype' ? side.dtype(k) : shapeText(side.shape(k));
  });
  return [a ?? b!, b ?? a!].filter((text, at, both) => at === 0 || text !== both[0]);
}

const changeText = (row: Row, key: 'dtype' | 'shape'): string => bothOf(row.tensors[0], key).join(' → ');

function rowOf(name: string, tensors: number[], level: 0 | 1, key = ''): Row {
  const first = tensors[0];
  const bytes = tensors.reduce((sum, i) => sum + store.bytes(i), 0);
  return {key, name, tensors, level, bytes, dtype: store.dtype(first), shape: store.shape(first), where: store.where(first)};
}

function sortRows(rows: Row[]): Row[] {
  const columns = tableColumns(),
    column = columns.find((c) => c.key === state.sort) ?? columns[0];
  const keys = new Map(rows.map((row) => [row, column.of(row)]));
  const sign = state.down ? -1 : 1;
  const isText = column.key === 'name' || column.key === 'dtype' || column.key === 'where';
  rows.sort((a, b) => {
    const x = keys.get(a)!,
      y = keys.get(b)!;
    if (isText) return x === y ? 0 : x < y ? -sign : sign;
    // What is not known comes last, in both directions.
    if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y));
    return sign * (Number(x) - Number(y));
  });
  return rows;
}

const STATIC = ['name', 'dtype', 'shape', 'bytes', 'where'];

/** Whether the order of the rows depends on what is known of values. */
export const isSortedByStatistic = (): boolean => !STATIC.includes(state.sort) && state.sort !== 'change';

interface Heads {
  list: number[];
  rows: Row[];
  order: string; // what they are sorted by
}
const headsOf = new Map<boolean, Heads>(); // folded, and not

/** The rows that are always there. What was made and sorted before is taken again. */
function heads(list: number[], folded: boolean): Row[] {
  let known = headsOf.get(folded);
  if (known?.list !== list) {
    known = {list, rows: folded ? patternRows(list) : list.map((i) => rowOf(store.names[i], [i], 0)), order: ''};
    headsOf.set(folded, known);
  }
  const order = JSON.stringify([state.sort, state.down, STATIC.includes(state.sort) || store.version]);
  if (order !== known.order) sortRows(known.rows);
  known.order = order;
  return known.rows;
}

const keys: string[] = [];

/** What tensors of one row have in common. */
const keyOf = (i: number): string =>
  (keys[i] ??= [store.patterns[i], ...bothOf(i, 'dtype'), ...bothOf(i, 'shape'), store.where(i)].join('\n'));

function patternRows(list: number[]): Row[] {
  const groups = new Map<string, number[]>();
  for (const i of list) entryOf(groups, keyOf(i), () => [] as number[]).push(i);
  return [...groups].map(([key, tensors]) =>
    rowOf(tensors.length === 1 ? store.names[tensors[0]] : store.patterns[tensors[0]], tensors, 0, key),
  );
}

/** Patterns with their tensors, or the tensors alone. */
export function buildRows(): Row[] {
  const rows: Row[] = [];
  for (const head of heads(shown(), state.folded)) {
    rows.push(head);
    if (head.tensors.length === 1 || !openPatterns.has(head.key)) continue;
    for (const row of sortRows(head.tensors.map((i) => rowOf(store.names[i], [i], 1)))) rows.push(row);
  }
  return rows;
}
