// The layers: a strip for each role over depth, so that a broken or untrained layer is seen at once.

import {byId, choice, find, h, replace} from './dom';
import {extent, labelOf, largest, medianAndSpread, metrics, titleOf, type Measure} from './metrics';
import {go, shown, state, store} from './state';
import {stripOf, type Strip} from './strip';
import {collator, entryOf, plural} from './text';
import {want} from './wanted';

interface Role {
  pattern: string;
  layers: [depth: number, tensors: number[]][];
}

let wanted: number[] = [];
let known: {list: number[]; roles: Role[]} = {list: [], roles: []};

/** Roles that several layers have. */
function rolesOf(list: number[]): Role[] {
  if (known.list !== list) known = {list, roles: rolesIn(list)};
  return known.roles;
}

function rolesIn(list: number[]): Role[] {
  const roles = new Map<string, Map<number, number[]>>();
  for (const i of list) {
    const number = /(?:^|[.\/_-])(\d+)(?=$|[.\/_-])/.exec(store.names[i]);
    if (!number) continue;
    const pattern = store.patterns[i];
    const layers = entryOf(roles, pattern, () => new Map<number, number[]>());
    entryOf(layers, Number(number[1]), () => [] as number[]).push(i);
  }
  return [...roles]
    .map(([pattern, layers]) => ({pattern, layers: [...layers].sort((a, b) => a[0] - b[0])}))
    .filter((role) => role.layers.length > 1)
    .sort((a, b) => collator.compare(a.pattern, b.pattern));
}

/** Of the experts of a layer, the one that is farthest from the others of its role: it must not hide in the middle. */
function layerValue(values: number[], key: Measure, median: number): number {
  const known = values.filter((value) => !Number.isNaN(value));
  if (known.length === 0) return NaN;
  const [low, high] = extent(known);
  if (key !== 'norm' && key !== 'std') return high;
  return low > 0 && high / median > Math.max(5, median / low) ? high : low;
}

/** Which layers are far from the others: by the median and the usual distance from it. */
function oddLayers(values: number[], key: Measure): boolean[] {
  if (key === 'nans') return values.map((value) => value > 0);
  const [median, spread] = medianAndSpread(values);
  // Nothing but zeros, where the others have values: that layer was never trained.
  if (key === 'zeros' && median < 0.5) return values.map((value) => value === 1);
  if (median === 0) return values.map((value) => value > 0);
  const usual = Math.max(1.4826 * spread, 0.02 * Math.abs(median));
  return values.map(
    (value) => value === Infinity || (value === 0 && key !== 'change') || Math.abs(value - median) > 7 * usual,
  );
}

function stripDataOf({pattern, layers}: Role): Strip {
  const key = state.metric,
    all = metrics(store, key),
    nans = metrics(store, 'nans');
  const [median] = medianAndSpread(layers.flatMap(([, tensors]) => tensors.map((i) => all[i])));
  const values = layers.map(([, tensors]) => layerValue(tensors.map((i) => all[i]), key, median));
  const broken = layers.map(([, tensors]) => tensors.reduce((sum, i) => sum + (nans[i] || 0), 0));
  const odd = oddLayers(values, key).map((isOdd, k) => isOdd || broken[k] > 0);
  return {pattern, layers, values, odd, broken};
}

function metricChoices(): {value: Measure; label: string; title: string}[] {
  const keys: Measure[] = ['norm', 'max', 'std', 'zeros', 'nans'];
  if (store.isPair) keys.unshift('change');
  return keys.map((key) => ({value: key, label: labelOf(key), title: titleOf(key)}));
}

export function drawLayers(main: HTMLElement): void {
  replace(
    main,
    h(
      'div',
      {class: 'tools'},
      choice('Measure', metricChoices(), state.metric, (value) => go({metric: value})),
      h(
        'span',
        {class: 'legend'},
        h('span', {class: 'kind'}, h('i', {class: 'mark'}), 'far from the other layers of its role, or not finite'),
      ),
      h('span', {id: 'layers-count', class: 'count'}),
    ),
    h('div', {id: 'strips', class: 'strips'}),
  );
  updateLayers();
}

export function updateLayers(): void {
  const strips = find('strips');
  if (!strips) return;
  const key = JSON.stringify([state.query, state.dtypes, state.prefix, state.metric, store.version]);
  if (strips.dataset.key === key) return want(wanted);
  strips.dataset.key = key;
  const roles = rolesOf(shown());
  wanted = state.metric === 'change' ? [] : roles.flatMap((role) => role.layers.flatMap(([, tensors]) => tensors));
  want(wanted);
  byId('layers-count').textContent = roles.length
    ? `${plural(roles.length, 'role')}, ${plural(largest(roles.map((role) => role.layers.length)), 'layer')}${store.sampleText()}`
    : '';
  if (roles.length === 0)
    return replace(strips, h('p', {class: 'none'}, 'There are no names here that differ in the number of a layer.'));
  replace(
    strips,
    roles.map((role) => stripOf(stripDataOf(role))),
  );
}
