// The report: one file, opened from the disk, with the network off.
import assert from 'node:assert/strict';
import {join} from 'node:path';
import {test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {Bench} from './browser.mjs';
import {model, write, writeZip, writeWhole} from './checkpoints.mjs';
import {decoded} from './palette.mjs';

const bench = new Bench();
const report = () => bench.report(write(bench.folder, 'm.safetensors', model()));

test('a report opens from a file with the network off, and asks for nothing', async () => {
  const address = report();
  await bench.context.setOffline(true);
  await bench.open(address);
  for (const view of ['table', 'layers', 'file', 'map']) await bench.view(view);
  await bench.view('layers');
  assert.equal(await bench.count('.mark-at.odd'), 2);
  assert.deepEqual(
    bench.requests.filter((name) => !/^(file|data|blob):/.test(name)),
    [],
  );
});

test('a report shows the command where it has no values', async () => {
  await bench.open(report() + '#tensor=model.layers.1.mlp.up.weight');
  await bench.page.waitForSelector('aside .numbers');
  assert.ok((await bench.text('aside')).includes('ballast view ' + bench.folder));
  assert.equal(await bench.count('aside .histogram .bins'), 1);
  assert.equal(await bench.count('aside canvas'), 0);
});

test('no script of a name could run even if it were markup', async () => {
  bench.forgiven = /TrustedHTML/;
  await bench.open(report());
  const refused = await bench.page.evaluate(() => {
    try {
      document.body.innerHTML = '<img src=x onerror=alert(1)>';
      return false;
    } catch (error) {
      return error instanceof TypeError;
    }
  });
  assert.ok(refused);
});

test('a printed page has the view and the tensor, and nothing to press', async () => {
  await bench.open(report() + '#tensor=model.layers.1.mlp.up.weight');
  await bench.page.emulateMedia({media: 'print'});
  for (const selector of ['.search', '#theme', '.close', '.copy']) assert.ok(!(await bench.page.isVisible(selector)), selector);
  assert.ok(await bench.page.isVisible('aside .numbers'));
  assert.ok(await bench.page.isVisible('.stage canvas'));
});

/** Whether nothing around an element cuts anything off it. */
const isWhole = (selector) =>
  bench.page.evaluate((name) => {
    const element = document.querySelector(name),
      {left, right, bottom} = element.getBoundingClientRect();
    for (let around = element.parentElement; around !== document.body; around = around.parentElement) {
      const box = around.getBoundingClientRect();
      if (getComputedStyle(around).overflow !== 'visible' && (left < box.left - 1 || right > box.right + 1 || bottom > box.bottom + 1)) return false;
    }
    return true;
  }, selector);

for (const scheme of ['light', 'dark']) {
  test(`the map and the table are printed whole, on white paper, from a ${scheme} screen`, async () => {
    await bench.tab({colorScheme: scheme});
    await bench.open(report());
    await bench.page.emulateMedia({media: 'print', colorScheme: scheme});
    await bench.page.setViewportSize({width: 720, height: 1000});
    for (const [view, selector] of [
      ['map', '.stage canvas'],
      ['table', '.thead .c-nans'],
      ['layers', '.strip-box'],
      ['file', '.shard'],
    ]) {
      await bench.view(view);
      await bench.page.waitForSelector(selector);
      assert.ok(await isWhole(selector), view);
      const {colors} = decoded(await bench.page.screenshot());
      const light = colors.filter((color) => (color >> 16) + ((color >> 8) & 255) + (color & 255) > 3 * 96).length;
      assert.ok(light / colors.length > 0.9, `${view}: ${light} of ${colors.length} points are light`);
    }
  });
}

test('a printed table has every row, though the window shows few', async () => {
  const tensors = Object.fromEntries(Array.from({length: 300}, (_, i) => [`w${i}`, ['F32', [1], [i]]]));
  await bench.open(bench.report(write(bench.folder, 'm.safetensors', tensors)) + '#view=table&folded=false');
  await bench.page.waitForSelector('.row');
  const rows = () => bench.count('.row');
  assert.ok((await rows()) < 100);
  await bench.page.evaluate(() => {
    addEventListener('beforeprint', () => (window.printed = document.querySelectorAll('.row').length));
  });
  await bench.page.pdf();
  assert.equal(await bench.page.evaluate(() => window.printed), 300);
  assert.ok((await rows()) < 100);
});

test('a table too long for paper says where it is cut, and leaves no empty pages', async () => {
  const header = {};
  for (let i = 0; i < 6000; ++i) header[`w${i}`] = {dtype: 'U8', shape: [1], data_offsets: [i, i + 1]};
  const path = writeWhole(join(bench.folder, 'm.safetensors'), header, Buffer.alloc(6000));
  await bench.open(bench.report(path) + '#view=table&folded=false');
  const height = () => bench.page.evaluate(() => document.querySelector('.tbody').scrollHeight);
  const before = await height();
  await bench.page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  assert.equal(await bench.count('.row'), 5000);
  assert.match(await bench.text('.tbody .none'), /the first 5 000 of 6 000 rows/);
  assert.ok((await height()) < before * 0.9);
  await bench.page.evaluate(() => dispatchEvent(new Event('afterprint')));
  assert.equal(await height(), before);
  assert.equal(await bench.count('.tbody .none'), 0);
});

test('an adapter whose modules cannot be compared says why', async () => {
  await bench.open(bench.report(fileURLToPath(new URL('../../tests/vectors/gguf/lora_adapter.gguf', import.meta.url))));
  await bench.page.waitForSelector('.card:has-text("attention.head_count")');
});

test('statistics of a sample say so in every view', async () => {
  await bench.open(bench.report(write(bench.folder, 'm.safetensors', model()), '--sample', '100') + '#color=norm');
  for (const view of ['map', 'table', 'layers']) {
    await bench.view(view);
    await bench.page.waitForSelector('.tools:has-text("from about 100\u00a0values of each")');
  }
});

test('a file whose tensors are packed says so', async () => {
  const array = (count) => {
    const head = `{'descr': '|u1', 'fortran_order': False, 'shape': (${count},), }`.padEnd(117) + '\n';
    return Buffer.concat([Buffer.from('\x93NUMPY\x01\x00v\x00', 'latin1'), Buffer.from(head), Buffer.alloc(count)]);
  };
  await bench.open(bench.report(writeZip(join(bench.folder, 'm.npz'), 'w.npy', array(1000))) + '#view=file');
  const text = await bench.text('.shard-row');
  assert.match(text, /Its tensors are packed/);
  assert.doesNotMatch(text, /behind the last|in holes|0 tensors/);
});

test('a file without a tensor says nothing of what lies behind the last one', async () => {
  const path = fileURLToPath(new URL('../../tests/vectors/gguf/no_tensors.gguf', import.meta.url));
  await bench.open(bench.report(path) + '#view=file');
  const text = await bench.text('.shard-row');
  assert.match(text, /It has no tensor\./);
  assert.doesNotMatch(text, /behind the last|in holes|0 tensors/);
});
