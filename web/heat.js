// The heat map of a two-dimensional slice: what the server makes of it in the size of the picture, closer and closer down
// to single values.

const HOWS = [
  {value: 'extreme', label: 'Extreme', title: 'the value of largest magnitude in each cell'},
  {value: 'mean', label: 'Mean', title: 'the mean of each cell'},
  {value: 'rms', label: 'RMS', title: 'the root of the mean square of each cell'},
];

class HeatMap {
  constructor(side, number, shape) {
    Object.assign(this, {side, number, shape, how: 'extreme', grid: null, abort: null, timer: 0});
    const rank = shape.length;
    this.axes = rank >= 2 ? [rank - 2, rank - 1] : [-1, 0];
    this.at = shape.map(() => 0);
    this.canvas = h('canvas', {
      'tabindex': 0,
      'class': 'heat',
      'role': 'application',
      'aria-label': 'Heat map of the values; arrows move, + and − zoom',
    });
    this.caption = h('p', {'class': 'hint', 'aria-live': 'polite'});
    this.controls = h('div', {class: 'tools small'});
    this.element = h('div', {class: 'heat-box'}, this.controls, this.canvas, this.caption);
    this.whole();
    this.listen();
  }

  get rows() {
    return this.axes[0] < 0 ? 1 : this.shape[this.axes[0]];
  }
  get columns() {
    return this.shape[this.axes[1]];
  }

  whole() {
    this.region = {row: 0, column: 0, rows: this.rows, columns: this.columns};
  }

  start() {
    const width = Math.max(200, Math.floor(this.element.clientWidth || 420));
    const height = Math.round(
      Math.min(
        width,
        Math.max(36, this.rows < 12 ? 36 + this.rows * 6 : width * Math.min(1, (this.rows / this.columns) * 1.0 + 0.35)),
      ),
    );
    this.size = [width, height];
    this.context = sized(this.canvas, width, height);
    this.drawControls();
    this.load();
  }

  drawControls() {
    const spare = this.shape.map((size, axis) => [size, axis]).filter(([, axis]) => !this.axes.includes(axis));
    const pick = (which) =>
      h(
        'select',
        {
          'aria-label': which ? 'columns' : 'rows',
          'onchange': (event) => {
            const axis = Number(event.target.value),
              other = this.axes[1 - which];
            this.axes[which] = axis;
            if (other === axis) this.axes[1 - which] = this.shape.findIndex((_, a) => a !== axis);
            this.whole();
            this.start();
          },
        },
        this.shape.map((size, axis) => h('option', {value: axis, selected: this.axes[which] === axis}, `dim ${axis} (${size})`)),
      );
    replace(
      this.controls,
      choice('Cells', HOWS, this.how, (value) => {
        this.how = value;
        this.drawControls();
        this.load();
      }),
      this.shape.length > 2 ? [pick(0), '×', pick(1)] : null,
      spare.map(([size, axis]) =>
        h(
          'label',
          {},
          `[${axis}] `,
          h('input', {
            type: 'number',
            min: 0,
            max: size - 1,
            value: this.at[axis],
            onchange: (event) => {
              this.at[axis] = Math.min(Math.max(0, Math.trunc(Number(event.target.value) || 0)), size - 1);
              this.load();
            },
          }),
        ),
      ),
      h(
        'button',
        {
          type: 'button',
          onclick: () => {
            this.whole();
            this.load();
          },
        },
        'Whole',
      ),
    );
  }

  load() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), 60);
  }

  async ask() {
    if (this.abort) this.abort.abort();
    this.abort = new AbortController();
    const r = this.region;
    const words = new URLSearchParams({
      axes: this.axes.join(','),
      at: this.at.join(','),
      how: this.how,
      rows: `${r.row}:${r.row + r.rows}`,
      columns: `${r.column}:${r.column + r.columns}`,
      height: Math.min(r.rows, this.size[1]),
      width: Math.min(r.columns, this.size[0]),
    });
    try {
      const {data, headers} = await source.bytes(`/api/values/${this.side}/${this.number}?${words}`, this.abort.signal);
      this.grid = {
        values: new Float32Array(data),
        rows: Number(headers.get('X-Rows')),
        columns: Number(headers.get('X-Columns')),
        region: {...r},
        skipped: headers.get('X-Skipped') === '1',
      };
      this.draw();
    } catch (error) {
      if (error.name !== 'AbortError') this.caption.textContent = error.message;
    }
  }

  draw() {
    const {values, rows, columns} = this.grid;
    const magnitudes = Float32Array.from(values.filter(Number.isFinite), Math.abs).sort();
    // One odd value must not make all others look like zero.
    const limit = (this.limit = magnitudes.length
      ? magnitudes[Math.floor((magnitudes.length - 1) * 0.995)] || magnitudes[magnitudes.length - 1] || 1
      : 1);
    const isSigned = this.how !== 'rms';
    const image = new ImageData(columns, rows);
    const table = Array.from({length: 512}, (_, i) => (isSigned ? divergingRgb(i / 511) : rampRgb(i / 511)));
    for (let i = 0; i < values.length; ++i) {
      const value = values[i];
      const share = isSigned ? 0.5 + (0.5 * value) / limit : value / limit;
      const [r, g, b] = Number.isFinite(value) ? table[Math.round(511 * Math.min(1, Math.max(0, share)))] : [226, 36, 92];
      image.data.set([r, g, b, 255], i * 4);
    }
    const small = document.createElement('canvas');
    small.width = columns;
    small.height = rows;
    small.getContext('2d').putImageData(image, 0, 0);
    this.context.imageSmoothingEnabled = false;
    this.context.clearRect(0, 0, ...this.size);
    this.context.drawImage(small, 0, 0, ...this.size);
    this.describe();
  }

  describe(cell) {
    const r = this.grid.region,
      exact = this.grid.rows === r.rows && this.grid.columns === r.columns;
    const place = `rows ${r.row}–${r.row + r.rows - 1}, columns ${r.column}–${r.column + r.columns - 1}`;
    this.caption.textContent =
      cell ||
      `${place}${exact ? ', every value' : ', several values a cell'}${this.grid.skipped ? ', not all of them read' : ''}; colours end at ±${numberText(this.limit, 3)}`;
  }

  /** What is under a point of the picture. */
  cellAt(x, y) {
    const g = this.grid,
      r = g.region;
    const i = Math.min(g.rows - 1, Math.max(0, Math.floor((y / this.size[1]) * g.rows))),
      j = Math.min(g.columns - 1, Math.max(0, Math.floor((x / this.size[0]) * g.columns)));
    const span = (first, count, cells, at) => [
      first + Math.floor((at * count) / cells),
      first + Math.floor(((at + 1) * count) / cells) - 1,
    ];
    const words = ([a, b]) => (b <= a ? String(a) : `${a}–${b}`);
    const rows = span(r.row, r.rows, g.rows, i),
      columns = span(r.column, r.columns, g.columns, j);
    return {
      rows: words(rows),
      columns: words(columns),
      value: g.values[i * g.columns + j],
      exact: rows[0] >= rows[1] && columns[0] >= columns[1],
    };
  }

  zoom(factor, fx, fy) {
    const r = this.region;
    const change = (first, count, all, at) => {
      const next = Math.min(all, Math.max(Math.min(all, 8), Math.round(count / factor)));
      return [Math.round(Math.min(Math.max(0, first + (count - next) * at), all - next)), next];
    };
    [r.row, r.rows] = change(r.row, r.rows, this.rows, fy);
    [r.column, r.columns] = change(r.column, r.columns, this.columns, fx);
    this.load();
  }

  move(dx, dy) {
    const r = this.region;
    r.row = Math.min(Math.max(0, r.row + Math.round(dy * r.rows)), this.rows - r.rows);
    r.column = Math.min(Math.max(0, r.column + Math.round(dx * r.columns)), this.columns - r.columns);
    this.load();
  }

  listen() {
    const part = (event) => {
      const box = this.canvas.getBoundingClientRect();
      return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    };
    let drag = null;
    this.canvas.addEventListener(
      'wheel',
      (event) => {
        event.preventDefault();
        this.zoom(Math.exp(-event.deltaY * 0.003), ...part(event));
      },
      {passive: false},
    );
    this.canvas.addEventListener('pointerdown', (event) => {
      drag = part(event);
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener('pointerup', () => {
      drag = null;
    });
    this.canvas.addEventListener('pointermove', (event) => {
      if (!this.grid) return;
      const [x, y] = part(event);
      if (drag) {
        this.move(drag[0] - x, drag[1] - y);
        drag = [x, y];
        return hideTip();
      }
      const cell = this.cellAt(x * this.size[0], y * this.size[1]);
      showTip(event.clientX, event.clientY, numberText(cell.value, 7), [
        ['row', cell.rows],
        ['column', cell.columns],
        ['', cell.exact ? 'this value' : HOWS.find((how) => how.value === this.how).title],
      ]);
    });
    this.canvas.addEventListener('pointerleave', hideTip);
    this.canvas.addEventListener('keydown', (event) => {
      const action = {
        '+': () => this.zoom(1.5, 0.5, 0.5),
        '=': () => this.zoom(1.5, 0.5, 0.5),
        '-': () => this.zoom(1 / 1.5, 0.5, 0.5),
        'ArrowLeft': () => this.move(-0.2, 0),
        'ArrowRight': () => this.move(0.2, 0),
        'ArrowUp': () => this.move(0, -0.2),
        'ArrowDown': () => this.move(0, 0.2),
      }[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    });
  }
}
