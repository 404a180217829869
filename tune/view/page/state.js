// The state of the page is its address: #/KEY/PAGE?name=value. A link shows what its sender saw.

export const state = {key: '', page: '', query: new URLSearchParams()};
let listener = () => {}, pending = null, seen = '';
const kWriteMs = 60;

export function read() {
  seen = location.hash;
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [key = '', page = ''] = path.split('/');
  state.key = /^[0-9a-f]{16}$/.test(key) ? key : '';
  state.page = page;
  state.query = new URLSearchParams(query);
}
export function address({key = state.key, page = state.page, query = {}} = {}) {
  const words = new URLSearchParams(query).toString();
  return `#/${key}${key && page ? `/${page}` : ''}${words ? `?${words}` : ''}`;
}
export function get(name, fallback = '') { return state.query.get(name) ?? fallback; }
// Without a step in the browser's history, unless asked for. The address follows a moment later: to change it
// takes milliseconds, which somebody who types would feel.
export function set(changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (value === '' || value === null || value === undefined) state.query.delete(name);
    else state.query.set(name, String(value));
  }
  pending ??= setTimeout(write, kWriteMs);
}
function write() {
  if (pending === null) return;
  clearTimeout(pending);
  pending = null;
  if (location.hash !== seen) return;  // somebody has gone on meanwhile
  const words = state.query.toString();
  history.replaceState(null, '', `#/${state.key}${state.page ? `/${state.page}` : ''}${words ? `?${words}` : ''}`);
  seen = location.hash;
}
export function go(target) {
  write();
  location.hash = target;
}
export function onMove(told) {
  listener = told;
  addEventListener('click', write, {capture: true});  // a link leads on from what is shown
  addEventListener('hashchange', () => {
    clearTimeout(pending);
    pending = null;
    read();
    listener();
  });
  read();
}

// A part that a picture shows, as numbers in the address; null: all of it.
export function part(name) {
  const numbers = get(name).split('~').map(Number);
  return numbers.length >= 2 && numbers.every(Number.isFinite) ? numbers : null;
}
export function setPart(name, numbers) { set({[name]: numbers?.map((one) => String(Number(one.toPrecision(12)))).join('~') ?? ''}); }

// Filters: {column: [lo, hi]}, in the address as f=p0:0.1~0.5;p3:1~1.
export function filters() {
  const found = {};
  for (const part of get('f').split(';')) {
    const [column, range = ''] = part.split(':');
    const [lo, hi] = range.split('~').map(Number);
    if (/^(p\d+|m\d+[lnx]|number|iterations|started|ended)$/.test(column) && lo <= hi) found[column] = [lo, hi];
  }
  return found;
}
export function setFilters(wanted) {
  const short = (value) => String(Number(value.toPrecision(8)));
  set({f: Object.entries(wanted).map(([column, [lo, hi]]) => `${column}:${short(lo)}~${short(hi)}`).join(';')});
}
// 1 for each row that all filters keep; in the array of before, where one is given that has the size.
export function maskOf(experiment, wanted, hideStopped = false, before = null) {
  const mask = (before?.length === experiment.trials ? before : new Uint8Array(experiment.trials)).fill(1);
  for (const [column, [lo, hi]] of Object.entries(wanted)) {
    const data = experiment.col(column);
    for (let i = 0; i < mask.length; ++i) {
      if (!(data[i] >= lo && data[i] <= hi)) mask[i] = 0;
    }
  }
  if (hideStopped) {
    const stopped = stoppedRows(experiment);
    for (let i = 0; i < mask.length; ++i) if (stopped[i]) mask[i] = 0;
  }
  return mask;
}
// Trials that ended before the longest ones did: what a scheduler stopped early.
export function stoppedRows(experiment) {
  const status = experiment.col('status'), iterations = experiment.col('iterations');
  let most = 0;
  for (let i = 0; i < iterations.length; ++i) most = Math.max(most, iterations[i]);
  const stopped = new Uint8Array(status.length);
  for (let i = 0; i < status.length; ++i) stopped[i] = status[i] === 3 && iterations[i] < most ? 1 : 0;
  return stopped;
}
