// Words and numbers for people.

// Characters that would change how the text around them looks, or not be seen: shown as their numbers.
const UNSEEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\ufffd]|[\ud800-\udfff]|[\u{e0000}-\u{e0fff}]/gu;

const escaped = (c: string): string => '\\u' + c.codePointAt(0)!.toString(16).padStart(4, '0');

/** A text of a file as one line of visible characters; one of nothing but spaces is quoted. */
export function visible(text: unknown): string {
  const line = String(text).replace(UNSEEN, (c) => escaped(c));
  return /^\s+$/.test(line) ? `"${line}"` : line;
}

/** The same for a text of several lines. */
export function visibleLines(text: unknown): string {
  return String(text)
    .replace(/\r\n/g, '\n')
    .replace(UNSEEN, (c) => (c === '\n' || c === '\t' ? c : escaped(c)));
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB'];

export function bytesText(bytes: number): string {
  let unit = 0;
  let value = bytes;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    ++unit;
  }
  return (unit === 0 ? String(value) : value.toPrecision(3)) + '\u00a0' + UNITS[unit];
}

/** 11 008, 1.23 M */
export function countText(value: number): string {
  if (value < 1e6) return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');
  const [size, word] = value < 1e9 ? [1e6, 'M'] : value < 1e12 ? [1e9, 'B'] : [1e12, 'T'];
  return (value / (size as number)).toPrecision(3) + '\u00a0' + word;
}

export function plural(count: number, noun: string): string {
  return `${countText(count)}\u00a0${noun}${count === 1 ? '' : 's'}`;
}

/** Four digits, with an exponent where zeros would be counted. */
export function numberText(value: number | string | null | undefined, digits = 4): string {
  if (value === null || value === undefined) return '–';
  if (typeof value !== 'number') return String(value);
  if (Number.isNaN(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  const rounded = Number(value.toPrecision(digits));
  const text = size >= 1e5 || size < 1e-3 ? rounded.toExponential().replace('e+', 'e') : String(rounded);
  return text.replace(/^-/, '−').replace('e-', 'e−');
}

export function shareText(share: number | null): string {
  if (share === null || Number.isNaN(share)) return '–';
  if (share === 0) return '0';
  return share < 0.0001
    ? '<0.01\u00a0%'
    : (100 * share).toPrecision(share === 1 ? 3 : 2).replace(/\.?0+$/, (s) => (s.includes('.') ? '' : s)) + '\u00a0%';
}

export const shapeText = (shape: number[]): string => '[' + shape.join(', ') + ']';

/** A word of a shell. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_.,:\/@%+=-]+$/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'";
}

/** A string of C++ or Python: JSON's escapes are theirs, too, but for C++'s \u of controls. */
export function quoted(text: string): string {
  return JSON.stringify(text).replace(
    /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'),
  );
}

/** "h.12.attn" as ["h", "12", "attn"], and with the separators, so that the parts can be put together again. */
export const partsOf = (name: string): string[] => name.split(/(?<=[.\/])/);

/** "layers.#.up_proj": names that differ only in numbers. */
export const patternOf = (name: string): string => name.replace(/(^|[.\/_-])\d+(?=$|[.\/_-])/g, '$1#');

/** Whether names in small letters match what is in the search box: a glob if it has a wildcard, else a part of the name. */
export function matcher(query: string): ((name: string) => boolean) | null {
  const words = query.trim().toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return null;
  const tests = words.map((word) => {
    if (!/[*?#]/.test(word)) return (name: string) => name.includes(word);
    const source = word
      .replace(/[.+^${}()|\[\]\\\/]/g, '\\$&')
      .replace(/\*+/g, '.*')
      .replace(/\?/g, '.')
      .replace(/#/g, '\\d+');
    const pattern = new RegExp('^' + source + '$');
    return (name: string) => pattern.test(name);
  });
  return (name) => tests.every((test) => test(name));
}

/** A name with its numbers in eight digits: in the order of these, "layers.2" is before "layers.10". */
export const numberKey = (name: string): string => name.replace(/\d+/g, (digits) => digits.padStart(8, '0'));

export const collator = new Intl.Collator('en', {numeric: true});

/** The value of a key, which is made if there is none. */
export function entryOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}
