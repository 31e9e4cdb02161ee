// What colour a cell of the map has.

import {css, kindColor, rampRgb, shade} from './color';
import {largest, medianAndSpread, metrics, type Measure} from './metrics';
import type {Spread} from './scale';
import {state, store} from './state';
import {entryOf, partsOf} from './text';
import {isDark, themeColor} from './theme';
import {firstUnder, tensorsUnder, type TreeNode} from './tree';

const roleSteps = new Map<string, number>();

/** A number for the role of a pattern, its last two words: the same role has the same shade in every layer. */
function roleStep(pattern: string): number {
  return entryOf(roleSteps, pattern, () => {
    let sum = 0;
    for (const c of partsOf(pattern).slice(-2).join('')) sum = (sum * 31 + c.codePointAt(0)!) % 1009;
    return sum;
  });
}

/** The value of a leaf: of one tensor, or the middle of several; NaN while nothing is known. */
export function leafValue(node: TreeNode, key: Measure): number {
  const all = metrics(store, key);
  if (node.count === 1) return all[firstUnder(node)];
  const values = tensorsUnder(node)
    .map((i) => all[i])
    .filter((value) => !Number.isNaN(value));
  if (values.length === 0) return NaN;
  // Damage must not disappear in the middle of many.
  if (key === 'nans' || key === 'change') return largest(values);
  return medianAndSpread(values)[0];
}

export function biggestDtype(node: TreeNode): string {
  if (node.count === 1) return store.dtype(firstUnder(node));
  if (node.dtype) return node.dtype;
  const bytes = new Map<string, number>();
  for (const i of tensorsUnder(node)) bytes.set(store.dtype(i), (bytes.get(store.dtype(i)) ?? 0) + store.bytes(i) + 1);
  return (node.dtype = [...bytes].sort((a, b) => b[1] - a[1])[0][0]);
}

let ofTensors: {isDark: boolean; colors: string[]} = {isDark: false, colors: []};

function dtypeColor(node: TreeNode): string {
  const first = firstUnder(node),
    color = (): string => shade(store.dtypeColor(biggestDtype(node)), roleStep(store.patterns[first]));
  if (node.count > 1) return color();
  if (ofTensors.isDark !== isDark()) ofTensors = {isDark: isDark(), colors: []};
  return (ofTensors.colors[first] ??= color());
}

const STEPS = 255;
const ramps = new Map<boolean, string[]>();

/** A colour of the ramp, from 0 to 1: as finely as anybody sees. */
function rampColor(at: number): string {
  let colors = ramps.get(isDark());
  if (!colors) ramps.set(isDark(), (colors = Array.from({length: STEPS + 1}, (_, i) => css(rampRgb(i / STEPS)))));
  return colors[Math.round(at * STEPS)];
}

/** Where the ramp begins: what changed at all must not look equal. */
export const rampStart = (color: Measure): number => (color === 'change' ? 0.3 : 0.08);

/** `spread` is of the values of all leaves, if the colour is a value. */
export function leafColor(node: TreeNode, spread: Spread | null): string {
  if (state.color === 'dtype') return dtypeColor(node);
  const value = leafValue(node, state.color);
  if (state.color === 'change') {
    const where = store.where(firstUnder(node));
    if (where !== 'both') return kindColor(where === 'a' ? 3 : 1);
    if (tensorsUnder(node).some((i) => store.change.get(i)?.what === 'shape')) return themeColor('bad');
    if (value === 0) return themeColor('equal');
  }
  if (Number.isNaN(value) || !spread) return themeColor('unknown');
  if (state.color === 'nans' && value > 0) return themeColor('bad');
  const start = rampStart(state.color);
  return rampColor(start + (1 - start) * spread.at(value));
}
