// Names as a tree of their prefixes. Folded, numbers are one: "layers.#.experts.#.up_proj" is one leaf of many tensors.

import {store} from './state';
import {numberKey} from './text';

// Of every leaf.
const NO_WAYS = new Map<string, TreeNode>();

/** A prefix, or a leaf with its tensors. It has the names that d3-hierarchy's layouts look for: value, children, x0, … */
export class TreeNode {
  ways = NO_WAYS; // by the next part of the name
  tensors: number[] | null = null;
  value = 0; // bytes
  count = 0; // tensors
  x0 = 0;
  y0 = 0;
  x1 = 0;
  y1 = 0;
  placedIn: [width: number, height: number] | null = null; // the box that the children's places are of
  dtype = ''; // that has most of the bytes; empty until somebody asks
  fill = ''; // the colour of its cell, and
  fillOf = -1; // the meaning of colours that it belongs to
  whole!: Whole;
  firstLeaf = 0; // of the tree's leaves, the first of this node
  leafCount = 0;
  firstTensor = 0;
  private sorted: TreeNode[] | null = null;

  constructor(
    public name: string,
    readonly path: string,
    public parent: TreeNode | null,
  ) {}

  lead(part: string, child: TreeNode): void {
    if (this.ways === NO_WAYS) this.ways = new Map();
    this.ways.set(part, child);
  }

  /** What `ways` has, the largest first; null in a leaf. Sorted when somebody comes close enough to see it. */
  get children(): TreeNode[] | null {
    if (!this.sorted && this.ways.size > 0) {
      const keys = new Map([...this.ways.values()].map((node) => [node, numberKey(node.name)]));
      this.sorted = [...keys.keys()].sort((x, y) => y.value - x.value || (keys.get(x)! < keys.get(y)! ? -1 : 1));
    }
    return this.sorted;
  }
}

/** The leaves of a tree and their tensors, in an order in which those under any node stand together. */
interface Whole {
  leaves: TreeNode[];
  tensors: number[];
}

/** The tree of some tensors. Prefixes with only one way on are joined: "model.layers." is one node. */
export function treeOf(list: number[], folded: boolean): TreeNode {
  const root = new TreeNode('', '', null),
    names = folded ? store.patterns : store.names;
  let node = root;
  for (const i of list) {
    const name = names[i];
    // Neighbours mostly have a prefix in common.
    while (node !== root && !(/[.\/]$/.test(node.path) && name.startsWith(node.path))) node = node.parent!;
    for (let begin = node.path.length; begin < name.length || node === root;) {
      let end = begin;
      while (end < name.length && name[end] !== '.' && name[end] !== '/') ++end;
      const part = name.slice(begin, end + 1);
      begin += part.length;
      let child = node.ways.get(part);
      if (!child) {
        child = new TreeNode(part, node.path + part, node);
        node.lead(part, child);
      }
      node = child;
    }
    (node.tensors ??= []).push(i);
  }
  addUp(root);
  return root;
}

/** Every node after its parent. */
function downwards(root: TreeNode): TreeNode[] {
  const order = [root];
  for (let k = 0; k < order.length; ++k) {
    for (const child of order[k].ways.values()) order.push(child);
  }
  return order;
}

const sizeOf = (tensors: number[]): number => tensors.reduce((sum, i) => sum + Math.max(store.bytes(i), 1), 0);

function addUp(root: TreeNode): void {
  for (const node of downwards(root).reverse()) {
    if (node.ways.size > 0) splitOff(node);
    node.count = node.tensors?.length ?? 0;
    node.value = sizeOf(node.tensors ?? []);
    node.leafCount = node.tensors ? 1 : 0;
    for (const child of node.ways.values()) {
      node.value += child.value;
      node.count += child.count;
      node.leafCount += child.leafCount;
    }
    joinOnly(node);
  }
  const whole: Whole = {leaves: [], tensors: []},
    rest = [root];
  for (let node; (node = rest.pop());) {
    node.whole = whole;
    node.firstLeaf = whole.leaves.length;
    node.firstTensor = whole.tensors.length;
    for (const child of node.ways.values()) rest.push(child);
    if (!node.tensors) continue;
    whole.leaves.push(node);
    for (const i of node.tensors) whole.tensors.push(i);
  }
}

/** A name that is also a prefix of others is a leaf of its own among them. */
function splitOff(node: TreeNode): void {
  if (!node.tensors) return;
  const own = new TreeNode(node.name, node.path, node);
  own.tensors = node.tensors;
  own.count = node.tensors.length;
  own.value = sizeOf(own.tensors);
  own.leafCount = 1;
  node.lead('', own);
  node.tensors = null;
}

/** A child that is the only one takes the place of its parent. */
function joinOnly(node: TreeNode): void {
  for (const [key, child] of node.ways) {
    if (child.ways.size !== 1) continue;
    const [only] = child.ways.values();
    only.name = child.name + only.name;
    only.parent = node;
    node.ways.set(key, only);
  }
}

/** All leaves under a node, or the node itself. */
export const leavesUnder = (node: TreeNode): TreeNode[] =>
  node.whole.leaves.slice(node.firstLeaf, node.firstLeaf + node.leafCount);

/** All tensors under a node. */
export const tensorsUnder = (node: TreeNode): number[] =>
  node.tensors ?? node.whole.tensors.slice(node.firstTensor, node.firstTensor + node.count);

export function findNode(root: TreeNode, path: string): TreeNode {
  let node = root;
  while (node.path !== path) {
    const next = node.children?.find((child) => path.startsWith(child.path) && child.path.length > node.path.length);
    if (!next) return node;
    node = next;
  }
  return node;
}
