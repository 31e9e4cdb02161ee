// The table: patterns of names that unfold to their tensors. Only the rows on the screen exist.

const ROW = 30;
const tableView = {open: new Set(), rows: [], focus: 0, body: null, scroll: null};

// What a column shows of a row that stands for several tensors.
const OF_PATTERNS = {
  min: 'of a pattern: the smallest',
  max: 'of a pattern: the largest',
  std: 'of a pattern: the median',
  zeros: 'of a pattern: the median',
  nans: 'of a pattern: the sum',
  change: '‖A−B‖ / ‖A‖; of a pattern: the largest',
};

function tableColumns() {
  const stat = (key, label) => ({
    key,
    label,
    right: true,
    of: (row) => rowValue(row, key),
    text: (row) => metricText(key, rowValue(row, key)),
  });
  const raw = (key, label) => ({
    key,
    label,
    right: true,
    of: (row) => rowStat(row, key),
    text: (row) => numberText(rowStat(row, key)),
  });
  const columns = [
    {key: 'name', label: 'Name', of: (row) => store.sortKey(row.tensors[0])},
    {key: 'dtype', label: 'dtype', of: (row) => row.dtype, text: (row) => row.dtype},
    {key: 'shape', label: 'Shape', of: (row) => row.shape.reduce((a, b) => a * b, 1), text: (row) => shapeText(row.shape)},
    {key: 'bytes', label: 'Bytes', right: true, of: (row) => row.bytes, text: (row) => bytesText(row.bytes)},
  ];
  if (store.isPair)
    columns.push(
      {...stat('change', 'Change')},
      {key: 'where', label: 'In', of: (row) => row.where, text: (row) => ({a: 'only A', b: 'only B', both: 'both'})[row.where]},
    );
  columns.push(raw('min', 'Min'), raw('max', 'Max'), stat('std', 'Std'), stat('zeros', 'Zeros'), stat('nans', 'NaN'));
  return columns;
}

/** A number of a row: of its tensor, or the worst of a pattern where that is what matters. */
function rowValue(row, key) {
  const values = row.tensors.map((i) => metric(store, key, i)).filter((value) => !Number.isNaN(value));
  if (values.length === 0) return NaN;
  if (values.length === 1) return values[0];
  return key === 'change' || key === 'max'
    ? Math.max(...values)
    : key === 'nans'
      ? values.reduce((a, b) => a + b, 0)
      : medianAndSpread(values)[0];
}

function rowStat(row, key) {
  let best = NaN;
  for (const i of row.tensors) {
    const stats = store.stats(i);
    if (!stats || stats.none || stats[key] === null || stats[key] === undefined) continue;
    if (Number.isNaN(best)) best = stats[key];
    else best = key === 'min' ? Math.min(best, stats[key]) : Math.max(best, stats[key]);
  }
  return best;
}

function rowOf(name, tensors, level) {
  const first = tensors[0];
  const bytes = tensors.reduce((sum, i) => sum + store.bytes(i), 0);
  return {name, tensors, level, bytes, dtype: store.dtype(first), shape: store.shape(first), where: store.where(first)};
}

function sortRows(rows) {
  const column = tableColumns().find((c) => c.key === state.sort) || tableColumns()[0];
  const keys = new Map(rows.map((row) => [row, column.of(row)]));
  const sign = state.down ? -1 : 1;
  const isText = column.key === 'name' || column.key === 'dtype' || column.key === 'where';
  rows.sort((a, b) => {
    const x = keys.get(a),
      y = keys.get(b);
    if (isText) return x === y ? 0 : x < y ? -sign : sign;
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
    return sign * (x - y);
  });
  return rows;
}

/** Patterns with their tensors, or the tensors alone. */
function buildRows() {
  const list = shown();
  if (!state.folded) return sortRows(list.map((i) => rowOf(store.names[i], [i], 0)));
  const groups = new Map();
  for (const i of list) {
    const key = store.patterns[i] + '\n' + store.dtype(i) + '\n' + store.shape(i).join() + '\n' + store.where(i);
    const group = groups.get(key);
    if (group) group.push(i);
    else groups.set(key, [i]);
  }
  const heads = sortRows(
    [...groups].map(([key, tensors]) => {
      const row = rowOf(tensors.length === 1 ? store.names[tensors[0]] : key.slice(0, key.indexOf('\n')), tensors, 0);
      row.key = key;
      return row;
    }),
  );
  const rows = [];
  for (const head of heads) {
    rows.push(head);
    if (head.tensors.length > 1 && tableView.open.has(head.key))
      rows.push(...sortRows(head.tensors.map((i) => rowOf(store.names[i], [i], 1))));
  }
  return rows;
}

function drawTable(main) {
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
  Object.assign(tableView, {grid, head, body, spacer, focus: 0});
  grid.addEventListener('scroll', paintRows);
  new ResizeObserver(paintRows).observe(grid);
  updateTable();
}

function updateTable() {
  if (!tableView.grid) return;
  tableView.rows = buildRows();
  tableView.most = tableView.rows.reduce((most, row) => Math.max(most, row.level === 0 ? row.bytes : 0), 1);
  tableView.grid.setAttribute('aria-rowcount', tableView.rows.length + 1);
  tableView.spacer.style.height = tableView.rows.length * ROW + 'px';
  tableView.grid.classList.toggle('pair', store.isPair);
  replace(
    tableView.head,
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
  const total = tableView.rows.filter((row) => row.level === 0).reduce((sum, row) => sum + row.tensors.length, 0);
  byId('table-count').textContent =
    `${plural(total, 'tensor')} in ${plural(tableView.rows.filter((row) => row.level === 0).length, 'row')}`;
  if (tableView.rows.length === 0) tableView.spacer.style.height = ROW + 'px';
  drawDtypeChips();
  paintRows();
}

function drawDtypeChips() {
  const color = state.color;
  state.color = 'dtype';
  drawLegend();
  state.color = color;
}

const isSortedByStatistic = () => !['name', 'dtype', 'shape', 'bytes', 'change', 'where'].includes(state.sort);

/** New statistics change the order only if it is theirs. */
function refreshTable() {
  if (isSortedByStatistic()) updateTable();
  else paintRows();
}

function paintRows() {
  const {grid, body, spacer, rows} = tableView;
  if (!grid || !grid.isConnected) return;
  const first = Math.max(0, Math.floor(grid.scrollTop / ROW) - 8);
  const end = Math.min(rows.length, Math.ceil((grid.scrollTop + grid.clientHeight) / ROW) + 8);
  const columns = tableColumns();
  const drawn = [];
  for (let k = first; k < end; ++k) drawn.push(rowElement(rows[k], k, columns, tableView.most));
  replace(body, spacer, drawn, rows.length === 0 ? h('p', {class: 'none'}, 'No tensor matches.') : null);
  // Statistics of what is on the screen; of a sorted column, all of them.
  const wantsAll = isSortedByStatistic();
  const near = rows
    .slice(first, end)
    .flatMap((row) => (row.tensors.length > 64 && row.level === 0 && !wantsAll ? row.tensors.slice(0, 64) : row.tensors));
  want(wantsAll ? [...near, ...shown()] : near);
}

function rowElement(row, k, columns, most) {
  const isMany = row.tensors.length > 1,
    isOpen = isMany && tableView.open.has(row.key);
  const isChosen = !isMany && row.tensors[0] === state.tensor;
  return h(
    'div',
    {
      'role': 'row',
      'class': 'row' + (k === tableView.focus ? ' focus' : '') + (isChosen ? ' chosen' : '') + (row.level ? ' inner' : ''),
      'style': {top: k * ROW + 'px'},
      'aria-rowindex': k + 2,
      'aria-level': row.level + 1,
      'aria-expanded': isMany ? String(isOpen) : null,
      'aria-selected': isChosen ? 'true' : null,
      'id': 'row-' + k,
      'onclick': () => {
        tableView.focus = k;
        openRow(row);
      },
    },
    columns.map((column) =>
      h(
        'div',
        {role: 'gridcell', class: (column.right ? 'right ' : '') + 'c-' + column.key},
        column.key === 'name'
          ? nameCell(row, isMany, isOpen)
          : column.key === 'dtype'
            ? [h('i', {class: 'dot', style: {background: store.dtypeColor(row.dtype)}}), row.dtype]
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

function nameCell(row, isMany, isOpen) {
  return [
    h('span', {'class': 'twist', 'aria-hidden': 'true'}, isMany ? (isOpen ? '▾' : '▸') : ''),
    h('span', {class: 'name', title: visible(row.name)}, visible(row.name)),
    isMany ? h('span', {class: 'times'}, '×' + countText(row.tensors.length)) : null,
  ];
}

function openRow(row) {
  if (row.tensors.length === 1) return go({tensor: row.tensors[0]});
  if (tableView.open.has(row.key)) tableView.open.delete(row.key);
  else tableView.open.add(row.key);
  updateTable();
}

function tableKey(event) {
  const {rows, grid} = tableView,
    page = Math.max(1, Math.floor(grid.clientHeight / ROW) - 2);
  const row = rows[tableView.focus];
  const moves = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -rows.length, End: rows.length};
  if (event.target.closest('.thead')) return;
  if (event.key in moves) {
    event.preventDefault();
    tableView.focus = Math.min(Math.max(tableView.focus + moves[event.key], 0), rows.length - 1);
    const top = tableView.focus * ROW;
    if (top < grid.scrollTop) grid.scrollTop = top;
    else if (top + ROW * 2 > grid.scrollTop + grid.clientHeight) grid.scrollTop = top + ROW * 2 - grid.clientHeight;
    grid.setAttribute('aria-activedescendant', 'row-' + tableView.focus);
    return paintRows();
  }
  if (!row) return;
  const isMany = row.tensors.length > 1,
    isOpen = tableView.open.has(row.key);
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
