// The file: what lies where, what it says of itself, and what a program that loads it would do.

import {card, cutNote, definitionTable, factList} from './cards';
import type {Info, PlainValue, Scan, TextFile, Texts} from './documents';
import {h, replace, type Child} from './dom';
import {schemeText} from './quantized';
import {scanCard} from './scan_card';
import {shardsOf} from './shards';
import {source, store} from './state';
import type {Side} from './store';
import {bytesText, countText, entryOf, partsOf, plural, visible, visibleLines} from './text';

const MOST_VALUES = 20_000;

interface Failed {
  failed: string;
}

export function drawFile(main: HTMLElement): void {
  replace(
    main,
    store.sides.map((side) => fileOf(side)),
  );
}

function fileOf(side: Side): HTMLElement {
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
  const ask = <T>(name: string): Promise<T | Failed | null> =>
    source.document<T>(`${name}${source.canRead ? '/' : '-'}${side.number}`).catch((error: Error) => ({failed: error.message}));
  void Promise.all([ask<Info>('info'), ask<Texts>('texts'), ask<Scan>('scan')]).then(([info, texts, scan]) =>
    replace(more, cardsOf(info ?? {}, texts ?? {}, scan)),
  );
  return box;
}

function cardsOf(info: Info | Failed, texts: Texts | Failed, scan: Scan | Failed | null): Child[] {
  if ('failed' in info) return [card('What it is', h('p', {class: 'none'}, info.failed))];
  const files = 'failed' in texts ? [] : (texts.files ?? []);
  const metadata = metadataOf(info, texts),
    values = info.values ?? [];
  return [
    card(
      'What it is',
      factList([
        ['format', info.format],
        ['files', info.files && countText(info.files.length)],
        ['tensors', countText(info.tensors ?? 0)],
        ['parameters', countText(info.parameters ?? 0)],
        ['bytes', bytesText(info.bytes ?? 0)],
        [
          'dtypes',
          Object.entries(info.dtypes || {})
            .map(([name, d]) => `${name} ×${countText(d.tensors)}`)
            .join(', '),
        ],
        ['quantized', quantizedText(info)],
        ['wasted', info.wasted_bytes ? bytesText(info.wasted_bytes) : null],
        ['tied', (info.tied ?? []).map((names) => visible(names.join(' = '))).join('; ')],
        ['notes', (info.notes ?? []).map((note) => visible(typeof note === 'string' ? note : note.text)).join('; ')],
      ]),
    ),
    modelCard(info.model ?? {}),
    scanCard(scan),
    metadata.length ? card('Metadata', definitionTable(metadata), 'wide') : null,
    values.length ? card('Values', [valueTree(values), cutNote(MOST_VALUES, values.length)], 'wide') : null,
    files.length ? card('Beside the weights', files.map(textOf), 'wide') : null,
  ];
}

function quantizedText({quantization: kept, dequantized}: Info): string {
  if (dequantized) return `${visible(dequantized)}, shown as the numbers that it stands for`;
  if (!kept) return '';
  const after = kept.bytes_after ? `; --dequantize makes ${kept.dtype_after} of them, ${bytesText(kept.bytes_after)}` : '';
  return `${schemeText(kept)}: ${plural(kept.modules, 'weight')} in ${plural(kept.parts, 'part')}${after}`;
}

function modelCard(model: Record<string, unknown>): HTMLElement | null {
  if (!model.class && !model.type) return null;
  const rows = Object.entries(model).filter(([, value]) => value !== null && value !== '' && typeof value !== 'object');
  return card('Model', factList(rows.map(([key, value]) => [key.replace(/_/g, ' '), visible(value)])));
}

/** Typed fields of a GGUF, or the plain metadata of any other file. */
function metadataOf(info: Info, texts: Texts | Failed): [string, unknown, string?][] {
  const fields = 'failed' in texts ? [] : (texts.fields ?? []);
  if (fields.length) return fields.map((field) => [field.key, field.value, field.type]);
  return Object.entries(info.metadata ?? {});
}

function textOf(file: TextFile): HTMLElement {
  return h(
    'details',
    {},
    h('summary', {}, visible(file.name), h('span', {}, bytesText(file.bytes))),
    h('pre', {tabindex: 0}, visibleLines(prettied(file))),
    file.cut ? h('p', {class: 'hint'}, 'Only its beginning is shown.') : null,
  );
}

/** JSON on several lines, if it is whole. */
function prettied(file: TextFile): string {
  if (!file.name.endsWith('.json')) return file.text;
  try {
    return JSON.stringify(JSON.parse(file.text), null, 2);
  } catch {
    return file.text;
  }
}

interface Branch {
  children: Map<string, Branch>;
  value?: PlainValue;
}

/** Plain values of a pickle by their paths, as a tree that unfolds. */
function valueTree(values: PlainValue[]): HTMLElement {
  const root: Branch = {children: new Map()};
  for (const value of values.slice(0, MOST_VALUES)) {
    let node = root;
    for (const part of partsOf(value.path)) {
      node = entryOf(node.children, part, () => ({children: new Map()}));
    }
    node.value = value;
  }
  const draw = (node: Branch, depth: number): HTMLElement[] =>
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
