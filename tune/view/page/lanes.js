// Lanes: what each GPU, or each CPU slot, did when; gaps are idle time.
import {Chart, axisBottom, nothing} from '/chart.js';
import {blob} from '/data.js';
import {kBlue, kOrange, kRed, kSky, pixel} from '/colour.js';
import {canvasOf} from '/paint.js';
import {clock, duration, short, times} from '/scale.js';
import * as state from '/state.js';

const kMostLanes = 400;

// Rows by their time; events come in its order, so that there is mostly nothing to sort.
function inOrder(times) {
  const rows = new Uint32Array(times.length).map((_, i) => i);
  return times.every((time, i) => i === 0 || times[i - 1] <= time) ? rows : rows.sort((a, b) => times[a] - times[b]);
}

// Attempts with GPUs lie in the lanes of these; others in the first lane of their node that is free.
export function lanesOf(columns, until) {
  const started = columns.get('started').data, ended = columns.get('ended').data;
  const node = columns.get('node'), gpus = columns.get('gpus');
  const order = inOrder(started);
  const lanes = [], byName = new Map(), free = new Map(), known = new Map();
  const lane = (name) => {
    if (!byName.has(name)) { byName.set(name, lanes.length); lanes.push({name, attempts: [], busy: 0}); }
    return lanes[byName.get(name)];
  };
  const hostOf = (i) => node.words[node.data[i]] ?? '';
  // The lanes of an attempt's GPUs; null: it has none. Few nodes have few lists of them.
  const gpuLanes = (i) => {
    const key = node.data[i] * gpus.words.length + gpus.data[i];
    if (!known.has(key)) {
      const list = gpus.words[gpus.data[i]];
      known.set(key, list ? list.split(',').map((gpu) => lane(`${hostOf(i)} GPU ${gpu}`)) : null);
    }
    return known.get(key);
  };
  for (const i of order) {
    const end = ended[i] > 0 ? ended[i] : until;
    let taken = gpuLanes(i);
    if (!taken) {
      const host = hostOf(i);
      if (!free.has(host)) free.set(host, []);
      const slots = free.get(host);
      let slot = slots.findIndex((at) => at <= started[i] + 1e-6);
      if (slot < 0) slot = slots.length;
      slots[slot] = end;
      taken = [lane(`${host} slot ${slot + 1}`)];
    }
    for (const one of taken) {
      one.attempts.push(i);
      one.busy += Math.max(0, end - started[i]);
    }
  }
  return lanes.sort((a, b) => a.name.localeCompare(b.name, 'en', {numeric: true}));
}

export function lanesChart(experiment, open) {
  let lanes = [], columns = null, first = 0, last = 1, rowHeight = 16;
  const span = () => state.part('zl') ?? [first, last];
  const show = (part) => { state.setPart('zl', part); chart.redraw(); };
  const chart = new Chart({title: 'Lanes', height: 120, margin: {left: 130}, draw});

  async function update() {
    const now = performance.now();
    if (columns && now - (update.at ?? 0) < 2000 && experiment.meta.state === 'running') return chart.redraw();
    update.at = now;
    const got = await blob(experiment.address('attempts'));
    if (!got) return;
    columns = got.columns;
    first = got.header.first;
    last = experiment.meta.state === 'running' ? Math.max(got.header.last, Date.now() / 1000) : got.header.last;
    lanes = lanesOf(columns, last).slice(0, kMostLanes);
    rowHeight = lanes.length > 60 ? 6 : lanes.length > 24 ? 10 : 16;
    chart.resize(Math.max(90, 48 + lanes.length * rowHeight));
    const busy = lanes.reduce((sum, one) => sum + one.busy, 0), all = lanes.length * (last - first);
    chart.note.textContent = all > 0 ? `${Math.round((100 * busy) / all)} % busy over ${duration(last - first)}; between attempts: idle` : '';
    chart.redraw();
  }
  function colourOf(words, colours) {
    if (words === 'running') return kOrange;
    if (words === 'completed' || words === 'stopped' || words === 'paused') return colours.dark ? kSky : kBlue;
    return kRed;
  }
  // Each pixel takes the colour of the attempt that has begun in it last: drawn by columns, so that a
  // hundred thousand attempts cost no more than the pixels that they cover.
  function draw(painter, box, colours) {
    if (lanes.length === 0) return nothing(painter, box, colours, 'no attempts yet');
    const [t0, t1] = span();
    const x = times(t0, t1, box.x, box.x + box.width);
    axisBottom(painter, box, x, colours);
    const ratio = painter.ratio, width = Math.round(box.width * ratio), height = Math.max(1, lanes.length);
    const pixels = new Uint32Array(width * height).fill(pixel(colours.grid));
    const started = columns.get('started').data, ended = columns.get('ended').data;
    const outcome = columns.get('outcome');
    const shades = [200, 255].map((alpha) => outcome.words.map((words) => pixel(colourOf(words, colours), alpha)));
    lanes.forEach(({attempts}, row) => {
      let shade = 0;
      for (const i of attempts) {
        const from = Math.max(0, Math.floor((x.map(started[i]) - box.x) * ratio));
        const to = Math.min(width, Math.max(from + 1, Math.ceil((x.map(ended[i] > 0 ? ended[i] : last) - box.x) * ratio)));
        if (from >= width || to <= 0) continue;
        pixels.fill(shades[shade ^= 1][outcome.data[i]], row * width + from, row * width + to);
      }
    });
    const canvas = canvasOf(pixels, width, height);
    if (painter.context) painter.context.imageSmoothingEnabled = false;
    painter.image(canvas, box.x, box.y, box.width, lanes.length * rowHeight);
    for (let row = 0; row < lanes.length; ++row) {
      const top = box.y + row * rowHeight;
      if (rowHeight > 6) painter.line([box.x, box.x + box.width], [top, top], {colour: colours.paper, width: 2});
      if (rowHeight < 10 && row % 3 !== 0) continue;
      painter.text(short(lanes[row].name, 20), box.x - 6, top + rowHeight / 2, {colour: colours.faint, align: 'right'});
    }
  }
  function under(px, py) {
    const box = chart.box(), row = Math.floor((py - box.y) / rowHeight), lane = lanes[row];
    if (!lane || px < box.x) return null;
    const [t0, t1] = span(), time = t0 + ((px - box.x) / box.width) * (t1 - t0);
    const started = columns.get('started').data, ended = columns.get('ended').data;
    const slack = (t1 - t0) / box.width;
    const i = lane.attempts.findLast((one) => started[one] <= time + slack && (ended[one] > 0 ? ended[one] : last) >= time - slack);
    return {lane, attempt: i};
  }
  chart.onPoint((px, py) => {
    const found = under(px, py);
    if (!found) return null;
    const {lane, attempt: i} = found;
    const share = `${lane.name}: ${Math.round((100 * lane.busy) / Math.max(1e-9, last - first))} % busy`;
    if (i === undefined) return [share, 'idle'];
    const started = columns.get('started').data[i], ended = columns.get('ended').data[i];
    const outcome = columns.get('outcome');
    return [share, `trial ${columns.get('trial').data[i]}, attempt ${columns.get('attempt').data[i]}: ${outcome.words[outcome.data[i]]}`,
      `${clock(started, false)}, ${duration((ended > 0 ? ended : last) - started)}`];
  }, (px, py) => {
    const i = under(px, py)?.attempt;
    if (i !== undefined) open(columns.get('trial').data[i]);
  });
  chart.onDrag((left, _top, right) => {
    const box = chart.box(), [t0, t1] = span();
    const at = (px) => t0 + ((px - box.x) / box.width) * (t1 - t0);
    show([at(left), at(right)]);
  }, () => show(null));
  return {chart, update};
}
