// The searched space and where it is good: parallel coordinates, slices and a heat map, linked.
import {el, button, check, select} from '/dom.js';
import {openTrial, topRows} from '/overview.js';
import {parallelChart} from '/parallel.js';
import {brushSlice, heatChart, sliceChart} from '/slices.js';
import {short} from '/scale.js';
import * as state from '/state.js';

const kMostAxes = 12;
const kMostSlices = 24;

// Parameters with more than one value; many words are names, not kinds.
function searched(experiment) {
  const found = [];
  for (const axis of experiment.axes().filter((one) => one.kind === 'parameter')) {
    const data = experiment.col(axis.column);
    let first = NaN, differs = false;
    for (let i = 0; i < data.length && !differs; ++i) {
      if (Number.isNaN(data[i]) || data[i] === 0xffffffff) continue;
      if (Number.isNaN(first)) first = data[i];
      else differs = data[i] !== first;
    }
    if (differs && (experiment.words(axis.column)?.length ?? 0) <= 200) found.push(axis);
  }
  return found;
}

export async function showSearch(main, experiment) {
  const open = (row) => openTrial(experiment, row);
  const bar = el('div', {class: 'bar'}), sliceBox = el('div', {class: 'grid small wide'});
  const heatBar = el('div', {class: 'bar'}), scatterBar = el('div', {class: 'bar'}), scatterBox = el('div', {class: 'wide'}, scatterBar);
  let wanted = state.filters(), mask = null, maskKey = '', parameters = [], slices = new Map(), scatter = null;

  const metric = () => {
    const index = Math.max(0, experiment.metricIndex(state.get('m', experiment.metric)));
    return {index, name: experiment.meta.metrics[index] ?? '', column: experiment.metricColumn(index, state.get('by', 'best'))};
  };
  const keptMask = () => {
    const key = `${JSON.stringify(wanted)} ${experiment.version} ${state.get('hide')}`;
    if (key !== maskKey) { mask = state.maskOf(experiment, wanted, state.get('hide') === '1', mask); maskKey = key; }
    return mask;
  };
  const common = {metric, mask: keptMask, open, ylog: () => state.get('ylog') === '1'};
  const setFilters = (next, done) => {
    wanted = next;
    if (done) { state.setFilters(next); drawBar(); }
    redraw();
  };
  const parallel = parallelChart(experiment, {
    axes: () => [...parameters.slice(0, kMostAxes), {name: metric().name, column: metric().column, log: state.get('ylog') === '1'}],
    mask: keptMask, filters: () => wanted, onFilters: setFilters,
    best: (kept, count) => topRows(experiment.col(metric().column), experiment.modeOf(metric().index), count, kept)});
  const heat = heatChart(experiment, {...common, mode: () => experiment.modeOf(metric().index),
    axes: () => ['hx', 'hy'].map((name, i) => anyAxis(state.get(name)) ?? parameters[i])});

  // Everything that a picture of two can have on an axis, by column.
  const everything = () => [...experiment.axes(), ...experiment.metricAxes(state.get('by', 'best'))];
  const anyAxis = (column) => everything().find((one) => one.column === column);
  const scatterAxis = () => anyAxis(state.get('sx')) ?? experiment.axes().find((one) => one.column === 'iterations');
  const scatterMetric = () => { const axis = anyAxis(state.get('sy')) ?? metric(); return {name: axis.name, column: axis.column}; };

  function drawBar() {
    const change = (name) => async (value) => { state.set({[name]: value}); await update(); };
    bar.replaceChildren(
        select('metric', experiment.meta.metrics.map((name) => [name, name]), metric().name, change('m')),
        select('value', [['best', 'best'], ['last', 'last']], state.get('by', 'best'), change('by')),
        select('y', [['', 'linear'], ['1', 'logarithmic']], state.get('ylog'), change('ylog')),
        check('hide stopped', state.get('hide') === '1', (on) => { state.set({hide: on ? '1' : ''}); redraw(); }),
        ...(Object.keys(wanted).length ? [button('Remove filters', () => setFilters({}, true)),
          el('a', {href: state.address({page: 'trials', query: {f: state.get('f')}})}, 'these trials')] : []));
    const pick = (name, label, chosen, axes = everything()) => select(label, axes.map((one) => [one.column, short(one.name, 30)]), state.get(name, chosen), change(name));
    heatBar.replaceChildren(pick('hx', 'x', parameters[0]?.column), pick('hy', 'y', parameters[1]?.column));
    scatterBar.replaceChildren(pick('sx', 'x', 'iterations'), pick('sy', 'y', metric().column, everything().filter(({words}) => !words)));
  }
  function redraw() {
    parallel.chart.redraw();
    heat.redraw();
    scatter?.redraw();
    for (const chart of slices.values()) chart.redraw();
  }
  // Any two, point by point; a range of x is a filter.
  function drawScatter() {
    const axis = scatterAxis();
    if (scatter?.axis === axis.column) return;
    scatter?.remove();
    scatter?.root.remove();
    scatter = sliceChart(experiment, axis, {...common, metric: scatterMetric}, {title: 'Any two', name: 'scatter', height: 300});
    scatter.axis = axis.column;
    brushSlice(scatter, experiment, axis, (range) => brushed(axis, range));
    scatterBox.append(scatter.root);
  }
  function brushed(axis, range) {
    const next = {...wanted};
    if (range) next[axis.column] = range;
    else delete next[axis.column];
    setFilters(next, true);
  }
  function drawSlices() {
    const names = parameters.slice(0, kMostSlices).map((one) => one.column);
    if (sliceBox.firstChild && names.join() === [...slices.keys()].join()) return;
    for (const chart of slices.values()) chart.remove();
    slices = new Map(parameters.slice(0, kMostSlices).map((axis) => {
      const chart = sliceChart(experiment, axis, common);
      brushSlice(chart, experiment, axis, (range) => brushed(axis, range));
      return [axis.column, chart];
    }));
    sliceBox.replaceChildren(el('div', {class: 'large'}, heatBar, heat.root), ...[...slices.values()].map((chart) => chart.root));
  }
  async function update() {
    if (experiment.meta.metrics.length === 0) return main.replaceChildren(el('p', {class: 'faint'}, 'No results yet.'));
    const all = experiment.meta.parameters.slice(0, 64).map((_, i) => `p${i}`);
    const asked = ['hx', 'hy', 'sx', 'sy'].map((name) => state.get(name)).filter(anyAxis);
    const chosen = [...Object.keys(wanted), ...asked].filter((name) => experiment.isThere(name));
    await experiment.need(['number', 'status', 'iterations', metric().column, ...all, ...chosen]);
    parameters = searched(experiment).slice(0, 64);
    if (!parallel.chart.root.isConnected) main.replaceChildren(bar, el('div', {class: 'grid'}, el('div', {class: 'wide'}, parallel.chart.root), sliceBox, scatterBox));
    drawBar();
    drawSlices();
    drawScatter();
    redraw();
  }
  await update();
  return {update, parallel, redraw, remove: () => { parallel.chart.remove(); heat.remove(); scatter?.remove(); for (const chart of slices.values()) chart.remove(); },
    key: (event) => { if (event.key === 'Escape') setFilters({}, true); }};
}
