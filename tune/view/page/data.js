// The server's data: columns as typed arrays, JSON, and one experiment that keeps them.

export async function json(address) {
  const answer = await fetch(address);
  if (!answer.ok) {
    const words = await answer.text();
    let why = words;
    try { why = JSON.parse(words).error; } catch { /* plain text */ }
    throw new Error(`${answer.status}: ${why}`);
  }
  return answer.json();
}

const kArrays = {f64: Float64Array, f32: Float32Array, u32: Uint32Array, u8: Uint8Array};

// {header, columns: Map of name to {data, words}}
export function parseColumns(buffer) {
  const view = new DataView(buffer);
  if (buffer.byteLength < 8 || view.getUint32(0, true) !== 0x31435654) throw new Error('these are not columns');
  const length = view.getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const columns = new Map();
  for (const {name, type, at, count, words} of header.columns) {
    columns.set(name, {data: new kArrays[type](buffer, 8 + length + at, count), words: words ?? null});
  }
  return {header, columns};
}

export async function blob(address) {
  const answer = await fetch(address);
  if (answer.status === 202) return null;  // not loaded yet
  if (!answer.ok) throw new Error(`${answer.status}: ${(await answer.text()).trim()}`);
  return parseColumns(await answer.arrayBuffer());
}

// Addresses have a limit.
function parts(names) {
  const found = [];
  for (let i = 0; i < names.length; i += 150) found.push(names.slice(i, i + 150));
  return found;
}

// A column that grows: data has room for more than its length.
class Grown {
  constructor({data, words}) { this.data = data; this.words = words; this.length = data.length; }
  set(rows, from) {
    const last = rows.length ? rows[rows.length - 1] + 1 : 0;
    let length = Math.max(this.length, last);
    for (const row of rows) length = Math.max(length, row + 1);
    if (length > this.data.length) {
      const larger = new this.data.constructor(Math.ceil(length * 1.5) + 64);
      larger.set(this.data.subarray(0, this.length));
      this.data = larger;
    }
    this.length = length;
    for (let i = 0; i < rows.length; ++i) this.data[rows[i]] = from.data[i];
    if (from.words) this.words = from.words;
  }
  view() { return this.data.subarray(0, this.length); }
}

export class Experiment {
  constructor(key) {
    this.key = key;
    this.meta = null;
    this.columns = new Map();  // name to Grown
    this.change = 0;
    this.version = 0;  // raised with each change seen here
    this.busy = Promise.resolve();
  }
  address(what) { return `/api/x/${this.key}/${what}`; }

  async loadMeta() {
    const meta = await json(this.address('meta'));
    const isNew = !this.meta || this.meta.boot !== meta.boot || this.meta.layout !== meta.layout;
    if (isNew && this.meta?.is_loaded) this.columns.clear();
    this.meta = meta;
    return meta;
  }
  // One request after another: an update never overtakes the columns that it updates.
  inTurn(work) {
    const done = this.busy.then(work);
    this.busy = done.catch(() => {});
    return done;
  }
  need(names) { return this.inTurn(() => this.fetchMissing(names)); }
  async fetchMissing(names) {
    const missing = [...new Set(names)].filter((name) => !this.columns.has(name));
    if (missing.length === 0) return;
    let change = this.columns.size > 0 ? this.change : Infinity;
    for (const part of parts(missing)) {
      const got = await blob(this.address(`columns?c=${part.join(',')}`));
      if (!got) throw new Error('the experiment is not loaded yet');
      for (const [name, column] of got.columns) this.columns.set(name, new Grown(column));
      if (change !== Infinity && got.header.change !== change) this.behind = true;
      change = Math.min(change, got.header.change);
    }
    this.change = change;
    // Columns of different moments do not fit together: the older ones are brought up to date.
    if (this.behind) await this.update();
    ++this.version;
  }
  // The rows that changed since all columns were the same age.
  async update() {
    let change = Infinity;
    for (const part of parts([...this.columns.keys()])) {
      const got = await blob(this.address(`columns?c=${part.join(',')}&since=${this.change}`));
      if (!got) return;
      const rows = got.columns.get('rows').data;
      for (const [name, column] of got.columns) this.columns.get(name)?.set(rows, column);
      if (change !== Infinity && got.header.change !== change) this.behind = true;
      change = Math.min(change, got.header.change);
    }
    this.behind = false;
    this.change = change;
    ++this.version;
  }
  // The news since the last time.
  refresh() {
    return this.inTurn(async () => {
      const names = [...this.columns.keys()];
      await this.loadMeta();
      if (!this.meta.is_loaded || names.length === 0) return;
      if (this.columns.size === 0) return this.fetchMissing(names.filter((name) => this.isThere(name)));
      await this.update();
    });
  }
  isThere(name) {
    const number = Number(name.slice(1).replace(/[lnx]$/, ''));
    if (/^p\d+$/.test(name)) return number < this.meta.parameters.length;
    if (/^m\d+[lnx]$/.test(name)) return number < this.meta.metrics.length;
    return true;
  }
  col(name) { return this.columns.get(name)?.view() ?? new Float64Array(this.meta.trials); }
  words(name) { return this.columns.get(name)?.words ?? null; }
  get trials() { return this.columns.get('number')?.length ?? 0; }

  metricIndex(name) { return this.meta.metrics.indexOf(name); }
  // Of several objectives the first one stands for the trial where one value has to.
  get metric() { return this.meta.metric || this.meta.objectives?.[0]?.metric || ''; }
  get mode() { return this.meta.metric ? this.meta.mode : this.meta.objectives?.[0]?.mode ?? 'max'; }
  get primary() { return this.metricIndex(this.metric); }
  // The column that stands for a trial: its best value or its last one.
  metricColumn(index, by) {
    return `m${index}${by === 'last' ? 'l' : this.modeOf(index) === 'max' ? 'x' : 'n'}`;
  }
  // Of other metrics than the experiment's, names tell which way is better.
  modeOf(index) {
    const name = this.meta.metrics[index] ?? '';
    if (name === this.meta.metric) return this.meta.mode;
    const objective = this.meta.objectives?.find(({metric}) => metric === name);
    if (objective) return objective.mode ?? 'max';
    return /loss|error|time|regret|perplexity|rmse|mae\b|mse/i.test(name) ? 'min' : 'max';
  }
  idOf(row) { return `${this.meta.id_prefix}${String(this.col('number')[row]).padStart(5, '0')}`; }
  // Everything that a picture can have on an axis: {name, column, words, log}.
  axes() {
    const fields = [['number', 'trial'], ['iterations', 'iterations'], ['started', 'started'], ['ended', 'ended']]
        .map(([column, name]) => ({name, column, kind: 'field', log: false}));
    const parameters = this.meta.parameters.map((p, i) => ({name: p.name, column: `p${i}`, kind: 'parameter', log: p.log, words: p.words}));
    return [...fields, ...parameters];
  }
  // The metrics as axes, by their best or last values.
  metricAxes(by) {
    return this.meta.metrics.map((name, i) => ({name, column: this.metricColumn(i, by), kind: 'metric', log: false}));
  }
}
