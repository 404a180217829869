// The lineage of population-based training: a line for each trial by its iterations, and an arrow
// to where it went on from another one's checkpoint.
import {axisBottom, Chart, nothing} from '/chart.js';
import {kOrange, viridis} from '/colour.js';
import {json} from '/data.js';
import {openTrial} from '/overview.js';
import {counts, extent, number} from '/scale.js';

const kMostHeight = 900, kLeast = 6;  // pixels; of a trial

export function lineageChart(experiment) {
  let descents = [], rowOf = new Map(), chain = new Set();
  const chart = new Chart({title: 'Lineage', height: 320, draw});
  const column = () => experiment.metricColumn(experiment.primary, 'last');

  // The checkpoints that the best trial comes from: [trial, up to this iteration].
  function chainOf(trial) {
    const found = new Set();
    let until = Infinity;
    for (let guard = 0; guard < 10000; ++guard) {
      const step = descents.filter(([to, at]) => to === trial && at <= until).at(-1);
      if (!step || found.has(step)) return found;
      found.add(step);
      [, , trial, until] = step;
    }
    return found;
  }
  function draw(painter, box, colours) {
    const iterations = experiment.col('iterations'), count = iterations.length;
    if (descents.length === 0)
      return nothing(painter, box, colours, 'no trial has gone on from another one yet');
    const x = counts(0, Math.max(1, extent(iterations)[1]), box.x, box.x + box.width);
    const high = box.height / count, at = (row) => box.y + (row + 0.5) * high;
    const values = experiment.primary >= 0 ? experiment.col(column()) : null,
          [lo, hi] = values ? extent(values) : [0, 1];
    axisBottom(painter, box, x, colours, 'iteration');
    for (let row = 0; row < count; ++row) {
      const share = values && hi > lo ? (values[row] - lo) / (hi - lo) : 0.5;
      const good = experiment.mode === 'max' ? share : 1 - share;
      const colour = good - good === 0 ?
          viridis.texts[Math.round(215 * good) + (colours.dark ? 40 : 0)] :
          colours.line;
      painter.line(
          [x.map(0), x.map(iterations[row])], [at(row), at(row)],
          {colour, width: Math.min(3, Math.max(1, 0.3 * high))});
      if (high >= 12 || row % Math.ceil(12 / high) === 0)
        painter.text(
            String(experiment.col('number')[row]), box.x - 8, at(row),
            {colour: colours.faint, align: 'right'});
    }
    for (const step of descents) {
      const [trial, iteration, from, there] = step, to = rowOf.get(trial), source = rowOf.get(from);
      if (to === undefined || source === undefined) continue;
      const isChain = chain.has(step), colour = isChain ? kOrange : colours.faint;
      painter.line(
          [x.map(there), x.map(iteration)], [at(source), at(to)],
          {colour, width: isChain ? 2.2 : 1, alpha: isChain ? 1 : 0.55});
      painter.circle(x.map(iteration), at(to), isChain ? 3 : 2, {fill: colour});
    }
    chart.note.textContent = `${
        number(
            descents
                .length)} times a trial went on from another one's checkpoint; orange: where the best one comes from`;
    chart.places = {box, high};
  }
  const rowAt = (py) => {
    if (!chart.places) return -1;
    const row = Math.floor((py - chart.places.box.y) / chart.places.high);
    return row >= 0 && row < experiment.trials ? row : -1;
  };
  chart.onPoint(
      (_px, py) => {
        const row = rowAt(py);
        if (row < 0) return null;
        const trial = experiment.col('number')[row], own = descents.filter(([to]) => to === trial);
        return [
          `trial ${trial}`,
          ...own.slice(-8).map(
              ([, at, from, there]) =>
                  `at ${number(at)} from trial ${from}, its iteration ${number(there)}`)
        ];
      },
      (_px, py) => {
        const row = rowAt(py);
        if (row >= 0) openTrial(experiment, row);
      });
  chart.onDrag(() => {}, () => {});
  async function update() {
    await experiment.need(['number', 'iterations', ...(experiment.primary >= 0 ? [column()] : [])]);
    descents = (await json(experiment.address('lineage'))).descents;
    rowOf = new Map([...experiment.col('number')].map((number, row) => [number, row]));
    chain = experiment.meta.best ? chainOf(experiment.meta.best.number) : new Set();
    chart.resize(Math.min(kMostHeight, Math.max(200, 60 + kLeast * 3 * experiment.trials)));
    chart.redraw();
  }
  return {chart, update, descents: () => descents};
}
