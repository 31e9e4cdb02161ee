// Names as a tree of their prefixes. Folded, numbers are one: "layers.#.experts.#.up_proj" is one leaf of many tensors.

class Node {
  constructor(name, path, parent) {
    Object.assign(this, {name, path, parent, children: null, tensors: null, bytes: 0, count: 0, places: null});
  }
  get isLeaf() {
    return this.children === null;
  }
}

/** The tree of some tensors. Prefixes with only one way on are joined: "model.layers." is one node. */
function treeOf(list, folded) {
  const root = new Node('', '', null);
  for (const i of list) {
    const name = folded ? store.patterns[i] : store.names[i];
    let node = root;
    for (const part of partsOf(name)) {
      if (!node.children) node.children = new Map();
      let child = node.children.get(part);
      if (!child) {
        child = new Node(part, node.path + part, node);
        node.children.set(part, child);
      }
      node = child;
    }
    (node.tensors = node.tensors || []).push(i);
  }
  addUp(root);
  return root;
}

function addUp(root) {
  const order = [root];
  for (let k = 0; k < order.length; ++k) {
    if (order[k].children) order.push(...order[k].children.values());
  }
  for (let k = order.length; k-- > 0;) {
    const node = order[k];
    for (const i of node.tensors || []) {
      node.bytes += Math.max(store.bytes(i), 1);
      ++node.count;
    }
    if (node.children) {
      // A name that is also a prefix of others is a leaf of its own among them.
      if (node.tensors) {
        const own = new Node(node.name, node.path, node);
        Object.assign(own, {tensors: node.tensors, bytes: node.bytes, count: node.count});
        node.children.set('', own);
        node.tensors = null;
      }
      for (const child of node.children.values()) {
        if (child.parent === node && child.name === node.name && child.path === node.path) continue;
        node.bytes += child.bytes;
        node.count += child.count;
      }
      joinOnly(node);
      node.list = [...node.children.values()].sort((x, y) => y.bytes - x.bytes || collator.compare(x.name, y.name));
    }
  }
}

/** A child that is the only one takes the place of its parent. */
function joinOnly(node) {
  for (const [key, child] of node.children) {
    if (child.isLeaf || child.list.length !== 1) continue;
    const only = child.list[0];
    only.name = child.name + only.name;
    only.parent = node;
    node.children.set(key, only);
  }
}

/** All tensors under a node. */
function tensorsUnder(node) {
  const found = [];
  const order = [node];
  for (let k = 0; k < order.length; ++k) {
    if (order[k].tensors) found.push(...order[k].tensors);
    if (order[k].list) order.push(...order[k].list);
  }
  return found;
}

function findNode(root, path) {
  let node = root;
  while (node.path !== path) {
    const next = node.list && node.list.find((child) => path.startsWith(child.path) && child.path.length > node.path.length);
    if (!next) return node;
    node = next;
  }
  return node;
}
