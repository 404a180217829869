// Curves of the best trials, with a sample of all others faint behind them.
import {Chart, axisBottom, axisLeft, nothing} from '/chart.js';
import {blob} from '/data.js';
import {viridis} from '/colour.js';
import {counts, extent, linear, log, number, robustExtent, roomy} from '/scale.js';
import * as state from '/state.js';

export function curvesChart(experiment, open) {
  let got = null;
  const chart = new Chart({title: 'Curves of the best', height: 300, draw});
  async function update() {
    const metric = Math.max(0, experiment.metricIndex(state.get('m', experiment.metric)));
    if (experiment.meta.metrics.length > 0) {
      got = await blob(experiment.address(`curves?m=${metric}&best=20&sample=150`)) ?? got;
    }
    chart.redraw();
  }
  const slice = (i) => [i === 0 ? 0 : got.columns.get('end').data[i - 1], got.columns.get('end').data[i]];
  function draw(painter, box, colours) {
    const iteration = got?.columns.get('iteration')?.data, value = got?.columns.get('value')?.data;
    if (!value?.length) return nothing(painter, box, colours, 'no curves yet');
    const isLog = state.get('ylog') === '1';
    const x = counts(...roomy(extent(iteration), false, 0.012), box.x, box.x + box.width);
    const y = (isLog ? log : linear)(...roomy(isLog ? extent(value, true) : robustExtent(value), isLog), box.y + box.height, box.y);
    axisLeft(painter, box, y, colours, state.get('m', experiment.metric));
    axisBottom(painter, box, x, colours, 'iteration');
    painter.clip(box.x, box.y, box.width, box.height);
    const rows = got.columns.get('row').data;
    for (let i = rows.length - 1; i >= 0; --i) {
      const [from, to] = slice(i), xs = [], ys = [];
      for (let k = from; k < to; ++k) { xs.push(x.map(iteration[k])); ys.push(y.map(value[k])); }
      const isBest = i < Math.min(20, rows.length);
      const colour = isBest ? viridis.texts[Math.round((colours.dark ? 255 : 215) - (i / 20) * 150)] : colours.line;
      if (to - from === 1) painter.circle(xs[0], ys[0], 2, {fill: colour, alpha: isBest ? 1 : 0.35});
      else painter.line(xs, ys, {colour: i === 0 ? (colours.dark ? '#ffb03b' : '#d55e00') : colour, width: i === 0 ? 2.5 : isBest ? 1.4 : 1, alpha: isBest ? 1 : 0.28});
    }
    painter.unclip();
    chart.places = {x, y};
  }
  function under(px, py) {
    if (!got || !chart.places) return null;
    const iteration = got.columns.get('iteration')?.data, value = got.columns.get('value')?.data;
    let best = null, least = 144;
    for (let i = 0; i < (got.columns.get('row')?.data.length ?? 0); ++i) {
      const [from, to] = slice(i);
      for (let k = from; k < to; ++k) {
        const dx = chart.places.x.map(iteration[k]) - px, dy = chart.places.y.map(value[k]) - py;
        if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = {row: got.columns.get('row').data[i], iteration: iteration[k], value: value[k]}; }
      }
    }
    return best;
  }
  chart.onPoint((px, py) => {
    const found = under(px, py);
    return found && [`trial ${experiment.col('number')[found.row]}`, `iteration ${found.iteration}: ${number(found.value, 6)}`];
  }, (px, py) => { const found = under(px, py); if (found) open(found.row); });
  chart.onDrag(() => {}, () => {});
  return {chart, update};
}
