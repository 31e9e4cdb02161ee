// Where documents come from: the server of this page, or the page itself.

import {find} from './dom';
import {hasHistogram, noStats, statsOfRow, type Stats} from './metrics';
import type {StatsRow} from './documents';
import type {Store} from './store';

async function unpacked<T>(text: string): Promise<T> {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(await new Response(stream).text());
}

type OnProgress = (share: number) => void;

/** Documents by name, and statistics that come when they are known. */
export interface Source {
  readonly canRead: boolean; // bytes of tensors, on request
  document<T>(name: string, progress?: OnProgress): Promise<T | null>;
  bytes(address: string, signal: AbortSignal): Promise<{data: ArrayBuffer; headers: Headers}>;
  wantStats(store: Store, wanted: Wanted[], chosen: Wanted[]): void;
}

/** A side, and the number of a tensor there. */
export type Wanted = [side: number, number: number];

/** A report: every document lies in the page. */
export class ReportSource implements Source {
  readonly canRead = false;

  async document<T>(name: string): Promise<T | null> {
    const block = find('document-' + name);
    return block ? unpacked<T>(block.textContent!) : null;
  }

  bytes(): Promise<never> {
    return Promise.reject(new Error('a report has no values'));
  }

  wantStats(): void {}
}

/** Why the server did not answer, for people. */
async function refusal(response: Response): Promise<string> {
  try {
    const answer = await response.json();
    return answer.hint ? `${answer.error} (${answer.hint})` : answer.error;
  } catch {
    return `the server said ${response.status}`;
  }
}

/** Tensors of one side whose statistics are asked for together. */
interface Batch {
  side: number;
  numbers: Set<number>;
  histogram: boolean;
  abort: AbortController;
}

/** Nothing more can be known. */
const isComplete = (stats: Stats | undefined): boolean =>
  stats !== undefined && (stats.none !== undefined || hasHistogram(stats));

const MOST_TENSORS = 256,
  MOST_BYTES = 128e6;

/** A server: documents are asked for, and statistics are computed while somebody looks at them. */
export class ServerSource implements Source {
  readonly canRead = true;
  private readonly kept = new Map<string, Promise<unknown>>();
  private store: Store | null = null;
  private wanted: Wanted[] = [];
  private chosen: Wanted[] = [];
  private running: Batch | null = null;

  constructor(
    private readonly onStats: () => void,
    private readonly onProgress: (left: number, of: number) => void,
  ) {}

  /** A document; what is asked for twice is kept. `progress` is called with a share, if the server says how far it is. */
  document<T>(name: string, progress: OnProgress = () => {}): Promise<T> {
    let answer = this.kept.get(name) as Promise<T> | undefined;
    if (!answer) {
      answer = this.lines<T>('/api/' + name, progress);
      this.kept.set(name, answer);
      answer.catch(() => this.kept.delete(name));
    }
    return answer;
  }

  /** Lines of progress, and then a document. */
  private async lines<T>(address: string, progress: OnProgress, signal?: AbortSignal): Promise<T> {
    const response = await fetch(address, {signal: signal ?? null});
    if (!response.ok) throw new Error(await refusal(response));
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const {done, value} = await reader.read();
      if (done) break;
      text += value;
      for (let end; text.startsWith('{"done"') && (end = text.indexOf('\n')) >= 0; text = text.slice(end + 1)) {
        const line = JSON.parse(text.slice(0, end));
        progress(line.done / Math.max(1, line.total));
      }
    }
    if (text === '') throw new Error('the server stopped');
    const answer = JSON.parse(text);
    if (answer.error) throw new Error(answer.hint ? `${answer.error} (${answer.hint})` : answer.error);
    return answer;
  }

  async bytes(address: string, signal: AbortSignal): Promise<{data: ArrayBuffer; headers: Headers}> {
    const response = await fetch(address, {signal});
    if (!response.ok) throw new Error(await refusal(response));
    return {data: await response.arrayBuffer(), headers: response.headers};
  }

  /**
   * What the page looks at now, the first most. Anything else is cancelled. A histogram costs a second pass over the
   * values, so only the chosen tensor gets one.
   */
  wantStats(store: Store, wanted: Wanted[], chosen: Wanted[]): void {
    this.store = store;
    this.wanted = wanted;
    this.chosen = chosen;
    const running = this.running;
    if (running && !wanted.some(([side, i]) => running.side === side && running.numbers.has(i))) running.abort.abort();
    void this.next(store);
  }

  private nextBatch(store: Store): Batch | null {
    const batch: Batch = {side: -1, numbers: new Set(), histogram: false, abort: new AbortController()};
    const plain = this.chosen.find(([side, i]) => !isComplete(store.sides[side].stats.get(i)));
    if (plain) return {...batch, side: plain[0], numbers: new Set([plain[1]]), histogram: true};
    let bytes = 0;
    for (const [side, i] of this.wanted) {
      const from = store.sides[side];
      if (from.stats.has(i) || (batch.side >= 0 && batch.side !== side)) continue;
      if (batch.numbers.size > 0 && (batch.numbers.size === MOST_TENSORS || bytes + from.bytes[i] > MOST_BYTES)) break;
      batch.side = side;
      batch.numbers.add(i);
      bytes += from.bytes[i];
    }
    return batch.numbers.size ? batch : null;
  }

  private async next(store: Store): Promise<void> {
    if (this.running) return;
    const batch = this.nextBatch(store);
    this.onProgress(this.wanted.filter(([side, i]) => !store.sides[side].stats.has(i)).length, this.wanted.length);
    if (!batch) return;
    this.running = batch;
    const side = store.sides[batch.side];
    try {
      const address = `/api/stats/${batch.side}?numbers=${[...batch.numbers].join(',')}${batch.histogram ? '&histogram=yes' : ''}`;
      const answer = await this.lines<{tensors: StatsRow[]}>(address, () => {}, batch.abort.signal);
      [...batch.numbers].forEach((i, k) => side.stats.set(i, statsOfRow(answer.tensors[k])));
      store.version += 1;
      this.onStats();
    } catch (error) {
      if ((error as Error).name !== 'AbortError') {
        for (const i of batch.numbers) side.stats.set(i, noStats((error as Error).message));
        store.version += 1;
        this.onStats();
      }
    }
    this.running = null;
    void this.next(this.store ?? store);
  }
}
