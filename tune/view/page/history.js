// The history of an experiment: a point a trial, and the best value so far.
import {Chart, axisBottom, axisLeft, nearest, nothing} from '/chart.js';
import {el, select} from '/dom.js';
import {ink, kBlue, kOrange, kRed, kSky, pixel} from '/colour.js';
import {Points} from '/paint.js';
import {counts, extent, linear, log, number, robustExtent, roomy, times} from '/scale.js';
import * as state from '/state.js';

// Of points in order of x: where the best so far is, row by row.
export function bestSoFar(order, values, mode) {
  const best = new Float64Array(order.length);
  let held = NaN;
  for (let i = 0; i < order.length; ++i) {
    const value = values[order[i]];
    if (value - value === 0 && !(mode === 'max' ? held >= value : held <= value)) held = value;
    best[i] = held;
  }
  return best;
}

// Steps of a line that stays until the next value.
export function steps(xs, ys) {
  const outX = [], outY = [];
  for (let i = 0; i < xs.length; ++i) {
    if (ys[i] - ys[i] !== 0) continue;
    if (outY.length && outY[outY.length - 1] === ys[i] && i + 1 < xs.length) continue;
    if (outY.length) { outX.push(xs[i]); outY.push(outY[outY.length - 1]); }
    outX.push(xs[i]);
    outY.push(ys[i]);
  }
  return [outX, outY];
}

export function historyChart(experiment, open) {
  const choice = () => ({
    metric: Math.max(0, experiment.metricIndex(state.get('m', experiment.metric))),
    by: state.get('by', 'best'), x: state.get('x', 'number'), log: state.get('ylog') === '1'});
  let xs = new Float32Array(0), ys = xs, kept = {};
  const zoomed = () => { const [x0, x1, y0, y1] = state.part('z') ?? []; return y1 === undefined ? null : {x: [x0, x1], y: [y0, y1]}; };
  const controls = el('span', {class: 'controls'});
  const chart = new Chart({title: 'History', height: 300, controls: [controls], draw});
  const meta = () => experiment.meta;
  const show = (part) => { state.setPart('z', part); chart.redraw(); };

  function drawControls() {
    const now = choice();
    const change = (name) => (value) => { state.set({[name]: value, z: ''}); update(); };
    controls.replaceChildren(
        select('metric', meta().metrics.map((name) => [name, name]), meta().metrics[now.metric], change('m')),
        select('value', [['best', 'best'], ['last', 'last']], now.by, change('by')),
        select('x', [['number', 'trial'], ['ended', 'time of its end'], ['started', 'time of its start']], now.x, change('x')),
        select('y', [['', 'linear'], ['1', 'logarithmic']], now.log ? '1' : '', change('ylog')));
  }
  async function update() {
    if (meta().metrics.length > 0) {
      const now = choice();
      await experiment.need(['number', 'status', 'iterations', now.x, experiment.metricColumn(now.metric, now.by)]);
    }
    const names = meta().metrics.join('\n');
    if (chart.names !== names || chart.controlled !== state.state.query.toString()) drawControls();
    chart.names = names;
    chart.controlled = state.state.query.toString();
    chart.redraw();
  }
  function draw(painter, box, colours) {
    if (meta().metrics.length === 0) return nothing(painter, box, colours, 'no results yet');
    const now = choice(), mode = experiment.modeOf(now.metric), {x, y, values, xData, isTime} = scales(now, box);
    axisLeft(painter, box, y, colours, meta().metrics[now.metric]);
    axisBottom(painter, box, x, colours, isTime ? 'time' : 'trial');
    place(values, xData, x, y, isTime);
    painter.clip(box.x, box.y, box.width, box.height);
    const {best, line: [sx, sy], points} = prepared(now, mode, values, xData, isTime, colours);
    painter.points(new Points(box, xs, ys, values.length > 20000 ? 1 : values.length > 2000 ? 1.5 : 2.5), points);
    painter.line(sx.map(x.map), sy.map(y.map), {colour: colours.dark ? '#ffb03b' : kRed, width: 2});
    painter.unclip();
    chart.note.textContent = best.length ? `best ${number(best[best.length - 1], 6)} (${mode})` : '';
  }
  function scales(now, box) {
    const zoom = zoomed(), values = experiment.col(experiment.metricColumn(now.metric, now.by));
    const xData = experiment.col(now.x), isTime = now.x !== 'number';
    const [x0, x1] = zoom?.x ?? roomy(extent(xData, isTime), false, 0.012);
    const [y0, y1] = zoom?.y ?? roomy(now.log ? extent(values, true) : robustExtent(values), now.log);
    return {values, xData, isTime, x: (isTime ? times : counts)(x0, x1, box.x, box.x + box.width), y: (now.log ? log : linear)(y0, y1, box.y + box.height, box.y)};
  }
  function place(values, xData, x, y, isTime) {
    if (xs.length !== values.length) { xs = new Float32Array(values.length); ys = new Float32Array(values.length); }
    for (let i = 0; i < values.length; ++i) {
      xs[i] = isTime && !(xData[i] > 0) ? NaN : x.map(xData[i]);
      ys[i] = y.map(values[i]);
    }
  }
  // What is the same for each zoom of the same data.
  function prepared(now, mode, values, xData, isTime, colours) {
    const key = `${experiment.version} ${values.length} ${now.metric} ${now.by} ${now.x} ${colours.dark}`;
    if (kept.key === key) return kept;
    const rows = orderOf(xData, isTime), best = bestSoFar(rows, values, mode), times = new Float64Array(rows.length);
    for (let i = 0; i < rows.length; ++i) times[i] = xData[rows[i]];
    kept = {key, best, line: steps(times, best), points: pointColours(colours)};
    return kept;
  }
  function pointColours(colours) {
    const status = experiment.col('status'), stopped = state.stoppedRows(experiment);
    const table = new Uint32Array(status.length);
    const alpha = status.length > 20000 ? 110 : 190;
    const done = pixel(colours.dark ? kSky : kBlue, alpha), early = pixel('#8f979f', alpha);
    const running = pixel(kOrange, 255), error = pixel(kRed, 255);
    for (let i = 0; i < table.length; ++i) {
      table[i] = status[i] === 1 ? running : status[i] === 4 ? error : stopped[i] ? early : done;
    }
    return table;
  }
  function orderOf(xData, isTime) {
    const all = new Uint32Array(xData.length);
    let count = 0, isSorted = true;
    for (let i = 0; i < xData.length; ++i) {
      if (isTime && !(xData[i] > 0)) continue;
      if (count > 0 && xData[i] < xData[all[count - 1]]) isSorted = false;
      all[count++] = i;
    }
    const rows = all.subarray(0, count);
    return isSorted ? rows : rows.sort((a, b) => xData[a] - xData[b]);
  }
  const under = (px, py) => nearest(xs, ys, px, py);
  chart.onPoint((px, py) => {
    const row = under(px, py);
    if (row < 0) return null;
    const now = choice();
    const values = experiment.col(experiment.metricColumn(now.metric, now.by));
    return [`trial ${experiment.col('number')[row]}`, `${meta().metrics[now.metric]}: ${number(values[row], 6)}`,
      `${experiment.col('iterations')[row]} iterations`];
  }, (px, py) => { const row = under(px, py); if (row >= 0) open(row); });
  chart.onDrag((left, top, right, bottom) => {
    const {x, y} = scales(choice(), chart.box());
    show([x.invert(left), x.invert(right), y.invert(bottom), y.invert(top)]);
  }, () => show(null));
  return {chart, update};
}
export const historyLegend = () => el('span', {class: 'legend'}, 'in the history:',
    ...[[ink().dark ? kSky : kBlue, 'ran to its end'], ['#8f979f', 'stopped early'], [kOrange, 'running'], [kRed, 'failed']]
        .map(([colour, words]) => el('span', {}, el('span', {class: 'dot', style: {background: colour}}), words)), 'line: best so far');
