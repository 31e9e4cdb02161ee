// The map: where the bytes are. Prefixes zoom, the wheel comes closer, dragging moves.

const mapView = {
  key: '',
  tree: null,
  root: null,
  treemap: null,
  focus: null,
  hover: null,
  box: null, // of the root, on the screen
  target: null, // where the box is going
  frame: 0,
  scale: null,
  fillKey: null,
  moved: -1e9,
  times: [],
};

function colorChoices() {
  const choices = [{value: 'dtype', label: 'dtype', title: 'colour by element type'}];
  if (store.isPair) choices.push({value: 'change', label: 'Change', title: 'colour by ‖A−B‖ / ‖A‖'});
  for (const key of ['norm', 'std', 'max', 'zeros', 'nans'])
    choices.push({value: key, label: METRICS[key].label, title: METRICS[key].title});
  return choices;
}

/** A number for the last word of a name, so that the same role has the same shade in every layer. */
function roleStep(name) {
  let sum = 0;
  for (const c of name) sum = (sum * 31 + c.codePointAt(0)) % 1009;
  return sum;
}

/** The value of a leaf: of one tensor, or the middle of several; NaN while nothing is known. */
function leafValue(node, key) {
  const tensors = node.tensors || tensorsUnder(node);
  if (tensors.length === 1) return metric(store, key, tensors[0]);
  const values = [];
  for (const i of tensors) {
    const value = metric(store, key, i);
    if (!Number.isNaN(value)) values.push(value);
  }
  if (values.length === 0) return NaN;
  // Damage must not disappear in the middle of many.
  if (key === 'nans' || key === 'change') return Math.max(...values);
  return medianAndSpread(values)[0];
}

function biggestDtype(node) {
  if (node.dtype === undefined) {
    const bytes = new Map();
    for (const i of node.tensors || tensorsUnder(node))
      bytes.set(store.dtype(i), (bytes.get(store.dtype(i)) || 0) + store.bytes(i) + 1);
    node.dtype = [...bytes].sort((a, b) => b[1] - a[1])[0][0];
  }
  return node.dtype;
}

/** The colour of a cell, kept until the colours mean something else. */
function leafColor(node) {
  if (node.fillKey !== mapView.fillKey) {
    node.fillKey = mapView.fillKey;
    node.fill = newLeafColor(node);
  }
  return node.fill;
}

function newLeafColor(node) {
  if (state.color === 'dtype') {
    if (node.step === undefined) node.step = roleStep(node.name);
    return shade(store.dtypeColor(biggestDtype(node)), node.step);
  }
  const value = leafValue(node, state.color);
  if (state.color === 'change') {
    const first = (node.tensors || tensorsUnder(node))[0];
    if (store.where(first) !== 'both') return kindColor(store.where(first) === 'a' ? 3 : 1);
    if (value === 0) return themeColor('equal');
  }
  if (Number.isNaN(value)) return themeColor('unknown');
  if (state.color === 'nans' && value > 0) return themeColor('bad');
  return css(rampRgb(0.08 + 0.92 * mapView.scale.at(value)));
}

function leavesOf(root) {
  const leaves = [];
  const order = [root];
  while (order.length) {
    const node = order.pop();
    if (node.isLeaf) leaves.push(node);
    else order.push(...node.list);
  }
  return leaves;
}

function drawMap(main) {
  const canvas = h('canvas', {
    'tabindex': 0,
    'role': 'application',
    'aria-label': 'Map of the tensors by bytes',
    'aria-describedby': 'map-help',
  });
  const stage = h('div', {class: 'stage'}, canvas);
  const help = h(
    'p',
    {id: 'map-help', class: 'hint'},
    'Area is bytes. Click a name to go there, a tensor to look at it; the wheel comes closer, dragging moves. ',
    'Keys: arrows, Enter, Backspace, + and −.',
  );
  replace(
    main,
    h(
      'div',
      {class: 'tools'},
      choice('Colour', colorChoices(), state.color, (value) => go({color: value})),
      choice(
        'Layers',
        [
          {value: true, label: 'Folded', title: 'layers and experts as one'},
          {value: false, label: 'All', title: 'every layer by itself'},
        ],
        state.fold,
        (value) => go({fold: value, prefix: ''}),
      ),
      h('div', {id: 'legend', class: 'legend'}),
    ),
    stage,
    help,
  );
  mapView.treemap = new Treemap(canvas);
  mapView.focus = null;
  mapView.root = null;
  listenToMap(canvas, stage);
  const fit = () => {
    const box = stage.getBoundingClientRect();
    if (box.width === 0) return;
    mapView.treemap.resize(box.width, box.height);
    mapView.key = '';
    updateMap();
  };
  new ResizeObserver(fit).observe(stage);
  fit();
}

function updateMap() {
  const map = mapView;
  if (!map.treemap || !map.treemap.width) return;
  const list = shown(false);
  const key = JSON.stringify([state.query, state.dtypes, state.fold, map.treemap.width, map.treemap.height]);
  if (key !== map.key) {
    map.key = key;
    map.tree = treeOf(list, state.fold);
    map.root = null;
  }
  const root = map.tree.bytes ? findNode(map.tree, state.prefix) : map.tree;
  if (root !== map.root) enterRoot(root);
  if (state.color !== 'dtype') {
    const under = tensorsUnder(root);
    if (state.color !== 'change') want(under);
    map.scale = scaleOf(
      leavesOf(root)
        .map((leaf) => leafValue(leaf, state.color))
        .filter((v) => v !== Infinity && (state.color !== 'change' || v > 0)),
    );
  }
  map.fillKey = {};
  drawLegend();
  requestMap();
}

/** Goes from the old root to the new one: from where the one lies in the other. */
function enterRoot(root) {
  const map = mapView,
    full = [0, 0, map.treemap.width, map.treemap.height];
  const before = map.root;
  map.focus = null;
  map.target = full;
  map.box = full.slice();
  map.root = root;
  if (!before || matchMedia('(prefers-reduced-motion: reduce)').matches) return;
  const cell = map.treemap.cellOf(root);
  if (cell) {
    map.box = [cell.x, cell.y, cell.w, cell.h];
    return;
  }
  // The way out: the new root is so large that the old one fills the screen.
  map.treemap.draw(root, full, () => 'transparent');
  const inside = map.treemap.cellOf(before);
  if (inside) {
    const kx = full[2] / inside.w,
      ky = full[3] / inside.h;
    map.box = [-inside.x * kx, -inside.y * ky, full[2] * kx, full[3] * ky];
  }
}

function requestMap() {
  if (!mapView.frame) mapView.frame = requestAnimationFrame(paintMap);
}

function paintMap() {
  const map = mapView;
  map.frame = 0;
  if (!map.treemap.canvas.isConnected) return;
  const start = performance.now();
  if (map.target) {
    let rest = 0;
    map.box = map.box.map((value, i) => {
      const next = value + (map.target[i] - value) * 0.32;
      rest = Math.max(rest, Math.abs(map.target[i] - next));
      return next;
    });
    if (rest < 0.5) {
      map.box = map.target;
      map.target = null;
    }
  }
  // Small cells wait until the map stands still.
  map.treemap.least = map.target || performance.now() - map.moved < 140 ? 9 : 4;
  map.treemap.draw(map.root, map.box, leafColor, map.focus || map.hover);
  if (map.treemap.least > 4 && !map.target) setTimeout(requestMap, 160);
  map.times.push(performance.now() - start);
  if (map.times.length > 200) map.times.shift();
  if (map.target) requestMap();
}

function openNode(node) {
  if (!node.isLeaf) return go({prefix: node.path});
  if (node.tensors.length === 1) return go({tensor: node.tensors[0]});
  go({view: 'table', prefix: node.path, folded: false});
}

function nodeTip(cell, event) {
  const node = cell.node,
    rows = [['bytes', bytesText(node.bytes)]];
  if (node.count > 1) rows.push(['tensors', countText(node.count)]);
  if (node.isLeaf) {
    const first = node.tensors[0];
    rows.push(['dtype', biggestDtype(node)], ['shape', shapeText(store.shape(first))]);
    if (state.color !== 'dtype')
      rows.push([
        state.color === 'change' ? 'change' : METRICS[state.color].title,
        metricText(state.color, leafValue(node, state.color)),
      ]);
  }
  rows.push(['share', shareText(node.bytes / Math.max(1, mapView.tree.bytes))]);
  showTip(event.clientX, event.clientY, visible(node.path || store.sides[0].target), rows);
}

function drawLegend() {
  const legend = byId('legend');
  if (!legend) return;
  if (state.color === 'dtype') {
    const chips = store.allDtypes().map((dtype) =>
      h(
        'button',
        {
          'type': 'button',
          'class': 'chip',
          'aria-pressed': state.dtypes.includes(dtype.name) ? 'true' : 'false',
          'title': 'only tensors of ' + dtype.name,
          'onclick': () =>
            go({
              dtypes: state.dtypes.includes(dtype.name)
                ? state.dtypes.filter((d) => d !== dtype.name)
                : [...state.dtypes, dtype.name],
            }),
        },
        h('i', {style: {background: kindColor(dtype.color)}}),
        dtype.name,
        h('small', {}, bytesText(dtype.bytes)),
      ),
    );
    return replace(legend, chips);
  }
  const scale = mapView.scale;
  const ramp = h('span', {
    class: 'ramp',
    style: {background: `linear-gradient(90deg, ${[0.08, 0.3, 0.55, 0.8, 1].map((at) => css(rampRgb(at))).join(',')})`},
  });
  const kinds =
    state.color === 'change'
      ? [
          h('span', {class: 'kind'}, h('i', {style: {background: themeColor('equal')}}), 'equal'),
          h('span', {class: 'kind'}, h('i', {style: {background: kindColor(3)}}), 'only in A'),
          h('span', {class: 'kind'}, h('i', {style: {background: kindColor(1)}}), 'only in B'),
        ]
      : [];
  replace(
    legend,
    Number.isFinite(scale.low)
      ? [
          metricText(state.color, scale.low),
          ramp,
          metricText(state.color, scale.high),
          scale.isLog ? h('small', {}, 'log') : null,
        ]
      : h('small', {}, 'not known yet'),
    kinds,
  );
}
