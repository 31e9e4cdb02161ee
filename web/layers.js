// The layers: a strip for each role over depth, so that a broken or untrained layer is seen at once.

const layersView = {wanted: []};

/** [{pattern, layers: [[depth, tensors], …]}, …]: roles that several layers have. */
function rolesOf(list) {
  const roles = new Map();
  for (const i of list) {
    const number = /(?:^|[.\/_-])(\d+)(?=$|[.\/_-])/.exec(store.names[i]);
    if (!number) continue;
    const pattern = store.patterns[i];
    if (!roles.has(pattern)) roles.set(pattern, new Map());
    const layers = roles.get(pattern),
      depth = Number(number[1]);
    if (!layers.has(depth)) layers.set(depth, []);
    layers.get(depth).push(i);
  }
  return [...roles]
    .map(([pattern, layers]) => ({pattern, layers: [...layers].sort((a, b) => a[0] - b[0])}))
    .filter((role) => role.layers.length > 1)
    .sort((a, b) => collator.compare(a.pattern, b.pattern));
}

function layerValue(tensors, key) {
  const values = tensors.map((i) => metric(store, key, i)).filter((value) => !Number.isNaN(value));
  if (values.length === 0) return NaN;
  return key === 'nans' || key === 'change' || key === 'max' ? Math.max(...values) : medianAndSpread(values)[0];
}

/** Which layers are far from the others: by the median and the usual distance from it. */
function oddLayers(values, key) {
  if (key === 'nans') return values.map((value) => value > 0);
  const [median, spread] = medianAndSpread(values);
  // Nothing but zeros, where the others have values: that layer was never trained.
  if (key === 'zeros' && median < 0.5) return values.map((value) => value === 1);
  if (median > 0 && key !== 'change' && values.includes(0)) return values.map((value) => value === 0 || value > 20 * median);
  const usual = Math.max(1.4826 * spread, 0.02 * Math.abs(median));
  return values.map((value) => Number.isFinite(value) && usual > 0 && Math.abs(value - median) > 7 * usual);
}

function metricChoices() {
  const keys = ['norm', 'max', 'std', 'zeros', 'nans'];
  if (store.isPair) keys.unshift('change');
  return keys.map((key) => ({
    value: key,
    label: key === 'change' ? 'Change' : METRICS[key].label,
    title: key === 'change' ? '‖A−B‖ / ‖A‖' : METRICS[key].title,
  }));
}

function drawLayers(main) {
  replace(
    main,
    h(
      'div',
      {class: 'tools'},
      choice('Measure', metricChoices(), state.metric, (value) => go({metric: value})),
      h('span', {class: 'legend'}, h('span', {class: 'kind'}, h('i', {class: 'mark'}), 'far from the other layers of its role')),
      h('span', {id: 'layers-count', class: 'count'}),
    ),
    h('div', {id: 'strips', class: 'strips'}),
  );
  updateLayers();
}

function updateLayers() {
  const strips = byId('strips');
  if (!strips) return;
  const key = JSON.stringify([state.query, state.dtypes, state.prefix, state.metric, store.version]);
  if (strips.dataset.key === key) return want(layersView.wanted);
  strips.dataset.key = key;
  const roles = rolesOf(shown());
  layersView.wanted = [];
  if (state.metric !== 'change') layersView.wanted = roles.flatMap((role) => role.layers.flatMap(([, tensors]) => tensors));
  want(layersView.wanted);
  byId('layers-count').textContent = roles.length
    ? `${plural(roles.length, 'role')}, ${plural(Math.max(...roles.map((role) => role.layers.length)), 'layer')}`
    : '';
  if (roles.length === 0)
    return replace(strips, h('p', {class: 'none'}, 'There are no names here that differ in the number of a layer.'));
  replace(strips, roles.map(stripOf));
}

const STRIP_WIDTH = 640,
  STRIP_HEIGHT = 46;

function stripOf(role) {
  const key = state.metric;
  const values = role.layers.map(([, tensors]) => layerValue(tensors, key));
  const odd = oddLayers(values, key);
  const finite = values.filter(Number.isFinite);
  let low = Math.min(...finite),
    high = Math.max(...finite);
  if (!finite.length) [low, high] = [0, 1];
  // A line that hardly moves should look so.
  const room = Math.max(high - low, Math.abs(high) * 0.25, 1e-30);
  const middle = (low + high) / 2,
    bottom = Math.max(low >= 0 ? 0 : -Infinity, middle - room * 0.6),
    top = Math.max(bottom + room * 1.2, high);
  const first = role.layers[0][0],
    last = role.layers[role.layers.length - 1][0];
  const x = (depth) => 6 + ((STRIP_WIDTH - 12) * (depth - first)) / Math.max(1, last - first);
  const y = (value) => STRIP_HEIGHT - 5 - (STRIP_HEIGHT - 10) * Math.min(1, Math.max(0, (value - bottom) / (top - bottom)));
  const points = role.layers.map(([depth], k) => (Number.isFinite(values[k]) ? [x(depth), y(values[k]), k] : null));
  const drawing = svg('svg', {
    'viewBox': `0 0 ${STRIP_WIDTH} ${STRIP_HEIGHT}`,
    'preserveAspectRatio': 'none',
    'class': 'strip',
    'aria-hidden': 'true',
  });
  let path = '';
  points.forEach((point, k) => {
    if (point) path += (path && points[k - 1] ? 'L' : 'M') + point[0].toFixed(1) + ' ' + point[1].toFixed(1);
  });
  drawing.append(svg('path', {'d': path, 'class': 'line', 'vector-effect': 'non-scaling-stroke'}));
  const [median] = medianAndSpread(values);
  const marks = h('div', {'class': 'marks', 'role': 'group', 'aria-label': visible(role.pattern)});
  role.layers.forEach(([depth, tensors], k) => {
    const isKnown = Number.isFinite(values[k]) || values[k] === Infinity;
    const label = `${visible(role.pattern)}, layer ${depth}: ${metricText(key, values[k])}`;
    marks.append(
      h('button', {
        'type': 'button',
        'tabindex': k === 0 || odd[k] ? 0 : -1,
        'class': 'mark-at' + (odd[k] ? ' odd' : '') + (isKnown ? '' : ' unknown'),
        'style': {
          left: ((100 * x(depth)) / STRIP_WIDTH).toFixed(2) + '%',
          top: (isKnown ? (100 * y(Math.min(values[k], 1e300))) / STRIP_HEIGHT : 50).toFixed(1) + '%',
        },
        'aria-label': label + (odd[k] ? ', far from the others' : ''),
        'onpointerenter': (event) =>
          showTip(event.clientX, event.clientY, `layer ${depth}`, [
            [key === 'change' ? 'change' : METRICS[key].title, metricText(key, values[k])],
            ['tensors', countText(tensors.length)],
            ['median of the role', metricText(key, median)],
          ]),
        'onpointerleave': hideTip,
        'onkeydown': (event) => {
          const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
          const next = step && marks.children[k + step];
          if (next) {
            event.preventDefault();
            next.focus();
          }
        },
        'onclick': () =>
          tensors.length === 1
            ? go({tensor: tensors[0]})
            : go({view: 'table', query: '', prefix: commonPrefix(tensors), folded: false}),
      }),
    );
  });
  const count = odd.filter(Boolean).length;
  return h(
    'section',
    {class: 'role' + (count ? ' has-odd' : '')},
    h(
      'div',
      {class: 'role-name'},
      h('h2', {title: visible(role.pattern)}, visible(role.pattern)),
      h(
        'p',
        {},
        `median ${metricText(key, median)}`,
        count ? h('b', {}, ` · ${plural(count, 'layer')} stand${count === 1 ? 's' : ''} out`) : null,
      ),
    ),
    h('div', {class: 'strip-box'}, drawing, marks),
    h(
      'div',
      {class: 'range'},
      h('span', {}, metricText(key, finite.length ? high : NaN)),
      h('span', {}, metricText(key, finite.length ? low : NaN)),
    ),
  );
}

function commonPrefix(tensors) {
  let prefix = store.names[tensors[0]];
  for (const i of tensors) {
    while (!store.names[i].startsWith(prefix)) prefix = prefix.slice(0, -1);
  }
  return prefix.slice(0, Math.max(prefix.lastIndexOf('.'), prefix.lastIndexOf('/')) + 1);
}
