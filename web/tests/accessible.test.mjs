// axe-core finds nothing serious or critical in any view, light or dark.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {Bench} from './browser.mjs';
import {model, write, writeAdapter} from './checkpoints.mjs';

const bench = new Bench();
const axe = readFileSync(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

/** What axe-core finds in the page as it is now. */
async function problems() {
  await bench.page.evaluate(axe);
  const {violations} = await bench.page.evaluate(() => window.axe.run(document, {resultTypes: ['violations']}));
  return violations
    .filter(({impact}) => impact === 'serious' || impact === 'critical')
    .map(({id, nodes}) => `${id}: ${nodes.map((node) => node.html.slice(0, 200)).join(' ')}`);
}

async function looksAtEvery(view, selector, scheme) {
  await bench.view(view);
  await bench.page.waitForSelector(selector);
  assert.deepEqual(await problems(), [], `${view}, ${scheme}`);
}

for (const scheme of ['light', 'dark']) {
  test(`a checkpoint has no barrier, ${scheme}`, async () => {
    await bench.tab({colorScheme: scheme});
    await bench.served(write(bench.folder, 'm.safetensors', model(), {about: 'a test'}));
    await looksAtEvery('map', '.stage canvas', scheme);
    await looksAtEvery('table', '.row', scheme);
    await looksAtEvery('layers', '.mark-at.odd', scheme);
    await looksAtEvery('file', '.definitions', scheme);
    await bench.view('map');
    await bench.go('tensor=model.layers.1.mlp.up.weight');
    await bench.page.waitForSelector('aside .bins');
    assert.deepEqual(await problems(), [], 'a tensor');
  });

  test(`a difference has no barrier, ${scheme}`, async () => {
    await bench.tab({colorScheme: scheme});
    const b = write(bench.folder, 'b.safetensors', model({change: 0.5}));
    await bench.served(write(bench.folder, 'a.safetensors', model()), b);
    await looksAtEvery('difference', '.worst', scheme);
    await looksAtEvery('map', '.stage canvas', scheme);
    await looksAtEvery('table', '.row', scheme);
  });

  test(`quantized weights have no barrier, ${scheme}`, async () => {
    await bench.tab({colorScheme: scheme});
    await bench.served(fileURLToPath(new URL('../../tests/vectors/quantized/gptq-4bit-g32-sym/in', import.meta.url)));
    await bench.go('tensor=model.layers.0.self_attn.q_proj.qweight');
    await bench.page.waitForSelector('aside .bins');
    assert.deepEqual(await problems(), [], scheme);
  });

  test(`an adapter has no barrier, ${scheme}`, async () => {
    await bench.tab({colorScheme: scheme});
    const {adapter, base} = writeAdapter(bench.folder);
    await bench.served(adapter, '--base', base);
    await looksAtEvery('adapter', '.bar-up', scheme);
  });
}
