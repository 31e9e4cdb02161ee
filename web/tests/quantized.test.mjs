// Weights that other programs keep quantized: their parts say what they are, and --dequantize shows the weights.
import assert from 'node:assert/strict';
import {fileURLToPath} from 'node:url';
import {test} from 'node:test';
import {Bench} from './browser.mjs';

const bench = new Bench();
const gptq = fileURLToPath(new URL('../../tests/vectors/quantized/gptq-4bit-g32-sym/in', import.meta.url));
const MODULE = 'model.layers.0.self_attn.q_proj';

test('parts of quantized weights say what they are, and how to see the weights', async () => {
  await bench.served(gptq);
  const banner = await bench.text('.banner');
  assert.match(banner, /2 weights are kept quantized with gptq, 4 bits, groups of 32\. What is shown are the 8 parts/);
  assert.ok(banner.includes(`ballast view --dequantize ${gptq}`), banner);
  await bench.go('tensor=' + MODULE + '.qweight');
  await bench.page.waitForSelector('aside .bins');
  assert.match(await bench.text('aside .only'), /A part of a weight that is kept quantized with gptq/);
  await bench.go('tensor=model.norm.weight');
  await bench.until(() => document.querySelector('aside h2').textContent === 'model.norm.weight');
  assert.equal(await bench.count('aside .only'), 0);
  await bench.view('file');
  await bench.page.waitForSelector('.facts dd:has-text("gptq, 4 bits, groups of 32: 2 weights in 8 parts")');
});

test('--dequantize shows the weights, and lines that give the same', async () => {
  await bench.served('--dequantize', gptq);
  assert.match(await bench.text('.banner'), /kept quantized with gptq, and shown as the numbers that they stand for/);
  await bench.go('tensor=' + MODULE + '.weight');
  await bench.page.waitForSelector('aside .bins');
  assert.match(await bench.text('aside .type'), /F16 \[64, 128\]/);
  assert.deepEqual(await bench.page.locator('aside .code code').allInnerTexts(), [
    `ballast cat ${gptq} ${MODULE}.weight --dequantize`,
    `ballast.open("${gptq}", dequantize=True)["${MODULE}.weight"]`,
    `ballast::open("${gptq}", {.dequantize = true}).at("${MODULE}.weight")`,
  ]);
});

test('a report of parts says the same', async () => {
  await bench.open(bench.report(gptq));
  assert.match(await bench.text('.banner'), /kept quantized with gptq/);
});
