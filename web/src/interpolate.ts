// Stands in for d3-interpolate: d3-scale needs numbers and lists of numbers here, and the rest of it, with d3-color, is
// 16 kB.

type Values = number | number[];

export const interpolateNumber = (a: number, b: number) => (t: number) => a * (1 - t) + b * t;

export const interpolateRound = (a: number, b: number) => (t: number) => Math.round(a * (1 - t) + b * t);

/** Of a list, the function gives the same list each time, with other numbers in it. */
export function interpolate(a: Values, b: Values): (t: number) => Values {
  if (typeof a === 'number') return interpolateNumber(a, b as number);
  const parts = a.map((value, i) => interpolateNumber(value, (b as number[])[i])),
    list = a.slice();
  return (t) => {
    parts.forEach((part, i) => (list[i] = part(t)));
    return list;
  };
}

/** Of diverging scales, which nobody makes here. */
export function piecewise(): never {
  throw new Error('the page has no piecewise scale');
}
