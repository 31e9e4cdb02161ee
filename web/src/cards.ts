// Cards with a title, and the lists and tables in them.

import {h, type Child} from './dom';
import {countText, visible, visibleLines} from './text';

export function card(title: string, content: Child, kind = ''): HTMLElement {
  return h('section', {class: 'card ' + kind}, h('h2', {}, title), content);
}

/** What is said of a list that is cut. */
export const cutNote = (shown: number, of: number): HTMLElement | null =>
  of > shown ? h('p', {class: 'hint'}, `The first ${countText(shown)} of ${countText(of)}.`) : null;

/** Names and values; what has no value is left out. */
export function factList(rows: [string, Child][]): HTMLElement {
  return h(
    'dl',
    {class: 'facts'},
    rows
      .filter(([, value]) => value !== null && value !== undefined && value !== '')
      .map(([key, value]) => [h('dt', {}, key), h('dd', {}, value)]),
  );
}

export function tableOf(rows: [head: Child, cell: Child][]): HTMLElement {
  return h(
    'table',
    {class: 'definitions'},
    h(
      'tbody',
      {},
      rows.map(([head, cell]) => h('tr', {}, h('th', {scope: 'row'}, head), h('td', {}, cell))),
    ),
  );
}

/** Metadata: a long value unfolds. */
export function definitionTable(rows: [key: string, value: unknown, type?: string][]): HTMLElement {
  return tableOf(
    rows.map(([key, value, type]) => {
      const text = visibleLines(typeof value === 'object' ? JSON.stringify(value) : value);
      const isLong = text.length > 300 || text.includes('\n');
      return [
        [visible(key), type ? h('small', {}, type) : null],
        isLong
          ? h('details', {}, h('summary', {}, text.slice(0, 120).replace(/\s+/g, ' ') + '…'), h('pre', {tabindex: 0}, text))
          : text,
      ];
    }),
  );
}
