// One tensor: what is known of it, how its values are spread, what they look like, and how to get them elsewhere.

const tensorView = {shown: -1, isLog: false, update: null};

function drawTensor() {
  const aside = byId('aside');
  if (state.tensor < 0 || state.tensor >= store.count) {
    aside.hidden = true;
    tensorView.shown = -1;
    return;
  }
  if (tensorView.shown === state.tensor && !aside.hidden) return tensorView.update();
  tensorView.shown = state.tensor;
  aside.hidden = false;
  const i = state.tensor,
    [side, k] = store.of(i),
    name = store.names[i];
  const numbers = h('div'),
    picture = h('div', {class: 'bins-box'});
  const heads = h(
    'div',
    {class: 'tensor-head'},
    h(
      'button',
      {'type': 'button', 'class': 'close', 'aria-label': 'Close', 'title': 'Close (Esc)', 'onclick': () => go({tensor: -1})},
      '×',
    ),
    h('h2', {tabindex: -1}, visible(name) || '(a tensor without a name)'),
    h(
      'p',
      {class: 'type'},
      h('i', {class: 'dot', style: {background: store.dtypeColor(store.dtype(i))}}),
      `${store.dtype(i)} ${shapeText(store.shape(i))}`,
      h('span', {}, bytesText(store.bytes(i))),
    ),
  );
  const copied = commandsOf(i);
  replace(
    aside,
    heads,
    factsOf(i, side, k),
    store.isPair ? differenceOf(i) : null,
    h('section', {}, h('h3', {}, 'Statistics'), numbers),
    h(
      'section',
      {},
      h(
        'div',
        {class: 'row-head'},
        h('h3', {}, 'Histogram'),
        choice(
          'Scale',
          [
            {value: false, label: 'Linear'},
            {value: true, label: 'Log'},
          ],
          tensorView.isLog,
          (value) => {
            tensorView.isLog = value;
            tensorView.shown = -1;
            drawTensor();
          },
        ),
      ),
      picture,
    ),
    valuesOf(side, k, name),
    h(
      'section',
      {},
      h('h3', {}, 'Take it along'),
      copied.map(([label, text]) =>
        h('div', {class: 'code'}, h('span', {class: 'label'}, label), h('code', {tabindex: 0}, visible(text)), copyButton(label, text)),
      ),
    ),
  );
  tensorView.update = () => {
    replace(
      numbers,
      store.sides.map((one) => statsTable(one, i)),
    );
    replace(
      picture,
      histogramOf(
        store.sides
          .map((one) => ({
            stats: statsOn(one, i),
            className: 'side-' + one.number,
            label: store.isPair ? 'AB'[one.number] : 'values',
          }))
          .filter((one) => one.stats && !one.stats.none),
        tensorView.isLog,
      ),
    );
  };
  tensorView.update();
  askAgain();
}

function statsOn(side, i) {
  const k = store.on(side.number, i);
  return k < 0 ? null : side.stats.get(k);
}

function statsTable(side, i) {
  const stats = statsOn(side, i);
  const title = store.isPair ? h('h4', {}, h('i', {class: 'dot side-' + side.number}), side.number ? 'B' : 'A') : null;
  if (store.on(side.number, i) < 0) return [title, h('p', {class: 'none'}, 'This side does not have it.')];
  if (!stats) return [title, h('p', {class: 'hint'}, 'Reading…')];
  if (stats.none) return [title, h('p', {class: 'none'}, stats.none)];
  const rows = [
    ['min', numberText(stats.min, 6)],
    ['max', numberText(stats.max, 6)],
    ['mean', numberText(stats.mean, 6)],
    ['std', numberText(stats.std, 6)],
    ['rms', numberText(stats.rms, 6)],
    ['norm', numberText(stats.l2, 6)],
    ['zeros', `${countText(stats.zeros)} (${shareText(stats.count ? stats.zeros / stats.count : 0)})`],
    ['NaN', countText(stats.nans)],
    ['Inf', countText(stats.infinities)],
  ];
  return [
    title,
    h(
      'dl',
      {class: 'numbers'},
      rows.map(([key, value]) =>
        h('div', {class: (key === 'NaN' || key === 'Inf') && value !== '0' ? 'bad' : null}, h('dt', {}, key), h('dd', {}, value)),
      ),
    ),
    stats.sampled ? h('p', {class: 'hint'}, `From ${countText(stats.count)} of its values.`) : null,
  ];
}

function factsOf(i, side, k) {
  const odd = side.odd[k] || {},
    offset = side.offset[k],
    file = side.file(k);
  const rows = [['elements', countText(side.numel(k))]];
  if (odd.strides) rows.push(['strides', shapeText(odd.strides)]);
  if (odd.layout) rows.push(['part of', odd.layout]);
  if (odd.alias_of) rows.push(['the same as', visible(odd.alias_of)]);
  if (odd.data === false) rows.push(['data', 'none, only a shape']);
  if (file) rows.push(['file', visible(file)]);
  if (offset >= 0) rows.push(['bytes', `${offset} – ${offset + side.bytes[k]}`]);
  else if (file) rows.push(['bytes', 'packed or computed']);
  return h(
    'dl',
    {class: 'facts'},
    rows.map(([key, value]) => [h('dt', {}, key), h('dd', {}, value)]),
  );
}

function commandsOf(i) {
  const [side] = store.of(i),
    name = store.names[i],
    target = side.target;
  const root = store.root ? ` --root ${shellWord(store.root)}` : '';
  return [
    ['shell', `ballast cat ${shellWord(target)} ${shellWord(name)}${root}`],
    [
      'Python',
      store.root
        ? `ballast.open(${quoted(target)}, root=${quoted(store.root)})[${quoted(name)}]`
        : `ballast.open(${quoted(target)})[${quoted(name)}]`,
    ],
    [
      'C++',
      store.root
        ? `ballast::open(${quoted(target)}, {.root = ${quoted(store.root)}}).at(${quoted(name)})`
        : `ballast::open(${quoted(target)}).at(${quoted(name)})`,
    ],
  ];
}

/** First values, the heat map and singular values need the bytes; a report shows how to get them. */
function valuesOf(side, k, name) {
  const shape = side.shape(k),
    isEmpty = shape.includes(0) || !side.hasData(k);
  if (isEmpty) return h('section', {}, h('h3', {}, 'Values'), h('p', {class: 'none'}, 'There are none.'));
  if (!source.canRead) {
    const command = `ballast view ${shellWord(side.target)}`;
    return h(
      'section',
      {},
      h('h3', {}, 'Values'),
      h('p', {class: 'hint'}, 'This page is a report and has no single values. With the checkpoint at hand, this shows them:'),
      h('div', {class: 'code'}, h('code', {tabindex: 0}, command), copyButton('view', command)),
    );
  }
  const first = h('code', {class: 'values'}, '…');
  source.document(`first/${side.number}/${k}`).then(
    (answer) => {
      first.textContent = answer.text;
    },
    (error) => {
      first.textContent = error.message;
    },
  );
  const parts = [h('section', {}, h('h3', {}, 'First values'), h('div', {class: 'scroll', tabindex: 0}, first))];
  if (shape.length >= 1) {
    const heat = new HeatMap(side.number, k, shape);
    parts.unshift(h('section', {}, h('h3', {}, 'Heat map'), heat.element));
    requestAnimationFrame(() => heat.start());
  }
  if (shape.length === 2) parts.push(h('section', {}, h('h3', {}, 'Singular values'), spectrumBox(side.number, k, name)));
  return parts;
}

function differenceOf(i) {
  const change = store.change.get(i),
    where = store.where(i);
  if (where !== 'both') return h('p', {class: 'only'}, `Only ${where === 'a' ? 'A' : 'B'} has this tensor.`);
  if (!store.diff) return h('p', {class: 'hint'}, 'Comparing…');
  if (!change) return h('p', {class: 'only equal'}, 'Both sides are equal.');
  const rows = [['what', change.what]];
  if (change.dtype_a !== change.dtype_b) rows.push(['dtype', `${change.dtype_a} → ${change.dtype_b}`]);
  if (change.what === 'shape') rows.push(['shape', `${shapeText(change.shape_a)} → ${shapeText(change.shape_b)}`]);
  rows.push(['‖A−B‖ / ‖A‖', changeText(changeOf(store, i))]);
  if (change.cosine !== undefined && change.cosine !== null) rows.push(['cosine', numberText(Number(change.cosine), 7)]);
  if (change.different !== undefined)
    rows.push(['different', countText(change.different)], ['max |A−B|', numberText(Number(change.max_abs))]);
  if (change.max_at) rows.push(['at', shapeText(change.max_at)]);
  return h(
    'section',
    {},
    h('h3', {}, 'Difference'),
    h(
      'dl',
      {class: 'facts'},
      rows.map(([key, value]) => [h('dt', {}, key), h('dd', {}, value)]),
    ),
  );
}
