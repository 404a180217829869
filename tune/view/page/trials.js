// All trials as a table, sorted and filtered.
import {el, button, check, save, select} from '/dom.js';
import {kStatus, kStatusColour} from '/colour.js';
import {clock, duration, number} from '/scale.js';
import {csv, jsonLines} from '/export.js';
import {keptOf, orderOf, ranksOf} from '/order.js';
import {openTrial} from '/overview.js';
import {RowTable} from '/table.js';
import {saying, tableButtons} from '/control.js';
import * as state from '/state.js';

const kMostColumns = 120;

function columnsOf(experiment, by) {
  const {meta} = experiment;
  return [
    {name: 'trial', column: 'number', width: 80}, {name: 'status', column: 'status', width: 136, show: (v) => kStatus[v]},
    ...(experiment.primary >= 0 ? [{name: experiment.metric, column: experiment.metricColumn(experiment.primary, by), width: 110}] : []),
    {name: 'iterations', column: 'iterations', width: 98},
    ...meta.parameters.map((p, i) => ({name: p.name, column: `p${i}`, width: 110, parameter: true})),
    ...meta.metrics.map((name, i) => ({name, column: experiment.metricColumn(i, by), width: 110})).filter(({name}, i) => i !== experiment.primary && name !== 'timestamp'),
    {name: 'started', column: 'started', width: 160, show: (v) => clock(v)}, {name: 'lasted', column: 'ended', width: 90, show: (v, row) => duration(v - experiment.col('started')[row])},
    {name: 'attempts', column: 'attempts', width: 80}, {name: 'failures', column: 'failures', width: 76},
  ].slice(0, kMostColumns);
}

// "lr < 0.1", "optimiser = adam", "trial 12" or any part of a word.
export function parseCondition(text, columns) {
  const match = /^(.+?)\s*(<=|>=|!=|=|<|>)\s*(.*)$/.exec(text.trim());
  if (!match) return null;
  const column = columns.find((one) => one.name === match[1]) ?? columns.find((one) => one.name.toLowerCase() === match[1].toLowerCase());
  return column ? {column, sign: match[2], value: match[3].replace(/^(["'])(.*)\1$/, '$2')} : {unknown: match[1]};
}

export async function showTrials(main, experiment) {
  let columns = [], order = new Uint32Array(0), chosen = 0, note = '', soon = null;
  const count = el('span', {class: 'faint'}), head = el('div', {class: 'vhead', role: 'row'});
  const table = new RowTable({head, texts: (index, one) => String(shown(one, order[index])), open: (index) => openTrial(experiment, order[index]),
    looks: (index) => ({chosen: index === chosen, colour: kStatusColour[experiment.col('status')[order[index]]]})});
  const search = el('input', {class: 'search', type: 'search', size: 38, placeholder: 'lr < 0.1, optimiser = adam; or a number', value: state.get('q'), 'aria-label': 'Filter', oninput: () => { state.set({q: search.value}); soon ??= requestAnimationFrame(arrange); }});
  const bar = el('div', {class: 'bar'}), orders = el('div', {class: 'bar orders'}), said = saying();
  main.replaceChildren(bar, orders, table.root);

  const value = (one, row) => {
    const words = experiment.words(one.column), data = experiment.col(one.column)[row];
    if (words) return words[data] ?? null;
    return one.column === 'status' ? kStatus[data] : data;
  };
  const shown = (one, row) => {
    const words = experiment.words(one.column), data = experiment.col(one.column)[row];
    if (words) return words[data] ?? '';
    if (one.show) return one.show(data, row);
    return one.parameter && Number.isNaN(data) ? '' : number(data, 6);
  };
  function drawBar() {
    bar.replaceChildren(search,
        check('hide stopped', state.get('hide') === '1', (on) => { state.set({hide: on ? '1' : ''}); arrange(); }),
        select('value', [['best', 'best'], ['last', 'last']], state.get('by', 'best'), async (by) => { state.set({by}); await update(); }),
        ...(state.get('f') ? [button('Remove the search page\'s filters', () => { state.set({f: ''}); drawBar(); arrange(); })] : []),
        button('CSV', () => exportAs('csv'), 'What is shown, as CSV'), button('JSON', () => exportAs('json'), 'What is shown, as JSON lines'), count);
  }
  let drawnState = '';
  function drawOrders() {
    if (drawnState === experiment.meta.state) return;
    drawnState = experiment.meta.state;
    const rows = () => Array.from(order, (row) => ({number: experiment.col('number')[row], status: kStatus[experiment.col('status')[row]]}));
    orders.replaceChildren(...tableButtons(experiment, rows, said));
  }
  function exportAs(kind) {
    const names = columns.map((one) => (one.parameter ? `config/${one.name}` : one.name));
    const rows = Array.from(order, (row) => columns.map((one) => value(one, row)));
    const text = kind === 'csv' ? csv(names, rows) : jsonLines(names, rows);
    save(`${experiment.meta.folder.replace(/[^\w.-]+/g, '_')}.${kind === 'csv' ? 'csv' : 'jsonl'}`, new Blob([text], {type: kind === 'csv' ? 'text/csv' : 'application/json'}));
  }
  // The rows that are kept, in their order.
  function arrange() {
    cancelAnimationFrame(soon);
    soon = null;
    const mask = state.maskOf(experiment, state.filters(), state.get('hide') === '1');
    note = '';
    const text = state.get('q').trim();
    if (/^\d+$/.test(text)) {
      keepNumber(mask, Number(text));
    } else {
      const parts = text.split(',').map((one) => one.trim()).filter(Boolean);
      for (const kept of parts.map(keptBy)) for (let i = 0; kept && i < mask.length; ++i) mask[i] &= kept[i];
    }
    order = keptOf(sort(), mask);
    chosen = Math.min(chosen, Math.max(0, order.length - 1));
    count.textContent = `${number(order.length)} of ${number(mask.length)} trials${note}`;
    drawHead();
    drawRows();
  }
  function keepNumber(mask, wanted) {
    const numbers = experiment.col('number');
    for (let i = 0; i < mask.length; ++i) if (numbers[i] !== wanted) mask[i] = 0;
  }
  // The rows that a condition keeps; null: it is not one yet. Those before it stay while the last is typed.
  let known = new Map(), knownOf = '';
  function keptBy(text) {
    const now = `${experiment.version} ${experiment.trials} ${columns.map(({column}) => column)}`;
    if (now !== knownOf || known.size > 32) known = new Map();
    knownOf = now;
    if (!known.has(text)) known.set(text, conditionOf(text));
    const {kept, unknown} = known.get(text);
    if (unknown) note = `; there is no column ${unknown}`;
    return kept;
  }
  function conditionOf(text) {
    const found = parseCondition(text, columns);
    if (found?.unknown) return {kept: null, unknown: found.unknown};
    const kept = new Uint8Array(experiment.trials);
    if (!found) return {kept: keepWords(kept, text.toLowerCase())};
    const {column, sign, value: wanted} = found, words = wordsOf(column), data = experiment.col(column.column);
    const limit = words ? wanted : Number(wanted);
    const keeps = {'<': (a) => a < limit, '>': (a) => a > limit, '<=': (a) => a <= limit, '>=': (a) => a >= limit, '=': (a) => a === limit, '!=': (a) => a !== limit}[sign];
    const isKept = words?.map(keeps), hasNone = keeps(null);
    for (let i = 0; i < kept.length; ++i) kept[i] = (words ? isKept[data[i]] ?? hasNone : keeps(data[i])) ? 1 : 0;
    return {kept};
  }
  // Any part of any word of a row.
  function keepWords(found, wanted) {
    for (const column of columns) {
      const has = wordsOf(column)?.map((word) => word.toLowerCase().includes(wanted)), data = experiment.col(column.column);
      if (has?.includes(true)) for (let i = 0; i < found.length; ++i) if (has[data[i]]) found[i] = 1;
    }
    return found;
  }
  const isNumber = ({column}) => !experiment.words(column) && column !== 'status';
  const wordsOf = ({column}) => (column === 'status' ? kStatus : experiment.words(column));
  // All rows in the chosen order, which stays while a filter changes.
  let sorted = {key: null};
  function sort() {
    const by = columns.find((one) => one.column === state.get('sort')) ?? columns[0], down = state.get('down') === '1';
    const key = `${experiment.version} ${experiment.trials} ${by.column} ${down}`;
    if (sorted.key !== key) sorted = {key, rows: orderOf(keysOf(by), down)};
    return sorted.rows;
  }
  function keysOf(by) {
    const data = experiment.col(by.column), words = experiment.words(by.column), keys = Float64Array.from(data);
    if (words) {
      const ranks = ranksOf(words);
      for (let i = 0; i < keys.length; ++i) keys[i] = ranks[data[i]] ?? NaN;
    } else if (by.name === 'lasted') {
      const started = experiment.col('started');
      for (let i = 0; i < keys.length; ++i) keys[i] -= started[i];
    }
    return keys;
  }
  let drawnHead = '';
  function drawHead() {
    const sorted = state.get('sort', 'number'), mark = state.get('down') === '1' ? ' ▼' : ' ▲';
    const now = JSON.stringify([sorted, mark, columns.map((one) => [one.name, isNumber(one)])]);
    if (drawnHead === now) return;
    drawnHead = now;
    head.replaceChildren(...columns.map((one) => el('div', {class: `vcell${isNumber(one) ? ' number' : ''}`, role: 'columnheader', title: one.name, style: {width: `${one.width}px`},
      onclick: () => { state.set({down: sorted === one.column && state.get('down') !== '1' ? '1' : '', sort: one.column}); arrange(); }}, one.name + (sorted === one.column ? mark : ''))));
  }
  function drawRows() {
    table.show(columns.map((one) => ({...one, isNumber: isNumber(one), isWord: Boolean(experiment.words(one.column)), hasDot: one.column === 'status'})), order.length);
  }
  async function update() {
    columns = columnsOf(experiment, state.get('by', 'best'));
    const filtered = Object.keys(state.filters()).filter((name) => experiment.isThere(name));
    await experiment.need(['number', 'status', 'iterations', ...columns.map((one) => one.column), ...filtered]);
    if (!bar.contains(search)) drawBar();
    drawOrders();
    arrange();
  }
  function move(step) {
    chosen = Math.min(order.length - 1, Math.max(0, chosen + step));
    table.reveal(chosen);
    drawRows();
  }
  await update();
  return {update, remove: () => { cancelAnimationFrame(soon); table.remove(); }, key: (event) => {
    if (event.key === 'j' || event.key === 'ArrowDown') { event.preventDefault(); move(1); }
    else if (event.key === 'k' || event.key === 'ArrowUp') { event.preventDefault(); move(-1); }
    else if (event.key === 'Enter' && order.length) openTrial(experiment, order[chosen]);
    else if (event.key === 'Escape') { state.set({q: '', f: '', hide: ''}); search.value = ''; drawBar(); arrange(); }
  }};
}
