// What one trial used of processors, memory and GPUs, by time; an attempt's line ends with it.
import {el} from '/dom.js';
import {blob} from '/data.js';
import {Chart, axisBottom, axisLeft, nothing} from '/chart.js';
import {kind} from '/colour.js';
import {clock, extent, linear, number, times} from '/scale.js';

const kGiB = 2 ** 30;

// [{name, unit, series: [{name, data}], most}]: what there is to draw; `most`: the least that the axis goes to.
function pictures({header, columns}) {
  const data = (name, factor = 1) => Float64Array.from(columns.get(name).data, (value) => value * factor);
  const all = [{title: 'CPU', unit: 'cores', series: [{name: 'CPU', data: data('cpus')}], most: 1},
    {title: 'Memory', unit: 'GiB', series: [{name: 'memory', data: data('memory_bytes', 1 / kGiB)}], most: 0}];
  if (header.gpus.length > 0) {
    all.push({title: 'GPU', unit: '% busy', series: header.gpus.map((gpu) => ({name: `GPU ${gpu}`, data: data(`busy ${gpu}`, 100)})), most: 100},
        {title: 'GPU memory', unit: 'GiB', series: header.gpus.map((gpu) => ({name: `GPU ${gpu}`, data: data(`memory ${gpu}`, 1 / kGiB)})), most: 0});
  }
  return all;
}

// Lines of one attempt each; a point alone is a dot.
function drawSeries(painter, x, y, times, attempts, data, colour) {
  let xs = [], ys = [];
  const end = () => {
    if (xs.length === 1) painter.circle(xs[0], ys[0], 2.5, {fill: colour});
    else if (xs.length > 1) painter.line(xs, ys, {colour, width: 1.6});
    xs = []; ys = [];
  };
  for (let i = 0; i < times.length; ++i) {
    if (i > 0 && attempts[i] !== attempts[i - 1]) end();
    if (data[i] - data[i] !== 0) { end(); continue; }
    xs.push(x.map(times[i])); ys.push(y.map(data[i]));
  }
  end();
}

function usageChart(of, measured) {
  const chart = new Chart({title: of().title, name: `usage-${of().title.toLowerCase().replace(' ', '-')}`, height: 170, draw});
  function draw(painter, box, colours) {
    const {unit, series, most} = of(), {time, attempt} = measured();
    if (time.length === 0) return nothing(painter, box, colours, 'nothing was measured yet');
    const top = Math.max(most, ...series.map(({data}) => extent(data)[1])) * 1.06;
    const x = times(...extent(time), box.x, box.x + box.width);
    const y = linear(0, top, box.y + box.height, box.y);
    axisLeft(painter, box, y, colours, unit);
    axisBottom(painter, box, x, colours);
    painter.clip(box.x, box.y, box.width, box.height);
    series.forEach(({data}, i) => drawSeries(painter, x, y, time, attempt, data, kind(i)));
    painter.unclip();
    if (series.length > 1) series.slice(0, 8).forEach(({name}, i) => {
      painter.rect(box.x + box.width - 62, box.y + 4 + i * 15, 10, 10, {fill: kind(i)});
      painter.text(name, box.x + box.width - 48, box.y + 9 + i * 15, {colour: colours.text});
    });
    chart.x = x;
  }
  chart.onPoint((px) => {
    const {time} = measured();
    if (!chart.x || time.length === 0) return null;
    let best = 0;
    for (let i = 1; i < time.length; ++i) if (Math.abs(chart.x.map(time[i]) - px) < Math.abs(chart.x.map(time[best]) - px)) best = i;
    return [clock(time[best]), ...of().series.map(({name, data}) => `${name}: ${number(data[best], 3)} ${of().unit}`)];
  });
  chart.onDrag(() => {}, () => {});
  return chart;
}

// A row of pictures, which is empty where nothing was ever measured.
export function usageView(experiment, trial) {
  const root = el('div', {class: 'grid wide usage'});
  let got = null, shown = [], charts = [];
  async function update() {
    got = await blob(experiment.address(`usage?n=${trial}`)) ?? got;
    if (!got || got.columns.get('time').data.length === 0) return;
    shown = pictures(got);
    if (charts.length !== shown.length) {
      charts.forEach((chart) => chart.remove());
      const measured = () => ({time: got.columns.get('time').data, attempt: got.columns.get('attempt').data});
      charts = shown.map((_, i) => usageChart(() => shown[i], measured));
      root.replaceChildren(...charts.map((chart) => chart.root));
    }
    charts.forEach((chart) => chart.redraw());
  }
  return {root, update, remove: () => charts.forEach((chart) => chart.remove())};
}
