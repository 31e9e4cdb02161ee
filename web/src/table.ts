// The table on the screen: only the rows that are seen exist.

import {byId, choice, h, replace, type Child} from './dom';
import {drawDtypeChips} from './legend';
import {go, shown, state, store} from './state';
import {buildRows, isSortedByStatistic, openPatterns, OF_PATTERNS, tableColumns, type Column, type Row} from './table_rows';
import {countText, plural, visible} from './text';
import {want} from './wanted';

const ROW = 30,
  MOST_PRINTED = 5000; // rows

interface TableView {
  grid: HTMLElement;
  head: HTMLElement;
  body: HTMLElement;
  spacer: HTMLElement;
  rows: Row[];
  focus: number;
  most: number; // bytes of a row
}
let view: TableView | null = null;

export function drawTable(main: HTMLElement): void {
  const head = h('div', {class: 'thead', role: 'row'});
  const spacer = h('div', {class: 'spacer'});
  const body = h('div', {class: 'tbody', role: 'rowgroup'}, spacer);
  const grid = h(
    'div',
    {'class': 'grid', 'role': 'treegrid', 'aria-label': 'Tensors', 'tabindex': 0, 'aria-rowcount': 0, 'onkeydown': tableKey},
    h('div', {role: 'rowgroup'}, head),
    body,
  );
  replace(
    main,
    h(
      'div',
      {class: 'tools'},
      choice(
        'Rows',
        [
          {value: true, label: 'Patterns', title: 'names that differ only in numbers are one row'},
          {value: false, label: 'Tensors', title: 'a row for each tensor'},
        ],
        state.folded,
        (value) => go({folded: value}),
      ),
      h('div', {id: 'legend', class: 'legend'}),
      h('span', {id: 'table-count', class: 'count'}),
    ),
    grid,
  );
  view = {grid, head, body, spacer, rows: [], focus: 0, most: 1};
  grid.addEventListener('scroll', paintRows);
  new ResizeObserver(paintRows).observe(grid);
  updateTable();
}

export function updateTable(): void {
  if (!view) return;
  const rows = (view.rows = buildRows()),
    heads = rows.filter((row) => row.level === 0);
  view.most = heads.reduce((most, row) => Math.max(most, row.bytes), 1);
  view.grid.setAttribute('aria-rowcount', String(rows.length + 1));
  view.spacer.style.height = Math.max(1, rows.length) * ROW + 'px';
  view.grid.classList.toggle('pair', store.isPair);
  drawHeads(view.head);
  const total = heads.reduce((sum, row) => sum + row.tensors.length, 0);
  byId('table-count').textContent = `${plural(total, 'tensor')} in ${plural(heads.length, 'row')}${store.sampleText()}`;
  drawDtypeChips();
  paintRows();
}

function drawHeads(head: HTMLElement): void {
  replace(
    head,
    tableColumns().map((column) =>
      h(
        'div',
        {
          'role': 'columnheader',
          'title': OF_PATTERNS[column.key],
          'class': (column.right ? 'right ' : '') + 'c-' + column.key,
          'aria-sort': state.sort === column.key ? (state.down ? 'descending' : 'ascending') : 'none',
        },
        h(
          'button',
          {
            'type': 'button',
            'aria-label': column.label,
            'onclick': () =>
              go(
                state.sort === column.key
                  ? {down: !state.down}
                  : {sort: column.key, down: Boolean(column.right) && column.key !== 'min'},
              ),
          },
          column.label,
          h('span', {'class': 'arrow', 'aria-hidden': 'true'}, state.sort === column.key ? (state.down ? '↓' : '↑') : ''),
        ),
      ),
    ),
  );
}

/** New statistics change the order only if it is theirs. */
export function refreshTable(): void {
  if (isSortedByStatistic()) updateTable();
  else paintRows();
}

/** Those that are seen, and a few around them. */
function paintRows(): void {
  if (!view?.grid.isConnected) return;
  const {scrollTop, clientHeight} = view.grid;
  fill(view, Math.max(0, Math.floor(scrollTop / ROW) - 8), Math.ceil((scrollTop + clientHeight) / ROW) + 8);
}

/** Paper does not scroll. */
function printRows(): void {
  if (!view?.grid.isConnected) return;
  fill(view, 0, MOST_PRINTED);
  const {body, spacer, rows} = view;
  spacer.style.height = Math.min(rows.length, MOST_PRINTED) * ROW + 'px';
  if (rows.length > MOST_PRINTED)
    body.append(h('p', {class: 'none'}, `These are the first ${countText(MOST_PRINTED)} of ${countText(rows.length)} rows.`));
}

addEventListener('beforeprint', printRows);
addEventListener('afterprint', () => view?.grid.isConnected && updateTable());

function fill({body, spacer, rows, most, focus}: TableView, first: number, last: number): void {
  const end = Math.min(rows.length, last);
  const columns = tableColumns();
  const drawn = [];
  for (let k = first; k < end; ++k) drawn.push(rowElement(rows[k], k, columns, most, k === focus));
  replace(body, spacer, drawn, rows.length === 0 ? h('p', {class: 'none'}, 'No tensor matches.') : null);
  // Statistics of what is on the screen; of a sorted column, all of them.
  const wantsAll = isSortedByStatistic();
  const near = rows
    .slice(first, end)
    .flatMap((row) => (row.tensors.length > 64 && row.level === 0 && !wantsAll ? row.tensors.slice(0, 64) : row.tensors));
  want(wantsAll ? [...near, ...shown()] : near);
}

function rowElement(row: Row, k: number, columns: Column[], most: number, hasFocus: boolean): HTMLElement {
  const isMany = row.tensors.length > 1,
    isOpen = isMany && openPatterns.has(row.key);
  const isChosen = !isMany && row.tensors[0] === state.tensor;
  return h(
    'div',
    {
      'role': 'row',
      'class': 'row' + (hasFocus ? ' focus' : '') + (isChosen ? ' chosen' : '') + (row.level ? ' inner' : ''),
      'style': {top: k * ROW + 'px'},
      'aria-rowindex': k + 2,
      'aria-level': row.level + 1,
      'aria-expanded': isMany ? String(isOpen) : null,
      'aria-selected': isChosen ? 'true' : null,
      'id': 'row-' + k,
      'onclick': () => {
        if (view) view.focus = k;
        openRow(row);
      },
    },
    columns.map((column) =>
      h(
        'div',
        {
          role: 'gridcell',
          class: (column.right ? 'right ' : '') + 'c-' + column.key,
          title: column.key === 'dtype' || column.key === 'shape' ? column.text(row) : null,
        },
        column.key === 'name'
          ? nameCell(row, isMany, isOpen)
          : column.key === 'dtype'
            ? [h('i', {class: 'dot', style: {background: store.dtypeColor(row.dtype)}}), column.text(row)]
            : column.key === 'bytes'
              ? [
                  h('span', {class: 'bar', style: {width: (46 * Math.min(1, row.bytes / most)).toFixed(1) + 'px'}}),
                  column.text(row),
                ]
              : column.text(row),
      ),
    ),
  );
}

function nameCell(row: Row, isMany: boolean, isOpen: boolean): Child[] {
  return [
    h('span', {'class': 'twist', 'aria-hidden': 'true'}, isMany ? (isOpen ? '▾' : '▸') : ''),
    h('span', {class: 'name', title: visible(row.name)}, visible(row.name)),
    isMany ? h('span', {class: 'times'}, '×' + countText(row.tensors.length)) : null,
  ];
}

function openRow(row: Row): void {
  if (row.tensors.length === 1) return go({tensor: row.tensors[0]});
  if (!openPatterns.delete(row.key)) openPatterns.add(row.key);
  updateTable();
}

function tableKey(event: KeyboardEvent): void {
  if (!view) return;
  const {rows, grid} = view,
    page = Math.max(1, Math.floor(grid.clientHeight / ROW) - 2);
  const row = rows[view.focus] as Row | undefined;
  const moves: Record<string, number> = {
    ArrowDown: 1,
    ArrowUp: -1,
    PageDown: page,
    PageUp: -page,
    Home: -rows.length,
    End: rows.length,
  };
  if ((event.target as Element).closest('.thead')) return;
  if (event.key in moves) {
    event.preventDefault();
    view.focus = Math.min(Math.max(view.focus + moves[event.key], 0), rows.length - 1);
    const top = view.focus * ROW;
    if (top < grid.scrollTop) grid.scrollTop = top;
    else if (top + ROW * 2 > grid.scrollTop + grid.clientHeight) grid.scrollTop = top + ROW * 2 - grid.clientHeight;
    grid.setAttribute('aria-activedescendant', 'row-' + view.focus);
    return paintRows();
  }
  if (!row) return;
  const isMany = row.tensors.length > 1,
    isOpen = openPatterns.has(row.key);
  if (
    event.key === 'Enter' ||
    event.key === ' ' ||
    (event.key === 'ArrowRight' && isMany && !isOpen) ||
    (event.key === 'ArrowLeft' && isMany && isOpen)
  ) {
    event.preventDefault();
    openRow(row);
  }
}
