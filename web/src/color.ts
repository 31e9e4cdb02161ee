// Colours: safe for people who see fewer of them, and the same meaning in light and dark.

import {scaleLinear} from 'd3-scale';
import {entryOf} from './text';
import {isDark} from './theme';

// Hues that stay apart for every kind of colour blindness (after Okabe and Ito), muted so that many of them stay calm.
const KINDS = {
  light: ['#4a86ad', '#dc9750', '#559f88', '#bb7ba4', '#93b8d4', '#c8b956', '#c2634b', '#80868e', '#7578b8', '#9ca871'],
  dark: ['#3d7091', '#b0763e', '#448471', '#96638a', '#6f90aa', '#9c9045', '#a35945', '#737981', '#686ba3', '#7d8759'],
};
export const kindColor = (i: number): string => KINDS[isDark() ? 'dark' : 'light'][i % 10];

/** The same colour, a little lighter or darker: neighbours of one kind stay apart without a second meaning. */
export function shade(color: string, step: number): string {
  return entryOf(shades, `${color} ${step % 5} ${isDark()}`, () => shaded(color, step));
}

const shades = new Map<string, string>();

function shaded(color: string, step: number): string {
  const by = [0, 0.1, -0.07, 0.17, -0.13][step % 5];
  const to = by > 0 ? (isDark() ? 225 : 255) : 20;
  return css(
    [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16)).map((part) => Math.round(part + (to - part) * Math.abs(by))),
  );
}

// From little to much, monotone in lightness: towards the background is little.
const LIGHT_RAMP = [
  [236, 240, 243],
  [196, 214, 224],
  [140, 180, 201],
  [88, 140, 173],
  [52, 98, 140],
  [30, 56, 96],
];
const DARK_RAMP = [
  [36, 43, 52],
  [38, 66, 88],
  [45, 97, 125],
  [66, 135, 157],
  [118, 177, 184],
  [205, 226, 220],
];
// Below zero, zero, above zero: blue and orange.
const LIGHT_DIVERGING = [
  [27, 78, 131],
  [90, 148, 192],
  [186, 210, 226],
  [246, 246, 244],
  [240, 208, 172],
  [216, 140, 74],
  [150, 74, 22],
];
const DARK_DIVERGING = [
  [150, 200, 240],
  [84, 146, 196],
  [44, 82, 116],
  [28, 31, 36],
  [110, 66, 34],
  [200, 122, 58],
  [252, 196, 140],
];

type Rgb = number[];

/** A scale from 0 to 1 over these colours. It gives the same array each time, with other numbers in it. */
const ramp = (stops: Rgb[]) =>
  scaleLinear<Rgb>(
    stops.map((_, i) => i / (stops.length - 1)),
    stops,
  ).clamp(true);

const lightRamp = ramp(LIGHT_RAMP),
  darkRamp = ramp(DARK_RAMP),
  lightDiverging = ramp(LIGHT_DIVERGING),
  darkDiverging = ramp(DARK_DIVERGING);

export const rampRgb = (at: number): Rgb => (isDark() ? darkRamp : lightRamp)(at);
export const divergingRgb = (at: number): Rgb => (isDark() ? darkDiverging : lightDiverging)(at);
export const css = (rgb: Rgb): string => `rgb(${rgb.map(Math.round).join()})`;

/** Of "#1f6f8b" and "rgb(31,111,139)". */
const rgbOf = (color: string): Rgb =>
  color.startsWith('#') ? [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16)) : (color.match(/\d+/g) ?? []).map(Number);

const pixels = new Map<string, number>();

/** A colour as a number of an ImageData's 32 bits. */
export const pixelOf = (color: string): number =>
  entryOf(pixels, color, () => new Uint32Array(Uint8Array.of(...rgbOf(color), 255).buffer)[0]);

/** Whether dark text is read better on this colour. */
export function wantsDarkText(color: string): boolean {
  const [r, g, b] = rgbOf(color);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140;
}
