// What is around the views: the title, the search box, the tabs, the breadcrumb.

const VIEWS = {
  map: {label: 'Map', draw: drawMap, update: updateMap},
  table: {label: 'Table', draw: drawTable, update: updateTable, refresh: refreshTable},
  layers: {label: 'Layers', draw: drawLayers, update: updateLayers},
  difference: {label: 'Difference', draw: drawDifference, update: updateDifference, needs: () => store.isPair},
  adapter: {label: 'Adapter', draw: drawAdapter, update: () => {}, needs: () => store.hasAdapter},
  file: {label: 'File', draw: drawFile, update: () => {}},
};

let searchTimer = 0;

/** Of many tensors, once nothing has been typed for a moment. */
function searchFor(query) {
  clearTimeout(searchTimer);
  if (store.count < 5000) return go({query});
  searchTimer = setTimeout(() => go({query}), 180);
}

const viewsHere = () => Object.entries(VIEWS).filter(([, view]) => !view.needs || view.needs());

function drawHead() {
  const bytes = store.sides.map((side) => side.bytes.reduce((a, b) => a + b, 0));
  const titles = store.sides.map((side, k) =>
    h(
      'span',
      {class: 'target'},
      store.isPair ? h('i', {class: 'dot side-' + k}) : null,
      visible(side.target.replace(/\/+$/, '').replace(/^.*\/(?=[^/]+$)/, '')),
    ),
  );
  replace(
    byId('head'),
    h(
      'div',
      {class: 'bar'},
      h(
        'div',
        {class: 'title'},
        h(
          'h1',
          {title: store.sides.map((side) => visible(side.target)).join('  and  ')},
          titles.flatMap((title, k) => (k ? [h('span', {class: 'versus'}, 'and'), title] : [title])),
        ),
        h(
          'p',
          {},
          store.sides
            .map((side, k) => `${side.format} · ${plural(side.count, 'tensor')} · ${bytesText(bytes[k])}`)
            .join('   |   '),
        ),
      ),
      h(
        'label',
        {class: 'search'},
        h('span', {class: 'away'}, 'Search for tensors'),
        h('input', {
          id: 'search',
          type: 'search',
          placeholder: 'Search names: q_proj, or *.norm*',
          autocomplete: 'off',
          spellcheck: 'false',
          value: state.query,
          oninput: (event) => searchFor(event.target.value),
          onkeydown: (event) => {
            if (event.key === 'Escape') {
              go({query: ''});
              event.target.value = '';
              event.target.blur();
            }
          },
        }),
        h('kbd', {'aria-hidden': 'true'}, '/'),
      ),
      h(
        'button',
        {
          'type': 'button',
          'id': 'theme',
          'class': 'icon',
          'title': 'Light or dark',
          'aria-label': 'Light or dark',
          'onclick': switchTheme,
        },
        '◐',
      ),
    ),
    h(
      'div',
      {class: 'under'},
      h('div', {'id': 'tabs', 'class': 'tabs', 'role': 'tablist', 'aria-label': 'Views'}),
      h('nav', {'id': 'crumbs', 'class': 'crumbs', 'aria-label': 'Prefix'}),
      h('div', {id: 'progress', class: 'progress', hidden: true}),
    ),
  );
}

function drawTabs() {
  replace(
    byId('tabs'),
    viewsHere().map(([key, view], k) =>
      h(
        'button',
        {
          'type': 'button',
          'role': 'tab',
          'id': 'tab-' + key,
          'aria-selected': String(state.view === key),
          'aria-controls': 'main',
          'tabindex': state.view === key ? 0 : -1,
          'title': `${view.label} (${k + 1})`,
          'onclick': () => go({view: key}),
          'onkeydown': (event) => {
            const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
            if (!step) return;
            const keys = viewsHere().map(([name]) => name),
              next = keys[(keys.indexOf(key) + step + keys.length) % keys.length];
            go({view: next});
            byId('tab-' + next).focus();
          },
        },
        view.label,
      ),
    ),
  );
}

function drawCrumbs() {
  const parts = partsOf(state.prefix).filter(Boolean);
  const crumbs = [
    h('button', {'type': 'button', 'aria-current': parts.length ? null : 'true', 'onclick': () => go({prefix: ''})}, 'all'),
  ];
  let prefix = '';
  for (const part of parts) {
    prefix += part;
    const to = prefix;
    crumbs.push(
      h('span', {'aria-hidden': 'true'}, '›'),
      h(
        'button',
        {'type': 'button', 'aria-current': to === state.prefix ? 'true' : null, 'onclick': () => go({prefix: to})},
        visible(part.replace(/[.\/]$/, '')),
      ),
    );
  }
  const isUsed = state.view === 'map' || state.view === 'table' || state.view === 'layers';
  byId('crumbs').hidden = !isUsed;
  replace(byId('crumbs'), crumbs);
}

function showProgress(left, of) {
  const box = byId('progress');
  if (!box || box.dataset.offer) return;
  box.hidden = left === 0;
  if (left)
    replace(
      box,
      h('progress', {'max': of, 'value': of - left, 'aria-label': 'Statistics'}),
      `statistics of ${plural(left, 'tensor')} to come`,
    );
}

/** Statistics of a remote checkpoint cost its transfer, so they are computed when somebody says so. */
function offerToRead(bytes) {
  const box = byId('progress');
  box.hidden = false;
  box.dataset.offer = 'yes';
  replace(
    box,
    h(
      'button',
      {
        type: 'button',
        onclick: () => {
          store.mayRead = true;
          delete box.dataset.offer;
          askAgain();
        },
      },
      `Read ${bytesText(bytes)} for statistics`,
    ),
  );
}

function switchTheme() {
  chooseTheme(isDark() ? 'light' : 'dark');
  VIEWS[state.view].draw(byId('main'));
  tensorView.shown = -1;
  drawTensor();
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !store) return;
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === 'Escape' && !isTyping && state.tensor >= 0) return go({tensor: -1});
  if (isTyping) return;
  if (event.key === '/') {
    event.preventDefault();
    byId('search').focus();
  }
  const view = viewsHere()[Number(event.key) - 1];
  if (view) go({view: view[0]});
});
