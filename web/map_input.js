// How the map is moved: by the pointer, by the wheel, by keys.

function listenToMap(canvas, stage) {
  const map = mapView;
  let drag = null;
  const point = (event) => {
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
      map.box = keptInside([map.box[0] + dx, map.box[1] + dy, map.box[2], map.box[3]]);
      hideTip();
      map.moved = performance.now();
      return requestMap();
    }
    const cell = map.treemap.at(x, y);
    const node = cell && cell.node !== map.root ? cell.node : null;
    if (node !== map.hover) {
      map.hover = node;
      map.focus = null;
      requestMap();
    }
    canvas.style.cursor = node ? 'pointer' : 'default';
    if (node) nodeTip(cell, event);
    else hideTip();
  });
  canvas.addEventListener('pointerdown', (event) => {
    const [x, y] = point(event);
    drag = {x, y, x0: x, y0: y, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointerup', (event) => {
    const [x, y] = point(event);
    const wasMoved = drag && drag.moved;
    drag = null;
    if (wasMoved) return;
    const cell = map.treemap.at(x, y);
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
      zoomMap(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0022)), ...point(event));
    },
    {passive: false},
  );
  canvas.addEventListener('keydown', mapKey);
}

/** Closer, or farther, around a point. Far enough out is one prefix up. */
function zoomMap(factor, x, y) {
  const map = mapView,
    [bx, by, bw, bh] = map.box;
  hideTip();
  if (factor < 1 && bw <= map.treemap.width * 1.01) {
    if (map.root.parent && factor < 0.9) upMap();
    return;
  }
  const k = Math.min(Math.max(factor, map.treemap.width / bw), (4000 * map.treemap.width) / bw);
  map.target = null;
  map.moved = performance.now();
  map.box = keptInside([x - (x - bx) * k, y - (y - by) * k, bw * k, bh * k]);
  requestMap();
}

function keptInside([x, y, w, h]) {
  const {width, height} = mapView.treemap;
  return [Math.min(0, Math.max(width - w, x)), Math.min(0, Math.max(height - h, y)), w, h];
}

function upMap() {
  if (mapView.root && mapView.root.parent) go({prefix: mapView.root.parent.path});
}

function mapKey(event) {
  const map = mapView,
    middle = [map.treemap.width / 2, map.treemap.height / 2];
  const keys = {
    '+': () => zoomMap(1.4, ...middle),
    '=': () => zoomMap(1.4, ...middle),
    '-': () => zoomMap(1 / 1.4, ...middle),
    'Backspace': upMap,
    'Enter': () => map.focus && openNode(map.focus),
    ' ': () => map.focus && openNode(map.focus),
    'ArrowLeft': () => moveFocus(-1, 0),
    'ArrowRight': () => moveFocus(1, 0),
    'ArrowUp': () => moveFocus(0, -1),
    'ArrowDown': () => moveFocus(0, 1),
  };
  const action = keys[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

/** To the nearest cell in a direction, among the children of the root. */
function moveFocus(dx, dy) {
  const map = mapView;
  const cells = (map.root.list || []).map((node) => map.treemap.cellOf(node)).filter(Boolean);
  if (cells.length === 0) return;
  const middle = (cell) => [cell.x + cell.w / 2, cell.y + cell.h / 2];
  const from = map.focus && map.treemap.cellOf(map.focus);
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
  say(`${visible(best.node.name)}, ${plural(best.node.count, 'tensor')}, ${bytesText(best.node.bytes)}`);
  requestMap();
}
