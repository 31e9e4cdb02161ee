// What is shown: the tensors of one checkpoint, or of two under the same names, in columns.

import {kindColor} from './color';
import type {Change, Diff, ModelDocument, Oddity, Quantization, SideDocument} from './documents';
import type {Stats} from './metrics';
import {numberKey, patternOf, plural} from './text';

interface Dtype {
  name: string;
  bytes: number;
  color: number;
}

export type Where = 'a' | 'b' | 'both';

/** One checkpoint: its columns, and statistics that come as they are known. */
export class Side {
  readonly target: string;
  readonly format: string;
  readonly files: {file: string; bytes: number}[];
  readonly remote: boolean;
  readonly names: string[];
  readonly count: number;
  readonly bytes: number[];
  readonly offset: number[];
  readonly odd: Record<number, Oddity>;
  readonly quantization: Quantization | null;
  readonly dequantized: string; // the scheme that weights were kept in
  readonly stats: (Stats | undefined)[];
  sample = 0; // values that statistics are from, of each tensor; 0 is all

  constructor(
    private readonly document: SideDocument,
    readonly number: number,
  ) {
    this.target = document.target;
    this.format = document.format;
    this.files = document.files;
    this.remote = document.remote;
    this.names = document.names;
    this.count = this.names.length;
    this.stats = new Array(this.count);
    this.bytes = document.bytes;
    this.offset = document.offset;
    this.odd = document.odd;
    this.quantization = document.quantization;
    this.dequantized = document.dequantized ?? '';
  }

  dtype(i: number): string {
    return this.document.dtypes[this.document.dtype[i]];
  }
  shape(i: number): number[] {
    return this.document.shapes[this.document.shape[i]];
  }
  file(i: number): string | undefined {
    return this.document.in_files[this.document.in_file[i]];
  }
  numel(i: number): number {
    return this.shape(i).reduce((product, dimension) => product * dimension, 1);
  }
  hasData(i: number): boolean {
    return this.odd[i]?.data !== false;
  }
}

/** All that the page shows. A tensor is a number: of the first checkpoint, and behind these what only the second has. */
export class Store {
  version = 0; // of what is known: statistics, the difference
  diff: Diff | null = null;
  readonly served: boolean;
  readonly root: string;
  readonly isDequantized: boolean; // the user asked for the numbers of quantized weights
  readonly hasAdapter: boolean;
  readonly firstView: string | null;
  readonly sides: Side[];
  readonly isPair: boolean;
  readonly names: string[];
  readonly count: number;
  readonly numbers: Map<string, number>;
  readonly patterns: string[];
  readonly change = new Map<number, Change>(); // by number, as diff says it
  private readonly places: number[][];
  private readonly lowers: string[] = [];
  private readonly sortKeys: string[] = [];
  private dtypeList: Dtype[] | null = null;

  constructor(document: ModelDocument) {
    this.served = document.served;
    this.root = document.root;
    this.isDequantized = document.dequantize;
    this.hasAdapter = document.adapter;
    this.firstView = document.view;
    this.sides = document.sides.map((side, i) => new Side(side, i));
    const [a, b] = this.sides;
    this.isPair = Boolean(b);
    this.names = a.names.slice();
    this.places = [a.names.map((_, i) => i)];
    if (b) {
      const inB = new Map<string, number>(b.names.map((name, i) => [name, i]));
      this.places[1] = a.names.map((name) => inB.get(name) ?? -1);
      const inA = new Set(a.names);
      b.names.forEach((name, i) => {
        if (inA.has(name)) return;
        this.names.push(name);
        this.places[0].push(-1);
        this.places[1].push(i);
      });
    }
    this.count = this.names.length;
    this.numbers = new Map(this.names.map((name, i) => [name, i]));
    this.patterns = this.names.map(patternOf);
  }

  sortKey(i: number): string {
    return (this.sortKeys[i] ??= numberKey(this.names[i]));
  }

  /** The name in small letters, as the search box compares it. */
  lower(i: number): string {
    return (this.lowers[i] ??= this.names[i].toLowerCase());
  }

  /** The side that a tensor is shown from, and its number there. */
  of(i: number): [Side, number] {
    const side = this.places[0][i] >= 0 ? 0 : 1;
    return [this.sides[side], this.places[side][i]];
  }

  on(side: number, i: number): number {
    return this.places[side] ? this.places[side][i] : -1;
  }
  dtype(i: number): string {
    const [side, k] = this.of(i);
    return side.dtype(k);
  }
  shape(i: number): number[] {
    const [side, k] = this.of(i);
    return side.shape(k);
  }
  bytes(i: number): number {
    const k = this.places[0][i];
    return k >= 0 ? this.sides[0].bytes[k] : this.sides[1].bytes[this.places[1][i]];
  }
  stats(i: number): Stats | undefined {
    const k = this.places[0][i];
    return k >= 0 ? this.sides[0].stats[k] : this.sides[1].stats[this.places[1][i]];
  }

  /** What is said beside statistics that are not of all values. */
  sampleText(): string {
    const {sample} = this.sides[0];
    return sample ? `, from about ${plural(sample, 'value')} of each` : '';
  }

  where(i: number): Where {
    if (!this.isPair) return 'both';
    return this.places[0][i] < 0 ? 'b' : this.places[1][i] < 0 ? 'a' : 'both';
  }

  /** All dtypes, those of most bytes first. */
  allDtypes(): Dtype[] {
    if (this.dtypeList) return this.dtypeList;
    const bytes = new Map<string, number>();
    for (let i = 0; i < this.count; ++i) bytes.set(this.dtype(i), (bytes.get(this.dtype(i)) || 0) + this.bytes(i));
    return (this.dtypeList = [...bytes].sort((x, y) => y[1] - x[1]).map(([name, size], color) => ({name, bytes: size, color})));
  }

  dtypeColor(name: string): string {
    return kindColor(this.allDtypes().find((dtype) => dtype.name === name)?.color ?? 9);
  }
}
