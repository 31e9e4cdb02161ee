// The page on a phone: a small window, and fingers.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Bench} from './browser.mjs';
import {model, write, writeAdapter} from './checkpoints.mjs';

const WIDTH = 360,
  HEIGHT = 640;

const bench = new Bench();
const phone = () => bench.tab({viewport: {width: WIDTH, height: HEIGHT}, hasTouch: true, isMobile: true});

/** How much wider the page, its view and the panel are than the window. */
const excess = () =>
  bench.page.evaluate(() =>
    [document.scrollingElement, ...document.querySelectorAll('#main, aside:not([hidden])')].map(
      (box) => box.scrollWidth - Math.min(innerWidth, box.clientWidth),
    ),
  );

async function tapsEvery(views) {
  const tabs = await bench.page.locator('.tabs button').evaluateAll((buttons) => buttons.map((button) => button.id));
  assert.deepEqual(
    tabs,
    views.map((view) => 'tab-' + view),
  );
  for (const view of [...views].reverse()) {
    await bench.page.tap('#tab-' + view);
    await bench.page.waitForSelector(`body[data-view="${view}"]`);
    await bench.until(() => document.querySelector('#main > *') && !document.querySelector('.wait'));
    assert.deepEqual(await excess(), [0, 0], view);
  }
}

test('every view of a checkpoint can be reached on a phone, and none scrolls sideways', async () => {
  await phone();
  await bench.served(write(bench.folder, 'm.safetensors', model(), {about: 'a test'}));
  await tapsEvery(['map', 'table', 'layers', 'file']);
});

test('every view of a difference can be reached on a phone, and none scrolls sideways', async () => {
  await phone();
  const b = write(bench.folder, 'b.safetensors', model({change: 0.5}));
  await bench.served(write(bench.folder, 'a.safetensors', model()), b);
  await tapsEvery(['map', 'table', 'layers', 'difference', 'file']);
});

test('every view of an adapter can be reached on a phone, and none scrolls sideways', async () => {
  await phone();
  const {adapter, base} = writeAdapter(bench.folder);
  await bench.served(adapter, '--base', base);
  await tapsEvery(['map', 'table', 'layers', 'adapter', 'file']);
});

test('a tensor is opened and closed with a finger, and its panel fits the phone', async () => {
  await phone();
  await bench.served(write(bench.folder, 'm.safetensors', model()));
  await bench.page.tap('#tab-table');
  await bench.page.tap('.row .name:has-text("layers.1.mlp.up")');
  await bench.page.waitForSelector('aside .bins');
  await bench.page.waitForSelector('.heat-box .hint:has-text("every value")');
  assert.deepEqual(await excess(), [0, 0, 0]);
  const {x, y, width, height} = await bench.page.locator('aside').boundingBox();
  assert.ok(x >= 0 && y >= 0 && x + width <= WIDTH && y + height <= HEIGHT, `${x} ${y} ${width} ${height}`);
  await bench.page.tap('aside .close');
  await bench.until(() => document.querySelector('aside').hidden);
});
