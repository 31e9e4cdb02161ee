// Names as a tree of their prefixes. Folded, numbers are one: "layers.#.experts.#.up_proj" is one leaf of many tensors.
// A tree is made once, of all names; what it shows of them changes with every letter in the search box, and costs next to
// nothing: tensors under a node stand together, so that two sums over all of them give the count and bytes of every node.

import {store} from './state';
import {numberKey} from './text';

// Nobody looks deeper; every node has its path, so a name of nothing but dots would take its length squared.
const DEEPEST = 64;

// Of every leaf.
const NO_WAYS = new Map<string, TreeNode>();

/** A prefix, or a leaf with its tensors. It has the names that d3-hierarchy's layouts look for: value, children, x0, … */
export class TreeNode {
  ways = NO_WAYS; // by the next part of the name
  tensors: number[] | null = null; // of a leaf, also those that are not shown
  x0 = 0;
  y0 = 0;
  x1 = 0;
  y1 = 0;
  placedIn: [width: number, height: number] | null = null; // the box that the children's places are of
  dtype = ''; // that has most of the bytes; empty until somebody asks
  number = 0; // of the tree's nodes
  readonly depth: number;
  begin = 0; // of the tree's tensors, those under this node
  end = 0;
  firstLeaf = 0; // of the tree's leaves, the first under this node
  leafCount = 0;
  name: string; // what its path has beyond that of the node it is shown in,
  parent: TreeNode | null; // which is this one
  private byName: TreeNode[] | null = null;
  private shownChildren: TreeNode[] = [];
  private shownFor = -1; // the showing of the tree that these are of

  constructor(
    readonly tree: Tree,
    readonly path: string,
    parent: TreeNode | null,
  ) {
    this.parent = parent;
    this.depth = (parent?.depth ?? -1) + 1;
    this.name = path.slice(parent?.path.length ?? 0);
  }

  lead(part: string, child: TreeNode): void {
    if (this.ways === NO_WAYS) this.ways = new Map();
    this.ways.set(part, child);
  }

  /** How many tensors it shows. */
  get count(): number {
    return this.tree.countBefore[this.end] - this.tree.countBefore[this.begin];
  }

  /** The bytes of these. An empty tensor counts as one, so that it has a place, and so does one that is lost beside 9 PB. */
  get value(): number {
    const {count} = this;
    if (count === 1) return sizeOf(firstUnder(this));
    return Math.max(this.tree.bytesBefore[this.end] - this.tree.bytesBefore[this.begin], count);
  }

  get isLeaf(): boolean {
    return this.ways.size === 0;
  }

  /** The nodes under it that show something, the largest first; null in a leaf. Made when somebody comes close. */
  get children(): TreeNode[] | null {
    if (this.isLeaf) return null;
    if (this.shownFor !== this.tree.showing) {
      this.shownFor = this.tree.showing;
      this.placedIn = null;
      this.byName ??= inOrderOfNames([...this.ways.values()]);
      this.shownChildren = this.byName.filter((way) => way.count > 0).map((way) => this.adopt(way));
      this.shownChildren.sort((x, y) => y.value - x.value);
    }
    return this.shownChildren;
  }

  /** A way on. Prefixes with only one way on are joined: "model.layers." is one node. */
  private adopt(way: TreeNode): TreeNode {
    let node = way;
    for (let only; (only = onlyWay(node));) node = only;
    node.name = node.path.slice(this.path.length);
    node.parent = this;
    node.dtype = '';
    return node;
  }
}

const sizeOf = (tensor: number): number => Math.max(store.bytes(tensor), 1);

/** By their paths: the names are other ones as soon as something is joined. */
function inOrderOfNames(nodes: TreeNode[]): TreeNode[] {
  if (nodes.length === 1) return nodes;
  const keys = new Map(nodes.map((node) => [node, numberKey(node.path)]));
  return nodes.sort((x, y) => {
    const a = keys.get(x)!,
      b = keys.get(y)!;
    return a < b ? -1 : Number(a > b);
  });
}

/** The one way on that shows something, if there is only one. */
function onlyWay(node: TreeNode): TreeNode | null {
  if (node.isLeaf) return null;
  let only: TreeNode | null = null;
  for (const way of node.ways.values()) {
    if (way.count === 0) continue;
    if (only) return null;
    only = way;
  }
  return only;
}

/** The tree of all names, and which of their tensors it shows. */
export class Tree {
  readonly root = new TreeNode(this, '', null);
  readonly leaves: TreeNode[] = []; // in an order in which those under any node stand together
  readonly tensors: number[] = []; // of the leaves, in their order
  readonly nodeCount: number;
  showing = 0; // how often that has changed
  shown: number[] = []; // of the tensors, those that are shown
  readonly countBefore: Uint32Array; // of each tensor and of the end: how many are shown before it
  readonly bytesBefore: Float64Array; // the bytes of those
  private list: number[] | null = null;
  private size = '';

  constructor(folded: boolean) {
    const names = folded ? store.patterns : store.names;
    let node = this.root;
    names.forEach((name, i) => {
      node = this.leafOf(name, node);
      (node.tensors ??= []).push(i);
    });
    this.nodeCount = this.standTogether();
    this.countBefore = new Uint32Array(this.tensors.length + 1);
    this.bytesBefore = new Float64Array(this.tensors.length + 1);
  }

  /** Shows these tensors from now on, and no others, on a map of this size. */
  show(list: number[], size: string): void {
    if (list === this.list && size === this.size) return;
    this.list = list;
    this.size = size;
    ++this.showing;
    this.shown = [];
    const isShown = new Uint8Array(store.count);
    for (const i of list) isShown[i] = 1;
    let bytes = 0;
    this.tensors.forEach((i, k) => {
      if (isShown[i]) {
        this.shown.push(i);
        bytes += sizeOf(i);
      }
      this.countBefore[k + 1] = this.shown.length;
      this.bytesBefore[k + 1] = bytes;
    });
  }

  /** The node of a name, which is made if there is none; neighbours mostly have a prefix in common. */
  private leafOf(name: string, neighbour: TreeNode): TreeNode {
    let node = neighbour;
    while (node !== this.root && !(/[.\/]$/.test(node.path) && name.startsWith(node.path))) node = node.parent!;
    for (let begin = node.path.length; begin < name.length || node === this.root;) {
      let end = begin;
      if (node.depth >= DEEPEST) end = name.length;
      while (end < name.length && name[end] !== '.' && name[end] !== '/') ++end;
      const part = name.slice(begin, end + 1);
      begin += part.length;
      let child = node.ways.get(part);
      if (!child) {
        child = new TreeNode(this, node.path + part, node);
        node.lead(part, child);
      }
      node = child;
    }
    return node;
  }

  /** Numbers the nodes, and puts the leaves and tensors under each of them next to each other. */
  private standTogether(): number {
    const order: TreeNode[] = [],
      rest = [this.root];
    for (let node; (node = rest.pop());) {
      splitOff(node);
      node.number = order.length;
      order.push(node);
      node.begin = this.tensors.length;
      node.firstLeaf = this.leaves.length;
      for (const child of node.ways.values()) rest.push(child);
      if (!node.tensors) continue;
      this.leaves.push(node);
      for (const i of node.tensors) this.tensors.push(i);
    }
    // Every node after those under it.
    for (const node of order.reverse()) {
      node.end = node.begin + (node.tensors?.length ?? 0);
      node.leafCount = node.tensors ? 1 : 0;
      for (const child of node.ways.values()) {
        node.end = Math.max(node.end, child.end);
        node.leafCount += child.leafCount;
      }
    }
    return order.length;
  }
}

/** A name that is also a prefix of others is a leaf of its own among them. */
function splitOff(node: TreeNode): void {
  if (!node.tensors || node.isLeaf) return;
  const own = new TreeNode(node.tree, node.path, node);
  own.tensors = node.tensors;
  node.lead('', own);
  node.tensors = null;
}

/** All leaves under a node that show something, or the node itself. */
export const leavesUnder = (node: TreeNode): TreeNode[] =>
  node.tree.leaves.slice(node.firstLeaf, node.firstLeaf + node.leafCount).filter((leaf) => leaf.count > 0);

/** The first tensor under a node that is shown. */
export const firstUnder = ({tree, begin}: TreeNode): number => tree.shown[tree.countBefore[begin]];

/** All tensors under a node that are shown. */
export function tensorsUnder({tree, begin, end}: TreeNode): number[] {
  return tree.shown.slice(tree.countBefore[begin], tree.countBefore[end]);
}

export function findNode(root: TreeNode, path: string): TreeNode {
  let node = root;
  while (node.path !== path) {
    const next = node.children?.find((child) => path.startsWith(child.path) && child.path.length > node.path.length);
    if (!next) return node;
    node = next;
  }
  return node;
}
