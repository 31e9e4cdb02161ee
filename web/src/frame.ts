// What is around the views: the title, the search box, the tabs, the breadcrumb.

import {byId, h, replace} from './dom';
import {go, isBegun, state, store} from './state';
import {quantizedNote} from './quantized';
import {drawTensor, forgetTensor} from './tensor';
import {bytesText, partsOf, plural, visible} from './text';
import {chooseTheme, isDark} from './theme';
import {VIEWS, viewsHere} from './views';

const AT_ONCE = 100; // milliseconds that nobody minds
let searchTimer = 0,
  took = 0;

/** Searches with every letter; where that would hold up the typing, once nothing has been typed for a moment. */
function searchFor(query: string): void {
  const search = (): void => {
    const start = performance.now();
    go({query});
    took = performance.now() - start;
  };
  clearTimeout(searchTimer);
  if (took < AT_ONCE) search();
  else searchTimer = window.setTimeout(search, 180);
}

export function drawHead(): void {
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
          oninput: (event) => searchFor((event.target as HTMLInputElement).value),
          onkeydown: (event) => {
            if (event.key === 'Escape') {
              go({query: ''});
              const input = event.target as HTMLInputElement;
              input.value = '';
              input.blur();
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
    store.sides.map(quantizedNote),
  );
}

export function drawTabs(): void {
  replace(
    byId('tabs'),
    viewsHere().map((key, k) =>
      h(
        'button',
        {
          'type': 'button',
          'role': 'tab',
          'id': 'tab-' + key,
          'aria-selected': String(state.view === key),
          'aria-controls': 'main',
          'tabindex': state.view === key ? 0 : -1,
          'title': `${VIEWS[key].label} (${k + 1})`,
          'onclick': () => go({view: key}),
          'onkeydown': (event) => {
            const step = ({ArrowRight: 1, ArrowLeft: -1} as Record<string, number>)[event.key];
            if (!step) return;
            const keys = viewsHere(),
              next = keys[(keys.indexOf(key) + step + keys.length) % keys.length];
            go({view: next});
            byId('tab-' + next).focus();
          },
        },
        VIEWS[key].label,
      ),
    ),
  );
}

export function drawCrumbs(): void {
  const parts = partsOf(state.prefix).filter(Boolean);
  const crumbs: HTMLElement[] = [
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

function switchTheme(): void {
  chooseTheme(isDark() ? 'light' : 'dark');
  VIEWS[state.view].draw(byId('main'));
  forgetTensor();
  drawTensor();
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !isBegun()) return;
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test((event.target as Element).tagName);
  if (event.key === 'Escape' && !isTyping && state.tensor >= 0) return go({tensor: -1});
  if (isTyping) return;
  if (event.key === '/') {
    event.preventDefault();
    byId('search').focus();
  }
  const view = viewsHere()[Number(event.key) - 1];
  if (view) go({view});
});
