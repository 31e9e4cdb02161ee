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
  readonly trouble?: string; // why statistics do not come, though they are asked for again and again
  document<T>(name: string, progress?: OnProgress, signal?: AbortSignal): Promise<T | null>;
  bytes(address: string, signal: AbortSignal): Promise<{data: ArrayBuffer; headers: Headers}>;
  wantStats(store: Store, wanted: Wanted[], chosen: Wanted[], of: number): void;
}

/** A side, and the number of a tensor there. */
export type Wanted = [side: number, number: number];

interface Refusal {
  error?: string;
  hint?: string | null;
}

/** What the server, or the program that wrote the report, has no answer to: to ask again would not help. */
export class Refused extends Error {}

function accepted<T extends Refusal>(answer: T): T {
  if (answer.error) throw new Refused(answer.hint ? `${answer.error} (${answer.hint})` : answer.error);
  return answer;
}

/** A report: every document lies in the page. */
export class ReportSource implements Source {
  readonly canRead = false;

  async document<T>(name: string): Promise<T | null> {
    const block = find('document-' + name);
    return block ? accepted(await unpacked<T & Refusal>(block.textContent!)) : null;
  }

  bytes(): Promise<never> {
    return Promise.reject(new Error('a report has no values'));
  }

  wantStats(): void {}
}

/** Fetches, or reads on; throws in our words if the server does not answer, or stops in the middle. */
async function answered<T>(what: () => Promise<T>): Promise<T> {
  try {
    return await what();
  } catch (error) {
    throw (error as Error).name === 'AbortError' ? error : new Error(NO_ANSWER);
  }
}

/** What the server answers; throws what it said instead. */
async function answerTo(address: string, signal?: AbortSignal): Promise<Response> {
  const response = await answered(() => fetch(address, {signal: signal ?? null}));
  if (response.ok) return response;
  accepted(await response.json().catch(() => ({})));
  throw new Error(`the server said ${response.status}`);
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
  MOST_BYTES = 128e6,
  RETRY = 2000, // milliseconds
  NO_ANSWER = 'the server does not answer';

/** A server: documents are asked for, and statistics are computed while somebody looks at them. */
export class ServerSource implements Source {
  readonly canRead = true;
  trouble = '';
  private readonly kept = new Map<string, Promise<unknown>>();
  private store: Store | null = null;
  private wanted: Wanted[] = [];
  private chosen: Wanted[] = [];
  private of = 0;
  private running: Batch | null = null;
  private readonly alone = new Set<string>(); // sides and numbers that were refused among others

  constructor(
    private readonly onStats: () => void,
    private readonly onProgress: (left: number, of: number) => void,
  ) {}

  /** A document; what is asked for twice is kept. `progress` is called with a share, if the server says how far it is. */
  document<T>(name: string, progress: OnProgress = () => {}, signal?: AbortSignal): Promise<T> {
    let answer = this.kept.get(name) as Promise<T> | undefined;
    if (!answer) {
      answer = this.lines<T>('/api/' + name, progress, signal);
      this.kept.set(name, answer);
      answer.catch(() => this.kept.delete(name));
    }
    return answer;
  }

  /** Lines of progress, and then a document. */
  private async lines<T>(address: string, progress: OnProgress, signal?: AbortSignal): Promise<T> {
    const response = await answerTo(address, signal);
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const {done, value} = await answered(() => reader.read());
      if (done) break;
      text += value;
      for (let end; text.startsWith('{"done"') && (end = text.indexOf('\n')) >= 0; text = text.slice(end + 1)) {
        const line = JSON.parse(text.slice(0, end));
        progress(line.done / Math.max(1, line.total));
      }
    }
    return accepted(await answered(async () => JSON.parse(text)));
  }

  async bytes(address: string, signal: AbortSignal): Promise<{data: ArrayBuffer; headers: Headers}> {
    const response = await answerTo(address, signal);
    return {data: await answered(() => response.arrayBuffer()), headers: response.headers};
  }

  /**
   * What the page looks at now and does not know, the first most, `of` so many. Anything else is cancelled. A histogram
   * costs a second pass over the values, so only the chosen tensor gets one; what was refused is asked again for it.
   */
  wantStats(store: Store, wanted: Wanted[], chosen: Wanted[], of: number): void {
    if (String(chosen) !== String(this.chosen)) {
      for (const [side, i] of chosen) if (store.sides[side].stats[i]?.refused) delete store.sides[side].stats[i];
    }
    this.store = store;
    this.of = of;
    this.wanted = wanted;
    this.chosen = chosen;
    const running = this.running;
    if (running && !wanted.some(([side, i]) => running.side === side && running.numbers.has(i))) running.abort.abort();
    void this.next(store);
  }

  private nextBatch(store: Store): Batch | null {
    const batch: Batch = {side: -1, numbers: new Set(), histogram: false, abort: new AbortController()};
    const plain = this.chosen.find(([side, i]) => !isComplete(store.sides[side].stats[i]));
    if (plain) return {...batch, side: plain[0], numbers: new Set([plain[1]]), histogram: true};
    let bytes = 0;
    for (const [side, i] of this.wanted) {
      const from = store.sides[side];
      if (from.stats[i] || (batch.side >= 0 && batch.side !== side)) continue;
      const isAlone = this.alone.has(`${side} ${i}`);
      if (batch.numbers.size > 0 && (isAlone || batch.numbers.size === MOST_TENSORS || bytes + from.bytes[i] > MOST_BYTES)) break;
      batch.side = side;
      batch.numbers.add(i);
      bytes += from.bytes[i];
      if (isAlone) break;
    }
    return batch.numbers.size ? batch : null;
  }

  private async next(store: Store): Promise<void> {
    if (this.running) return;
    const batch = this.nextBatch(store);
    this.onProgress(this.wanted.filter(([side, i]) => !store.sides[side].stats[i]).length, this.of);
    if (!batch) return;
    this.running = batch;
    const side = store.sides[batch.side];
    try {
      const address = `/api/stats/${batch.side}?numbers=${[...batch.numbers].join(',')}${batch.histogram ? '&histogram=yes' : ''}`;
      const answer = await this.lines<{tensors: StatsRow[]}>(address, () => {}, batch.abort.signal);
      this.trouble = '';
      [...batch.numbers].forEach((i, k) => (side.stats[i] = statsOfRow(answer.tensors[k])));
      store.version += 1;
      this.onStats();
    } catch (error) {
      if (!(error instanceof Refused)) {
        const {name, message} = error as Error;
        if (name !== 'AbortError') {
          // A line that broke says nothing of the tensors.
          this.trouble = message;
          this.onStats();
          await new Promise((done) => setTimeout(done, RETRY));
        }
      } else if (batch.numbers.size > 1) {
        for (const i of batch.numbers) this.alone.add(`${batch.side} ${i}`);
      } else {
        for (const i of batch.numbers) side.stats[i] = {...noStats(error.message), refused: true};
        store.version += 1;
        this.onStats();
      }
    }
    this.running = null;
    void this.next(this.store ?? store);
  }
}
