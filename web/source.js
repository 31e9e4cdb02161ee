// Where documents come from: the server of this page, or the page itself.

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(await new Response(stream).text());
}

/** A report: every document lies in the page. */
class ReportSource {
  async document(name) {
    const block = byId('document-' + name);
    return block ? unpacked(block.textContent) : null;
  }
  wantStats() {}
  get canRead() {
    return false;
  }
}

/** Why the server did not answer, for people. */
async function refusal(response) {
  try {
    const answer = await response.json();
    return answer.hint ? `${answer.error} (${answer.hint})` : answer.error;
  } catch {
    return `the server said ${response.status}`;
  }
}

/** A server: documents are asked for, and statistics are computed while somebody looks at them. */
class ServerSource {
  constructor(onStats, onProgress) {
    this.onStats = onStats;
    this.onProgress = onProgress;
    this.wanted = [];
    this.running = null;
    this.kept = new Map();
  }

  get canRead() {
    return true;
  }

  /** A document; what is asked for twice is kept. `progress` is called with a share, if the server says how far it is. */
  document(name, progress) {
    if (!this.kept.has(name)) {
      const answer = this.lines('/api/' + name, (line) => progress && progress(line.done / Math.max(1, line.total)));
      this.kept.set(name, answer);
      answer.catch(() => this.kept.delete(name));
    }
    return this.kept.get(name);
  }

  /** Lines of progress, and then a document. */
  async lines(address, onProgress, signal) {
    const response = await fetch(address, {signal});
    if (!response.ok) throw new Error(await refusal(response));
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const {done, value} = await reader.read();
      if (done) break;
      text += value;
      for (let end; text.startsWith('{"done"') && (end = text.indexOf('\n')) >= 0;) {
        onProgress(JSON.parse(text.slice(0, end)));
        text = text.slice(end + 1);
      }
    }
    if (text === '') throw new Error('the server stopped');
    const answer = JSON.parse(text);
    if (answer.error) throw new Error(answer.hint ? `${answer.error} (${answer.hint})` : answer.error);
    return answer;
  }

  async bytes(address, signal) {
    const response = await fetch(address, {signal});
    if (!response.ok) throw new Error(await refusal(response));
    return {data: await response.arrayBuffer(), headers: response.headers};
  }

  /** What the page looks at now: [[side, number], …], the first most. Anything else is cancelled. */
  wantStats(store, wanted) {
    this.store = store;
    this.wanted = wanted;
    if (this.running && !wanted.some(([side, i]) => this.running.side === side && this.running.numbers.has(i)))
      this.running.abort.abort();
    this.next();
  }

  nextBatch() {
    const batch = {side: -1, numbers: new Set(), abort: new AbortController()};
    let bytes = 0;
    for (const [side, i] of this.wanted) {
      const from = this.store.sides[side];
      if (from.stats.has(i) || (batch.side >= 0 && batch.side !== side)) continue;
      if (batch.numbers.size > 0 && (batch.numbers.size === 256 || bytes + from.bytes[i] > 128e6)) break;
      batch.side = side;
      batch.numbers.add(i);
      bytes += from.bytes[i];
    }
    return batch.numbers.size ? batch : null;
  }

  async next() {
    if (this.running) return;
    const batch = this.nextBatch();
    this.onProgress(this.wanted.filter(([side, i]) => !this.store.sides[side].stats.has(i)).length, this.wanted.length);
    if (!batch) return;
    this.running = batch;
    const side = this.store.sides[batch.side];
    try {
      const address = `/api/stats/${batch.side}?numbers=${[...batch.numbers].join(',')}`;
      const answer = await this.lines(address, () => {}, batch.abort.signal);
      [...batch.numbers].forEach((i, k) => side.stats.set(i, statsOfRow(answer.tensors[k])));
      this.store.version += 1;
      this.onStats();
    } catch (error) {
      if (error.name !== 'AbortError') {
        for (const i of batch.numbers) side.stats.set(i, {none: error.message});
        this.store.version += 1;
        this.onStats();
      }
    }
    this.running = null;
    this.next();
  }
}
