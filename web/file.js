// The file: what lies where, what it says of itself, and what a program that loads it would do.

function drawFile(main) {
  replace(
    main,
    store.sides.map((side) => fileOf(side)),
  );
}

function fileOf(side) {
  const more = h('div', {class: 'cards'}, h('p', {class: 'wait'}, 'Reading…'));
  const box = h(
    'div',
    {class: 'file'},
    store.isPair
      ? h(
          'h2',
          {class: 'side-title'},
          h('i', {class: 'dot side-' + side.number}),
          `${'AB'[side.number]}: ${visible(side.target)}`,
        )
      : null,
    card('Where the tensors lie', shardsOf(side), 'wide'),
    more,
  );
  Promise.all(
    ['info', 'texts', 'scan'].map((name) =>
      source.document(`${name}${source.canRead ? '/' : '-'}${side.number}`).catch((error) => ({failed: error.message})),
    ),
  ).then(([info, texts, scan]) => replace(more, cardsOf(info || {}, texts || {}, scan)));
  return box;
}

function card(title, content, kind) {
  return h('section', {class: 'card ' + (kind || '')}, h('h2', {}, title), content);
}

function factList(rows) {
  return h(
    'dl',
    {class: 'facts'},
    rows
      .filter(([, value]) => value !== null && value !== undefined && value !== '')
      .map(([key, value]) => [h('dt', {}, key), h('dd', {}, value)]),
  );
}

function cardsOf(info, texts, scan) {
  const cards = [];
  if (info.failed) return [card('What it is', h('p', {class: 'none'}, info.failed))];
  cards.push(
    card(
      'What it is',
      factList([
        ['format', info.format],
        ['files', info.files && countText(info.files.length)],
        ['tensors', countText(info.tensors)],
        ['parameters', countText(info.parameters)],
        ['bytes', bytesText(info.bytes)],
        [
          'dtypes',
          Object.entries(info.dtypes || {})
            .map(([name, d]) => `${name} ×${countText(d.tensors)}`)
            .join(', '),
        ],
        ['wasted', info.wasted_bytes ? bytesText(info.wasted_bytes) : null],
        ['tied', (info.tied || []).length ? info.tied.map((names) => visible(names.join(' = '))).join('; ') : null],
        ['notes', (info.notes || []).length ? info.notes.map((note) => visible(note.text || note)).join('; ') : null],
      ]),
    ),
  );
  if (info.model && (info.model.class || info.model.type))
    cards.push(
      card(
        'Model',
        factList(
          Object.entries(info.model)
            .filter(([, value]) => value !== null && value !== '' && typeof value !== 'object')
            .map(([key, value]) => [key.replace(/_/g, ' '), visible(value)]),
        ),
      ),
    );
  cards.push(scanCard(scan));
  const metadata = (texts.fields || []).length
    ? texts.fields.map((field) => [field.key, field.value, field.type])
    : Object.entries(info.metadata || {});
  if (metadata.length) cards.push(card('Metadata', definitionTable(metadata), 'wide'));
  if ((info.values || []).length) cards.push(card('Values', valueTree(info.values), 'wide'));
  const files = texts.files || [];
  if (files.length)
    cards.push(
      card(
        'Beside the weights',
        files.map((file) =>
          h(
            'details',
            {},
            h('summary', {}, visible(file.name), h('span', {}, bytesText(file.bytes))),
            h('pre', {tabindex: 0}, visibleLines(prettied(file))),
            file.bytes > file.text.length * 4 ? h('p', {class: 'hint'}, 'Only its beginning is shown.') : null,
          ),
        ),
        'wide',
      ),
    );
  return cards;
}

/** JSON on several lines, if it is whole. */
function prettied(file) {
  if (!file.name.endsWith('.json')) return file.text;
  try {
    return JSON.stringify(JSON.parse(file.text), null, 2);
  } catch {
    return file.text;
  }
}

function definitionTable(rows) {
  return h(
    'table',
    {class: 'definitions'},
    h(
      'tbody',
      {},
      rows.map(([key, value, type]) => {
        const text = visibleLines(typeof value === 'object' ? JSON.stringify(value) : value);
        const isLong = text.length > 300 || text.includes('\n');
        return h(
          'tr',
          {},
          h('th', {scope: 'row'}, visible(key), type ? h('small', {}, type) : null),
          h(
            'td',
            {},
            isLong
              ? h('details', {}, h('summary', {}, text.slice(0, 120).replace(/\s+/g, ' ') + '…'), h('pre', {tabindex: 0}, text))
              : text,
          ),
        );
      }),
    ),
  );
}

/** Plain values of a pickle by their paths, as a tree that unfolds. */
function valueTree(values) {
  const root = {children: new Map()};
  for (const value of values.slice(0, 20000)) {
    let node = root;
    for (const part of partsOf(value.path)) {
      if (!node.children.has(part)) node.children.set(part, {children: new Map()});
      node = node.children.get(part);
    }
    node.value = value;
  }
  const draw = (node, depth) =>
    [...node.children].map(([part, child]) => {
      const label = [
        h('b', {}, visible(part.replace(/[.\/]$/, ''))),
        child.value
          ? [
              ' ',
              h('code', {}, visible(child.value.value === null ? 'None' : child.value.value)),
              h('small', {}, child.value.type),
            ]
          : null,
      ];
      if (child.children.size === 0) return h('li', {}, label);
      const list = h('ul', {});
      const details = h(
        'details',
        {
          ontoggle: () => {
            if (details.open && !list.firstChild) list.append(...draw(child, depth + 1));
          },
        },
        h('summary', {}, label, h('span', {}, countText(child.children.size))),
        list,
      );
      if (depth < 1 && child.children.size < 30) details.open = true;
      return h('li', {}, details);
    });
  return h('ul', {class: 'tree'}, draw(root, 0));
}

function scanCard(scan) {
  if (!scan) return card('Is it safe to load?', h('p', {class: 'hint'}, 'It was not scanned.'));
  if (scan.failed) return card('Is it safe to load?', h('p', {class: 'none'}, scan.failed));
  const word = scan.safe === true ? 'safe' : scan.safe === false ? 'dangerous' : 'unknown';
  const text = {
    safe: 'Everything that a loader would use is known to be harmless.',
    dangerous: 'It names something dangerous. Do not load it with a program that runs pickles.',
    unknown: 'Something in it is unknown, so nobody can say.',
  }[word];
  const worth = scan.globals.filter((global) => global.verdict !== 'known'),
    known = scan.globals.length - worth.length;
  return card('Is it safe to load?', [
    h('p', {class: 'verdict ' + word}, h('b', {}, word[0].toUpperCase() + word.slice(1)), ' ', text),
    worth.length || scan.findings.length
      ? h(
          'table',
          {class: 'definitions'},
          h(
            'tbody',
            {},
            worth
              .slice(0, 500)
              .map((global) =>
                h(
                  'tr',
                  {},
                  h('th', {scope: 'row'}, visible(global.module + '.' + global.name)),
                  h(
                    'td',
                    {},
                    h('b', {class: 'word ' + global.verdict}, global.verdict),
                    ' ',
                    visible([global.use, global.why].filter(Boolean).join(': ')),
                    h('small', {}, ` ${visible(global.member || '')} byte ${global.offset}`),
                  ),
                ),
              ),
            scan.findings
              .slice(0, 500)
              .map((finding) =>
                h(
                  'tr',
                  {},
                  h('th', {scope: 'row'}, visible(finding.where || finding.file || '')),
                  h(
                    'td',
                    {},
                    h('b', {class: 'word ' + finding.verdict}, finding.verdict),
                    ' ',
                    visible(finding.what),
                    finding.offset === null || finding.offset === undefined ? null : h('small', {}, ` byte ${finding.offset}`),
                  ),
                ),
              ),
          ),
        )
      : null,
    known ? h('p', {class: 'hint'}, `${plural(known, 'mention')} of known names.`) : null,
  ]);
}
