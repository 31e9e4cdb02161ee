// Scales of numbers, where d3-scale has to be told what kind of scale serves.

import {scaleLinear, scaleLog} from 'd3-scale';

/** From values to 0…1. */
export interface Spread {
  at(value: number): number;
  low: number;
  high: number;
  isLog: boolean;
}

/** A scale of numbers that may spread over many magnitudes: logarithmic if all are positive and the largest is far from the smallest. */
export function spreadOf(values: number[]): Spread {
  let low = Infinity,
    high = -Infinity,
    least = Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
    if (value > 0 && value < least) least = value;
  }
  if (low > high) return {at: () => 1, low: NaN, high: NaN, isLog: false};
  if (low >= 0 && least < Infinity && high / least > 30) {
    const bottom = Math.max(least, high * 1e-9),
      scale = scaleLog([bottom, high], [0, 1]).clamp(true);
    return {low: bottom, high, isLog: true, at: (value) => (value > 0 ? scale(value) : 0)};
  }
  return {low, high, isLog: false, at: scaleLinear([low, high], [0, 1]).clamp(true)};
}
