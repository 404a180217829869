// All experiments of the folder, and the best so far of those that are chosen.
import {el, select} from '/dom.js';
import {Experiment, json} from '/data.js';
import {Chart, axisBottom, axisLeft, nothing} from '/chart.js';
import {kind} from '/colour.js';
import {clock, counts, extent, linear, log, number, robustExtent, roomy, short} from '/scale.js';
import {bestSoFar, steps} from '/history.js';
import * as state from '/state.js';

const kMostCompared = 8;
const kShown = 200;

// "loss (min)", or all of several objectives.
export function goalsText({metric, mode, objectives}) {
  const goals = metric ? [{metric, mode}] : objectives ?? [];
  return goals.map((one) => `${one.metric} (${one.mode ?? 'max'})`).join(', ');
}

async function lineOf(key) {
  const experiment = new Experiment(key);
  while (!(await experiment.loadMeta()).is_loaded) await new Promise((resolve) => setTimeout(resolve, 150));
  const index = experiment.primary;
  if (index < 0) return {experiment, best: new Float64Array(0), values: new Float64Array(0)};
  const column = experiment.metricColumn(index, 'best');
  await experiment.need(['number', column]);
  const values = experiment.col(column);
  return {experiment, values, best: bestSoFar([...values.keys()], values, experiment.mode)};
}

export async function showExperiments(main) {
  const lines = new Map();
  const table = el('div', {class: 'panel scroll'}), bar = el('div', {class: 'bar'}), folder = el('span', {class: 'faint'});
  const search = el('input', {class: 'search', type: 'search', placeholder: 'part of a name', value: state.get('q'), 'aria-label': 'Filter', oninput: () => { state.set({q: search.value}); draw(); }});
  const best = new Chart({title: 'Best so far', height: 300, draw: drawBest}), shares = new Chart({title: 'Share of trials up to a value', name: 'edf', height: 300, draw: drawShares});
  const charts = el('div', {class: 'grid'}, best.root, shares.root);
  let list = [], gone = false, at = 0;
  const compared = () => state.get('compare').split(',').filter((key) => list.some((one) => one.key === key)).slice(0, kMostCompared);

  function shownLines() { return compared().map((key, i) => ({...lines.get(key), colour: kind(i)})).filter((one) => one.best?.length); }
  function legend(painter, box, colours, all) {
    all.forEach(({experiment, colour}, i) => {
      painter.rect(box.x + box.width - 190, box.y + 4 + i * 15, 10, 10, {fill: colour});
      painter.text(short(experiment.meta.name, 30), box.x + box.width - 176, box.y + 9 + i * 15, {colour: colours.text, halo: colours.paper});
    });
  }
  function drawBest(painter, box, colours) {
    const all = shownLines();
    if (all.length === 0) return nothing(painter, box, colours, 'choose experiments in the list to compare them');
    const isLog = state.get('ylog') === '1', joined = Float64Array.from(all.flatMap(({best: one}) => [...one]));
    const y = (isLog ? log : linear)(...roomy(isLog ? extent(joined, true) : robustExtent(joined), isLog), box.y + box.height, box.y);
    const x = counts(0, Math.max(1, ...all.map(({best: one}) => one.length - 1)), box.x, box.x + box.width);
    axisLeft(painter, box, y, colours, [...new Set(all.map(({experiment}) => experiment.metric))].join(', '));
    axisBottom(painter, box, x, colours, 'trial');
    painter.clip(box.x, box.y, box.width, box.height);
    for (const {best: one, colour} of all) {
      const [xs, ys] = steps([...one.keys()], one);
      painter.line(xs.map(x.map), ys.map(y.map), {colour, width: 2});
    }
    painter.unclip();
    legend(painter, box, colours, all);
  }
  function drawShares(painter, box, colours) {
    const all = shownLines();
    if (all.length === 0) return nothing(painter, box, colours, '');
    const sorted = all.map((one) => ({...one, sorted: Float64Array.from(one.values.filter((v) => v - v === 0)).sort()})).filter((one) => one.sorted.length);
    if (sorted.length === 0) return nothing(painter, box, colours, 'no values yet');
    const joined = Float64Array.from(sorted.flatMap((one) => [...one.sorted]));
    const x = linear(...robustExtent(joined), box.x, box.x + box.width), y = linear(0, 1, box.y + box.height, box.y);
    axisLeft(painter, box, y, colours, 'share of trials');
    axisBottom(painter, box, x, colours, [...new Set(all.map(({experiment}) => experiment.metric))].join(', '));
    painter.clip(box.x, box.y, box.width, box.height);
    for (const {sorted: one, colour} of sorted) {
      const every = Math.max(1, Math.floor(one.length / 2000)), xs = [], ys = [];
      for (let i = 0; i < one.length; i += every) { xs.push(x.map(one[i])); ys.push(y.map((i + 1) / one.length)); }
      painter.line(xs, ys, {colour, width: 2});
    }
    painter.unclip();
  }
  function row(one, i) {
    const keys = compared(), place = keys.indexOf(one.key);
    const box = el('input', {type: 'checkbox', checked: place >= 0, disabled: one.problem !== '' || (place < 0 && keys.length >= kMostCompared), 'aria-label': `compare ${one.name}`,
      onclick: (event) => event.stopPropagation(), onchange: async () => { state.set({compare: (box.checked ? [...keys, one.key] : keys.filter((key) => key !== one.key)).join(',')}); draw(); await load(); }});
    const line = lines.get(one.key);
    return el('tr', {class: `${one.problem ? '' : 'link'}${i === at ? ' chosen' : ''}`, onclick: () => { if (!one.problem) state.go(`#/${one.key}/overview`); }},
        el('td', {}, place >= 0 ? el('span', {class: 'dot', style: {background: kind(place)}}) : '', box),
        el('td', {}, one.problem ? one.folder : el('a', {href: `#/${one.key}/overview`}, one.name), one.problem ? el('div', {class: 'problem'}, one.problem) : ''),
        el('td', {}, el('span', {class: `state ${one.state.replace(' ', '-')}`}, one.state)), el('td', {}, goalsText(one)),
        el('td', {class: 'number'}, one.metric && line?.best?.length ? number(line.best[line.best.length - 1], 6) : ''), el('td', {class: 'number'}, line?.experiment ? number(line.experiment.meta.trials) : ''),
        el('td', {}, one.searcher), el('td', {}, one.scheduler), el('td', {}, clock(one.changed)));
  }
  const matching = () => list.filter((one) => `${one.name} ${one.folder} ${one.trainable}`.toLowerCase().includes(state.get('q').toLowerCase()));
  function draw() {
    const found = matching();
    table.replaceChildren(el('table', {}, el('tr', {}, ...['', 'experiment', 'state', 'metric', 'best', 'trials', 'searcher', 'scheduler', 'changed'].map((name) =>
      el('th', {class: name === 'best' || name === 'trials' ? 'number' : ''}, name))),
        ...found.slice(0, kShown).map(row)), found.length > kShown ? el('p', {class: 'faint'}, `${found.length - kShown} more: filter by name`) : '');
    best.redraw();
    shares.redraw();
  }
  // The newest are read as well, so that the list tells their best.
  async function load() {
    for (const key of new Set([...compared(), ...list.filter((one) => !one.problem).slice(0, 8).map((one) => one.key)])) {
      if (gone) return;
      if (lines.has(key)) continue;
      try { lines.set(key, await lineOf(key)); } catch { lines.set(key, {}); }
      if (!gone) draw();
    }
  }
  async function update() {
    const got = await json('/api/experiments');
    list = got.experiments;
    folder.textContent = got.folder;
    if (got.one && list.length === 1 && !update.went) { update.went = true; if (!state.state.query.has('list')) return state.go(`#/${list[0].key}/overview`); }
    for (const one of list) if (one.state === 'running') lines.delete(one.key);
    draw();
    if (!update.loading) { update.loading = load().finally(() => { update.loading = null; }); }
  }
  bar.replaceChildren(search, select('y', [['', 'linear'], ['1', 'logarithmic']], state.get('ylog'), (value) => { state.set({ylog: value}); draw(); }), folder);
  main.replaceChildren(bar, table, el('h2', {}, 'Compare'), charts);
  await update();
  // The list is looked at now and then; its experiments tell of themselves only while somebody asks.
  const timer = setInterval(() => { if (!document.hidden) update().catch(() => {}); }, 5000);
  return {update, remove: () => { gone = true; clearInterval(timer); best.remove(); shares.remove(); }, key: (event) => {
    const found = matching().filter((one) => !one.problem);
    if (event.key === 'j') { at = Math.min(found.length - 1, at + 1); draw(); }
    else if (event.key === 'k') { at = Math.max(0, at - 1); draw(); }
    else if (event.key === 'Enter' && found[at]) state.go(`#/${found[at].key}/overview`);
  }};
}
