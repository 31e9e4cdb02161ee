// The tree of names, without a browser: what it shows must not depend on what it showed before.
import assert from 'node:assert/strict';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {test} from 'node:test';
import {build} from 'esbuild';

const web = join(dirname(fileURLToPath(import.meta.url)), '..');
const {outputFiles} = await build({
  stdin: {contents: "export * from './src/tree'; export {begin} from './src/state';", resolveDir: web},
  bundle: true,
  write: false,
  format: 'esm',
});
const {begin, findNode, leavesUnder, tensorsUnder, Tree} = await import(
  'data:text/javascript,' + encodeURIComponent(outputFiles[0].text)
);

/** The tree of tensors with these names, of 10 bytes each unless `bytes` says it. */
function treeOf(names, bytes = {}) {
  globalThis.location = {hash: ''};
  const store = {names, patterns: names, count: names.length, bytes: (i) => bytes[names[i]] ?? 10, numbers: new Map(), isPair: false};
  begin(store, null, null, {});
  const tree = new Tree(false);
  tree.show(names.map((_, i) => i), '');
  return tree;
}

const shown = (node) => [node.name, node.value, ...(node.children ?? []).map(shown)];

test('prefixes with only one way on are one node, and what is found of them, too', () => {
  const tree = treeOf(['m.a.x', 'm.a.y', 'm.b.z']);
  assert.deepEqual(shown(tree.root), ['', 30, ['m.', 30, ['a.', 20, ['x', 10], ['y', 10]], ['b.z', 10]]]);
  tree.show([1], '');
  assert.deepEqual(shown(tree.root), ['', 10, ['m.a.y', 10]]);
  assert.deepEqual(leavesUnder(tree.root).map((leaf) => leaf.path), ['m.a.y']);
  tree.show([], '');
  assert.deepEqual(shown(tree.root), ['', 0]);
});

test('after any search, all is shown as it was', () => {
  const names = [...Array(12).keys()].flatMap((i) => [`m.layers.${i}.up`, `m.layers.${i}.down`]),
    tree = treeOf(names),
    before = shown(tree.root);
  assert.deepEqual(
    tree.root.children[0].children.map((node) => node.name),
    [...Array(12).keys()].map((i) => `${i}.`),
  );
  const searched = treeOf(names);
  for (const word of ['layers.3.', 'layers.1', 'up', '0', '']) {
    searched.show(names.flatMap((name, i) => (name.includes(word) ? [i] : [])), '');
    shown(searched.root);
  }
  assert.deepEqual(shown(searched.root), before);
});

test('a name that is a prefix of others is a leaf among them', () => {
  const tree = treeOf(['a.', 'a.b', 'a', '']);
  assert.equal(tree.root.count, 4);
  assert.deepEqual(leavesUnder(tree.root).map((leaf) => leaf.path).sort(), ['', 'a', 'a.', 'a.b']);
  assert.deepEqual(tensorsUnder(findNode(tree.root, 'a.')).sort(), [0, 1]);
});

test('small tensors have a place beside one that is too large to be counted exactly', () => {
  const tree = treeOf(['z.0.w', 'z.1.w', 'aa.huge'], {'aa.huge': 2 ** 62});
  const z = findNode(tree.root, 'z.');
  assert.equal(z.count, 2);
  assert.ok(z.value >= 2);
  assert.deepEqual(
    z.children.map((node) => node.value),
    [10, 10],
  );
});

test('a name of nothing but dots takes no more than its length', () => {
  const tree = treeOf(['.'.repeat(1e6), 'a']);
  assert.ok(tree.nodeCount < 100);
  assert.equal(tree.root.count, 2);
});
