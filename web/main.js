// From the documents to the page.

let drawnView = '';
let later = 0;
let pause = 150;

function drawAll(changes) {
  keepFocus(() => drawParts(changes));
}

function drawParts(changes) {
  if (!VIEWS[state.view] || (VIEWS[state.view].needs && !VIEWS[state.view].needs())) state.view = 'map';
  document.body.dataset.view = state.view;
  drawTabs();
  drawCrumbs();
  const main = byId('main'),
    view = VIEWS[state.view];
  const choices = ['color', 'fold', 'folded', 'metric'].some((key) => key in changes);
  if (drawnView !== state.view || choices) {
    hideTip();
    wantedList = [];
    drawnView = state.view;
    main.setAttribute('aria-label', view.label);
    view.draw(main);
  } else {
    view.update();
  }
  if (wantedList.length === 0) askAgain();
  drawTensor();
}

/** What came in the meantime is shown a few times a second, not once for each answer. */
function statsCame() {
  if (later) return;
  later = setTimeout(() => {
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

async function start() {
  applyTheme();
  const isReport = byId('document-model') !== null;
  source = isReport ? new ReportSource() : new ServerSource(statsCame, showProgress);
  const started = performance.now();
  store = new Store(await source.document('model'));
  if (isReport) {
    for (const side of store.sides) {
      const columns = await source.document('stats-' + side.number);
      if (columns) statsOfColumns(columns, side);
    }
  }
  if (store.isPair) DEFAULTS.color = state.color = 'change';
  if (store.isPair) DEFAULTS.metric = state.metric = 'change';
  if (store.count <= 40) DEFAULTS.folded = state.folded = false;
  if (store.count <= 1500) DEFAULTS.fold = state.fold = false;
  if (store.hasAdapter) DEFAULTS.view = state.view = 'adapter';
  if (store.firstView) DEFAULTS.view = state.view = store.firstView;
  readState();
  document.title = store.sides.map((side) => visible(side.target)).join(' and ') + ' – Ballast';
  drawHead();
  draw = drawAll;
  draw({});
  loadDifference();
  addEventListener('popstate', () => {
    readState();
    byId('search').value = state.query;
    draw({color: state.color});
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    applyTheme();
    draw({color: state.color});
  });
  document.documentElement.dataset.ready = Math.round(performance.now() - started);
}

start().catch((error) => {
  replace(byId('main'), h('p', {class: 'none'}, 'This page cannot be shown: ' + error.message));
  throw error;
});
