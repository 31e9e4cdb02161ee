// The map: where the bytes are. Prefixes zoom, the wheel comes closer, dragging moves.

import {choice, h, replace} from './dom';
import {drawDtypeChips, drawRamp} from './legend';
import {leafValue} from './map_color';
import {listenToMap} from './map_input';
import {colorsFor, enterRoot, mapView, requestMap} from './map_view';
import {labelOf, titleOf, type Measure} from './metrics';
import {spreadOf, type Spread} from './scale';
import {go, shown, state, store} from './state';
import {findNode, leavesUnder, tensorsUnder, Tree, type TreeNode} from './tree';
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
  const tree = entryOf(trees, state.fold, () => new Tree(state.fold)),
    before = tree.showing;
  tree.show(shown(false), `${treemap.width} ${treemap.height}`);
  if (tree !== map.root?.tree || tree.showing !== before) map.root = map.hover = null;
  const root = findNode(tree.root, state.prefix);
  if (root !== map.root) enterRoot(root, treemap);
  colorBy(root);
  requestMap();
}

// Folded and not; each is made when it is first looked at.
const trees = new Map<boolean, Tree>();

function colorBy(root: TreeNode): void {
  const {color, fold} = state,
    {showing, nodeCount} = root.tree;
  mapView.colors =
    color === 'dtype'
      ? colorsFor(nodeCount, [color, isDark(), fold, showing], () => null)
      : colorsFor(nodeCount, [color, isDark(), fold, showing, store.version, root.path], () => spreadUnder(root, color));
  if (color === 'dtype') return drawDtypeChips();
  if (color !== 'change') want(tensorsUnder(root));
  drawRamp(color, mapView.colors.spread!);
}

function spreadUnder(root: TreeNode, color: Measure): Spread {
  const values = leavesUnder(root).map((leaf) => leafValue(leaf, color));
  return spreadOf(color === 'change' ? values.filter((value) => value > 0) : values);
}
