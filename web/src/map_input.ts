// How the map is moved: by the pointer, by the wheel, by keys.

import {hideTip, say, showTip} from './dom';
import {biggestDtype, leafValue} from './map_color';
import {mapView, requestMap} from './map_view';
import {metricText, titleOf} from './metrics';
import {go, state, store} from './state';
import {bytesText, countText, plural, shapeText, shareText, visible} from './text';
import {firstUnder, type TreeNode} from './tree';
import type {Box, Cell, Treemap} from './treemap';

export function listenToMap(treemap: Treemap, stage: HTMLElement): void {
  const map = mapView,
    {canvas} = treemap;
  let drag: {x: number; y: number; x0: number; y0: number; moved: boolean} | null = null;
  const point = (event: MouseEvent): [number, number] => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener('pointermove', (event) => {
    const [x, y] = point(event);
    if (drag) {
      const dx = x - drag.x,
        dy = y - drag.y;
      if (Math.abs(x - drag.x0) + Math.abs(y - drag.y0) > 4) drag.moved = true;
      if (!drag.moved) return;
      drag.x = x;
      drag.y = y;
      map.target = null;
      map.box = keptInside(treemap, [map.box[0] + dx, map.box[1] + dy, map.box[2], map.box[3]]);
      hideTip();
      map.moved = performance.now();
      return requestMap();
    }
    const cell = treemap.at(x, y);
    const node = cell && cell.node !== map.root ? cell.node : null;
    if (node !== map.hover) {
      map.hover = node;
      map.focus = null;
      requestMap();
    }
    canvas.style.cursor = node ? 'pointer' : 'default';
    if (node) nodeTip(node, event);
    else hideTip();
  });
  canvas.addEventListener('pointerdown', (event) => {
    const [x, y] = point(event);
    drag = {x, y, x0: x, y0: y, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointerup', (event) => {
    const [x, y] = point(event);
    const wasMoved = drag?.moved;
    drag = null;
    if (wasMoved) return;
    const cell = treemap.at(x, y);
    if (cell && cell.node !== map.root) openNode(cell.node);
  });
  canvas.addEventListener('pointerleave', () => {
    map.hover = null;
    hideTip();
    requestMap();
  });
  stage.addEventListener(
    'wheel',
    (event) => {
      event.preventDefault();
      zoomMap(treemap, Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0022)), ...point(event));
    },
    {passive: false},
  );
  canvas.addEventListener('keydown', (event) => mapKey(event, treemap));
}

function openNode(node: TreeNode): void {
  if (!node.isLeaf) return go({prefix: node.path});
  if (node.count === 1) return go({tensor: firstUnder(node)});
  go({view: 'table', prefix: node.path, folded: false});
}

function nodeTip(node: TreeNode, event: PointerEvent): void {
  const rows: [string, string][] = [['bytes', bytesText(node.value)]];
  if (node.count > 1) rows.push(['tensors', countText(node.count)]);
  if (node.isLeaf) {
    rows.push(['dtype', biggestDtype(node)], ['shape', shapeText(store.shape(firstUnder(node)))]);
    if (state.color !== 'dtype') rows.push([titleOf(state.color), metricText(state.color, leafValue(node, state.color))]);
  }
  rows.push(['share', shareText(node.value / Math.max(1, mapView.root?.tree.root.value ?? 1))]);
  showTip(event.clientX, event.clientY, visible(node.path || store.sides[0].target), rows);
}

/** Closer, or farther, around a point. Far enough out is one prefix up. */
function zoomMap(treemap: Treemap, factor: number, x: number, y: number): void {
  const map = mapView,
    [bx, by, bw, bh] = map.box;
  hideTip();
  if (factor < 1 && bw <= treemap.width * 1.01) {
    if (factor < 0.9) upMap();
    return;
  }
  const k = Math.min(Math.max(factor, treemap.width / bw), (4000 * treemap.width) / bw);
  map.target = null;
  map.moved = performance.now();
  map.box = keptInside(treemap, [x - (x - bx) * k, y - (y - by) * k, bw * k, bh * k]);
  requestMap();
}

function keptInside({width, height}: Treemap, [x, y, w, h]: Box): Box {
  return [Math.min(0, Math.max(width - w, x)), Math.min(0, Math.max(height - h, y)), w, h];
}

function upMap(): void {
  if (mapView.root?.parent) go({prefix: mapView.root.parent.path});
}

function mapKey(event: KeyboardEvent, treemap: Treemap): void {
  const map = mapView;
  const zoom = (factor: number): void => zoomMap(treemap, factor, treemap.width / 2, treemap.height / 2);
  const keys: Record<string, () => unknown> = {
    '+': () => zoom(1.4),
    '=': () => zoom(1.4),
    '-': () => zoom(1 / 1.4),
    'Backspace': upMap,
    'Enter': () => map.focus && openNode(map.focus),
    ' ': () => map.focus && openNode(map.focus),
    'ArrowLeft': () => moveFocus(treemap, -1, 0),
    'ArrowRight': () => moveFocus(treemap, 1, 0),
    'ArrowUp': () => moveFocus(treemap, 0, -1),
    'ArrowDown': () => moveFocus(treemap, 0, 1),
  };
  const action = keys[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

/** To the nearest cell in a direction, among the children of the root. */
function moveFocus(treemap: Treemap, dx: number, dy: number): void {
  const map = mapView;
  const cells = (map.root?.children ?? []).map((node) => treemap.cellOf(node)).filter((cell) => cell !== null);
  if (cells.length === 0) return;
  const middle = (cell: Cell): [number, number] => [cell.x + cell.w / 2, cell.y + cell.h / 2];
  const from = map.focus && treemap.cellOf(map.focus);
  let best = from ? null : cells[0],
    least = Infinity;
  if (from) {
    const [fx, fy] = middle(from);
    for (const cell of cells) {
      const [x, y] = middle(cell),
        along = (x - fx) * dx + (y - fy) * dy,
        across = Math.abs((x - fx) * dy) + Math.abs((y - fy) * dx);
      if (along > 1 && along + 2 * across < least) {
        least = along + 2 * across;
        best = cell;
      }
    }
  }
  if (!best) return;
  map.focus = best.node;
  say(`${visible(best.node.name)}, ${plural(best.node.count, 'tensor')}, ${bytesText(best.node.value)}`);
  requestMap();
}
