// The map on the screen: which node fills it, how close it is, and how it goes from one place to the next.

import {leafColor} from './map_color';
import type {Spread} from './scale';
import type {TreeNode} from './tree';
import type {Box, Treemap} from './treemap';

export const mapView = {
  root: null as TreeNode | null,
  treemap: null as Treemap | null,
  focus: null as TreeNode | null,
  hover: null as TreeNode | null,
  box: [0, 0, 0, 0] as Box, // of the root, on the screen
  target: null as Box | null, // where the box is going
  frame: 0,
  colors: null as Colors | null,
  moved: -1e9,
};

/** What colours mean, and those that cells have, by the numbers of their nodes: each is found out once. */
interface Colors {
  spread: Spread | null; // of a value, if they mean one
  of: string[];
}
const kept = new Map<string, Colors>();
const MOST_KEPT = 8;

/** The colours that mean what this key says. Those of the last few meanings are kept, as people go to and fro. */
export function colorsFor(nodes: number, key: unknown, spread: () => Spread | null): Colors {
  const word = JSON.stringify(key),
    colors = kept.get(word) ?? {spread: spread(), of: new Array<string>(nodes)};
  kept.delete(word);
  kept.set(word, colors);
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value!);
  return colors;
}

function colorOf(node: TreeNode): string {
  const {of, spread} = mapView.colors!;
  return (of[node.number] ??= leafColor(node, spread));
}

/** Goes from the old root to the new one: from where the one lies in the other. */
export function enterRoot(root: TreeNode, treemap: Treemap): void {
  const map = mapView,
    full: Box = [0, 0, treemap.width, treemap.height];
  const before = map.root;
  map.focus = null;
  map.target = full;
  map.box = [...full];
  map.root = root;
  if (!before || matchMedia('(prefers-reduced-motion: reduce)').matches) return;
  const cell = treemap.cellOf(root);
  if (cell) {
    map.box = [cell.x, cell.y, cell.w, cell.h];
    return;
  }
  // The way out: the new root is so large that the old one fills the screen.
  treemap.draw(root, full, () => '#000000');
  const inside = treemap.cellOf(before);
  if (inside) {
    const kx = full[2] / inside.w,
      ky = full[3] / inside.h;
    map.box = [-inside.x * kx, -inside.y * ky, full[2] * kx, full[3] * ky];
  }
}

export function requestMap(): void {
  if (!mapView.frame) mapView.frame = requestAnimationFrame(paintMap);
}

function paintMap(): void {
  const map = mapView;
  const {treemap, root} = map;
  map.frame = 0;
  if (!treemap || !root || !treemap.canvas.isConnected) return;
  const {target} = map;
  if (target) {
    let rest = 0;
    map.box = map.box.map((value, i) => {
      const next = value + (target[i] - value) * 0.32;
      rest = Math.max(rest, Math.abs(target[i] - next));
      return next;
    }) as Box;
    if (rest < 0.5) {
      map.box = target;
      map.target = null;
    }
  }
  // Small cells wait until the map stands still.
  treemap.least = map.target || performance.now() - map.moved < 140 ? 9 : 4;
  treemap.draw(root, map.box, colorOf, map.focus || map.hover);
  if (treemap.least > 4 && !map.target) setTimeout(requestMap, 160);
  if (map.target) requestMap();
}
