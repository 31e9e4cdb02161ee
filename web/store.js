// What is shown: the tensors of one checkpoint, or of two under the same names, in columns.

/** One checkpoint: its columns, and statistics that come as they are known. */
class Side {
  constructor(document, number) {
    Object.assign(this, {
      number,
      target: document.target,
      format: document.format,
      files: document.files,
      remote: document.remote,
    });
    this.names = document.names;
    this.count = this.names.length;
    this.dtypes = document.dtypes;
    this.dtypeOf = document.dtype;
    this.shapes = document.shapes;
    this.shapeOf = document.shape;
    this.bytes = document.bytes;
    this.inFiles = document.in_files;
    this.inFile = document.in_file;
    this.offset = document.offset;
    this.odd = document.odd;
    this.stats = new Map();
  }

  dtype(i) {
    return this.dtypes[this.dtypeOf[i]];
  }
  shape(i) {
    return this.shapes[this.shapeOf[i]];
  }
  file(i) {
    return this.inFiles[this.inFile[i]];
  }
  numel(i) {
    return this.shape(i).reduce((product, dimension) => product * dimension, 1);
  }
  hasData(i) {
    return !(this.odd[i] && this.odd[i].data === false);
  }
}

/** All that the page shows. A tensor is a number: of the first checkpoint, and behind these what only the second has. */
class Store {
  constructor(document) {
    this.version = 0; // of what is known: statistics, the difference
    this.served = document.served;
    this.root = document.root;
    this.hasAdapter = document.adapter;
    this.base = document.base;
    this.firstView = document.view;
    this.sides = document.sides.map((side, i) => new Side(side, i));
    const [a, b] = this.sides;
    this.isPair = Boolean(b);
    this.names = a.names.slice();
    this.places = [a.names.map((_, i) => i)];
    if (b) {
      const inB = new Map(b.names.map((name, i) => [name, i]));
      this.places[1] = a.names.map((name) => (inB.has(name) ? inB.get(name) : -1));
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
    this.change = new Map(); // by number, as diff says it
  }

  /** A name with its numbers in eight digits: in the order of these, "layers.2" is before "layers.10". */
  sortKey(i) {
    this.sortKeys = this.sortKeys || [];
    if (this.sortKeys[i] === undefined) this.sortKeys[i] = this.names[i].replace(/\d+/g, (digits) => digits.padStart(8, '0'));
    return this.sortKeys[i];
  }

  /** The side that a tensor is shown from, and its number there. */
  of(i) {
    const side = this.places[0][i] >= 0 ? 0 : 1;
    return [this.sides[side], this.places[side][i]];
  }

  on(side, i) {
    return this.places[side] ? this.places[side][i] : -1;
  }
  dtype(i) {
    const [side, k] = this.of(i);
    return side.dtype(k);
  }
  shape(i) {
    const [side, k] = this.of(i);
    return side.shape(k);
  }
  bytes(i) {
    const [side, k] = this.of(i);
    return side.bytes[k];
  }
  stats(i) {
    const [side, k] = this.of(i);
    return side.stats.get(k);
  }

  /** "a", "b" or "both". */
  where(i) {
    if (!this.isPair) return 'both';
    return this.places[0][i] < 0 ? 'b' : this.places[1][i] < 0 ? 'a' : 'both';
  }

  /** All dtypes, those of most bytes first. */
  allDtypes() {
    if (this.dtypeList) return this.dtypeList;
    const bytes = new Map();
    for (let i = 0; i < this.count; ++i) bytes.set(this.dtype(i), (bytes.get(this.dtype(i)) || 0) + this.bytes(i));
    this.dtypeList = [...bytes].sort((x, y) => y[1] - x[1]).map(([name, size]) => ({name, bytes: size}));
    this.dtypeList.forEach((dtype, i) => {
      dtype.color = i;
    });
    return this.dtypeList;
  }

  dtypeColor(name) {
    this.allDtypes();
    const found = this.dtypeList.find((dtype) => dtype.name === name);
    return kindColor(found ? found.color : 9);
  }
}
