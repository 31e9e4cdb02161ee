// A checkpoint behind an address: what is far away and large is read only when somebody says so.
import assert from 'node:assert/strict';
import {createServer} from 'node:http';
import {test} from 'node:test';
import {Bench} from './browser.mjs';

const LARGE = 300_000_000,
  SMALL = 1000;

const bench = new Bench();

/** Serves a checkpoint of zeros by ranges, and counts the bytes that leave. */
async function elsewhere() {
  const tensors = {
    large: {dtype: 'U8', shape: [30_000, 10_000], data_offsets: [0, LARGE]},
    small: {dtype: 'U8', shape: [10, 100], data_offsets: [LARGE, LARGE + SMALL]},
  };
  const text = Buffer.from(JSON.stringify(tensors)),
    head = Buffer.concat([Buffer.alloc(8), text]),
    size = head.length + LARGE + SMALL;
  head.writeBigUInt64LE(BigInt(text.length));
  const server = createServer((request, response) => {
    if (request.url !== '/model.safetensors') return response.writeHead(404).end();
    const [, begin, end] = /bytes=(\d+)-(\d*)/.exec(request.headers.range ?? 'bytes=0-'),
      last = Math.min(size - 1, Number(end || size - 1));
    const body = Buffer.alloc(last - begin + 1);
    if (begin < head.length) head.copy(body, 0, Number(begin));
    server.sent += body.length;
    response.writeHead(206, {'ETag': '"1"', 'Content-Range': `bytes ${begin}-${last}/${size}`, 'Content-Length': body.length});
    response.end(body);
  });
  server.sent = 0;
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return server;
}

test('a large tensor is read when somebody says so, and the offer goes with what it is for', async () => {
  const server = await elsewhere();
  try {
    await bench.served(`http://127.0.0.1:${server.address().port}/model.safetensors`);
    await bench.go('tensor=large');
    await bench.page.waitForSelector('#progress:has-text("Read 300 MB for statistics")'.replace('300 ', '300\u00a0'));
    await bench.page.waitForSelector('aside .heat-box, aside .spectrum button');
    await bench.until(() => document.querySelector('.values').textContent.includes('['));
    assert.ok(server.sent < 2e6, `${server.sent} bytes were read`);
    await bench.go('tensor=small');
    await bench.page.waitForSelector('aside .numbers');
    assert.ok(!(await bench.page.isVisible('#progress')));
    await bench.go('tensor=large');
    await bench.page.waitForSelector('#progress button');
    await bench.page.click('#progress button');
    await bench.until(() => document.querySelector('aside h2').textContent === 'large' && document.querySelector('aside .numbers'));
    assert.ok(server.sent > LARGE);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
