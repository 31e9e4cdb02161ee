// What the user looks at. All of it stands in the address behind the #, so that back, forward and reload work.

import {isMetric, type Measure} from './metrics';
import type {Source} from './source';
import type {Store} from './store';
import {matcher} from './text';

export const VIEW_NAMES = ['map', 'table', 'layers', 'difference', 'adapter', 'file'] as const;
export type ViewName = (typeof VIEW_NAMES)[number];

export interface State {
  view: ViewName;
  prefix: string;
  query: string;
  dtypes: string[];
  tensor: number;
  color: Measure | 'dtype';
  fold: boolean;
  folded: boolean;
  sort: string;
  down: boolean;
  metric: Measure;
}

const DEFAULTS: State = {
  view: 'map',
  prefix: '',
  query: '',
  dtypes: [],
  tensor: -1,
  color: 'dtype',
  fold: true,
  folded: true,
  sort: 'name',
  down: false,
  metric: 'norm',
};

export const state: State = {...DEFAULTS};
export let store: Store;
export let source: Source;
export let draw: (changes: Partial<State>) => void = () => {};

/** Before anything is drawn: what is shown, and who draws it. */
export function begin(ofStore: Store, ofSource: Source, drawAll: typeof draw, defaults: Partial<State>): void {
  store = ofStore;
  source = ofSource;
  draw = drawAll;
  Object.assign(DEFAULTS, defaults);
  readState();
}

export const isBegun = (): boolean => store !== undefined;

function stateText(): string {
  const words = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (key === 'tensor') {
      if (value >= 0) words.set('tensor', store.names[value]);
    } else if (JSON.stringify(value) !== JSON.stringify(DEFAULTS[key as keyof State])) {
      words.set(key, Array.isArray(value) ? value.join(',') : String(value));
    }
  }
  return words.toString();
}

export function readState(): void {
  const words = new URLSearchParams(location.hash.slice(1));
  const read: Record<string, unknown> = {...DEFAULTS};
  for (const [key, usual] of Object.entries(DEFAULTS)) {
    const text = words.get(key);
    if (text === null) continue;
    if (key === 'tensor') read.tensor = store.numbers.get(text) ?? -1;
    else if (key === 'dtypes') read.dtypes = text.split(',');
    else read[key] = typeof usual === 'boolean' ? text === 'true' : text;
  }
  Object.assign(state, read);
  const isMeasure = (word: string): boolean => isMetric(word) || (word === 'change' && store.isPair);
  if (!VIEW_NAMES.includes(state.view)) state.view = DEFAULTS.view;
  if (state.color !== 'dtype' && !isMeasure(state.color)) state.color = DEFAULTS.color;
  if (!isMeasure(state.metric)) state.metric = DEFAULTS.metric;
}

/** Changes what is looked at. A step that people would want to take back becomes one of the browser's history. */
export function go(changes: Partial<State>): void {
  const isStep = (['view', 'prefix', 'tensor'] as const).some((key) => key in changes && changes[key] !== state[key]);
  Object.assign(state, changes);
  const text = '#' + stateText();
  if (isStep) history.pushState(null, '', text);
  else history.replaceState(null, '', text);
  draw(changes);
}

// The last lists, with the prefix and without: whoever gets the same list again need not work again.
const lists = new Map<boolean, {key: string; list: number[]}>();

/** The tensors that the search box, the dtypes and the prefix leave, by number. */
export function shown(withPrefix = true): number[] {
  const key = JSON.stringify([state.query, state.dtypes, withPrefix ? state.prefix : '']),
    last = lists.get(withPrefix);
  if (last?.key === key) return last.list;
  const matches = matcher(state.query);
  const list = [];
  const isUnder = state.prefix && withPrefix ? underPrefix(state.prefix) : null;
  for (let i = 0; i < store.count; ++i) {
    if (isUnder && !isUnder(i)) continue;
    if (matches && !matches(store.lower(i))) continue;
    if (state.dtypes.length && !state.dtypes.includes(store.dtype(i))) continue;
    list.push(i);
  }
  lists.set(withPrefix, {key, list});
  return list;
}

/** A prefix may be of names ("model.layers.3.") or of patterns ("model.layers.#."). */
function underPrefix(prefix: string): (i: number) => boolean {
  if (!prefix.includes('#')) return (i) => store.names[i].startsWith(prefix);
  return (i) => store.patterns[i].startsWith(prefix) || store.names[i].startsWith(prefix);
}
