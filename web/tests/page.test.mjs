// One checkpoint on the page: every view, by pointer and by key.
import assert from 'node:assert/strict';
import {mkdirSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {test} from 'node:test';
import {Bench} from './browser.mjs';
import {model, numbers, write} from './checkpoints.mjs';

const bench = new Bench();
const small = () => write(bench.folder, 'm.safetensors', model());
const UP = 'model.layers.1.mlp.up.weight';

test('the page opens and loses the token', async () => {
  const server = await bench.served(small());
  assert.equal(bench.page.url(), server.origin + '/');
  assert.equal(await bench.page.evaluate(() => document.cookie), ''); // HttpOnly
  assert.match(await bench.text('#head'), /19 tensors/);
  for (const address of bench.requests)
    assert.ok(address.startsWith(server.origin + '/') || address.startsWith('data:'), address);
});

test('every view has a key', async () => {
  await bench.served(small());
  for (const [key, view] of [
    ['2', 'table'],
    ['3', 'layers'],
    ['4', 'file'],
    ['1', 'map'],
  ]) {
    await bench.page.keyboard.press(key);
    await bench.page.waitForSelector(`body[data-view="${view}"]`);
  }
  assert.equal(await bench.page.evaluate(() => location.hash), '');
});

test('the focus stays where it was', async () => {
  await bench.served(small());
  for (const selector of ['#tab-layers', '[aria-label=Measure] button:nth-child(3)', '#tab-table', '.c-bytes button']) {
    await bench.page.focus(selector);
    await bench.page.keyboard.press('Enter');
    assert.ok(await bench.page.evaluate((s) => document.activeElement === document.querySelector(s), selector), selector);
  }
});

test('the address takes no nonsense', async () => {
  const address = bench.report(small());
  const nonsense = ['view=constructor', 'view=layers&metric=__proto__', 'color=toString', 'sort=valueOf&view=table'];
  for (const words of [...nonsense, 'tensor=nobody', 'prefix=%E2%80%AE&dtypes=X', 'color=change', '%%%']) {
    await bench.page.goto('about:blank');
    await bench.open(address + '#' + words);
    assert.ok((await bench.count('#main > *')) > 0, words);
  }
});

test('back leads to the view before', async () => {
  await bench.served(small());
  await bench.view('layers');
  await bench.view('file');
  await bench.page.goBack();
  await bench.page.waitForSelector('body[data-view="layers"]');
});

test('the search box filters the table, by a part of a name and by a glob', async () => {
  await bench.served(small());
  await bench.view('table');
  await bench.page.keyboard.press('/');
  await bench.page.keyboard.type('mlp.up');
  await bench.until(() => document.querySelectorAll('.row').length === 6);
  await bench.page.fill('#search', '*.#.norm.*');
  await bench.until(() => document.querySelectorAll('.row').length === 6);
  assert.match(await bench.text('.row .name'), /norm/);
  await bench.page.fill('#search', 'nothing like it');
  await bench.page.waitForSelector('text=No tensor matches');
});

test('the map shows what the search box finds, and all of it again', async () => {
  const server = await bench.served(small());
  await bench.open(server.origin + '/#fold=false');
  const painted = () => bench.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
  const walk = async (...keys) => {
    await painted();
    await bench.page.focus('.stage canvas');
    for (const key of keys) await bench.page.keyboard.press(key);
    return (await bench.page.textContent('#said')).replace(/[\u00a0\u202f]/g, ' ');
  };
  assert.match(await walk('ArrowRight'), /^model\., 19 tensors, /);
  await bench.page.fill('#search', 'layers.2 mlp');
  // What is left of the prefixes is one name.
  assert.match(await walk('ArrowRight'), /^model\.layers\.2\.mlp\., 2 tensors, /);
  await walk('Enter');
  await bench.until(() => location.hash.includes('prefix=model.layers.2.mlp.'));
  await bench.page.fill('#search', 'layers.2 mlp up');
  assert.match(await walk('ArrowRight'), /^model\.layers\.2\.mlp\.up\.weight, 1 tensor, /);
  await walk('Enter');
  await bench.page.waitForSelector('aside :text("model.layers.2.mlp.up.weight")');
  await bench.page.fill('#search', 'nothing like it');
  await painted();
  assert.equal(await bench.page.evaluate(() => document.querySelector('.stage canvas').getContext('2d').getImageData(50, 50, 1, 1).data[3]), 0);
  await bench.page.fill('#search', '');
  assert.match(await walk('ArrowRight'), /^(up|down)\.weight, 1 tensor, /); // inside the prefix again
});

test('pointing at what a search is about to take away shows nothing, and breaks nothing', async () => {
  const server = await bench.served(small());
  await bench.open(server.origin + '/#fold=false');
  await bench.pointAt('.stage canvas', 0.5, 0.5, /up|down|embed|norm/);
  const tips = await bench.page.evaluate(() => {
    const box = document.querySelector('#search'),
      canvas = document.querySelector('.stage canvas'),
      {left, top, width, height} = canvas.getBoundingClientRect(),
      tips = [];
    for (const query of ['embed', 'nothing like it']) {
      box.value = query;
      box.dispatchEvent(new Event('input', {bubbles: true}));
      for (let i = 1; i < 20; ++i) {
        const where = {clientX: left + (width * i) / 20, clientY: top + (height * i) / 20, bubbles: true};
        canvas.dispatchEvent(new PointerEvent('pointermove', where));
        tips.push(document.querySelector('#tip').hidden ? '' : document.querySelector('#tip').textContent);
      }
    }
    return tips;
  });
  for (const tip of tips) assert.match(tip, /^$|^model/);
  assert.equal(tips.at(-1), '');
});

test('the table sorts by any column, and unfolds patterns', async () => {
  await bench.served(small());
  await bench.view('table');
  await bench.page.click('.thead .c-bytes button');
  assert.match(await bench.text('.row >> nth=0'), /embed/);
  await bench.page.click('.thead .c-zeros button');
  await bench.until(() => document.querySelector('.row .name')?.textContent === 'model.layers.3.mlp.up.weight');
  await bench.page.click('.thead .c-name button');
  await bench.page.click('[aria-label=Rows] button:first-child');
  await bench.until(() => document.querySelectorAll('.row').length === 4);
  await bench.page.click('.row:has-text("mlp.up")');
  await bench.until(() => document.querySelectorAll('.row').length === 10);
});

test('a chip of a dtype filters by it', async () => {
  await bench.served(small());
  await bench.view('table');
  await bench.page.click('.chip:has-text("F16")');
  await bench.until(() => document.querySelectorAll('.row').length === 6);
  assert.equal(await bench.page.getAttribute('.chip:has-text("F16")', 'aria-pressed'), 'true');
});

test('an untrained layer stands out, and a NaN does whatever is measured', async () => {
  await bench.served(small());
  await bench.view('layers');
  await bench.page.waitForSelector('.mark-at.odd[aria-label*="mlp.up.weight, layer 3: 0, far"]');
  for (const measure of ['RMS', 'Max', 'Zeros', 'NaN']) {
    await bench.page.click(`[aria-label=Measure] button:has-text("${measure}")`);
    await bench.page.waitForSelector('.mark-at.odd[aria-label*="mlp.down.weight, layer 4"][aria-label$="1 value not finite"]'.replace('1 v', '1\u00a0v'));
  }
  await bench.page.focus('.mark-at.odd');
  assert.match(await bench.text('#tip'), /NaN or Inf/);
});

test('one expert of many that is nothing but zeros stands out', async () => {
  const tensors = {};
  for (let layer = 0; layer < 4; ++layer) {
    for (let expert = 0; expert < 16; ++expert)
      tensors[`layers.${layer}.experts.${expert}.up`] = ['F32', [8], layer === 2 && expert === 5 ? Array(8).fill(0) : numbers(8, 1, layer * 16 + expert + 1)];
  }
  await bench.served(write(bench.folder, 'm.safetensors', tensors));
  await bench.view('layers');
  await bench.page.waitForSelector('.mark-at.odd[aria-label*="layer 2: 0"]');
  assert.equal(await bench.count('.mark-at.odd'), 1);
});

test('a chosen tensor has its statistics, its histogram, its values and the lines that give them', async () => {
  await bench.served(small());
  await bench.view('table');
  await bench.page.click(`.row:has-text("${UP}")`);
  await bench.page.waitForSelector('aside .bins');
  assert.match(await bench.text('aside .numbers'), /rms/);
  await bench.page.click('aside button:has-text("Log")');
  await bench.page.waitForSelector('aside .bins');
  assert.ok((await bench.count('aside .histogram text')) >= 3);
  await bench.until(() => document.querySelector('.values').textContent.includes('['));
  const lines = await bench.page.locator('aside .code code').allInnerTexts();
  assert.equal(lines[0], `ballast cat ${bench.folder}/m.safetensors ${UP}`);
  await bench.page.click('.spectrum button');
  await bench.until(() => /16 of 16|LAPACK/.test(document.querySelector('.spectrum').textContent));
  await bench.page.keyboard.press('Escape');
  await bench.until(() => document.querySelector('aside').hidden);
});

test('a histogram is asked for of the chosen tensor only', async () => {
  await bench.served(small());
  await bench.view('layers');
  await bench.page.waitForSelector('.mark-at.odd');
  assert.deepEqual(
    bench.requests.filter((address) => address.includes('histogram')),
    [],
  );
  await bench.go('tensor=' + UP);
  await bench.page.waitForSelector('aside .bins');
  assert.equal(bench.requests.filter((address) => address.includes('histogram')).length, 1);
});

test('the heat map shows the value under the pointer, and comes closer', async () => {
  await bench.served(write(bench.folder, 'm.safetensors', {w: ['F32', [32, 32], Array.from({length: 1024}, (_, i) => i)]}));
  await bench.go('tensor=w');
  await bench.page.waitForSelector('.heat-box .hint:has-text("rows 0–31, columns 0–31, every value")');
  const colors = await bench.page.evaluate(() => {
    const canvas = document.querySelector('.heat'),
      {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return new Set(Array.from({length: data.length / 4}, (_, i) => data.slice(4 * i, 4 * i + 3).join())).size;
  });
  assert.ok(colors > 100, `${colors} colours`);
  await bench.pointAt('.heat', 2.5 / 32, 3.5 / 32, /^98\n/); // row 3, column 2
  await bench.page.focus('.heat');
  await bench.page.keyboard.press('+');
  await bench.page.waitForSelector('.heat-box .hint:has-text("rows 6–26")');
});

test('a value that F32 does not hold is told as it is, by pointer and by arrow keys', async () => {
  const values = Buffer.from(new BigInt64Array([1n, 2n, 16777217n, 123456789n, 5n, 6n]).buffer);
  await bench.served(write(bench.folder, 'm.safetensors', {w: ['I64', [2, 3], values]}));
  await bench.go('tensor=w');
  await bench.page.waitForSelector('.heat-box .hint:has-text("every value")');
  await bench.pointAt('.heat', 0.5 / 3, 0.75, /^123456789\n[^]*this value/); // row 1, column 0
  await bench.page.mouse.move(0, 0);
  await bench.page.focus('.heat');
  for (const key of ['ArrowRight', 'ArrowUp', 'ArrowRight']) await bench.page.keyboard.press(key); // row 0, column 2
  await bench.until(() => /^16777217/.test(document.querySelector('#tip').innerText));
  assert.match(await bench.text('#said'), /16777217, row 0, column 2/);
});

test('a histogram and singular values tell their places to arrow keys', async () => {
  await bench.served(small());
  await bench.go('tensor=' + UP);
  await bench.page.waitForSelector('aside .bins');
  await bench.page.focus('aside .histogram');
  await bench.page.keyboard.press('ArrowRight');
  assert.match(await bench.text('#tip'), /^near −/);
});

test('the histogram of one value is around it', async () => {
  await bench.served(write(bench.folder, 'm.safetensors', {w: ['F32', [4], [1e-8, 1e-8, 1e-8, 1e-8]]}));
  await bench.go('tensor=w');
  await bench.page.waitForSelector('aside .bins');
  assert.match(await bench.page.getAttribute('aside .histogram', 'aria-label'), /from 8\.5e−9 to 1\.15e−8/);
});

test('a name that looks like an option, or like nothing, is a name', async () => {
  const names = ['-h', '  ', '\u3164', '\u2800'];
  await bench.served(write(bench.folder, 'm.safetensors', Object.fromEntries(names.map((name) => [name, ['F32', [1], [1]]]))));
  await bench.view('table');
  const shown = await bench.page.locator('.row .name').allInnerTexts();
  assert.deepEqual(shown.map((name) => name.replaceAll('\u00a0', ' ')).sort(), ['"  "', '-h', '\\u2800', '\\u3164'].sort());
  await bench.go('tensor=-h');
  await bench.page.waitForSelector('aside .code');
  assert.equal(await bench.page.innerText('aside .code code'), `ballast cat -- ${bench.folder}/m.safetensors -h`);
});

test('what is refused together is asked for one by one, and again when it is chosen', async () => {
  bench.forgiven = /status of 400/;
  let isBroken = true;
  await bench.page.route('**/api/stats/**', (route) => {
    const numbers = new URL(route.request().url()).searchParams.get('numbers').split(',');
    if (!isBroken || !numbers.includes('2')) return route.continue();
    return route.fulfill({status: 400, contentType: 'application/json', body: '{"error": "it is broken", "hint": null}'});
  });
  const {origin} = await bench.served(small());
  await bench.page.goto(origin + '/#view=table&folded=false&sort=std');
  await bench.until(() => document.querySelectorAll('.row').length === 19 && [...document.querySelectorAll('.row .c-std')].filter((cell) => cell.textContent === '–').length === 1);
  isBroken = false;
  await bench.page.click('.row:has(.c-std:text-is("–"))');
  await bench.page.waitForSelector('aside .numbers');
});

test('singular values that nobody looks at any more are not waited for', async () => {
  await bench.page.route('**/api/spectrum/**', () => {}); // never answered
  await bench.served(small());
  await bench.go('tensor=' + UP);
  await bench.page.click('.spectrum button');
  const left = bench.page.waitForEvent('requestfailed', (request) => request.url().includes('spectrum'));
  await bench.page.keyboard.press('Escape');
  await left;
});

test('a text that is cut says so', async () => {
  const folder = join(bench.folder, 'model');
  mkdirSync(folder);
  write(folder, 'model.safetensors', model());
  writeFileSync(join(folder, 'README.md'), 'x'.repeat(70_000));
  await bench.open(bench.report(folder) + '#view=file');
  await bench.page.click('summary:has-text("README.md")');
  await bench.page.waitForSelector('text=Only its beginning is shown.');
});

test('the map zooms by pointer, wheel and keys', async () => {
  await bench.served(small());
  const canvas = bench.page.locator('.stage canvas'),
    crumbs = bench.page.locator('#crumbs');
  await canvas.focus();
  await bench.until(() => {
    document.querySelector('.stage canvas').dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));
    return document.querySelector('#said').textContent.includes('tensor');
  });
  await bench.page.keyboard.press('Enter');
  await crumbs.filter({hasText: 'model'}).waitFor();
  await bench.page.keyboard.press('Backspace');
  await crumbs.filter({hasNotText: 'model'}).waitFor();
  const box = await canvas.boundingBox();
  await bench.page.mouse.click(box.x + box.width / 2, box.y + 8);
  await crumbs.filter({hasText: 'model'}).waitFor();
  const corner = () => bench.page.evaluate(() => document.querySelector('.stage canvas').toDataURL());
  const before = await corner();
  await bench.page.mouse.move(box.x + 300, box.y + 200);
  await bench.page.mouse.wheel(0, -400);
  await bench.until((picture) => document.querySelector('.stage canvas').toDataURL() !== picture, before);
});

test('light and dark change places', async () => {
  await bench.served(small());
  const paper = () => bench.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await bench.page.click('#theme');
  assert.notEqual(await paper(), light);
  await bench.page.reload();
  await bench.until(() => document.documentElement.dataset.theme === 'dark');
});
