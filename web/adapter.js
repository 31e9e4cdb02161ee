// An adapter: how strong its change of each module is, over depth.

function drawAdapter(main) {
  const box = h('div', {class: 'cards'}, h('p', {class: 'wait'}, 'Reading…'));
  replace(main, h('div', {class: 'file'}, box));
  Promise.all([
    source.document('adapter'),
    source
      .document('modules', (share) => {
        const bar = byId('modules-progress');
        if (bar) bar.value = share;
      })
      .catch((error) => ({failed: error.message})),
  ]).then(
    ([adapter, modules]) => replace(box, adapterCards(adapter, modules || {modules: []})),
    (error) => replace(box, h('p', {class: 'none'}, error.message)),
  );
}

function adapterCards(adapter, modules) {
  const cards = [
    card(
      'What it is',
      factList([
        [
          'type',
          (adapter.type || (adapter.possible_types || []).join(' or ')) +
            (adapter.variants && adapter.variants.length ? ` (${adapter.variants.join(', ')})` : ''),
        ],
        ['names of', adapter.dialect],
        ['base', adapter.base_model && visible(adapter.base_model)],
        ['tensors', countText(adapter.tensors)],
        ['parameters', countText(adapter.parameters)],
        ['bytes', bytesText(adapter.bytes)],
        ['merged', adapter.merge && (adapter.merge.formula || adapter.merge.why_not)],
      ]),
    ),
    card(
      'Scaling',
      adapter.scales && adapter.scales.length
        ? h(
            'table',
            {class: 'definitions'},
            h(
              'thead',
              {},
              h(
                'tr',
                {},
                ['rank', 'alpha', 'scaling', 'modules'].map((title) => h('th', {scope: 'col'}, title)),
              ),
            ),
            h(
              'tbody',
              {},
              adapter.scales.map((scale) =>
                h(
                  'tr',
                  {},
                  ['rank', 'alpha', 'scaling', 'modules'].map((key) => h('td', {}, numberText(scale[key], 6))),
                ),
              ),
            ),
          )
        : h('p', {class: 'hint'}, 'It has none.'),
    ),
  ];
  if (adapter.problems && adapter.problems.length)
    cards.push(
      card(
        'Problems',
        h(
          'ul',
          {},
          adapter.problems.map((problem) =>
            h('li', {}, visible(problem.text), problem.hint ? h('small', {}, ' ' + visible(problem.hint)) : null),
          ),
        ),
      ),
    );
  if (modules.failed) cards.push(card('Modules', h('p', {class: 'none'}, modules.failed)));
  else if (modules.modules.length) cards.push(card('How much each module changes', moduleChart(modules.modules), 'wide'));
  return cards;
}

/** The modules by role, in the order of depth: ‖s·B·A‖ as bars, with the share of ‖W‖ and the rank that is really used. */
function moduleChart(modules) {
  const roles = new Map();
  for (const module of modules) {
    const role = patternOf(module.name);
    if (!roles.has(role)) roles.set(role, []);
    roles.get(role).push(module);
  }
  const key = modules.some((module) => module.share !== null) ? 'share' : 'norm';
  const most = Math.max(...modules.map((module) => module[key] || 0), 1e-300);
  return [
    h(
      'p',
      {class: 'hint'},
      key === 'share' ? 'Bars are ‖s·B·A‖ / ‖W‖.' : 'Bars are ‖s·B·A‖. With the base model (--base), they are its share of ‖W‖.',
    ),
    [...roles]
      .sort((a, b) => collator.compare(a[0], b[0]))
      .map(([role, list]) =>
        h(
          'section',
          {class: 'role adapter-role'},
          h(
            'div',
            {class: 'role-name'},
            h('h3', {title: visible(role)}, visible(role)),
            h(
              'p',
              {},
              `median ${numberText(medianAndSpread(list.map((m) => m[key]))[0], 3)}, effective rank ${numberText(medianAndSpread(list.map((m) => m.effective_rank))[0], 3)} of ${numberText(list[0].rank)}`,
            ),
          ),
          h(
            'div',
            {'class': 'bars', 'role': 'group', 'aria-label': visible(role)},
            list
              .sort((a, b) => collator.compare(a.name, b.name))
              .map((module) =>
                h('span', {
                  'role': 'img',
                  'tabindex': 0,
                  'class': 'bar-up',
                  'style': {height: Math.max(2, (52 * (module[key] || 0)) / most) + 'px'},
                  'aria-label': `${visible(module.name)}: norm ${numberText(module.norm)}`,
                  'onpointerenter': (event) => moduleTip(event.clientX, event.clientY, module),
                  'onpointerleave': hideTip,
                  'onfocus': (event) => {
                    const at = event.target.getBoundingClientRect();
                    moduleTip(at.left, at.top, module);
                  },
                  'onblur': hideTip,
                }),
              ),
          ),
        ),
      ),
  ];
}

function moduleTip(x, y, module) {
  showTip(x, y, visible(module.name), [
    ['rank', numberText(module.rank)],
    ['alpha', numberText(module.alpha)],
    ['scaling', numberText(module.scaling)],
    ['‖s·B·A‖', numberText(module.norm)],
    ['of ‖W‖', module.share === null ? '–' : shareText(module.share)],
    ['effective rank', numberText(module.effective_rank, 3)],
  ]);
}
