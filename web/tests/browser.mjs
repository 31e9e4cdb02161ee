// A page of `ballast view` in Chromium, for the tests: BALLAST_COMMAND is the command, BALLAST_CHROMIUM the browser.
import assert from 'node:assert/strict';
import {execFileSync, spawn} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join, resolve} from 'node:path';
import {pathToFileURL} from 'node:url';
import {after, afterEach, before, beforeEach} from 'node:test';
import {chromium} from 'playwright-core';

const FLAGS = [
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];
// A name of another site that leads to this machine.
const REBOUND = '--host-resolver-rules=MAP evil.example 127.0.0.1';
const command = resolve(process.env.BALLAST_COMMAND ?? 'ballast');

/** The browser, without a screen. */
export function launch() {
  const sandbox = process.getuid() === 0 ? ['--no-sandbox'] : []; // Chromium refuses root a sandbox
  return chromium.launch({executablePath: process.env.BALLAST_CHROMIUM, args: [...FLAGS, REBOUND, ...sandbox]});
}

/** `ballast view WORDS --no-browser`, and where it can be reached. */
export class Server {
  static async start(...words) {
    const process_ = spawn(command, ['view', ...words, '--no-browser'], {stdio: ['ignore', 'ignore', 'pipe']});
    let said = '';
    return new Promise((found, fail) => {
      process_.once('exit', () => fail(new Error(said)));
      process_.stderr.on('data', (text) => {
        said += text;
        const address = /http:\/\/127\.0\.0\.1:(\d+)\/\?token=([0-9a-f]+)/.exec(said);
        if (address) found(new Server(process_, address[0], Number(address[1]), address[2]));
      });
    });
  }

  constructor(process_, address, port, token) {
    Object.assign(this, {process: process_, address, port, token, origin: `http://127.0.0.1:${port}`});
  }

  async stop() {
    const ended = new Promise((done) => this.process.once('exit', done));
    this.process.kill('SIGINT');
    assert.equal(await ended, 0);
  }
}

/**
 * What a test of the page has: a folder, a tab that nothing has complained in when the test is over, and servers that
 * stop then. One browser serves a file of tests. What the browser says of something that a test provokes is `forgiven`.
 */
export class Bench {
  constructor() {
    before(async () => {
      this.browser = await launch();
    });
    after(() => this.browser.close());
    beforeEach(async () => {
      this.folder = mkdtempSync(join(tmpdir(), 'ballast-web-'));
      this.servers = [];
      this.forgiven = null;
      await this.tab();
    });
    afterEach(async () => {
      await this.context.close();
      await Promise.all(this.servers.map((server) => server.stop()));
      rmSync(this.folder, {recursive: true});
      assert.deepEqual(
        this.complaints.filter((text) => !this.forgiven?.test(text)),
        [],
      );
    });
  }

  /** A fresh tab of its own, without cookies. */
  async tab(options = {}) {
    await this.context?.close();
    this.context = await this.browser.newContext({viewport: {width: 1280, height: 800}, reducedMotion: 'reduce', ...options});
    this.page = await this.context.newPage();
    this.page.setDefaultTimeout(30_000);
    this.complaints = [];
    this.requests = [];
    const complain = (text) => this.complaints.push(text);
    this.page.on('console', (message) => ['error', 'warning'].includes(message.type()) && complain(message.text()));
    this.page.on('pageerror', (error) => complain(error.stack));
    this.page.on('request', (request) => this.requests.push(request.url()));
    return this.page;
  }

  async start(...words) {
    const server = await Server.start(...words);
    this.servers.push(server);
    return server;
  }

  /** Opens the page of a server of these targets. */
  async served(...words) {
    const server = await this.start(...words);
    await this.open(server.address);
    return server;
  }

  /** The address of a report of these targets. */
  report(...words) {
    const path = join(this.folder, 'report.html');
    execFileSync(command, ['view', ...words, '--html', path, '--force'], {stdio: 'pipe'});
    return pathToFileURL(path).href;
  }

  async open(address) {
    await this.page.goto(address);
    await this.page.waitForFunction(() => document.documentElement.dataset.ready !== undefined);
  }

  /** Changes the address behind the #, as a link would. */
  async go(words) {
    await this.page.evaluate((hash) => {
      location.hash = hash;
    }, words);
  }

  async view(name) {
    await this.page.click('#tab-' + name);
    await this.page.waitForSelector(`body[data-view="${name}"]`);
  }

  /** Waits until this is true in the page. */
  until(condition, argument) {
    return this.page.waitForFunction(condition, argument);
  }

  /** The text that people see, with plain spaces. */
  async text(selector) {
    return (await this.page.innerText(selector)).replace(/[\u00a0\u202f]/g, ' ');
  }

  /** Points at a place of an element until the tip says this: what stands above the element may still grow. */
  async pointAt(selector, across, down, words) {
    let said = '';
    for (const end = Date.now() + 30_000; Date.now() < end; await this.page.waitForTimeout(50)) {
      const box = await this.page.locator(selector).boundingBox();
      await this.page.mouse.move(box.x + across * box.width, box.y + down * box.height);
      said = (await this.page.isVisible('#tip')) ? await this.text('#tip') : '';
      if (words.test(said)) return;
    }
    assert.fail(`the tip says "${said}"`);
  }

  count(selector) {
    return this.page.locator(selector).count();
  }
}
