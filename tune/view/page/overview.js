// The first look: how far it is, how good, on what.
import {json} from '/data.js';
import {el, button, copy, select} from '/dom.js';
import {kStatus, kStatusColour} from '/colour.js';
import {clock, duration, number, short} from '/scale.js';
import {goalsText} from '/experiments.js';
import {historyChart, historyLegend} from '/history.js';
import {lanesChart} from '/lanes.js';
import {curvesChart} from '/curves.js';
import {importanceChart} from '/importance.js';
import {paretoChart} from '/pareto.js';
import * as state from '/state.js';

const kTop = 10;
const kMostChoices = 500;

export function openTrial(experiment, row) {
  state.go(state.address({page: 'trial', query: {n: String(experiment.col('number')[row])}}));
}

// The rows with the best values, best first.
export function topRows(values, mode, count, mask = null) {
  const top = [], sign = mode === 'max' ? 1 : -1;
  let limit = -Infinity;  // of the last of them, once there are so many
  for (let row = 0; row < values.length; ++row) {
    const value = sign * values[row];
    if (!(value > limit) && top.length === count) continue;
    if (value - value !== 0 || (mask && !mask[row])) continue;
    let at = top.length;
    while (at > 0 && value > sign * values[top[at - 1]]) --at;
    top.splice(at, 0, row);
    if (top.length > count) top.pop();
    if (top.length === count) limit = sign * values[top[count - 1]];
  }
  return top;
}

export function cell(experiment, parameter, row) {
  const column = experiment.col(`p${parameter}`), words = experiment.words(`p${parameter}`);
  if (words) return words[column[row]] ?? '';
  return Number.isNaN(column[row]) ? '' : number(column[row], 5);
}

// Of a sweep with several objectives no trial is the best one.
const hasFront = (experiment) => !experiment.meta.metric && experiment.meta.objectives.length > 0;

function tiles(experiment, front) {
  const {meta} = experiment;
  const tile = (value, label, title = '') => el('div', {class: 'tile', title}, el('b', {}, value), el('span', {}, label));
  const end = meta.state === 'running' ? Date.now() / 1000 : meta.last;
  const best = meta.best;
  return [
    hasFront(experiment) ? tile(front.length ? number(front.length) : '-', `on the Pareto front of ${goalsText(meta)}`) : tile(best ? number(best.value, 6) : '-', best ? `best ${meta.metric} (${meta.mode}), trial ${best.number}` : `no ${meta.metric || 'metric'} yet`),
    tile(number(meta.trials), meta.num_samples > 0 ? `trials (num_samples ${number(meta.num_samples)})` : 'trials'),
    tile(number(meta.results), 'results'),
    tile(meta.first ? duration(end - meta.first) : '-', meta.first ? `since ${clock(meta.first)}` : 'time'),
    tile(meta.searcher || '-', 'searcher'), tile(meta.scheduler || 'none', 'scheduler'),
  ];
}

function statusLine(meta) {
  return el('span', {class: 'legend'}, ...kStatus.map((name, i) => (meta.counts[name]
    ? el('span', {}, el('span', {class: 'dot', style: {background: kStatusColour[i]}}), `${number(meta.counts[name])} ${name}`) : '')));
}

export function configForms(config) {
  if (!config || config.problem) return el('div', {class: 'faint'}, config?.problem ?? '');
  let form = localStorage.getItem('form') ?? 'yaml';
  const text = el('pre', {});
  const buttons = [['yaml', 'YAML'], ['json', 'JSON'], ['cpp', 'C++']].map(([key, label]) => [key, button(label, () => { form = key; localStorage.setItem('form', key); show(); })]);
  const copier = button('Copy', () => copy(config[form], copier));
  function show() {
    text.textContent = config[form];
    for (const [key, one] of buttons) one.className = key === form ? 'here' : '';
  }
  show();
  return el('div', {}, el('div', {class: 'forms'}, ...buttons.map(([, one]) => one), copier), text);
}

// Values are {name, column} of metrics.
function topTable(experiment, rows, values) {
  const {meta} = experiment;
  const shown = meta.parameters.slice(0, 8);
  return el('table', {}, el('tr', {}, el('th', {}, 'trial'), ...values.map(({name}) => el('th', {class: 'number'}, short(name, 24))), el('th', {class: 'number'}, 'iterations'),
      ...shown.map((p) => el('th', {class: 'number'}, short(p.name, 24)))),
  ...rows.map((row) => el('tr', {class: 'link', onclick: () => openTrial(experiment, row)},
      el('td', {}, String(experiment.col('number')[row])), ...values.map(({column}) => el('td', {class: 'number'}, number(experiment.col(column)[row], 6))),
      el('td', {class: 'number'}, String(experiment.col('iterations')[row])),
      ...shown.map((_, p) => el('td', {class: 'number'}, short(cell(experiment, p, row), 30))))));
}

// The configurations of the front, one at a time.
function frontForms(experiment, rows) {
  const numbers = rows.map((row) => experiment.col('number')[row]);
  const forms = el('div', {class: 'faint'}, 'None of these trials is better than another by all objectives: choose one.');
  const choice = select('trial', [['', 'choose ...'], ...numbers.slice(0, kMostChoices).map((trial) => [trial, String(trial)])], state.get('front'), (trial) => { state.set({front: trial}); show(trial); });
  async function show(trial) {
    if (trial === '') return;
    const got = await json(experiment.address(`trial?n=${trial}`));
    forms.className = '';
    forms.replaceChildren(configForms(got.config));
  }
  if (numbers.map(String).includes(state.get('front'))) show(state.get('front'));
  return [el('div', {class: 'bar'}, choice), forms];
}

export async function showOverview(main, experiment) {
  const open = (row) => openTrial(experiment, row);
  const openNumber = (trial) => state.go(state.address({page: 'trial', query: {n: String(trial)}}));
  const head = el('div', {class: 'tiles'}), problems = el('div'), status = el('div', {class: 'bar'});
  const best = el('div', {class: 'panel'}), top = el('div', {class: 'panel wide scroll'}), notices = el('div', {class: 'panel wide'});
  const history = historyChart(experiment, open), lanes = lanesChart(experiment, openNumber), curves = curvesChart(experiment, open);
  const importance = importanceChart(experiment);
  const pareto = hasFront(experiment) ? paretoChart(experiment, open) : null;
  if (!pareto) lanes.chart.root.classList.add('wide');  // else it stands beside another picture
  let seen = '';
  main.replaceChildren(
      problems, head, status,
      el('div', {class: 'grid'}, pareto?.chart.root ?? '', history.chart.root, curves.chart.root,
         best, importance.chart.root, lanes.chart.root, top, notices));
  best.classList.add('best');

  function updateBest(column) {
    const {meta} = experiment;
    if (column) {
      top.replaceChildren(el('h2', {}, 'Best trials'), topTable(experiment, topRows(experiment.col(column), meta.mode, kTop), [{name: meta.metric, column}]));
    } else {
      top.replaceChildren(el('span', {class: 'faint'}, 'No trial has reported the metric yet.'));
    }
    const now = JSON.stringify(meta.best);
    if (now === seen) return;
    seen = now;
    best.replaceChildren(el('h2', {}, 'Best configuration'), meta.best ? configForms(meta.best.config) : el('span', {class: 'faint'}, 'none yet'));
  }
  function updateFront(rows) {
    head.replaceChildren(...tiles(experiment, rows));
    if (rows.length === 0) {
      top.replaceChildren(el('span', {class: 'faint'}, 'No trial has reported all objectives yet.'));
    } else {
      const values = experiment.meta.objectives.map(({metric}) => ({name: metric, column: pareto.column(metric)}));
      top.replaceChildren(el('h2', {}, rows.length > kTop ? `The first ${kTop} of ${number(rows.length)} trials on the Pareto front` : 'Trials on the Pareto front'),
          topTable(experiment, rows.slice(0, kTop), values));
    }
    const now = rows.join();
    if (now === seen) return;
    seen = now;
    best.replaceChildren(el('h2', {}, 'Configurations of the front'), ...(rows.length ? frontForms(experiment, rows) : [el('span', {class: 'faint'}, 'none yet')]));
  }
  async function update() {
    const {meta} = experiment;
    head.replaceChildren(...tiles(experiment, pareto?.rows() ?? []));
    status.replaceChildren(statusLine(meta), historyLegend());
    problems.replaceChildren(...meta.problems.map((text) => el('div', {class: 'problem'}, text)),
        ...(meta.resume ? [el('div', {class: 'problem'}, `This sweep is not over. Go on with: ${meta.resume}`)] : []));
    const names = experiment.primary >= 0 ? [experiment.metricColumn(experiment.primary, 'best'), ...meta.parameters.slice(0, 8).map((_, i) => `p${i}`)] : [];
    const needed = experiment.need(['number', 'status', 'iterations', ...names]);
    await Promise.all([needed, history.update(), lanes.update(), curves.update(), pareto?.update()]);
    importance.update();
    if (hasFront(experiment)) updateFront(pareto?.rows() ?? []);
    else updateBest(names[0]);
    notices.replaceChildren(el('h2', {}, 'Notices'), meta.notices.length === 0 ? el('span', {class: 'faint'}, 'none') :
      el('table', {}, ...meta.notices.slice(-12).reverse().map((one) => el('tr', {}, el('td', {class: 'faint'}, clock(one.time)), el('td', {}, one.event), el('td', {}, one.text)))));
  }
  await update();
  return {
    update,
    remove: () => {
      [history, lanes, curves, ...(pareto ? [pareto] : [])].forEach(({chart}) => chart.remove());
      importance.remove();
    },
    charts: {history, lanes, curves, importance, pareto}
  };
}
