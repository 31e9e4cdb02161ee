// From the documents to the page.

import {loadDifference} from './difference';
import type {ModelDocument, StatsColumns} from './documents';
import {byId, find, h, hideTip, keepFocus, replace} from './dom';
import {drawCrumbs, drawHead, drawTabs} from './frame';
import {statsOfColumns} from './metrics';
import {showProgress} from './progress';
import {ReportSource, ServerSource, type Source} from './source';
import {begin, readState, state, VIEW_NAMES, type State, type ViewName} from './state';
import {Store} from './store';
import {drawTensor} from './tensor';
import {visible} from './text';
import {applyTheme} from './theme';
import {VIEWS, viewsHere} from './views';
import {askAgain, forgetWanted, wantsNothing} from './wanted';

let drawnView: ViewName | null = null;
let later = 0;
let pause = 150;

function drawAll(changes: Partial<State>): void {
  keepFocus(() => drawParts(changes));
}

function drawParts(changes: Partial<State>): void {
  if (!viewsHere().includes(state.view)) state.view = 'map';
  document.body.dataset.view = state.view;
  drawTabs();
  drawCrumbs();
  const main = byId('main'),
    view = VIEWS[state.view];
  const choices = ['color', 'fold', 'folded', 'metric'].some((key) => key in changes);
  if (drawnView !== state.view || choices) {
    hideTip();
    forgetWanted();
    drawnView = state.view;
    main.setAttribute('aria-label', view.label);
    view.draw(main);
  } else {
    view.update();
  }
  if (wantsNothing()) askAgain();
  drawTensor();
}

/** What came in the meantime is shown a few times a second, not once for each answer. */
function statsCame(): void {
  if (later) return;
  later = window.setTimeout(() => {
    const start = performance.now(),
      view = VIEWS[state.view];
    later = 0;
    keepFocus(() => {
      (view.refresh || view.update)();
      drawTensor();
    });
    // However long that takes, most of the time is the user's.
    pause = Math.max(150, 6 * (performance.now() - start));
  }, pause);
}

/** What the page begins with, if the address says nothing else. */
function defaultsOf(store: Store): Partial<State> {
  const defaults: Partial<State> = {};
  if (store.isPair) defaults.color = defaults.metric = 'change';
  if (store.count <= 40) defaults.folded = false;
  if (store.count <= 1500) defaults.fold = false;
  const first = VIEW_NAMES.find((name) => name === store.firstView);
  if (first || store.hasAdapter) defaults.view = first ?? 'adapter';
  return defaults;
}

async function open(source: Source): Promise<Store> {
  const model = await source.document<ModelDocument>('model');
  if (!model) throw new Error('there is nothing in it');
  const store = new Store(model);
  for (const side of store.sides) {
    const columns = source.canRead ? null : await source.document<StatsColumns>('stats-' + side.number);
    if (columns) statsOfColumns(columns, side);
  }
  return store;
}

async function start(): Promise<void> {
  applyTheme();
  const source = find('document-model') ? new ReportSource() : new ServerSource(statsCame, showProgress);
  const started = performance.now();
  const store = await open(source);
  begin(store, source, drawAll, defaultsOf(store));
  document.title = store.sides.map((side) => visible(side.target)).join(' and ') + ' – Ballast';
  drawHead();
  drawAll({});
  loadDifference();
  addEventListener('popstate', () => {
    readState();
    (byId('search') as HTMLInputElement).value = state.query;
    drawAll({color: state.color});
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    applyTheme();
    drawAll({color: state.color});
  });
  document.documentElement.dataset.ready = String(Math.round(performance.now() - started));
}

start().catch((error: Error) => {
  replace(byId('main'), h('p', {class: 'none'}, 'This page cannot be shown: ' + error.message));
  throw error;
});
