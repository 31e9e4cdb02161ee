// A treemap: areas in proportion to bytes. The places of a node's children are computed once, in parts of the node, when
// the node is first large enough to show them; so a hundred thousand tensors cost nothing until somebody comes close.

import {treemapSquarify, type HierarchyRectangularNode} from 'd3-hierarchy';
import {pixelOf, wantsDarkText} from './color';
import {sized} from './dom';
import {bytesText, countText, visible} from './text';
import {themeColor} from './theme';
import type {TreeNode} from './tree';

export type Box = [x: number, y: number, width: number, height: number];

export interface Cell {
  node: TreeNode;
  x: number;
  y: number;
  w: number;
  h: number;
}

// Cells as square as they can be. The layout takes a node as it is: d3's own nodes for a whole tree would cost more than
// all the rest of the first picture.
const squarify = treemapSquarify.ratio(1) as (parent: unknown, x0: number, y0: number, x1: number, y1: number) => void;
squarify satisfies (parent: HierarchyRectangularNode<never>, x0: number, y0: number, x1: number, y1: number) => void;

const GAP = 1.5; // at most, between cells

export class Treemap {
  width = 0;
  height = 0;
  least = 4; // what is smaller is not looked into
  private cells: Cell[] = [];
  private context!: CanvasRenderingContext2D;
  private root!: TreeNode;
  private colorOf!: (leaf: TreeNode) => string;
  private ink = '';
  private ground = 0;
  private ratio = 1; // pixels of the screen in one of CSS
  private gap = 1; // in pixels of the screen
  // Cells are set as pixels: a hundred thousand take a tenth of the time that the canvas takes for them. Their labels
  // come after.
  private image!: ImageData;
  private pixels!: Uint32Array;
  private labels: (() => void)[] = [];

  constructor(readonly canvas: HTMLCanvasElement) {}

  resize(width: number, height: number): void {
    this.width = width;
    this.height = height;
    this.context = sized(this.canvas, width, height);
    this.ratio = this.canvas.width / width;
    this.gap = Math.max(1, Math.floor(GAP * this.ratio));
    this.image = this.context.createImageData(this.canvas.width, this.canvas.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  /** What is inside a node's box: a strip for its name on top, where there is room for one. */
  private inner(x: number, y: number, w: number, h: number, node: TreeNode): [...Box, strip: number] {
    if (node.path === '' || node === this.root) return [x, y, w, h, 0];
    const room = Math.min(1, Math.max(0, (Math.min(w / 2, h) - 26) / 24));
    const strip = 17 * room,
      edge = 3 * room;
    return [x + edge, y + strip, w - 2 * edge, h - strip - edge, strip];
  }

  /** Draws the root in the box of the screen; `colorOf(node)` is of a leaf. */
  draw(root: TreeNode, box: Box, colorOf: (leaf: TreeNode) => string, focus: TreeNode | null = null): void {
    this.root = root;
    this.cells = [];
    this.colorOf = colorOf;
    const c = this.context;
    this.ink = themeColor('ink');
    this.ground = pixelOf(themeColor('group'));
    this.labels = [];
    this.pixels.fill(0);
    if (root.value > 0) this.node(root, ...box);
    c.putImageData(this.image, 0, 0);
    c.font = '500 11px ' + themeColor('font');
    c.textBaseline = 'middle';
    for (const draw of this.labels) draw();
    if (focus) this.outline(focus);
  }

  /** Fills a box but for the gap to the next ones, to whole pixels of the screen. */
  private fill(color: number, x: number, y: number, w: number, h: number, gap: number): void {
    const {pixels, ratio} = this,
      {width, height} = this.image;
    const left = Math.round(x * ratio),
      top = Math.round(y * ratio),
      right = Math.min(width, Math.max(left + 1, Math.round((x + w) * ratio) - gap)),
      bottom = Math.min(height, Math.max(top + 1, Math.round((y + h) * ratio) - gap));
    for (let row = Math.max(0, top); row < bottom; ++row) {
      const end = row * width + right;
      for (let at = row * width + Math.max(0, left); at < end; ++at) pixels[at] = color;
    }
  }

  private node(node: TreeNode, x: number, y: number, w: number, h: number): void {
    if (x > this.width || y > this.height || x + w < 0 || y + h < 0) return;
    if (node.isLeaf || w < this.least || h < this.least) return this.leaf(node, x, y, w, h);
    const [ix, iy, iw, ih, strip] = this.inner(x, y, w, h, node);
    const isRoot = node === this.root;
    this.cells.push({node, x, y, w, h});
    if (!isRoot) {
      this.fill(this.ground, x, y, w, h, this.gap);
      if (strip > 13) {
        const name = visible(node.name.replace(/[.\/]$/, ''));
        this.labels.push(() => this.label(name, x + 6, y + strip / 2 + 1, w - 12, this.ink, bytesText(node.value)));
      }
    }
    if (iw < 2 || ih < 2) return;
    const children = node.children!;
    if (!node.placedIn) {
      node.placedIn = [iw, ih];
      squarify(node, 0, 0, iw, ih);
    }
    const kx = iw / node.placedIn[0],
      ky = ih / node.placedIn[1];
    for (const child of children)
      this.node(child, ix + child.x0 * kx, iy + child.y0 * ky, (child.x1 - child.x0) * kx, (child.y1 - child.y0) * ky);
  }

  private leaf(node: TreeNode, x: number, y: number, w: number, h: number): void {
    const color = this.colorOf(node);
    if (w < 3 || h < 3) return this.fill(pixelOf(color), x, y, w, h, 0);
    this.fill(pixelOf(color), x, y, w, h, this.gap);
    this.cells.push({node, x, y, w, h});
    if (w >= 38 && h >= 16) this.labels.push(() => this.labelLeaf(node, x, y, w, h, wantsDarkText(color) ? '#16202a' : '#ffffff'));
  }

  private labelLeaf(node: TreeNode, x: number, y: number, w: number, h: number, ink: string): void {
    const c = this.context;
    const many = node.isLeaf && node.count > 1 ? ' ×' + countText(node.count) : '';
    this.label((visible(node.name) || '(itself)') + many, x + 6, y + Math.min(h / 2, 12), w - 10, ink);
    if (h <= 40 || w <= 60) return;
    c.globalAlpha = 0.75;
    this.label(bytesText(node.value), x + 6, y + 27, w - 10, ink);
    c.globalAlpha = 1;
  }

  /** A visible text cut to a width, and another one at the right if both fit. */
  private label(text: string, x: number, y: number, width: number, color: string, right?: string): void {
    const c = this.context;
    let shownText = text;
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
  at(x: number, y: number): Cell | null {
    for (let k = this.cells.length; k-- > 0;) {
      const cell = this.cells[k];
      // A search may have taken away what the last picture shows.
      if (cell.node.count > 0 && x >= cell.x && x < cell.x + cell.w && y >= cell.y && y < cell.y + cell.h) return cell;
    }
    return null;
  }

  cellOf(node: TreeNode): Cell | null {
    return this.cells.find((cell) => cell.node === node) ?? null;
  }

  private outline(node: TreeNode): void {
    const cell = this.cellOf(node);
    if (!cell) return;
    const c = this.context;
    c.strokeStyle = themeColor('focus');
    c.lineWidth = 2.5;
    c.strokeRect(cell.x + 1.5, cell.y + 1.5, Math.max(cell.w - 3, 1), Math.max(cell.h - 3, 1));
  }
}
