// All trials as a table that makes only the rows in sight: a hundred thousand scroll like a hundred.
import {el, button, check, save, select} from '/dom.js';
import {kStatus, kStatusColour} from '/colour.js';
import {clock, duration, number} from '/scale.js';
import {csv, jsonLines} from '/export.js';
import {openTrial} from '/overview.js';
import {saying, tableButtons} from '/control.js';
import * as state from '/state.js';

const kRow = 24;
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
  let columns = [], order = new Uint32Array(0), chosen = 0, note = '';
  const count = el('span', {class: 'faint'}), head = el('div', {class: 'vhead', role: 'row'}), space = el('div', {class: 'space'});
  const box = el('div', {class: 'vtable', tabIndex: 0, role: 'table', 'aria-label': 'Trials'}, head, space);
  const search = el('input', {class: 'search', type: 'search', size: 34, placeholder: 'lr < 0.1, optimiser = adam; or a number', value: state.get('q'), 'aria-label': 'Filter', oninput: () => { state.set({q: search.value}); arrange(); }});
  const bar = el('div', {class: 'bar'}), orders = el('div', {class: 'bar orders'}), said = saying();
  main.replaceChildren(bar, orders, box);
  box.addEventListener('scroll', () => drawRows());
  const observer = new ResizeObserver(() => drawRows());
  observer.observe(box);

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
    const mask = state.maskOf(experiment, state.filters(), state.get('hide') === '1');
    note = '';
    const text = state.get('q').trim();
    if (/^\d+$/.test(text)) {
      keepNumber(mask, Number(text));
    } else {
      for (const part of text.split(',').map((one) => one.trim()).filter(Boolean)) keepCondition(mask, part);
    }
    const rows = [];
    for (let i = 0; i < mask.length; ++i) if (mask[i]) rows.push(i);
    sort(rows);
    order = Uint32Array.from(rows);
    chosen = Math.min(chosen, Math.max(0, order.length - 1));
    space.style.height = `${order.length * kRow}px`;
    count.textContent = `${number(order.length)} of ${number(mask.length)} trials${note}`;
    drawHead();
    drawRows(true);
  }
  function keepNumber(mask, wanted) {
    const numbers = experiment.col('number');
    for (let i = 0; i < mask.length; ++i) if (numbers[i] !== wanted) mask[i] = 0;
  }
  function keepCondition(mask, text) {
    const found = parseCondition(text, columns);
    if (found?.unknown) { note = `; there is no column ${found.unknown}`; return; }
    if (!found) {
      const wanted = text.toLowerCase();
      for (let i = 0; i < mask.length; ++i) {
        if (mask[i] && !columns.some((one) => (experiment.words(one.column) || one.column === 'status') && String(value(one, i) ?? '').toLowerCase().includes(wanted))) mask[i] = 0;
      }
      return;
    }
    const {column, sign, value: wanted} = found, isWord = experiment.words(column.column) || column.column === 'status';
    const limit = isWord ? wanted : Number(wanted);
    const keeps = {'<': (a) => a < limit, '>': (a) => a > limit, '<=': (a) => a <= limit, '>=': (a) => a >= limit, '=': (a) => a === limit, '!=': (a) => a !== limit}[sign];
    for (let i = 0; i < mask.length; ++i) if (mask[i] && !keeps(value(column, i))) mask[i] = 0;
  }
  function sort(rows) {
    const by = columns.find((one) => one.column === state.get('sort')), down = state.get('down') === '1';
    if (!by) return down ? rows.reverse() : rows;
    const data = experiment.col(by.column), words = experiment.words(by.column);
    const rank = words ? words.map((word, i) => [word, i]).sort((a, b) => a[0].localeCompare(b[0], 'en', {numeric: true})).reduce((ranks, [, i], at) => { ranks[i] = at; return ranks; }, []) : null;
    const key = rank ? (row) => rank[data[row]] ?? NaN : by.name === 'lasted' ? (row) => data[row] - experiment.col('started')[row] : (row) => data[row];
    const keys = new Float64Array(experiment.trials);
    for (const row of rows) keys[row] = key(row);
    return rows.sort((a, b) => {  // those without a value come last, whatever the order
      const x = keys[a], y = keys[b];
      if (Number.isNaN(x) || Number.isNaN(y)) return (Number.isNaN(x) - Number.isNaN(y)) || a - b;
      return (down ? y - x : x - y) || a - b;
    });
  }
  function drawHead() {
    const sorted = state.get('sort', 'number'), mark = state.get('down') === '1' ? ' ▼' : ' ▲';
    head.replaceChildren(...columns.map((one) => el('div', {class: 'vcell', role: 'columnheader', title: one.name, style: {width: `${one.width}px`},
      onclick: () => { state.set({down: sorted === one.column && state.get('down') !== '1' ? '1' : '', sort: one.column}); arrange(); }}, one.name + (sorted === one.column ? mark : ''))));
  }
  let drawnFrom = -1, drawnTo = -1;
  function drawRows(anew = false) {
    const from = Math.max(0, Math.floor(box.scrollTop / kRow) - 8), to = Math.min(order.length, from + Math.ceil(box.clientHeight / kRow) + 16);
    if (!anew && from === drawnFrom && to === drawnTo) return;
    drawnFrom = from;
    drawnTo = to;
    const width = `${columns.reduce((sum, one) => sum + one.width, 0)}px`;
    const rows = [];
    for (let i = from; i < to; ++i) {
      const row = order[i];
      rows.push(el('div', {class: `vrow${i === chosen ? ' chosen' : ''}`, role: 'row', style: {top: `${i * kRow}px`, width}, onclick: () => openTrial(experiment, row)},
          ...columns.map((one) => el('div', {class: `vcell${experiment.words(one.column) || one.column === 'status' ? '' : ' number'}`, role: 'cell', style: {width: `${one.width}px`}},
              one.column === 'status' ? el('span', {class: 'dot', style: {background: kStatusColour[experiment.col('status')[row]]}}) : '', String(shown(one, row))))));
    }
    space.replaceChildren(...rows);
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
    const top = chosen * kRow, room = box.clientHeight - 2 * kRow;
    if (top < box.scrollTop) box.scrollTop = top;
    if (top > box.scrollTop + room) box.scrollTop = top - room;
    drawRows(true);
  }
  await update();
  return {update, remove: () => observer.disconnect(), key: (event) => {
    if (event.key === 'j' || event.key === 'ArrowDown') { event.preventDefault(); move(1); }
    else if (event.key === 'k' || event.key === 'ArrowUp') { event.preventDefault(); move(-1); }
    else if (event.key === 'Enter' && order.length) openTrial(experiment, order[chosen]);
    else if (event.key === 'Escape') { state.set({q: '', f: '', hide: ''}); search.value = ''; drawBar(); arrange(); }
  }};
}
