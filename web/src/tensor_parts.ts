// Parts of a tensor's panel: where it lies, its values, what changed, and the lines that give the same elsewhere.

import {factList} from './cards';
import {copyButton, h, type Child} from './dom';
import {HeatMap} from './heat';
import {changeOf, changeText} from './metrics';
import {spectrumBox} from './spectrum';
import {source, store} from './state';
import type {Side} from './store';
import {countText, numberText, quoted, shapeText, shellWord, visible} from './text';

export function factsOf(side: Side, k: number): HTMLElement {
  const odd = side.odd[k] ?? {},
    offset = side.offset[k],
    file = side.file(k);
  const rows: [string, string][] = [['elements', countText(side.numel(k))]];
  if (odd.strides) rows.push(['strides', shapeText(odd.strides)]);
  if (odd.layout) rows.push(['part of', odd.layout]);
  if (odd.alias_of) rows.push(['the same as', visible(odd.alias_of)]);
  if (odd.data === false) rows.push(['data', 'none, only a shape']);
  if (file) rows.push(['file', visible(file)]);
  if (offset >= 0) rows.push(['bytes', `${offset} – ${offset + side.bytes[k]}`]);
  else if (file) rows.push(['bytes', 'packed or computed']);
  return factList(rows);
}

export function commandsOf(i: number): [label: string, text: string][] {
  const [{target}] = store.of(i),
    name = store.names[i],
    {root, isDequantized} = store;
  const options = (root ? ` --root ${shellWord(root)}` : '') + (isDequantized ? ' --dequantize' : '');
  const python = (root ? `, root=${quoted(root)}` : '') + (isDequantized ? ', dequantize=True' : '');
  const fields = [root ? `.root = ${quoted(root)}` : '', isDequantized ? '.dequantize = true' : ''].filter(Boolean);
  return [
    ['shell', `ballast cat ${shellWord(target)} ${shellWord(name)}${options}`],
    ['Python', `ballast.open(${quoted(target)}${python})[${quoted(name)}]`],
    ['C++', `ballast::open(${quoted(target)}${fields.length ? `, {${fields.join(', ')}}` : ''}).at(${quoted(name)})`],
  ];
}

const part = (title: string, ...content: Child[]): HTMLElement => h('section', {}, h('h3', {}, title), content);

/** First values, the heat map and singular values need the bytes; a report shows how to get them. */
export function valuesOf(side: Side, k: number, name: string): Child {
  const shape = side.shape(k),
    isEmpty = shape.includes(0) || !side.hasData(k);
  if (isEmpty) return part('Values', h('p', {class: 'none'}, 'There are none.'));
  if (!source.canRead) {
    const command = `ballast view ${store.isDequantized ? '--dequantize ' : ''}${shellWord(side.target)}`;
    return part(
      'Values',
      h('p', {class: 'hint'}, 'This page is a report and has no single values. With the checkpoint at hand, this shows them:'),
      h('div', {class: 'code'}, h('code', {tabindex: 0}, command), copyButton('view', command)),
    );
  }
  const first = h('code', {class: 'values'}, '…');
  source.document<{text: string}>(`first/${side.number}/${k}`).then(
    (answer) => {
      first.textContent = answer?.text ?? '';
    },
    (error: Error) => {
      first.textContent = error.message;
    },
  );
  const parts = [part('First values', h('div', {class: 'scroll', tabindex: 0}, first))];
  if (shape.length >= 1) {
    const heat = new HeatMap(side.number, k, shape);
    parts.unshift(part('Heat map', heat.element));
    requestAnimationFrame(() => heat.start());
  }
  if (shape.length === 2) parts.push(part('Singular values', spectrumBox(side.number, k, name)));
  return parts;
}

export function differenceOf(i: number): Child {
  const change = store.change.get(i),
    where = store.where(i);
  if (where !== 'both') return h('p', {class: 'only'}, `Only ${where === 'a' ? 'A' : 'B'} has this tensor.`);
  if (!store.diff) return h('p', {class: 'hint'}, 'Comparing…');
  if (!change) return h('p', {class: 'only equal'}, 'Both sides are equal.');
  const rows: [string, string][] = [['what', change.what]];
  if (change.dtype_a !== change.dtype_b) rows.push(['dtype', `${change.dtype_a} → ${change.dtype_b}`]);
  if (change.what === 'shape') rows.push(['shape', `${shapeText(change.shape_a)} → ${shapeText(change.shape_b)}`]);
  rows.push(['‖A−B‖ / ‖A‖', changeText(changeOf(store, i))]);
  if (change.cosine !== undefined && change.cosine !== null) rows.push(['cosine', numberText(Number(change.cosine), 7)]);
  if (change.different !== undefined)
    rows.push(['different', countText(change.different)], ['max |A−B|', numberText(Number(change.max_abs))]);
  if (change.max_at) rows.push(['at', shapeText(change.max_at)]);
  return part('Difference', factList(rows));
}
