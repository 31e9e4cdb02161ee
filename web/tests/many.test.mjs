// A hundred thousand tensors. What is promised of a quiet machine is 2 s and 50 ms, medians of 20 (of 8 where there are many
// actions); this test fails at twice that, and where other programs take the processors, at as much more as they take.
import assert from 'node:assert/strict';
import {join} from 'node:path';
import {test} from 'node:test';
import {Bench} from './browser.mjs';
import {writeMany, writeWhole} from './checkpoints.mjs';

const RUNS = 20,
  FIRST_PAINT = 4000,
  INTERACTION = 100;

const bench = new Bench();
const median = (times) => times.sort((a, b) => a - b)[times.length >> 1];

/** How much longer work takes than it would on a quiet machine: what the clock says, by the time on a processor. */
function busyness() {
  const shares = Array.from({length: 9}, () => {
    const start = performance.now(),
      before = process.cpuUsage();
    const spent = () => {
      const {user, system} = process.cpuUsage(before);
      return (user + system) / 1000;
    };
    while (spent() < 20);
    return (performance.now() - start) / spent();
  });
  return Math.max(1, median(shares));
}

/** How long the page takes from an action to the next picture, as it measures that itself. */
function measure(action) {
  return bench.page.evaluate(
    async ([source, runs]) => {
      const act = {
        wheel(i) {
          const canvas = document.querySelector('.stage canvas'),
            {left, top} = canvas.getBoundingClientRect();
          const where = {clientX: left + 300, clientY: top + 200, bubbles: true, cancelable: true};
          canvas.dispatchEvent(new WheelEvent('wheel', {deltaY: i < 12 ? -60 : 60, ...where}));
        },
        scroll(i) {
          document.querySelector('.grid').scrollTop = i * 3000;
        },
        choose(i) {
          document.querySelectorAll('.row')[i % 5].click();
        },
        sort(i) {
          document.querySelector(i % 2 ? '.c-bytes button' : '.c-dtype button').click();
        },
      }[source];
      const times = [];
      for (let i = 0; i < runs; ++i) {
        const start = performance.now();
        act(i);
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        times.push(performance.now() - start);
      }
      return times;
    },
    [action, RUNS],
  );
}

/**
 * How long the page's own thread works from an action until the page rests, without the time that other programs take
 * away from it.
 */
async function work(session, runs, act) {
  const spent = async () => {
    const {metrics} = await session.send('Performance.getMetrics');
    return metrics.find(({name}) => name === 'TaskDuration').value * 1000;
  };
  const times = [];
  for (let i = 0; i < runs; ++i) {
    const before = await spent();
    await bench.page.evaluate(act, i);
    let now = await spent();
    for (let last = -1; now - last > 1 || now - before < 2; now = await spent()) {
      last = now;
      await bench.page.waitForTimeout(50);
    }
    times.push(now - before);
  }
  return median(times);
}

const press = (group, button) => document.querySelector(`[aria-label=${group}] button:nth-child(${button})`).click();
const type = (i) => {
  const box = document.querySelector('#search');
  box.value = ['up', 'exp', 'down', ''][i % 4];
  box.dispatchEvent(new Event('input', {bubbles: true}));
};

/** What the user does with all of them, view by view: each leads to another picture of all tensors. */
const ACTIONS = {
  map: {
    fold: (i) => press('Layers', (i % 2) + 1),
    zoom: (i) => {
      location.hash = 'fold=false' + (i % 2 ? '' : `&prefix=model.layers.${i + 3}.`);
    },
    color: (i) => press('Colour', (i % 3) + 1),
    search: type,
    away: (i) => document.querySelector(i % 2 ? '#tab-map' : '#tab-table').click(),
  },
  table: {
    search: type,
    unfold: (i) => press('Rows', 2 - (i % 2)),
    searchAll: type,
    sort: (i) => document.querySelector(i % 2 ? '.c-std button' : '.c-name button').click(),
  },
  layers: {search: type, measure: (i) => press('Measure', (i % 3) + 1)},
  file: {away: (i) => document.querySelector(i % 2 ? '#tab-file' : '#tab-table').click()},
};

test('a hundred thousand tensors are folded, coloured, searched and left at once', async (t) => {
  const {path} = writeMany(join(bench.folder, 'many.safetensors'));
  await bench.open(bench.report(path, '--sample', '1') + '#fold=false'); // every statistic is known
  const session = await bench.context.newCDPSession(bench.page),
    times = {};
  await session.send('Performance.enable', {timeDomain: 'threadTicks'});
  await bench.page.evaluate(`press = ${press}`);
  const before = busyness();
  for (const [view, actions] of Object.entries(ACTIONS)) {
    await bench.view(view);
    for (const [name, act] of Object.entries(actions)) times[`${view} ${name}`] = Math.round(await work(session, 8, act));
  }
  const busy = Math.min(Math.max(before, busyness()), 2);
  t.diagnostic(`${JSON.stringify(times)} ms of the page's own thread; busy ${busy.toFixed(1)}`);
  for (const [name, time] of Object.entries(times)) assert.ok(time < busy * INTERACTION, `${name} takes ${time} ms`);
});

test('names without a prefix in common are shown, however many', async () => {
  const header = {};
  for (let i = 0; i < 130_000; ++i) header[`t${i}`] = {dtype: 'U8', shape: [1], data_offsets: [i, i + 1]};
  for (let i = 0; i < 1000; ++i) header[`blk.${i}.w`] = {dtype: 'U8', shape: [1], data_offsets: [130_000 + i, 130_001 + i]};
  await bench.served(writeWhole(join(bench.folder, 'flat.safetensors'), header, Buffer.alloc(131_000)));
  for (const view of ['table', 'layers', 'file', 'map']) await bench.view(view);
  await bench.page.click('[aria-label=Layers] button:last-child');
  await bench.page.click('[aria-label=Colour] button:nth-child(2)');
  await bench.page.waitForSelector('.stage canvas');
});

test('a hundred thousand tensors are shown at once, and move smoothly', async (t) => {
  const {path, count} = writeMany(join(bench.folder, 'many.safetensors'));
  assert.ok(count >= 100_000);
  const server = await bench.start(path); // it prints its address when the header is read
  const before = busyness(),
    paints = [];
  for (let i = 0; i < RUNS; ++i) {
    const start = performance.now();
    await bench.open(i === 0 ? server.address : server.origin + '/');
    await bench.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    paints.push(performance.now() - start);
    await bench.page.goto('about:blank');
  }
  await bench.open(server.origin + '/');
  await bench.page.click('[aria-label=Layers] button:last-child');
  const times = {wheel: median(await measure('wheel'))};
  await bench.view('table');
  for (const action of ['scroll', 'choose', 'sort']) times[action] = median(await measure(action));
  const paint = median(paints),
    busy = Math.max(before, busyness());
  t.diagnostic(
    `first paint ${Math.round(paint)} ms; ${JSON.stringify(times)}; everything takes ${busy.toFixed(1)} times as long as it should`,
  );
  assert.ok(paint < busy * FIRST_PAINT, `first paint after ${paint} ms`);
  for (const [action, time] of Object.entries(times)) assert.ok(time < busy * INTERACTION, `${action} takes ${time} ms`);
});
