// Colours: safe for people who see fewer of them, and the same meaning in light and dark.

let dark = false;

/** Asked for every cell of a picture. */
const isDark = () => dark;

/** Light or dark: as the user chose it, else as the system has it. */
function applyTheme() {
  const system = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  let chosen = null;
  try {
    chosen = localStorage.getItem('ballast-theme');
  } catch {}
  const theme = (document.documentElement.dataset.theme = chosen === 'light' || chosen === 'dark' ? chosen : system);
  dark = theme === 'dark';
}

/** A page of a file may have no storage: then the choice holds until it is closed. */
function chooseTheme(theme) {
  try {
    localStorage.setItem('ballast-theme', theme);
  } catch {}
  document.documentElement.dataset.theme = theme;
  dark = theme === 'dark';
}

// Hues that stay apart for every kind of colour blindness (after Okabe and Ito), muted so that many of them stay calm.
const KINDS = {
  light: ['#4a86ad', '#dc9750', '#559f88', '#bb7ba4', '#93b8d4', '#c8b956', '#c2634b', '#80868e', '#7578b8', '#9ca871'],
  dark: ['#3d7091', '#b0763e', '#448471', '#96638a', '#6f90aa', '#9c9045', '#a35945', '#737981', '#686ba3', '#7d8759'],
};
const kindColor = (i) => KINDS[isDark() ? 'dark' : 'light'][i % 10];

/** The same colour, a little lighter or darker: neighbours of one kind stay apart without a second meaning. */
function shade(color, step) {
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

function between(stops, at) {
  const place = Math.min(Math.max(at, 0), 1) * (stops.length - 1);
  const i = Math.min(Math.floor(place), stops.length - 2);
  const t = place - i;
  return stops[i].map((value, k) => Math.round(value + (stops[i + 1][k] - value) * t));
}

const rampRgb = (at) => between(isDark() ? DARK_RAMP : LIGHT_RAMP, at);
const divergingRgb = (at) => between(isDark() ? DARK_DIVERGING : LIGHT_DIVERGING, at);
const css = ([r, g, b]) => `rgb(${r},${g},${b})`;

/** Whether dark text is read better on this colour. */
function wantsDarkText(color) {
  const [r, g, b] = color.startsWith('#')
    ? [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16))
    : color.match(/\d+/g).map(Number);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140;
}

/** A colour of the style sheet. */
const themeColor = (name) =>
  getComputedStyle(document.documentElement)
    .getPropertyValue('--' + name)
    .trim();

/**
 * A scale of numbers that may spread over many magnitudes: {at(value) -> 0…1, low, high, isLog}.
 * Logarithmic if all are positive and the largest is far from the smallest.
 */
function scaleOf(values) {
  let low = Infinity,
    high = -Infinity,
    least = Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
    if (value > 0 && value < least) least = value;
  }
  if (low > high) return {at: () => NaN, low: NaN, high: NaN, isLog: false};
  const isLog = low >= 0 && least < Infinity && high / least > 30;
  if (isLog) {
    const bottom = Math.log(Math.max(least, high * 1e-9)),
      width = Math.log(high) - bottom || 1;
    return {low: Math.exp(bottom), high, isLog, at: (v) => (v > 0 ? Math.max(0, (Math.log(v) - bottom) / width) : 0)};
  }
  const width = high - low;
  return {low, high, isLog, at: (v) => (width === 0 ? 0.5 : (v - low) / width)};
}
