// Two objectives against each other, with the trials that no other one dominates (Pareto's front).
import {axisBottom, axisLeft, Chart, nearest, nothing} from '/chart.js';
import {kBlue, kOrange, kSky, pixel} from '/colour.js';
import {select} from '/dom.js';
import {Points} from '/paint.js';
import {linear, number, robustExtent, roomy, short} from '/scale.js';
import * as state from '/state.js';

// By how much last values break the constraints, in sizes of their bounds; as `tune best` counts.
function violation(constraints, columns, row) {
  let all = 0;
  constraints.forEach(({min, max}, i) => {
    const value = columns[i][row];
    for (const [bound, over] of [[min, min - value], [max, value - max]]) {
      if (bound !== undefined && bound !== null && over > 0) all += over / (Math.abs(bound) || 1);
    }
  });
  return all;
}

// The rows on the front, by all objectives: [{sign, data}], where larger times sign is better. Rows
// without a finite value of each, or that break constraints, are not on it; when all break some,
// those that break least are.
export function frontRows(goals, constraints, columns, count) {
  let rows = [], least = Infinity;
  for (let row = 0; row < count; ++row) {
    if ([...goals.map(({data}) => data), ...columns].some((data) => data[row] - data[row] !== 0))
      continue;
    const breaks = violation(constraints, columns, row);
    if (breaks > least) continue;
    if (breaks < least) {
      rows = [];
      least = breaks;
    }
    rows.push(row);
  }
  if (least > 0) return rows;
  rows.sort((a, b) => {
    for (const {sign, data} of goals)
      if (data[a] !== data[b]) return sign * (data[b] - data[a]);
    return a - b;
  });
  const front = [];  // a row that comes later never dominates an earlier one
  for (const row of rows) {
    const isDominated = front.some(
        (other) => goals.every(({sign, data}) => sign * data[other] >= sign * data[row]) &&
            goals.some(({data}) => data[other] !== data[row]));
    if (!isDominated) front.push(row);
  }
  return front;
}

export function paretoChart(experiment, open) {
  let xs = new Float32Array(0), ys = xs, front = [];
  const names = () => experiment.meta.objectives.map(({metric}) => metric);
  const chosen = (key, otherwise) =>
      Math.max(0, names().indexOf(state.get(key, names()[otherwise])));
  const column = (metric) => `m${experiment.metricIndex(metric)}l`;
  const isThere = () => names().every((metric) => experiment.metricIndex(metric) >= 0);
  const choice = (label, key, otherwise) => select(
      label, names().map((name) => [name, short(name, 30)]), names()[chosen(key, otherwise)],
      (value) => {
        state.set({[key]: value});
        chart.redraw();
      });
  const controls = names().length > 2 ? [choice('x', 'px', 0), choice('y', 'py', 1)] : [];
  const chart = new Chart({title: 'Pareto front', height: 300, draw, controls});

  function goalsNow() {
    return experiment.meta.objectives.map(({metric, mode}) => ({
      metric, mode: mode ?? 'max', data: experiment.col(column(metric)), sign: mode === 'min' ? -1 : 1}));
  }
  function findFront() {
    if (!isThere()) return [];
    const bounds = experiment.meta.constraints.filter(({metric}) => experiment.metricIndex(metric) >= 0);
    return frontRows(goalsNow(), bounds, bounds.map(({metric}) => experiment.col(column(metric))), experiment.trials);
  }
  function draw(painter, box, colours) {
    if (!isThere())
      return nothing(painter, box, colours, 'no trial has reported all objectives yet');
    const goals = goalsNow();
    const across = goals[chosen('px', 0)], up = goals[chosen('py', 1)];
    const scale = ({data}, from, to) => linear(...roomy(robustExtent(data)), from, to);
    const x = scale(across, box.x, box.x + box.width), y = scale(up, box.y + box.height, box.y);
    axisLeft(painter, box, y, colours, short(`${up.metric} (${up.mode})`, 36));
    axisBottom(painter, box, x, colours, short(`${across.metric} (${across.mode})`, 60));
    if (xs.length !== experiment.trials) {
      xs = new Float32Array(experiment.trials);
      ys = new Float32Array(experiment.trials);
    }
    for (let i = 0; i < xs.length; ++i) {
      xs[i] = x.map(across.data[i]);
      ys[i] = y.map(up.data[i]);
    }
    painter.clip(box.x, box.y, box.width, box.height);
    painter.points(
        new Points(box, xs, ys, xs.length > 20000 ? 0.8 : 2),
        pixel(colours.dark ? kSky : kBlue, xs.length > 20000 ? 110 : 170));
    if (goals.length === 2) painter.line(...steps(across), {colour: kOrange, width: 1.5});
    for (const row of front)
      painter.circle(xs[row], ys[row], 4, {fill: kOrange, stroke: colours.text, width: 1});
    painter.unclip();
    chart.note.textContent = `${number(front.length)} of ${
        number(
            xs.length)} trials, by their last values; orange: no other one is better by all objectives`;
  }
  // The points that the front dominates lie on one side of a staircase: from point to point across first
  // where that is for the worse.
  function steps(across) {
    const rows = [...front].sort((a, b) => xs[a] - xs[b]), left = [], up = [];
    rows.forEach((row, i) => {
      if (i > 0) {
        left.push(across.sign > 0 ? xs[rows[i - 1]] : xs[row]);
        up.push(across.sign > 0 ? ys[row] : ys[rows[i - 1]]);
      }
      left.push(xs[row]);
      up.push(ys[row]);
    });
    return [left, up];
  }
  const find = (px, py) => {
    const mask = new Uint8Array(xs.length);
    for (const row of front) mask[row] = 1;
    const row = nearest(xs, ys, px, py, mask);
    return row >= 0 ? row : nearest(xs, ys, px, py);
  };
  chart.onPoint(
      (px, py) => {
        const row = find(px, py);
        if (row < 0) return null;
        return [
          `trial ${experiment.col('number')[row]}${front.includes(row) ? ', on the front' : ''}`,
          ...names().map((metric) => `${metric}: ${number(experiment.col(column(metric))[row], 6)}`)
        ];
      },
      (px, py) => {
        const row = find(px, py);
        if (row >= 0) open(row);
      });
  chart.onDrag(() => {}, () => {});
  async function update() {
    const bounds = experiment.meta.constraints.map(({metric}) => metric);
    await experiment.need([
      'number',
      ...[...names(), ...bounds].filter((metric) => experiment.metricIndex(metric) >= 0).map(column)
    ]);
    front = findFront();
    chart.redraw();
  }
  return {chart, update, rows: () => front, column};
}
