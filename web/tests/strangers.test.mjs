// Names that want to be markup, and pages of other sites that want to ask.
import assert from 'node:assert/strict';
import {createServer} from 'node:http';
import {test} from 'node:test';
import {Bench} from './browser.mjs';
import {HOSTILE, model, write} from './checkpoints.mjs';

const bench = new Bench();
const REFUSED = /status of 403|Cross-Origin-Opener-Policy|CORS policy|ERR_FAILED|Refused to display/;
const small = () => write(bench.folder, 'm.safetensors', model());

test('hostile names are text in every view', async () => {
  const odd = [
    'a\u202eb\u0000c',
    '<b>x</b>.weight',
    'x'.repeat(5000),
    '\n\r\t',
    'javascript:alert(1)',
    '__proto__',
    '#&tensor=x',
  ];
  const names = [HOSTILE, ...odd, 'constructor.prototype.0'];
  const tensors = Object.fromEntries(names.map((name) => [name, ['F32', [2, 2], [1, 2, 3, 4]]]));
  await bench.served(write(bench.folder, 'h.safetensors', tensors, {[HOSTILE]: HOSTILE}));
  for (const view of ['map', 'layers', 'table', 'file']) await bench.view(view);
  await bench.page.waitForSelector('main th:has-text("</script>")');
  await bench.view('table');
  assert.equal(await bench.count('.row'), names.length);
  for (let i = 0; i < names.length; ++i) {
    await bench.page.click(`.row >> nth=${i}`);
    await bench.page.waitForSelector('aside .numbers');
  }
  assert.equal(await bench.count('main img, main b x, aside img, main script, aside script'), 0);
  assert.doesNotMatch(await bench.text('body'), /\u202e/);
});

test('a wrong token is refused', async () => {
  bench.forgiven = REFUSED;
  const server = await bench.start(small());
  for (const path of ['/', '/?token=' + '0'.repeat(48), '/api/model']) {
    const response = await bench.page.goto(server.origin + path);
    assert.equal(response.status(), 403, path);
    assert.doesNotMatch(await response.text(), /mlp/);
  }
});

test('a name of another site that leads here is refused', async () => {
  bench.forgiven = REFUSED;
  const server = await bench.served(small());
  const response = await bench.page.goto(`http://evil.example:${server.port}/?token=${server.token}`);
  assert.equal(response.status(), 403);
});

test('a page of another origin gets nothing, though the browser has the cookie', async () => {
  bench.forgiven = REFUSED;
  const server = await bench.served(small());
  const foreign = createServer((_, response) =>
    response.setHeader('Content-Type', 'text/html').end('<!doctype html><p>foreign'),
  );
  await new Promise((done) => foreign.listen(0, '127.0.0.1', done));
  try {
    await bench.page.goto(`http://127.0.0.1:${foreign.address().port}/`);
    const told = await bench.page.evaluate(
      (address) =>
        fetch(address, {credentials: 'include'}).then(
          (answer) => answer.status,
          (error) => error.name,
        ),
      server.origin + '/api/model',
    );
    assert.equal(told, 'TypeError');
    assert.equal(
      await bench.page.evaluate((address) => {
        const frame = document.createElement('iframe');
        frame.src = address;
        document.body.append(frame);
        return new Promise((done) => frame.addEventListener('load', () => done(frame.contentDocument === null)));
      }, server.origin + '/'),
      true,
    );
  } finally {
    foreign.closeAllConnections();
    foreign.close();
  }
});
