// Names as a tree of their prefixes. Folded, numbers are one: "layers.#.experts.#.up_proj" is one leaf of many tensors.

import {store} from './state';
import {collator, partsOf} from './text';

/** A prefix, or a leaf with its tensors. It has the names that d3-hierarchy's layouts look for: value, children, x0, … */
export class TreeNode {
  readonly ways = new Map<string, TreeNode>(); // by the next part of the name
  children: TreeNode[] | null = null; // the same, the largest first; null in a leaf
  tensors: number[] | null = null;
  value = 0; // bytes
  count = 0; // tensors
  x0 = 0;
  y0 = 0;
  x1 = 0;
  y1 = 0;
  placedIn: [width: number, height: number] | null = null; // the box that the children's places are of

  constructor(
    public name: string,
    readonly path: string,
    public parent: TreeNode | null,
  ) {}
}

/** The tree of some tensors. Prefixes with only one way on are joined: "model.layers." is one node. */
export function treeOf(list: number[], folded: boolean): TreeNode {
  const root = new TreeNode('', '', null);
  for (const i of list) {
    let node = root;
    for (const part of partsOf(folded ? store.patterns[i] : store.names[i])) {
      let child = node.ways.get(part);
      if (!child) {
        child = new TreeNode(part, node.path + part, node);
        node.ways.set(part, child);
      }
      node = child;
    }
    (node.tensors ??= []).push(i);
  }
  addUp(root);
  return root;
}

/** Every node after its parent. */
function* downwards(root: TreeNode): Generator<TreeNode> {
  const order = [root];
  for (let k = 0; k < order.length; ++k) {
    yield order[k];
    order.push(...order[k].ways.values());
  }
}

function addUp(root: TreeNode): void {
  for (const node of [...downwards(root)].reverse()) {
    for (const i of node.tensors ?? []) {
      node.value += Math.max(store.bytes(i), 1);
      ++node.count;
    }
    if (node.ways.size === 0) continue;
    for (const child of node.ways.values()) {
      node.value += child.value;
      node.count += child.count;
    }
    splitOff(node);
    joinOnly(node);
    node.children = [...node.ways.values()].sort((x, y) => y.value - x.value || collator.compare(x.name, y.name));
  }
}

/** A name that is also a prefix of others is a leaf of its own among them. */
function splitOff(node: TreeNode): void {
  if (!node.tensors) return;
  const own = new TreeNode(node.name, node.path, node);
  own.tensors = node.tensors;
  own.count = node.tensors.length;
  own.value = node.tensors.reduce((sum, i) => sum + Math.max(store.bytes(i), 1), 0);
  node.ways.set('', own);
  node.tensors = null;
}

/** A child that is the only one takes the place of its parent. */
function joinOnly(node: TreeNode): void {
  for (const [key, child] of node.ways) {
    if (child.children?.length !== 1) continue;
    const [only] = child.children;
    only.name = child.name + only.name;
    only.parent = node;
    node.ways.set(key, only);
  }
}

/** All leaves under a node, or the node itself. */
export function leavesUnder(node: TreeNode): TreeNode[] {
  const leaves: TreeNode[] = [];
  const order = [node];
  for (let k = 0; k < order.length; ++k) {
    const {children} = order[k];
    if (children) order.push(...children);
    else leaves.push(order[k]);
  }
  return leaves;
}

/** All tensors under a node. */
export const tensorsUnder = (node: TreeNode): number[] => leavesUnder(node).flatMap((leaf) => leaf.tensors ?? []);

export function findNode(root: TreeNode, path: string): TreeNode {
  let node = root;
  while (node.path !== path) {
    const next = node.children?.find((child) => path.startsWith(child.path) && child.path.length > node.path.length);
    if (!next) return node;
    node = next;
  }
  return node;
}
