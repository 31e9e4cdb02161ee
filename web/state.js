// What the user looks at. All of it stands in the address behind the #, so that back, forward and reload work.

const state = {
  view: 'map',
  prefix: '',
  query: '',
  dtypes: [],
  tensor: -1,
  color: 'dtype',
  fold: true,
  folded: true,
  sort: 'name',
  down: false,
  metric: 'norm',
};
const DEFAULTS = {...state};

let store = null;
let source = null;
let draw = () => {};

function stateText() {
  const words = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (key === 'tensor') {
      if (value >= 0) words.set('tensor', store.names[value]);
    } else if (JSON.stringify(value) !== JSON.stringify(DEFAULTS[key])) {
      words.set(key, Array.isArray(value) ? value.join(',') : String(value));
    }
  }
  return words.toString();
}

function readState() {
  const words = new URLSearchParams(location.hash.slice(1));
  for (const key of Object.keys(DEFAULTS)) {
    const text = words.get(key);
    if (text === null) state[key] = DEFAULTS[key];
    else if (key === 'tensor') state.tensor = store.numbers.has(text) ? store.numbers.get(text) : -1;
    else if (key === 'dtypes') state.dtypes = text.split(',');
    else state[key] = typeof DEFAULTS[key] === 'boolean' ? text === 'true' : text;
  }
  const known = {
    view: Object.keys(VIEWS),
    color: ['dtype', 'change', ...Object.keys(METRICS)],
    metric: ['change', ...Object.keys(METRICS)],
  };
  for (const [key, words] of Object.entries(known)) {
    if (!words.includes(state[key]) || (state[key] === 'change' && !store.isPair)) state[key] = DEFAULTS[key];
  }
}

/** Changes what is looked at. A step that people would want to take back becomes one of the browser's history. */
function go(changes) {
  const isStep = ['view', 'prefix', 'tensor'].some((key) => key in changes && changes[key] !== state[key]);
  Object.assign(state, changes);
  const text = '#' + stateText();
  if (isStep) history.pushState(null, '', text);
  else history.replaceState(null, '', text);
  draw(changes);
}

let shownKey = null;
let shownList = [];

/** The tensors that the search box, the dtypes and the prefix leave, by number. */
function shown(withPrefix = true) {
  const key = JSON.stringify([state.query, state.dtypes, withPrefix ? state.prefix : '']);
  if (key === shownKey) return shownList;
  const matches = matcher(state.query);
  const list = [];
  const isUnder = state.prefix && withPrefix ? underPrefix(state.prefix) : null;
  for (let i = 0; i < store.count; ++i) {
    if (isUnder && !isUnder(i)) continue;
    if (matches && !matches(store.names[i])) continue;
    if (state.dtypes.length && !state.dtypes.includes(store.dtype(i))) continue;
    list.push(i);
  }
  shownKey = key;
  shownList = list;
  return list;
}

/** A prefix may be of names ("model.layers.3.") or of patterns ("model.layers.#."). */
function underPrefix(prefix) {
  if (!prefix.includes('#')) return (i) => store.names[i].startsWith(prefix);
  return (i) => store.patterns[i].startsWith(prefix) || store.names[i].startsWith(prefix);
}

let wantedList = [];

/** Asks for statistics of tensors of the store, on every side that has them: all that this view looks at. */
function want(list) {
  wantedList = list;
  askAgain();
}

// What a remote checkpoint is read for without being asked, in bytes.
const FREELY_READ = 256e6;

/** The tensor that is looked at comes first, and then what the view wants. */
function askAgain() {
  const wanted = [];
  let bytes = 0;
  const add = (i) => {
    for (const side of store.sides) {
      const k = store.on(side.number, i);
      if (k < 0) continue;
      wanted.push([side.number, k]);
      if (side.remote && !side.stats.has(k)) bytes += side.bytes[k];
    }
  };
  if (state.tensor >= 0) add(state.tensor);
  const ownCount = wanted.length;
  bytes = 0;
  wantedList.forEach(add);
  if (bytes > FREELY_READ && !store.mayRead) {
    wanted.length = ownCount;
    offerToRead(bytes);
  }
  source.wantStats(store, wanted);
}
