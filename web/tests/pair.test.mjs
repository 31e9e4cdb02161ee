// Two checkpoints, and an adapter.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Bench} from './browser.mjs';
import {model, numbers, write, writeAdapter} from './checkpoints.mjs';

const bench = new Bench();

async function servedPair() {
  const changed = {...model({change: 0.5, broken: false}), new: ['F32', [1], [1]]};
  await bench.served(write(bench.folder, 'a.safetensors', model()), write(bench.folder, 'b.safetensors', changed));
}

test('a difference shows the worst tensors first, and what only one side has', async () => {
  await servedPair();
  await bench.view('difference');
  await bench.page.waitForSelector('.worst');
  const first = await bench.text('.worst li >> nth=0');
  assert.match(first, /model\.layers\.3\.mlp\.up\.weight/);
  assert.match(first, /∞/);
  assert.match(await bench.text('main'), /Only in B: 1/);
});

test('changed shapes come first, in the table, too, and lists that are cut say so', async () => {
  const sides = [0, 1].map((side) => {
    const tensors = {'another.shape': ['F32', [4 - 2 * side], numbers(4 - 2 * side)]};
    for (let i = 0; i < 201; ++i) tensors[`l.${i}.w`] = ['F32', [2], [1, 2 + side]];
    return write(bench.folder, `${side}.safetensors`, tensors);
  });
  await bench.served(...sides);
  await bench.view('difference');
  await bench.page.waitForSelector('.worst');
  assert.match(await bench.text('.card:has(.worst) >> nth=0'), /^Another shape\n+another\.shape\n+\[4\] → \[2\]/);
  assert.match(await bench.text('.card:has(.worst) >> nth=1'), /The first 200 of 201\./);
  await bench.view('table');
  await bench.page.waitForSelector('.c-shape:has-text("[4] → [2]")');
});

test('the one layer that changed stands out', async () => {
  const sides = [0, 1].map((side) => {
    const tensors = {};
    for (let i = 0; i < 8; ++i) tensors[`l.${i}.w`] = ['F32', [2], [1, i === 3 ? 2 + side : 2]];
    return write(bench.folder, `${side}.safetensors`, tensors);
  });
  await bench.served(...sides);
  await bench.view('layers');
  await bench.page.waitForSelector('.mark-at.odd[aria-label*="layer 3"]');
  assert.equal(await bench.count('.mark-at.odd'), 1);
});

test('a value that is infinite on one side only is no small change', async () => {
  const sides = [2, Infinity].map((last, i) => write(bench.folder, `${i}.safetensors`, {w: ['F32', [2], [1, last]]}));
  await bench.served(...sides);
  await bench.view('difference');
  await bench.page.waitForSelector('.worst');
  assert.match(await bench.text('.worst li >> nth=0'), /∞/);
});

test('a tensor of two sides has both histograms over each other', async () => {
  await servedPair();
  await bench.view('difference');
  await bench.page.click('.worst li:nth-child(2) button');
  await bench.until(() => document.querySelectorAll('aside .bins').length === 2);
  assert.match(await bench.text('aside'), /‖A−B‖ \/ ‖A‖/);
});

test('the map, the table and the layers show the relative change', async () => {
  await servedPair();
  await bench.page.waitForSelector('[aria-label=Colour] [aria-checked=true]:has-text("Change")');
  await bench.view('table');
  await bench.page.click('.thead .c-change button');
  await bench.until(() => document.querySelector('.row .c-change')?.textContent === '∞');
  await bench.view('layers');
  await bench.page.waitForSelector('[aria-label=Measure] [aria-checked=true]:has-text("Change")');
});

test('an adapter shows a bar for each module, and with the base model its share', async () => {
  const {adapter, base} = writeAdapter(bench.folder);
  await bench.served(adapter, '--base', base);
  await bench.until(() => document.querySelectorAll('.bar-up').length === 4);
  const text = await bench.text('main');
  assert.match(text, /LORA/);
  assert.match(text, /Bars are ‖s·B·A‖ \/ ‖W‖/);
});
