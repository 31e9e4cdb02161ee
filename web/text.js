// Words and numbers for people.

// Characters that would change how the text around them looks, or not be seen: shown as their numbers.
const UNSEEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb\ufffd]|[\ud800-\udfff]|[\u{e0000}-\u{e0fff}]/gu;

/** A text of a file as one line of visible characters. */
function visible(text) {
  return String(text).replace(UNSEEN, (c) => '\\u' + c.codePointAt(0).toString(16).padStart(4, '0'));
}

/** The same for a text of several lines. */
function visibleLines(text) {
  return String(text)
    .replace(/\r\n/g, '\n')
    .replace(UNSEEN, (c) => (c === '\n' || c === '\t' ? c : '\\u' + c.codePointAt(0).toString(16).padStart(4, '0')));
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB'];

function bytesText(bytes) {
  let unit = 0;
  let value = Number(bytes);
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    ++unit;
  }
  return (unit === 0 ? String(value) : value.toPrecision(3)) + '\u00a0' + UNITS[unit];
}

/** 11 008, 1.23 M */
function countText(count) {
  const value = Number(count);
  if (value < 1e6) return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');
  for (const [size, word] of [
    [1e12, 'T'],
    [1e9, 'B'],
    [1e6, 'M'],
  ]) {
    if (value >= size) return (value / size).toPrecision(3) + '\u00a0' + word;
  }
  return String(value);
}

function plural(count, noun) {
  return `${countText(count)}\u00a0${noun}${count === 1 ? '' : 's'}`;
}

/** Four digits, with an exponent where zeros would be counted. */
function numberText(value, digits = 4) {
  if (value === null || value === undefined) return '–';
  if (typeof value !== 'number') return String(value);
  if (Number.isNaN(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  const text =
    size >= 1e5 || size < 1e-3 ? value.toExponential(digits - 1).replace('e+', 'e') : String(Number(value.toPrecision(digits)));
  return text.replace(/^-/, '−').replace('e-', 'e−');
}

function shareText(share) {
  if (share === null || Number.isNaN(share)) return '–';
  if (share === 0) return '0';
  return share < 0.0001
    ? '<0.01\u00a0%'
    : (100 * share).toPrecision(share === 1 ? 3 : 2).replace(/\.?0+$/, (s) => (s.includes('.') ? '' : s)) + '\u00a0%';
}

const shapeText = (shape) => '[' + shape.join(', ') + ']';

/** A word of a shell. */
function shellWord(text) {
  return /^[A-Za-z0-9_.,:\/@%+=-]+$/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'";
}

/** A string of C++ or Python: JSON's escapes are theirs, too, but for C++'s \u of controls. */
function quoted(text) {
  return JSON.stringify(text).replace(
    /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'),
  );
}

/** "h.12.attn" as ["h", "12", "attn"], and with the separators, so that the parts can be put together again. */
const partsOf = (name) => name.split(/(?<=[.\/])/);

/** "layers.#.up_proj": names that differ only in numbers. */
const patternOf = (name) => name.replace(/(^|[.\/_-])\d+(?=$|[.\/_-])/g, '$1#');

/** Whether names match what is in the search box: a glob if it has a wildcard, else a part of the name. */
function matcher(query) {
  const words = query.trim().toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return null;
  const tests = words.map((word) => {
    if (!/[*?#]/.test(word)) return (name) => name.includes(word);
    const source = word
      .replace(/[.+^${}()|\[\]\\\/]/g, '\\$&')
      .replace(/\*+/g, '.*')
      .replace(/\?/g, '.')
      .replace(/#/g, '\\d+');
    const pattern = new RegExp('^' + source + '$');
    return (name) => pattern.test(name);
  });
  return (name) => {
    const lower = name.toLowerCase();
    return tests.every((test) => test(lower));
  };
}

const collator = new Intl.Collator('en', {numeric: true});
