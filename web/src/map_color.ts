// What colour a cell of the map has.

import {css, kindColor, rampRgb, shade} from './color';
import {largest, medianAndSpread, metric, type Measure} from './metrics';
import type {Spread} from './scale';
import {state, store} from './state';
import {themeColor} from './theme';
import {tensorsUnder, type TreeNode} from './tree';

/** A number for the last word of a name, so that the same role has the same shade in every layer. */
function roleStep(name: string): number {
  let sum = 0;
  for (const c of name) sum = (sum * 31 + c.codePointAt(0)!) % 1009;
  return sum;
}

/** The value of a leaf: of one tensor, or the middle of several; NaN while nothing is known. */
export function leafValue(node: TreeNode, key: Measure): number {
  const tensors = tensorsUnder(node);
  if (tensors.length === 1) return metric(store, key, tensors[0]);
  const values = [];
  for (const i of tensors) {
    const value = metric(store, key, i);
    if (!Number.isNaN(value)) values.push(value);
  }
  if (values.length === 0) return NaN;
  // Damage must not disappear in the middle of many.
  if (key === 'nans' || key === 'change') return largest(values);
  return medianAndSpread(values)[0];
}

export function biggestDtype(node: TreeNode): string {
  const bytes = new Map<string, number>();
  for (const i of tensorsUnder(node)) bytes.set(store.dtype(i), (bytes.get(store.dtype(i)) ?? 0) + store.bytes(i) + 1);
  return [...bytes].sort((a, b) => b[1] - a[1])[0][0];
}

/** `spread` is of the values of all leaves, if the colour is a value. */
export function leafColor(node: TreeNode, spread: Spread | null): string {
  if (state.color === 'dtype') return shade(store.dtypeColor(biggestDtype(node)), roleStep(node.name));
  const value = leafValue(node, state.color);
  if (state.color === 'change') {
    const [first] = tensorsUnder(node);
    if (store.where(first) !== 'both') return kindColor(store.where(first) === 'a' ? 3 : 1);
    if (value === 0) return themeColor('equal');
  }
  if (Number.isNaN(value) || !spread) return themeColor('unknown');
  if (state.color === 'nans' && value > 0) return themeColor('bad');
  return css(rampRgb(0.08 + 0.92 * spread.at(value)));
}
