// The page and its server: several tabs at once, and a server or a line that fails while the page is open.
import assert from 'node:assert/strict';
import {readFileSync, truncateSync} from 'node:fs';
import {join} from 'node:path';
import {test} from 'node:test';
import {Bench} from './browser.mjs';
import {model, write, writeAdapter, writeWhole} from './checkpoints.mjs';

const MIB = 2 ** 20,
  TENSORS = 8;

const bench = new Bench();
const small = () => write(bench.folder, 'm.safetensors', model());
const LOST = /net::ERR_(FAILED|CONNECTION_|EMPTY_RESPONSE|INCOMPLETE)/;
const TENSOR = 'model.layers.1.mlp.up.weight';

/** Tensors of 32 MiB each, of zeros. */
function large() {
  const header = {},
    path = join(bench.folder, 'large.safetensors'),
    size = 32 * MIB;
  for (let i = 0; i < TENSORS; ++i)
    header[`layers.${i}.w`] = {dtype: 'F32', shape: [8192, 1024], data_offsets: [i * size, (i + 1) * size]};
  writeWhole(path, header, Buffer.alloc(0));
  truncateSync(path, readFileSync(path).length + TENSORS * size);
  return path;
}

/** The memory of a process that is no page of a file, in bytes. */
const memoryOf = ({pid}) => 1024 * Number(/RssAnon:\s*(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);

test('three tabs get their statistics at once, and the server keeps little in memory', async () => {
  const server = await bench.served(large());
  let most = 0;
  const watch = setInterval(() => (most = Math.max(most, memoryOf(server.process))), 20);
  try {
    await Promise.all(
      [
        ['view=table&folded=false&sort=std', '.row .c-std:text-is("0")', TENSORS],
        ['view=layers', '.mark-at:not(.unknown)', TENSORS],
        ['tensor=layers.5.w', 'aside .bins', 1],
      ].map(async ([hash, selector, count]) => {
        const page = await bench.context.newPage();
        await page.goto(server.origin + '/#' + hash);
        await page.locator(selector).nth(count - 1).waitFor();
      }),
    );
  } finally {
    clearInterval(watch);
  }
  assert.ok(most > 0 && most < 96 * MIB, `${(most / MIB).toFixed(1)} MiB`);
});

test('a server that stops while its page is open is said in words', async () => {
  bench.forgiven = LOST;
  const server = await bench.served(small());
  bench.servers = [];
  const ended = new Promise((done) => server.process.once('exit', done));
  server.process.kill('SIGKILL');
  await ended;
  await bench.go('tensor=' + TENSOR);
  const silence = 'the server does not answer';
  for (const selector of ['aside section:has-text("Statistics")', '.heat-box .hint', '.values', '#progress'])
    await bench.page.waitForSelector(`${selector}:has-text("${silence}")`);
  await bench.page.click('.spectrum button');
  await bench.page.waitForSelector(`.spectrum:has-text("${silence}")`);
  await bench.view('file');
  await bench.page.waitForSelector(`.card:has-text("${silence}")`);
  assert.doesNotMatch(await bench.text('body'), /Reading/);
});

/** Requests of these addresses are lost until the line is mended. */
async function brokenLine(addresses) {
  bench.forgiven = LOST;
  const line = {isBroken: true};
  await bench.page.route(addresses, (route) => (line.isBroken ? route.abort() : route.continue()));
  return line;
}

test('statistics come when the line does, and what was said of it goes', async () => {
  const line = await brokenLine('**/api/stats/**');
  await bench.served(small());
  await bench.go('tensor=' + TENSOR);
  for (const selector of ['aside', '#progress'])
    await bench.page.waitForSelector(selector + ':has-text("the server does not answer")');
  line.isBroken = false;
  await bench.page.waitForSelector('aside .bins');
  await bench.until(() => document.querySelector('#progress').hidden);
  assert.doesNotMatch(await bench.text('aside'), /does not answer/);
});

for (const [view, addresses, found, targets] of [
  ['file', '**/api/info/*', '.facts', () => [small()]],
  ['difference', '**/api/diff', '.worst', () => [small(), write(bench.folder, 'b.safetensors', model({change: 0.5}))]],
  ['adapter', '**/api/adapter', '.facts', () => [writeAdapter(bench.folder).adapter]],
]) {
  test(`a view that was not answered asks again when it is opened again: ${view}`, async () => {
    const line = await brokenLine(addresses);
    await bench.served(...targets());
    await bench.view('map');
    await bench.view(view);
    await bench.page.waitForSelector('main:has-text("the server does not answer")');
    line.isBroken = false;
    await bench.view('table');
    await bench.view(view);
    await bench.page.waitForSelector(found);
    assert.doesNotMatch(await bench.text('main'), /does not answer/);
  });
}

test('an answer that is cut is no answer', async () => {
  await bench.page.route('**/api/info/*', (route) => route.fulfill({body: '{"tensors":'}));
  await bench.served(small());
  await bench.view('file');
  await bench.page.waitForSelector('main:has-text("the server does not answer")');
});

test('the panel of a tensor does not go on comparing when nobody answers', async () => {
  await brokenLine('**/api/diff');
  await bench.served(small(), write(bench.folder, 'b.safetensors', model({change: 0.5})));
  await bench.go('tensor=' + TENSOR);
  await bench.page.waitForSelector('aside > .hint:has-text("the server does not answer")');
});
