// Rungs: which values reached each of them, who was stopped there, and the cut-offs.
import {axisLeft, Chart, nearest, nothing} from '/chart.js';
import {kBlue, kOrange, kRed, kSky, pixel} from '/colour.js';
import {blob} from '/data.js';
import {el, select} from '/dom.js';
import {lineageChart} from '/lineage.js';
import {openTrial} from '/overview.js';
import {extent, linear, log, number, robustExtent, roomy} from '/scale.js';
import * as state from '/state.js';

const kWords = ['went on', 'stopped here', 'paused here'];

function summaries(got, mode) {
  const iterations = got.columns.get('iteration').data, rung = got.columns.get('rung').data;
  const value = got.columns.get('value').data, verdict = got.columns.get('verdict').data, newest = got.columns.get('newest_cut_off').data;
  const all = [...iterations].map((iteration, i) => ({iteration, reached: 0, stopped: 0, paused: 0, best: NaN, cutOff: newest[i]}));
  for (let i = 0; i < rung.length; ++i) {
    const one = all[rung[i]];
    ++one.reached;
    if (verdict[i] === 1) ++one.stopped;
    if (verdict[i] === 2) ++one.paused;
    if (value[i] - value[i] === 0 && !(mode === 'max' ? one.best >= value[i] : one.best <= value[i])) one.best = value[i];
  }
  return all;
}

export async function showRungs(main, experiment) {
  let got = null, rungs = [], xs = new Float32Array(0), ys = xs;
  const table = el('div', {class: 'panel scroll'}), bar = el('div', {class: 'bar'});
  const {meta} = experiment;
  const chart = new Chart({title: `${meta.metric} at each rung`, name: 'rungs', height: 420, draw});
  const lineage = meta.descents > 0 ? lineageChart(experiment) : null;
  const isLog = () => state.get('ylog') === '1';

  function draw(painter, box, colours) {
    if (!got || got.columns.get('rung').data.length === 0) return nothing(painter, box, colours, 'no trial has reached a rung yet');
    const rung = got.columns.get('rung').data, value = got.columns.get('value').data;
    const verdict = got.columns.get('verdict').data, cutOff = got.columns.get('cut_off').data;
    const y = (isLog() ? log : linear)(...roomy(isLog() ? extent(value, true) : robustExtent(value), isLog()), box.y + box.height, box.y);
    axisLeft(painter, box, y, colours, meta.metric);
    const wide = box.width / rungs.length;
    if (xs.length !== rung.length) { xs = new Float32Array(rung.length); ys = new Float32Array(rung.length); }
    const table = new Uint32Array(rung.length), alpha = rung.length > 20000 ? 140 : 220;
    const colour = [pixel(colours.dark ? kSky : kBlue, alpha), pixel(kRed, alpha), pixel(kOrange, alpha)];
    for (let i = 0; i < rung.length; ++i) {
      const side = (((i * 2654435761) >>> 0) / 4294967296 - 0.5) * 0.62;
      xs[i] = box.x + (rung[i] + 0.5 + side) * wide;
      ys[i] = y.map(value[i]);
      table[i] = colour[verdict[i]];
    }
    painter.clip(box.x, box.y, box.width, box.height);
    painter.points(box, xs, ys, table, rung.length > 20000 ? 1 : rung.length > 2000 ? 1.6 : 2.6);
    rungs.forEach((one, i) => {
      if (Number.isNaN(one.cutOff)) return;
      const at = y.map(one.cutOff);
      painter.line([box.x + (i + 0.12) * wide, box.x + (i + 0.88) * wide], [at, at], {colour: colours.text, width: 2, dash: [6, 3]});
    });
    painter.unclip();
    rungs.forEach((one, i) => {
      const middle = box.x + (i + 0.5) * wide;
      if (wide > 26 || i % Math.ceil(26 / wide) === 0) painter.text(number(one.iteration), middle, box.y + box.height + 8, {colour: colours.text, align: 'center', baseline: 'top'});
      if (i > 0) painter.line([box.x + i * wide, box.x + i * wide], [box.y, box.y + box.height], {colour: colours.grid});
    });
    painter.text('iteration', box.x + box.width / 2, box.y + box.height + 22, {colour: colours.text, align: 'center', baseline: 'top'});
    chart.note.textContent = cutOff.some((one) => one - one === 0) ? 'dashed: the newest cut-off; it moves as values come' : '';
  }
  function describe(i) {
    const row = got.columns.get('row').data[i], cutOff = got.columns.get('cut_off').data[i];
    return [`trial ${experiment.col('number')[row]}: ${kWords[got.columns.get('verdict').data[i]]}`,
      `${meta.metric} ${number(got.columns.get('value').data[i], 6)}`, ...(cutOff - cutOff === 0 ? [`cut-off ${number(cutOff, 6)}`] : [])];
  }
  chart.onPoint((px, py) => { const i = nearest(xs, ys, px, py); return i < 0 ? null : describe(i); },
      (px, py) => { const i = nearest(xs, ys, px, py); if (i >= 0) openTrial(experiment, got.columns.get('row').data[i]); });
  chart.onDrag(() => {}, () => {});

  async function update() {
    if (!experiment.meta.metric) return main.replaceChildren(el('p', {class: 'faint'}, experiment.meta.objectives.length > 0 ?
      'Several objectives are judged together, by the fronts that trials are on: the part of a trial tells why it was stopped.' : 'The sweep has no metric, so nothing is judged.'));
    await experiment.need(['number', 'status', 'iterations']);
    got = await blob(experiment.address('rungs')) ?? got;
    rungs = got ? summaries(got, experiment.meta.mode) : [];
    bar.replaceChildren(select('y', [['', 'linear'], ['1', 'logarithmic']], state.get('ylog'), (value) => { state.set({ylog: value}); chart.redraw(); }),
        el('span', {class: 'legend'}, ...[[kBlue, kWords[0]], [kRed, kWords[1]], [kOrange, kWords[2]]].map(([colour, words]) =>
          el('span', {}, el('span', {class: 'dot', style: {background: colour}}), words))));
    table.replaceChildren(el('table', {}, el('tr', {}, ...['iteration', 'reached', 'went on', 'stopped', 'paused', `best ${meta.metric}`, 'newest cut-off'].map((name) => el('th', {class: 'number'}, name))),
        ...rungs.map((one) => el('tr', {}, ...[number(one.iteration), number(one.reached), number(one.reached - one.stopped - one.paused), number(one.stopped), number(one.paused),
          Number.isNaN(one.best) ? '' : number(one.best, 6), Number.isNaN(one.cutOff) ? '' : number(one.cutOff, 6)].map((words) => el('td', {class: 'number'}, words))))));
    if (!chart.root.isConnected)
      main.replaceChildren(
          lineage?.chart.root ?? '', bar, chart.root, el('h2', {}, 'Rungs'), table,
          el('p', {class: 'faint'},
             'Why a trial was stopped stands on its own page: choose its point.'));
    chart.redraw();
    await lineage?.update();
  }
  await update();
  return {
    update,
    remove: () => {
      chart.remove();
      lineage?.chart.remove();
    },
    charts: {lineage}
  };
}
