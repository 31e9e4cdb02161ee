// The map: where the bytes are. Prefixes zoom, the wheel comes closer, dragging moves.

import {choice, h, replace} from './dom';
import {drawDtypeChips, drawRamp} from './legend';
import {leafValue} from './map_color';
import {listenToMap} from './map_input';
import {enterRoot, mapView, meanColors, requestMap} from './map_view';
import {labelOf, titleOf, type Measure} from './metrics';
import {spreadOf} from './scale';
import {go, shown, state, store} from './state';
import {findNode, leavesUnder, tensorsUnder, treeOf, type TreeNode} from './tree';
import {Treemap} from './treemap';
import {entryOf} from './text';
import {isDark} from './theme';
import {want} from './wanted';

function colorChoices(): {value: Measure | 'dtype'; label: string; title: string}[] {
  const keys: Measure[] = ['norm', 'std', 'max', 'zeros', 'nans'];
  if (store.isPair) keys.unshift('change');
  return [
    {value: 'dtype', label: 'dtype', title: 'colour by element type'},
    ...keys.map((key) => ({value: key, label: labelOf(key), title: titleOf(key)})),
  ];
}

export function drawMap(main: HTMLElement): void {
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
  const treemap = (mapView.treemap = new Treemap(canvas));
  mapView.focus = null;
  mapView.root = null;
  listenToMap(treemap, stage);
  const fit = () => {
    const box = stage.getBoundingClientRect();
    if (box.width === 0 || (box.width === treemap.width && box.height === treemap.height)) return;
    treemap.resize(box.width, box.height);
    updateMap();
  };
  new ResizeObserver(fit).observe(stage);
  fit();
}

export function updateMap(): void {
  const map = mapView,
    {treemap} = map;
  if (!treemap || !treemap.width) return;
  const list = shown(false),
    size = `${treemap.width} ${treemap.height}`;
  if (list !== trees.list || size !== trees.size) trees = {list, size, of: new Map()};
  const tree = entryOf(trees.of, state.fold, () => treeOf(list, state.fold));
  if (tree !== map.tree) map.root = null;
  map.tree = tree;
  const root = map.tree.value ? findNode(map.tree, state.prefix) : map.tree;
  if (root !== map.root) enterRoot(root, treemap);
  colorBy(root);
  const {low, high} = mapView.spread ?? {};
  meanColors(JSON.stringify([state.color, isDark(), state.color === 'dtype' ? 0 : [store.version, low, high]]));
  requestMap();
}

// Both trees of the tensors that are shown, folded and not, with their places in a map of one size.
let trees: {list: number[]; size: string; of: Map<boolean, TreeNode>} = {list: [], size: '', of: new Map()};

function colorBy(root: TreeNode): void {
  const {color} = state;
  if (color === 'dtype') return drawDtypeChips();
  if (color !== 'change') want(tensorsUnder(root));
  const values = leavesUnder(root).map((leaf) => leafValue(leaf, color));
  mapView.spread = spreadOf(color === 'change' ? values.filter((value) => value > 0) : values);
  drawRamp(color, mapView.spread);
}
