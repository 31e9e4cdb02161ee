// A treemap: areas in proportion to bytes. The places of a node's children are computed once, in parts of the node, when
// the node is first large enough to show them; so a hundred thousand tensors cost nothing until somebody comes close.

/** The places of the children in a box of this shape: x, y, width, height of each, from 0 to 1. Squarified rows. */
function placesIn(node, width, height) {
  const list = node.list,
    places = new Float32Array(list.length * 4);
  const unit = (width * height) / node.bytes;
  let x = 0,
    y = 0,
    w = width,
    h = height,
    first = 0;
  while (first < list.length) {
    const side = Math.min(w, h);
    let sum = 0,
      end = first,
      worst = Infinity;
    // A row grows while that makes its most stretched cell less stretched. The list is sorted: the first is the largest.
    while (end < list.length) {
      const next = sum + list[end].bytes * unit;
      const largest = list[first].bytes * unit,
        smallest = list[end].bytes * unit;
      const stretch = Math.max((side * side * largest) / (next * next), (next * next) / (side * side * smallest));
      if (stretch > worst) break;
      worst = stretch;
      sum = next;
      ++end;
    }
    const thickness = side > 0 ? sum / side : 0;
    let along = 0;
    for (let i = first; i < end; ++i) {
      const length = thickness > 0 ? (list[i].bytes * unit) / thickness : 0;
      const box = w >= h ? [x, y + along, thickness, length] : [x + along, y, length, thickness];
      places.set([box[0] / width, box[1] / height, box[2] / width, box[3] / height], i * 4);
      along += length;
    }
    if (w >= h) {
      x += thickness;
      w -= thickness;
    } else {
      y += thickness;
      h -= thickness;
    }
    first = end;
  }
  return places;
}

const GAP = 1.5;

class Treemap {
  constructor(canvas) {
    this.canvas = canvas;
    this.cells = [];
    this.least = 4;
  }

  resize(width, height) {
    this.width = width;
    this.height = height;
    this.context = sized(this.canvas, width, height);
  }

  /** What is inside a node's box: a strip for its name on top, where there is room for one. */
  inner(x, y, w, h, node) {
    if (node.path === '' || node === this.root) return [x, y, w, h, 0];
    const room = Math.min(1, Math.max(0, (Math.min(w / 2, h) - 26) / 24));
    const strip = 17 * room,
      edge = 3 * room;
    return [x + edge, y + strip + (room > 0 ? 0 : 0), w - 2 * edge, h - strip - edge, strip];
  }

  /** Draws the root in the box of the screen; `colorOf(node)` is of a leaf. */
  draw(root, box, colorOf, focus) {
    this.root = root;
    this.cells = [];
    this.colorOf = colorOf;
    const c = this.context;
    c.clearRect(0, 0, this.width, this.height);
    c.font = '500 11px ' + themeColor('font');
    c.textBaseline = 'middle';
    this.ink = themeColor('ink');
    this.group = themeColor('group');
    this.edge = themeColor('edge');
    if (root.bytes > 0) this.node(root, box[0], box[1], box[2], box[3], 0);
    if (focus) this.outline(focus);
  }

  node(node, x, y, w, h, depth) {
    if (x > this.width || y > this.height || x + w < 0 || y + h < 0) return;
    if (node.isLeaf || w < this.least || h < this.least) return this.leaf(node, x, y, w, h);
    const [ix, iy, iw, ih, strip] = this.inner(x, y, w, h, node);
    const isRoot = node === this.root;
    this.cells.push({node, x, y, w, h, strip: isRoot ? 0 : strip});
    if (!isRoot) {
      const c = this.context;
      c.fillStyle = this.group;
      c.fillRect(x + GAP / 2, y + GAP / 2, w - GAP, h - GAP);
      if (strip > 13)
        this.label(node.name.replace(/[.\/]$/, ''), x + 6, y + strip / 2 + 1, w - 12, this.ink, bytesText(node.bytes));
    }
    if (iw < 2 || ih < 2) return;
    if (!node.places) node.places = placesIn(node, iw, ih);
    const p = node.places;
    for (let i = 0; i < node.list.length; ++i)
      this.node(node.list[i], ix + p[4 * i] * iw, iy + p[4 * i + 1] * ih, p[4 * i + 2] * iw, p[4 * i + 3] * ih, depth + 1);
  }

  leaf(node, x, y, w, h) {
    const c = this.context;
    const color = this.colorOf(node);
    if (w < 3 || h < 3) {
      c.fillStyle = color;
      return c.fillRect(x, y, Math.max(w - 0.4, 0.5), Math.max(h - 0.4, 0.5));
    }
    c.fillStyle = color;
    const gap = Math.min(GAP, w / 4, h / 4);
    c.fillRect(x + gap / 2, y + gap / 2, Math.max(w - gap, 0.5), Math.max(h - gap, 0.5));
    this.cells.push({node, x, y, w, h, strip: 0});
    if (w < 38 || h < 16) return;
    const ink = wantsDarkText(color) ? '#16202a' : '#ffffff';
    const many = node.tensors && node.tensors.length > 1 ? ' ×' + countText(node.tensors.length) : '';
    this.label((node.name || '(itself)') + many, x + 6, y + Math.min(h / 2, 12), w - 10, ink);
    if (h > 40 && w > 60) {
      c.globalAlpha = 0.75;
      this.label(bytesText(node.bytes), x + 6, y + 27, w - 10, ink);
      c.globalAlpha = 1;
    }
  }

  /** A text cut to a width, and another one at the right if both fit. */
  label(text, x, y, width, color, right) {
    const c = this.context;
    let shownText = visible(text);
    c.fillStyle = color;
    let room = width;
    if (right) {
      const size = c.measureText(right).width;
      if (size + 12 + Math.min(60, c.measureText(shownText).width) < width) {
        c.globalAlpha = 0.62;
        c.fillText(right, x + width - size, y);
        c.globalAlpha = 1;
        room = width - size - 8;
      }
    }
    if (c.measureText(shownText).width > room) {
      let length = Math.floor((shownText.length * room) / c.measureText(shownText).width);
      while (length > 1 && c.measureText(shownText.slice(0, length) + '…').width > room) --length;
      if (length < 3) return;
      shownText = shownText.slice(0, length) + '…';
    }
    c.fillText(shownText, x, y);
  }

  /** The innermost cell under a point. */
  at(x, y) {
    for (let k = this.cells.length; k-- > 0;) {
      const cell = this.cells[k];
      if (x >= cell.x && x < cell.x + cell.w && y >= cell.y && y < cell.y + cell.h) return cell;
    }
    return null;
  }

  cellOf(node) {
    return this.cells.find((cell) => cell.node === node) || null;
  }

  outline(node) {
    const cell = this.cellOf(node);
    if (!cell) return;
    const c = this.context;
    c.strokeStyle = themeColor('focus');
    c.lineWidth = 2.5;
    c.strokeRect(cell.x + 1.5, cell.y + 1.5, Math.max(cell.w - 3, 1), Math.max(cell.h - 3, 1));
  }
}
