// A hundred thousand tensors. What is promised of a quiet machine is 2 s and 50 ms, medians of 20; this test fails at
// twice that, and where other programs take the processors, at as much more as they take.
import assert from 'node:assert/strict';
import {join} from 'node:path';
import {test} from 'node:test';
import {Bench} from './browser.mjs';
import {writeMany} from './checkpoints.mjs';

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
