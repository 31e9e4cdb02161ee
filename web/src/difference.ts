// The difference of two checkpoints: what changed at all, and the worst tensors first.

import {card, cutNote, factList, tableOf} from './cards';
import type {Change, Diff} from './documents';
import {byId, find, h, replace, type Child} from './dom';
import {changeOf, changeText, extent} from './metrics';
import {Refused} from './source';
import {draw, go, source, state, store} from './state';
import {forgetTensor} from './tensor';
import {countText, entryOf, matcher, numberText, patternOf, plural, shapeText, visible} from './text';

const MOST_CHANGES = 200,
  MOST_PATTERNS = 300;

/** Why there is no difference, if asking for it failed. */
export let whyNoDifference = '';

let isAsked = false,
  share = 0,
  drawnKey = '';

/** Asks for the comparison, and again only if no answer came; the map, the strips and the table use it, too. */
export function loadDifference(): void {
  if (!store.isPair || isAsked) return;
  isAsked = true;
  whyNoDifference = '';
  const progress = (done: number): void => {
    share = done;
    const bar = find('diff-progress') as HTMLProgressElement | null;
    if (bar) bar.value = share;
  };
  source.document<Diff>('diff', progress).then(
    (diff) => {
      store.diff = diff;
      store.version += 1;
      for (const change of diff?.changed ?? []) store.change.set(store.numbers.get(change.name)!, change);
    },
    (error: Error) => {
      isAsked = error instanceof Refused;
      whyNoDifference = error.message;
    },
  ).then(() => {
    forgetTensor();
    draw({});
  });
}

const keyOf = (): string => JSON.stringify([state.query, whyNoDifference, Boolean(store.diff)]);

export function updateDifference(): void {
  if (drawnKey !== keyOf()) fill(byId('main'));
}

export function drawDifference(main: HTMLElement): void {
  loadDifference();
  fill(main);
}

function fill(main: HTMLElement): void {
  drawnKey = keyOf();
  if (whyNoDifference) return replace(main, h('p', {class: 'none'}, whyNoDifference));
  if (!store.diff) {
    const bar = h('progress', {'id': 'diff-progress', 'max': 1, 'value': share, 'aria-label': 'Comparing'});
    return replace(main, h('p', {class: 'wait'}, 'Comparing… ', bar));
  }
  replace(main, h('div', {class: 'file'}, h('div', {class: 'cards'}, cardsOf(store.diff))));
}

function cardsOf(diff: Diff): Child[] {
  const matches = matcher(state.query);
  const hit = (name: string): boolean => !matches || matches(name.toLowerCase());
  const hits = diff.changed.filter((change) => hit(change.name)),
    numbersOf = (list: Change[]): number[] => list.map((change) => store.numbers.get(change.name)!);
  const reshaped = numbersOf(hits.filter(({what}) => what === 'shape')),
    changed = numbersOf(hits.filter(({what}) => what !== 'shape'));
  const rank = (i: number): number => {
    const value = changeOf(store, i);
    return Number.isNaN(value) ? -1 : value;
  };
  changed.sort((a, b) => rank(b) - rank(a));
  return [
    card('In all', inAll(diff)),
    diff.dtype_costs?.length ? card('Dtypes', costsOf(diff.dtype_costs)) : null,
    reshaped.length ? changeCard('Another shape', reshaped) : null,
    changed.length ? changeCard('The worst first', changed) : null,
    onlyCard('Only in A', diff.only_in_a.filter(hit)),
    onlyCard('Only in B', diff.only_in_b.filter(hit)),
  ];
}

function inAll(diff: Diff): Child[] {
  const {relative_change = null, cosine = null} = diff.overall ?? {};
  return [
    h(
      'p',
      {class: 'verdict ' + (diff.equal ? 'safe' : 'unknown')},
      diff.equal
        ? 'The two are equal.'
        : `${plural(diff.changed.length, 'tensor')} changed, ${countText(diff.equal_tensors)} equal.`,
    ),
    factList([
      ['A', visible(store.sides[0].target)],
      ['B', visible(store.sides[1].target)],
      ['‖A−B‖ / ‖A‖', relative_change === null ? null : numberText(Number(relative_change))],
      ['cosine', cosine === null ? null : numberText(Number(cosine), 7)],
      ['only in A', countText(diff.only_in_a.length)],
      ['only in B', countText(diff.only_in_b.length)],
      ['names', diff.names],
      ['prefix', diff.prefix && visible(diff.prefix)],
    ]),
  ];
}

function costsOf(costs: NonNullable<Diff['dtype_costs']>): HTMLElement {
  return tableOf(
    costs.map(({dtype_a, dtype_b, tensors, relative_change, worst}) => [
      `${dtype_a} → ${dtype_b}`,
      `${plural(tensors, 'tensor')}, ${numberText(Number(relative_change))} in all, ` +
        `${worst === null ? '–' : numberText(Number(worst))} at worst`,
    ]),
  );
}

function whatChanged(change: Change): string {
  if (change.what === 'shape') return `${shapeText(change.shape_a)} → ${shapeText(change.shape_b)}`;
  return change.dtype_a === change.dtype_b ? change.what : `${change.dtype_a} → ${change.dtype_b}`;
}

function changeCard(title: string, numbers: number[]): HTMLElement {
  return card(title, [changeList(numbers.slice(0, MOST_CHANGES)), cutNote(MOST_CHANGES, numbers.length)], 'wide');
}

function changeList(numbers: number[]): HTMLElement {
  const most = extent([1e-300, ...numbers.map((i) => changeOf(store, i)).filter(Number.isFinite)])[1];
  const widthOf = (value: number): number =>
    Number.isFinite(value) ? Math.max(1, (100 * value) / most) : value === Infinity ? 100 : 0;
  const rowOf = (i: number): HTMLElement => {
    const value = changeOf(store, i);
    return h(
      'button',
      {type: 'button', onclick: () => go({tensor: i})},
      h('span', {class: 'name'}, visible(store.names[i])),
      h('span', {class: 'what'}, whatChanged(store.change.get(i)!)),
      h('span', {'class': 'meter', 'aria-hidden': 'true'}, h('span', {style: {width: widthOf(value) + '%'}})),
      h('span', {class: 'number'}, changeText(value)),
    );
  };
  return h(
    'ol',
    {class: 'worst'},
    numbers.map((i) => h('li', {}, rowOf(i))),
  );
}

function onlyCard(title: string, names: string[]): HTMLElement | null {
  if (names.length === 0) return null;
  const patterns = new Map<string, string[]>();
  for (const name of names) entryOf(patterns, patternOf(name), () => [] as string[]).push(name);
  const open = (pattern: string, list: string[]): void =>
    list.length === 1 ? go({tensor: store.numbers.get(list[0])!}) : go({view: 'table', query: pattern, folded: false});
  const rowOf = ([pattern, list]: [string, string[]]): HTMLElement =>
    h(
      'button',
      {type: 'button', onclick: () => open(pattern, list)},
      visible(list.length === 1 ? list[0] : pattern),
      list.length > 1 ? h('small', {}, ' ×' + countText(list.length)) : null,
    );
  const rows = [...patterns].slice(0, MOST_PATTERNS).map((entry) => h('li', {}, rowOf(entry)));
  return card(`${title}: ${countText(names.length)}`, [h('ul', {class: 'names'}, rows), cutNote(MOST_PATTERNS, patterns.size)]);
}
