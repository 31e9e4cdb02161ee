// The heat map of a two-dimensional slice: what the server makes of it in the size of the picture, closer and closer down
// to single values.

import {divergingRgb, rampRgb} from './color';
import {h, sized} from './dom';
import {drawControls, listenToHeat, type Cells} from './heat_input';
import {source} from './state';
import {numberText} from './text';
import {themeColor} from './theme';

interface Region {
  row: number;
  column: number;
  rows: number;
  columns: number;
}

/** What the server made of a region: rows × columns cells. */
interface Grid {
  values: Float32Array;
  rows: number;
  columns: number;
  region: Region;
  skipped: boolean;
}

// Fewer rows and columns than this are not zoomed into.
const LEAST = 8;

export class HeatMap {
  how: Cells = 'extreme';
  grid: Grid | null = null;
  axes: [row: number, column: number]; // -1 if there are no rows
  readonly at: number[]; // an index for each other dimension
  readonly element: HTMLElement;
  readonly controls = h('div', {class: 'tools small'});
  readonly canvas: HTMLCanvasElement;
  private readonly caption = h('p', {'class': 'hint', 'aria-live': 'polite'});
  private region!: Region;
  private size: [width: number, height: number] = [0, 0];
  private context!: CanvasRenderingContext2D;
  private abort: AbortController | null = null;
  private timer = 0;
  private limit = 1; // where the colours end
  private picture: HTMLCanvasElement | null = null; // a point for each cell
  cursor: [row: number, column: number] | null = null; // the cell that keys have led to

  constructor(
    private readonly side: number,
    private readonly number: number,
    readonly shape: number[],
    readonly dtype: string,
    signal: AbortSignal,
  ) {
    signal.addEventListener('abort', () => this.abort?.abort());
    const rank = shape.length;
    this.axes = rank >= 2 ? [rank - 2, rank - 1] : [-1, 0];
    this.at = shape.map(() => 0);
    this.canvas = h('canvas', {
      'tabindex': 0,
      'class': 'heat',
      'role': 'application',
      'aria-label': 'Heat map of the values; arrows tell values, with Shift they move, + and − zoom',
    });
    this.element = h('div', {class: 'heat-box'}, this.controls, this.canvas, this.caption);
    this.whole();
    listenToHeat(this);
  }

  get rows(): number {
    return this.axes[0] < 0 ? 1 : this.shape[this.axes[0]];
  }
  get columns(): number {
    return this.shape[this.axes[1]];
  }

  whole(): void {
    this.region = {row: 0, column: 0, rows: this.rows, columns: this.columns};
  }

  start(): void {
    const width = Math.max(200, Math.floor(this.element.clientWidth || 420));
    const height = Math.round(
      Math.min(
        width,
        Math.max(36, this.rows < 12 ? 36 + this.rows * 6 : width * Math.min(1, (this.rows / this.columns) * 1.0 + 0.35)),
      ),
    );
    this.size = [width, height];
    this.context = sized(this.canvas, width, height);
    drawControls(this);
    this.load();
  }

  load(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.ask(), 60);
  }

  private words(): URLSearchParams {
    const r = this.region;
    return new URLSearchParams({
      axes: this.axes.join(','),
      at: this.at.join(','),
      how: this.how,
      rows: `${r.row}:${r.row + r.rows}`,
      columns: `${r.column}:${r.column + r.columns}`,
      height: String(Math.min(r.rows, this.size[1])),
      width: String(Math.min(r.columns, this.size[0])),
    });
  }

  private async ask(): Promise<void> {
    this.abort?.abort();
    this.abort = new AbortController();
    const region = {...this.region},
      address = `/api/values/${this.side}/${this.number}?${this.words()}`;
    try {
      const {data, headers} = await source.bytes(address, this.abort.signal);
      this.grid = {
        values: new Float32Array(data),
        rows: Number(headers.get('X-Rows')),
        columns: Number(headers.get('X-Columns')),
        region,
        skipped: headers.get('X-Skipped') === '1',
      };
      this.draw(this.grid);
    } catch (error) {
      if ((error as Error).name !== 'AbortError') this.caption.textContent = (error as Error).message;
    }
  }

  private draw(grid: Grid): void {
    const {values, rows, columns} = grid;
    const magnitudes = Float32Array.from(values.filter(Number.isFinite), Math.abs).sort();
    // One odd value must not make all others look like zero.
    const limit = magnitudes[Math.floor((magnitudes.length - 1) * 0.995)] || magnitudes[magnitudes.length - 1] || 1;
    this.limit = limit;
    const isSigned = this.how !== 'rms';
    const image = new ImageData(columns, rows);
    const table = Array.from({length: 512}, (_, i) => [...(isSigned ? divergingRgb : rampRgb)(i / 511)]);
    for (let i = 0; i < values.length; ++i) {
      const value = values[i];
      const share = isSigned ? 0.5 + (0.5 * value) / limit : value / limit;
      const [r, g, b] = Number.isFinite(value) ? table[Math.round(511 * Math.min(1, Math.max(0, share)))] : [226, 36, 92];
      image.data.set([r, g, b, 255], i * 4);
    }
    const small = document.createElement('canvas');
    small.width = columns;
    small.height = rows;
    small.getContext('2d')!.putImageData(image, 0, 0);
    this.picture = small;
    this.cursor = null;
    this.paint();
    this.describe(grid);
  }

  private paint(): void {
    const c = this.context,
      [width, height] = this.size;
    c.imageSmoothingEnabled = false;
    c.clearRect(0, 0, width, height);
    c.drawImage(this.picture!, 0, 0, width, height);
    if (!this.cursor || !this.grid) return;
    const w = width / this.grid.columns,
      cellHeight = height / this.grid.rows;
    c.strokeStyle = themeColor('focus');
    c.lineWidth = 2;
    c.strokeRect(this.cursor[1] * w - 1, this.cursor[0] * cellHeight - 1, w + 2, cellHeight + 2);
  }

  /** Leads to a neighbour, or first to the middle. Gives its place in the picture, from 0 to 1. */
  step(down: number, right: number): [x: number, y: number] {
    const {rows, columns} = this.grid!,
      [i, j] = this.cursor ?? [(rows >> 1) - down, (columns >> 1) - right];
    this.cursor = [Math.min(rows - 1, Math.max(0, i + down)), Math.min(columns - 1, Math.max(0, j + right))];
    this.paint();
    return [(this.cursor[1] + 0.5) / columns, (this.cursor[0] + 0.5) / rows];
  }

  /** Whether cells are not the tensor's own values, but rounded to F32. */
  get isRounded(): boolean {
    return /^(F|I|U)(32|64)$/.test(this.dtype) && this.dtype !== 'F32';
  }

  /** The value itself, as `ballast cat` prints it. */
  async valueAt(row: number, column: number): Promise<string> {
    const at = this.at.slice();
    if (this.axes[0] >= 0) at[this.axes[0]] = row;
    at[this.axes[1]] = column;
    const answer = await source.document<{text: string}>(`first/${this.side}/${this.number}?at=${at}`);
    return answer!.text.trim();
  }

  private describe({region: r, rows, columns, skipped}: Grid): void {
    const exact = rows === r.rows && columns === r.columns;
    const place = `rows ${r.row}–${r.row + r.rows - 1}, columns ${r.column}–${r.column + r.columns - 1}`;
    this.caption.textContent = `${place}${exact ? ', every value' : ', several values a cell'}${skipped ? ', not all of them read' : ''}; colours end at ±${numberText(this.limit, 3)}`;
  }

  /** What is under a point of the picture, from 0 to 1. */
  cellAt(x: number, y: number): {rows: string; columns: string; value: number; exact: boolean; first: [number, number]} {
    const g = this.grid!,
      r = g.region;
    const i = Math.min(g.rows - 1, Math.max(0, Math.floor(y * g.rows))),
      j = Math.min(g.columns - 1, Math.max(0, Math.floor(x * g.columns)));
    const span = (first: number, count: number, cells: number, at: number): [number, number] => [
      first + Math.floor((at * count) / cells),
      first + Math.floor(((at + 1) * count) / cells) - 1,
    ];
    const words = ([a, b]: [number, number]): string => (b <= a ? String(a) : `${a}–${b}`);
    const rows = span(r.row, r.rows, g.rows, i),
      columns = span(r.column, r.columns, g.columns, j);
    return {
      rows: words(rows),
      columns: words(columns),
      value: g.values[i * g.columns + j],
      first: [rows[0], columns[0]],
      exact: rows[0] >= rows[1] && columns[0] >= columns[1],
    };
  }

  zoom(factor: number, fx: number, fy: number): void {
    const r = this.region;
    const change = (first: number, count: number, all: number, at: number): [number, number] => {
      const next = Math.min(all, Math.max(Math.min(all, LEAST), Math.round(count / factor)));
      return [Math.round(Math.min(Math.max(0, first + (count - next) * at), all - next)), next];
    };
    [r.row, r.rows] = change(r.row, r.rows, this.rows, fy);
    [r.column, r.columns] = change(r.column, r.columns, this.columns, fx);
    this.load();
  }

  move(dx: number, dy: number): void {
    const r = this.region;
    r.row = Math.min(Math.max(0, r.row + Math.round(dy * r.rows)), this.rows - r.rows);
    r.column = Math.min(Math.max(0, r.column + Math.round(dx * r.columns)), this.columns - r.columns);
    this.load();
  }
}
