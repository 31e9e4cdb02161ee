// The difference of two checkpoints: what changed at all, and the worst tensors first.

const differenceView = {promise: null, share: 0, failed: '', key: ''};

/** Asks for the comparison once; the map, the strips and the table use it, too. */
function loadDifference() {
  if (!store.isPair || differenceView.promise) return;
  differenceView.promise = source
    .document('diff', (share) => {
      differenceView.share = share;
      const bar = byId('diff-progress');
      if (bar) bar.value = share;
    })
    .then(
      (diff) => {
        store.diff = diff;
        store.version += 1;
        for (const change of diff.changed) store.change.set(store.numbers.get(change.name), change);
        tensorView.shown = -1;
        draw({});
      },
      (error) => {
        differenceView.failed = error.message;
        draw({});
      },
    );
}

const differenceKey = () => JSON.stringify([state.query, differenceView.failed, Boolean(store.diff)]);

function updateDifference() {
  if (differenceView.key !== differenceKey()) drawDifference(byId('main'));
}

function drawDifference(main) {
  differenceView.key = differenceKey();
  const diff = store.diff;
  if (differenceView.failed) return replace(main, h('p', {class: 'none'}, differenceView.failed));
  if (!diff)
    return replace(
      main,
      h('p', {class: 'wait'}, 'Comparing… ', h('progress', {id: 'diff-progress', max: 1, value: differenceView.share})),
    );
  const overall = diff.overall || {};
  const matches = matcher(state.query);
  const hit = (name) => !matches || matches(name);
  const changed = diff.changed.filter((change) => hit(change.name)).map((change) => store.numbers.get(change.name));
  const rank = (i) => {
    const value = changeOf(store, i);
    return Number.isNaN(value) ? -1 : value;
  };
  changed.sort((a, b) => rank(b) - rank(a));
  replace(
    main,
    h(
      'div',
      {class: 'file'},
      h(
        'div',
        {class: 'cards'},
        card('In all', [
          h(
            'p',
            {class: 'verdict ' + (diff.equal ? 'safe' : 'unknown')},
            diff.equal
              ? 'The two are equal.'
              : `${plural(diff.changed.length, 'tensor')} changed, ${countText(diff.equal_tensors)} equal.`,
          ),
          factList([
            ['A', visible(store.sides[0].target)],
            ['B', visible(store.sides[1].target)],
            ['‖A−B‖ / ‖A‖', overall.relative_change === null ? null : numberText(Number(overall.relative_change))],
            ['cosine', overall.cosine === null ? null : numberText(Number(overall.cosine), 7)],
            ['only in A', countText(diff.only_in_a.length)],
            ['only in B', countText(diff.only_in_b.length)],
            ['names', diff.names],
            ['prefix', diff.prefix && visible(diff.prefix)],
          ]),
        ]),
        diff.dtype_costs && diff.dtype_costs.length
          ? card(
              'Dtypes',
              h(
                'table',
                {class: 'definitions'},
                h(
                  'tbody',
                  {},
                  diff.dtype_costs.map((cost) =>
                    h(
                      'tr',
                      {},
                      h('th', {scope: 'row'}, `${cost.dtype_a} → ${cost.dtype_b}`),
                      h(
                        'td',
                        {},
                        `${plural(cost.tensors, 'tensor')}, ${numberText(Number(cost.relative_change))} in all, ${cost.worst === null ? '–' : numberText(Number(cost.worst))} at worst`,
                      ),
                    ),
                  ),
                ),
              ),
            )
          : null,
        changed.length ? card('The worst first', changeList(changed.slice(0, 200)), 'wide') : null,
        onlyCard('Only in A', diff.only_in_a.filter(hit)),
        onlyCard('Only in B', diff.only_in_b.filter(hit)),
      ),
    ),
  );
}

function changeList(numbers) {
  const most = Math.max(...numbers.map((i) => changeOf(store, i)).filter(Number.isFinite), 1e-300);
  return h(
    'ol',
    {class: 'worst'},
    numbers.map((i) => {
      const change = store.change.get(i),
        value = changeOf(store, i);
      const what =
        change.what === 'shape'
          ? `${shapeText(change.shape_a)} → ${shapeText(change.shape_b)}`
          : change.dtype_a !== change.dtype_b
            ? `${change.dtype_a} → ${change.dtype_b}`
            : change.what;
      return h(
        'li',
        {},
        h(
          'button',
          {type: 'button', onclick: () => go({tensor: i})},
          h('span', {class: 'name'}, visible(store.names[i])),
          h('span', {class: 'what'}, what),
          h(
            'span',
            {'class': 'meter', 'aria-hidden': 'true'},
            h('span', {
              style: {width: (Number.isFinite(value) ? Math.max(1, (100 * value) / most) : value === Infinity ? 100 : 0) + '%'},
            }),
          ),
          h('span', {class: 'number'}, changeText(value)),
        ),
      );
    }),
  );
}

function onlyCard(title, names) {
  if (names.length === 0) return null;
  const patterns = new Map();
  for (const name of names) {
    const key = patternOf(name);
    if (!patterns.has(key)) patterns.set(key, []);
    patterns.get(key).push(name);
  }
  return card(
    `${title}: ${countText(names.length)}`,
    h(
      'ul',
      {class: 'names'},
      [...patterns]
        .slice(0, 300)
        .map(([pattern, list]) =>
          h(
            'li',
            {},
            h(
              'button',
              {
                type: 'button',
                onclick: () =>
                  list.length === 1
                    ? go({tensor: store.numbers.get(list[0])})
                    : go({view: 'table', query: pattern, folded: false}),
              },
              visible(list.length === 1 ? list[0] : pattern),
              list.length > 1 ? h('small', {}, ' ×' + countText(list.length)) : null,
            ),
          ),
        ),
    ),
  );
}
