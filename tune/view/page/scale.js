// Scales, ticks and number formats. A scale maps values to pixels: {map, invert, ticks, format}.

const kLn10 = Math.LN10;

export function niceStep(span, count) {
  const raw = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const error = raw / power;
  return power * (error >= 7.07 ? 10 : error >= 3.16 ? 5 : error >= 1.41 ? 2 : 1);
}

function linearTicks(lo, hi, count) {
  if (!(hi > lo)) return [lo];
  const step = niceStep(hi - lo, count);
  const ticks = [];
  for (let k = Math.ceil(lo / step - 1e-9); k * step <= hi * (1 + 1e-12) + step * 1e-9; ++k) ticks.push(k * step);
  return ticks;
}

// Powers of ten; between them 2 and 5 where there are few.
function logTicks(lo, hi, count) {
  const from = Math.floor(Math.log10(lo) + 1e-9);
  const to = Math.ceil(Math.log10(hi) - 1e-9);
  const multiples = to - from <= 2 ? [1, 2, 5] : [1];
  for (let every = Math.max(1, Math.ceil((to - from) / Math.max(1, count))); every >= 1; --every) {
    const ticks = [];
    for (let power = from; power <= to; power += every) {
      for (const multiple of multiples) {
        const tick = multiple * 10 ** power;
        if (tick >= lo * (1 - 1e-9) && tick <= hi * (1 + 1e-9)) ticks.push(tick);
      }
    }
    if (ticks.length > 1) return ticks;
  }
  return linearTicks(lo, hi, count);
}

const grouped = new Intl.NumberFormat('en-US');  // toLocaleString makes one anew at each call

// "0.0123", "1.2e-7", "12,345".
export function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '-∞';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return size < 1000 ? String(value) : grouped.format(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(Math.max(0, digits - 2)).replace(/\.?0+e/, 'e').replace('e+', 'e');
  return String(Number(value.toPrecision(digits)));
}

export function duration(seconds) {
  if (!Number.isFinite(seconds) || seconds < 0) return '';
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 100) return `${number(seconds, 3)} s`;
  const days = Math.floor(seconds / 86400), hours = Math.floor(seconds / 3600) % 24;
  const minutes = Math.floor(seconds / 60) % 60;
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return `${minutes} min ${Math.floor(seconds % 60)} s`;
}

const two = (n) => String(n).padStart(2, '0');
export function clock(seconds, withDate = true, digits = 0) {
  if (!(seconds > 0)) return '';
  const at = new Date(Math.floor(seconds * 1000 + 0.5));
  const part = digits > 0 ? `.${String(at.getMilliseconds()).padStart(3, '0').slice(0, digits)}` : '';
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}${part}`;
  return withDate ? `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${time}` : time;
}

export function linear(lo, hi, from, to) {
  if (!(hi > lo)) { const pad = Math.abs(lo) * 0.05 || 0.5; lo -= pad; hi += pad; }
  const factor = (to - from) / (hi - lo);
  return {
    lo, hi, from, to, log: false,
    map: (value) => from + (value - lo) * factor,
    invert: (pixel) => lo + (pixel - from) / factor,
    ticks: (count) => linearTicks(lo, hi, count),
    format: (tick) => number(tick, 6),
  };
}

export function log(lo, hi, from, to) {
  if (!(lo > 0)) return linear(lo, hi, from, to);
  if (!(hi > lo)) { lo /= 1.5; hi *= 1.5; }
  const begin = Math.log(lo), factor = (to - from) / (Math.log(hi) - begin);
  return {
    lo, hi, from, to, log: true,
    map: (value) => (value > 0 ? from + (Math.log(value) - begin) * factor : NaN),
    invert: (pixel) => Math.exp(begin + (pixel - from) / factor),
    ticks: (count) => logTicks(lo, hi, count),
    format: (tick) => {
      const power = Math.log(tick) / kLn10;
      return Math.abs(power - Math.round(power)) < 1e-9 && (power < -3 || power > 4) ? `1e${Math.round(power)}` : number(tick, 3);
    },
  };
}

// Words in a row: values are their numbers.
export function words(list, from, to) {
  const scale = linear(-0.5, Math.max(1, list.length) - 0.5, from, to);
  scale.ticks = (count) => {
    const every = Math.max(1, Math.ceil(list.length / Math.max(4, count)));  // those without room are left out
    return list.map((_, i) => i).filter((i) => i % every === 0);
  };
  scale.format = (tick) => short(list[tick] ?? '', 14);
  scale.words = list;
  return scale;
}

// Unix seconds, told by the clock as finely as the span needs.
export function times(lo, hi, from, to) {
  const scale = linear(lo, hi, from, to), span = scale.hi - scale.lo;
  const digits = span > 20 ? 0 : span > 2 ? 1 : 3;
  scale.format = (time) => clock(time, span > 86400, digits);
  return scale;
}

// Iterations, numbers of trials: there is none between two of them.
export function counts(lo, hi, from, to) {
  const scale = hi > lo ? linear(lo, hi, from, to) : linear(lo - 1, hi + 1, from, to), {ticks} = scale;
  scale.ticks = (count) => ticks(count).filter((tick) => Number.isInteger(tick));
  return scale;
}

export function short(text, length) {
  const line = String(text).replace(/\s+/g, ' ');
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}

// The least and greatest finite value (positive ones for a logarithm), of rows that the mask keeps.
export function extent(data, positive = false, mask = null) {
  let lo = Infinity, hi = -Infinity;
  for (let i = 0; i < data.length; ++i) {
    const value = data[i];
    if (mask && !mask[i]) continue;
    if (value - value !== 0 || (positive && !(value > 0))) continue;  // NaN, infinite
    if (value < lo) lo = value;
    if (value > hi) hi = value;
  }
  return lo <= hi ? [lo, hi] : positive ? [1, 10] : [0, 1];
}

// The extent with some room at its ends, so that no point lies on an edge.
export function roomy([lo, hi], isLog = false, share = 0.04) {
  if (isLog) { const room = (hi / lo) ** share; return [lo / room, hi * room]; }
  const room = (hi - lo) * share;
  return [lo - room, hi + room];
}

// Without the few that would press all others flat: the middle 98 % and some room, where the whole
// is many times as wide.
export function robustExtent(data, positive = false) {
  const [lo, hi] = extent(data, positive);
  const step = Math.max(1, Math.floor(data.length / 5000));
  const sample = [];
  for (let i = 0; i < data.length; i += step) {
    if (data[i] - data[i] === 0 && (!positive || data[i] > 0)) sample.push(data[i]);
  }
  if (sample.length < 20) return [lo, hi];
  sample.sort((a, b) => a - b);
  const inner = [sample[Math.floor(sample.length * 0.01)], sample[Math.floor(sample.length * 0.99)]];
  const room = (inner[1] - inner[0]) * 0.1;
  if (!(room > 0) || hi - lo < 8 * (inner[1] - inner[0])) return [lo, hi];
  return [Math.max(lo, inner[0] - room), Math.min(hi, inner[1] + room)];
}
