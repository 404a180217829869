// Slices (the metric over each parameter) and a heat map of two of them, of the trials that are kept.
import {Chart, axisBottom, axisLeft, nearest, nothing} from '/chart.js';
import {canvasOf, Points} from '/paint.js';
import {kSky, pixel, viridis} from '/colour.js';
import {counts, extent, linear, log, number, robustExtent, roomy, short, times, words} from '/scale.js';

export function scaleOf(experiment, axis, from, to) {
  const list = experiment.words(axis.column), data = experiment.col(axis.column);
  if (list) return words(list, from, to);
  if (axis.column === 'started' || axis.column === 'ended') {  // 0: not yet
    return times(...extent(data, true), from, to);
  }
  if (axis.column === 'number' || axis.column === 'iterations') return counts(...roomy(extent(data)), from, to);
  return (axis.log ? log : linear)(...roomy(extent(data, axis.log), axis.log), from, to);
}

// A number that stays the same, to spread words sideways.
const jitter = (row) => (((row * 2654435761) >>> 0) / 4294967296 - 0.5) * 0.6;

export function sliceChart(experiment, axis, {metric, mask, open, ylog}, how = {}) {
  let xs = new Float32Array(0), ys = xs, placed = '', points = null;
  const chart = new Chart({title: short(axis.name, 40), name: `slice-${axis.column}`, height: 190, ...how, draw});
  function draw(painter, box, colours) {
    const {column, name} = metric();
    const values = experiment.col(column), data = experiment.col(axis.column), list = experiment.words(axis.column);
    if (values.length === 0) return nothing(painter, box, colours, 'no trials yet');
    place(box, column, values, data, list);
    axisLeft(painter, box, chart.y, colours, short(name, 24));
    axisBottom(painter, box, chart.x, colours);
    const on = pixel(colours.dark ? kSky : '#0072b2', values.length > 20000 ? 120 : 200);
    painter.points(points, on, mask());
  }
  // Where the points lie changes with data and size alone, not while a brush moves.
  function place(box, column, values, data, list) {
    const now = [experiment.version, column, ylog(), box.x, box.y, box.width, box.height].join();
    if (now === placed) return;
    placed = now;
    const x = chart.x = scaleOf(experiment, axis, box.x, box.x + box.width);
    const y = chart.y = (ylog() ? log : linear)(...roomy(ylog() ? extent(values, true) : robustExtent(values), ylog()), box.y + box.height, box.y);
    if (xs.length !== values.length) { xs = new Float32Array(values.length); ys = new Float32Array(values.length); }
    for (let i = 0; i < values.length; ++i) {
      xs[i] = x.map(list ? data[i] + jitter(i) : data[i]);
      ys[i] = y.map(values[i]);
    }
    points = new Points(box, xs, ys, values.length > 20000 ? 0.75 : 1.8);
  }
  chart.onPoint((px, py) => {
    const row = nearest(xs, ys, px, py, mask());
    if (row < 0) return null;
    const data = experiment.col(axis.column), list = experiment.words(axis.column);
    return [`trial ${experiment.col('number')[row]}`, `${axis.name}: ${list ? list[data[row]] : number(data[row], 6)}`,
      `${metric().name}: ${number(experiment.col(metric().column)[row], 6)}`];
  }, (px, py) => { const row = nearest(xs, ys, px, py, mask()); if (row >= 0) open(row); });
  return chart;
}

// Brushing a slice chooses a range of its parameter.
export function brushSlice(chart, experiment, axis, onRange) {
  chart.onDrag((left, _top, right) => {
    const box = chart.box(), x = scaleOf(experiment, axis, box.x, box.x + box.width);
    onRange([x.invert(left), x.invert(right)]);
  }, () => onRange(null));
}

const kCells = 24;

// Each cell's colour is the mean of the metric there; where no trial is there is no colour.
export function heatChart(experiment, {axes, metric, mask, mode}) {
  let shown = null, cells = new Int32Array(0), placed = '', scales = null;
  const chart = new Chart({title: 'Heat map', height: 330, margin: {right: 82}, draw});
  const bin = (scale, value, from, to, cells) => {
    const at = Math.floor(((scale.map(value) - from) / (to - from)) * cells);
    return at >= 0 && at < cells ? at : at === cells ? cells - 1 : -1;
  };
  function draw(painter, box, colours) {
    const [xAxis, yAxis] = axes();
    const values = experiment.col(metric().column), kept = mask();
    if (!xAxis || !yAxis) return nothing(painter, box, colours, 'two parameters are needed');
    place(xAxis, yAxis, box);
    const {x, y, columns, rows} = scales;
    const sums = new Float64Array(columns * rows), counts = new Uint32Array(columns * rows);
    for (let i = 0; i < values.length; ++i) {
      if (kept[i] === 0 || cells[i] < 0 || values[i] - values[i] !== 0) continue;
      sums[cells[i]] += values[i];
      ++counts[cells[i]];
    }
    const means = sums.map((sum, i) => (counts[i] ? sum / counts[i] : NaN));
    const [lo, hi] = robustExtent(means);
    const pixels = new Uint32Array(columns * rows);
    for (let i = 0; i < means.length; ++i) {
      if (!counts[i]) continue;
      const share = hi > lo ? (means[i] - lo) / (hi - lo) : 0.5;
      pixels[(rows - 1 - Math.floor(i / columns)) * columns + (i % columns)] = viridis.pixels[Math.round(255 * Math.min(1, Math.max(0, mode() === 'max' ? share : 1 - share)))];
    }
    axisBottom(painter, box, x, colours, short(xAxis.name, 40));
    axisLeft(painter, box, y, colours, short(yAxis.name, 30));
    if (painter.context) painter.context.imageSmoothingEnabled = false;
    painter.image(canvasOf(pixels, columns, rows), box.x, box.y, box.width, box.height);
    legend(painter, box, colours, lo, hi);
    shown = {counts, means, columns, rows};
  }
  // The cell of each trial; -1: none.
  function place(xAxis, yAxis, box) {
    const now = [experiment.version, xAxis.column, yAxis.column, box.x, box.y, box.width, box.height].join();
    if (now === placed) return;
    placed = now;
    const right = box.x + box.width, bottom = box.y + box.height;
    const x = scaleOf(experiment, xAxis, box.x, right), y = scaleOf(experiment, yAxis, bottom, box.y);
    const columns = x.words ? Math.max(1, x.words.length) : kCells, rows = y.words ? Math.max(1, y.words.length) : kCells;
    scales = {x, y, columns, rows};
    const xData = experiment.col(xAxis.column), yData = experiment.col(yAxis.column);
    cells = new Int32Array(xData.length);
    for (let i = 0; i < cells.length; ++i) {
      const cx = bin(x, xData[i], box.x, right, columns), cy = bin(y, yData[i], bottom, box.y, rows);
      cells[i] = cx < 0 || cy < 0 ? -1 : cy * columns + cx;
    }
  }
  function legend(painter, box, colours, lo, hi) {
    const left = box.x + box.width + 10, steps = 32;
    for (let i = 0; i < steps; ++i) {
      painter.rect(left, box.y + (i / steps) * box.height, 10, box.height / steps + 0.5, {fill: viridis.texts[255 - Math.round((i / (steps - 1)) * 255)]});
    }
    const [top, bottom] = mode() === 'max' ? [hi, lo] : [lo, hi];
    painter.text(number(top, 3), left + 13, box.y + 5, {colour: colours.faint});
    painter.text(number(bottom, 3), left + 13, box.y + box.height - 5, {colour: colours.faint});
  }
  chart.onPoint((px, py) => {
    const box = chart.box();
    if (!shown) return null;
    const cx = Math.floor(((px - box.x) / box.width) * shown.columns), cy = Math.floor((1 - (py - box.y) / box.height) * shown.rows);
    const at = cy * shown.columns + cx;
    if (cx < 0 || cy < 0 || cx >= shown.columns || cy >= shown.rows || !shown.counts[at]) return null;
    return [`mean ${metric().name}: ${number(shown.means[at], 6)}`, `${shown.counts[at]} trials`];
  });
  return chart;
}
