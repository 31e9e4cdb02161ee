// The page that is checked in is what the sources build, and the sources are sound.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdtempSync, readFileSync, readdirSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {test} from 'node:test';

const web = join(dirname(fileURLToPath(import.meta.url)), '..');
const built = readFileSync(join(web, 'built', 'page.html'), 'utf8');
const run = (...words) => execFileSync(process.execPath, words, {cwd: web, encoding: 'utf8'});

test('the page that is checked in is what the sources build: else run ./dev page', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ballast-web-'));
  try {
    run('build.mjs', join(folder, 'page.html'));
    assert.ok(readFileSync(join(folder, 'page.html'), 'utf8') === built, 'built/page.html is out of date: ./dev page');
  } finally {
    rmSync(folder, {recursive: true});
  }
});

test('the types of the sources are right', () => {
  run('node_modules/typescript/bin/tsc', '--noEmit');
});

test('the page is smaller than 120 kB', () => {
  assert.ok(Buffer.byteLength(built) < 120_000, `${Buffer.byteLength(built)} bytes`);
});

test('the page has the licenses of what is built into it', () => {
  const {dependencies} = JSON.parse(readFileSync(join(web, 'package.json'), 'utf8'));
  for (const name of Object.keys(dependencies)) assert.match(built, new RegExp(`^${name}: Copyright`, 'm'));
});

test('the lock file names digests, and no server', () => {
  const lock = JSON.parse(readFileSync(join(web, 'package-lock.json'), 'utf8'));
  const packages = Object.entries(lock.packages).filter(([path]) => path !== '');
  assert.ok(packages.length > 5);
  for (const [path, entry] of packages) {
    assert.match(entry.integrity, /^sha512-/, path);
    assert.equal(entry.resolved, undefined, path);
  }
});

test('no source makes elements from markup or runs text', () => {
  for (const file of readdirSync(join(web, 'src'))) {
    const text = readFileSync(join(web, 'src', file), 'utf8');
    assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/, file);
  }
});
