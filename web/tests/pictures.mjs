// Makes the pictures of docs/view anew, light and dark, or writes them to FOLDER: node pictures.mjs [FOLDER]
//
// BALLAST_COMMAND is the command, and BALLAST_CHROMIUM the browser, as for the tests.
import {cpSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import {Server, launch} from './browser.mjs';
import {withPalette} from './palette.mjs';
import {writeSmallLlama} from './small_llama.mjs';

const tree = (path) => fileURLToPath(new URL('../../' + path, import.meta.url));
const TENSOR = 'model.layers.5.self_attn.k_proj.weight';

// The words of the command, and for each picture what stands behind the # and what has to be there before it is taken.
const SHOWN = [
  {
    words: ['small-llama'],
    pictures: [
      {name: 'map', hash: '', awaits: '.stage canvas'},
      {name: 'table', hash: 'view=table', awaits: '.row', clicks: '.row:has-text("mlp.up_proj")'},
      {name: 'layers', hash: 'view=layers', awaits: '.mark-at.odd'},
      {name: 'tensor', hash: 'view=table&tensor=' + TENSOR, awaits: '.heat-box .hint:has-text("every value")', height: 1120},
      {name: 'shards', hash: 'view=file', awaits: '.definitions'},
    ],
  },
  {
    words: ['small-llama', 'tuned'],
    pictures: [
      {name: 'difference', hash: 'view=difference', awaits: '.worst'},
      {name: 'difference-map', hash: 'view=map', awaits: '.legend .ramp'},
    ],
  },
  {words: ['lora', '--base', 'small-llama'], pictures: [{name: 'adapter', hash: '', awaits: '.bar-up'}]},
  {words: ['lightning_like.ckpt'], pictures: [{name: 'file', hash: 'view=file', awaits: '.tree'}]},
  {words: ['gptq'], pictures: [{name: 'quantized', hash: 'view=file', awaits: '.definitions'}]},
];

async function take(browser, server, {name, hash, awaits, clicks, height = 820}, scheme, out) {
  const page = await browser.newPage({viewport: {width: 1280, height}, colorScheme: scheme, reducedMotion: 'reduce'});
  await page.goto(server.address + '#' + hash);
  await page.waitForSelector(awaits);
  if (clicks) await page.click(clicks);
  // All statistics are there, and drawn, and nothing is pointed at.
  await page.waitForFunction(() => document.querySelector('#progress').hidden);
  await page.mouse.move(0, 0);
  await page.waitForTimeout(1000);
  const file = join(out, `${name}${scheme === 'dark' ? '-dark' : ''}.png`);
  writeFileSync(file, withPalette(await page.screenshot()));
  await page.close();
}

const out = resolve(process.argv[2] ?? tree('docs/view'));
const folder = mkdtempSync(join(tmpdir(), 'ballast-pictures-'));
const browser = await launch();
try {
  writeSmallLlama(folder);
  cpSync(tree('tests/vectors/torch2/lightning_like.ckpt'), join(folder, 'lightning_like.ckpt'));
  cpSync(tree('tests/vectors/quantized/gptq-4bit-g32-sym/in'), join(folder, 'gptq'), {recursive: true});
  process.chdir(folder); // what is shown has no path of this machine
  for (const {words, pictures} of SHOWN) {
    const server = await Server.start(...words);
    try {
      for (const picture of pictures) for (const scheme of ['light', 'dark']) await take(browser, server, picture, scheme, out);
    } finally {
      await server.stop();
    }
  }
} finally {
  await browser.close();
  rmSync(folder, {recursive: true});
}
