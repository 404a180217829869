// One trial: its curves with others faint behind them, or beside a few; configuration, attempts,
// reasons, checkpoints, output.
import {el, button, check, select} from '/dom.js';
import {blob, json} from '/data.js';
import {Chart, axisBottom, axisLeft, nothing} from '/chart.js';
import {kind} from '/colour.js';
import {clock, counts, duration, extent, linear, log, number, robustExtent, roomy, times} from '/scale.js';
import {configForms} from '/overview.js';
import {saying, trialButtons} from '/control.js';
import {usageView} from '/usage.js';
import * as state from '/state.js';

const kMostBeside = 8;
const kDashes = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
const kAtRung = {go_on: 'goes on', stop: 'is stopped', pause: 'waits'};

// Exponential smoothing as TensorBoard has it, with its bias taken off; NaN is passed over.
export function smoothed(values, weight) {
  if (weight <= 0) return values;
  const out = new Float64Array(values.length);
  let last = 0, total = 0;
  for (let i = 0; i < values.length; ++i) {
    if (values[i] - values[i] !== 0) { out[i] = values[i]; continue; }
    last = last * weight + (1 - weight) * values[i];
    total = total * weight + (1 - weight);
    out[i] = last / total;
  }
  return out;
}

async function resultsOf(experiment, number) {
  const got = await blob(experiment.address(`results?n=${number}`));
  const columns = new Map(got.header.names.map((name, i) => [name, got.columns.get(`v${i}`).data]));
  columns.set('iteration', Float64Array.from(got.columns.get('iteration').data));
  return columns;
}

function eventText(event) {
  const {event: kind} = event;
  if (kind === 'verdict') return `${event.verdict} after iteration ${event.iteration}: ${event.reason}`;
  if (kind === 'rung') return `${number(event.value, 6)} at ${number(event.milestone)}: rank ${event.rank} of ${event.of}${event.bracket === undefined ? '' : ` in bracket ${event.bracket}`}${event.cut_off === undefined ? '' : `, cut-off ${number(event.cut_off, 6)}`}: ${kAtRung[event.verdict] ?? event.verdict}`;
  if (kind === 'attempt_started') return `on ${event.node}${event.gpus?.length ? `, GPU ${event.gpus.join(', ')}` : ''}, process ${event.pid}${event.after_iteration ? `, from iteration ${event.after_iteration}` : ''}`;
  if (kind === 'attempt_ended') return `${event.outcome} at iteration ${event.iteration}${event.cause ? `: ${event.cause}` : ''}`;
  if (kind === 'failure') return `${event.outcome}, rank ${event.rank}, code ${event.code}: ${event.cause}${event.retried ? ' (tried again)' : ''}`;
  if (kind === 'replaced') return `goes on from ${event.donor} after iteration ${event.iteration}: ${event.reason}`;
  if (kind === 'proposed') return `${event.origin}, ${event.results_known} results known${event.mean !== undefined && event.sd > 0 ? `, expected ${number(event.mean)} ± ${number(event.sd)}` : ''}${event.note ? `: ${event.note}` : ''}`;
  if (kind === 'order') return `${event.order} by ${event.user}${event.iteration ? ` after iteration ${event.iteration}` : ''}${event.reason || event.text ? `: ${event.reason ?? event.text}` : ''}`;
  if (kind === 'trial_ended') return `${event.status} at iteration ${event.iteration}`;
  return JSON.stringify(event);
}

function curveChart(experiment, shown) {
  const chart = new Chart({title: 'Curves', name: 'trial-curves', height: 320, draw});
  const show = (part) => { state.setPart('zc', part); chart.redraw(); };
  function draw(painter, box, colours) {
    const zoom = state.part('zc')?.length === 4 ? state.part('zc') : null;
    const {metrics, x: xName, isLog, weight, trials, behind} = shown();
    const series = [];
    trials.forEach(({number: trial, columns}, t) => metrics.forEach((metric, m) => {
      const ys = columns.get(metric);
      const xs = xName === 'iteration' ? columns.get('iteration') : columns.get(xName);
      if (ys && xs) series.push({name: trials.length > 1 ? `${trial} ${metrics.length > 1 ? metric : ''}` : metric, xs, raw: ys, ys: smoothed(ys, weight), colour: kind(trials.length > 1 ? t : m), dash: trials.length > 1 ? kDashes[m % kDashes.length] : []});
    }));
    if (!series.some(({raw}) => raw.some((v) => v - v === 0))) return nothing(painter, box, colours, 'no results yet');
    const all = Float64Array.from(series.flatMap(({raw}) => [...raw])), allX = Float64Array.from(series.flatMap(({xs}) => [...xs]));
    const [y0, y1] = zoom?.slice(2) ?? roomy(isLog ? extent(all, true) : robustExtent(all), isLog), [x0, x1] = zoom?.slice(0, 2) ?? extent(allX);
    const x = (xName === 'timestamp' ? times : xName === 'iteration' ? counts : linear)(x0, x1, box.x, box.x + box.width);
    const y = (isLog ? log : linear)(y0, y1, box.y + box.height, box.y);
    axisLeft(painter, box, y, colours, metrics.length === 1 ? metrics[0] : '');
    axisBottom(painter, box, x, colours, xName);
    painter.clip(box.x, box.y, box.width, box.height);
    if (behind && xName === 'iteration') faint(painter, behind, x, y, colours);
    for (const {xs, raw, ys, colour, dash} of series) {
      const px = Array.from(xs, x.map);
      if (raw !== ys) painter.line(px, Array.from(raw, y.map), {colour, alpha: 0.25});
      painter.line(px, Array.from(ys, y.map), {colour, width: 2, dash});
      if (px.length === 1) painter.circle(px[0], y.map(ys[0]), 3, {fill: colour});
    }
    painter.unclip();
    if (series.length > 1) series.slice(0, 12).forEach(({name, colour, dash}, i) => {
      const at = box.y + 9 + i * 15;
      painter.line([box.x + box.width - 162, box.x + box.width - 142], [at, at], {colour, width: 3, dash});
      painter.text(name.slice(0, 24), box.x + box.width - 136, at, {colour: colours.text, halo: colours.paper});
    });
    chart.places = {x, y, series};
  }
  function faint(painter, {columns}, x, y, colours) {
    const ends = columns.get('end')?.data ?? [], iteration = columns.get('iteration')?.data, value = columns.get('value')?.data;
    for (let i = 0; i < ends.length; ++i) {
      const xs = [], ys = [];
      for (let k = i === 0 ? 0 : ends[i - 1]; k < ends[i]; ++k) { xs.push(x.map(iteration[k])); ys.push(y.map(value[k])); }
      painter.line(xs, ys, {colour: colours.line, alpha: 0.25});
    }
  }
  chart.onPoint((px, py) => {
    let best = null, least = 200;
    for (const {name, xs, raw} of chart.places?.series ?? []) {
      for (let i = 0; i < xs.length; ++i) {
        const dx = chart.places.x.map(xs[i]) - px, dy = chart.places.y.map(raw[i]) - py;
        if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = [name, `${shown().x} ${number(xs[i], 8)}: ${number(raw[i], 8)}`]; }
      }
    }
    return best;
  });
  chart.onDrag((left, top, right, bottom) => {
    if (!chart.places) return;
    const {x, y} = chart.places;
    show([x.invert(left), x.invert(right), y.invert(bottom), y.invert(top)]);
  }, () => show(null));
  return chart;
}

function logView(experiment, trial) {
  let next = null, timer = null, stopped = false;
  const asked = () => ({s: state.get('out') === 'stderr' ? 1 : 0, r: Number(/^\d{1,6}$/.exec(state.get('rank')) ?? 0)});
  const text = el('pre', {class: 'log'}), follow = {on: true};
  const bar = el('div', {class: 'bar'});
  async function load(anew) {
    if (anew) { next = null; text.textContent = ''; }
    const mine = asked();
    const got = await json(experiment.address(`log?n=${trial}&s=${mine.s}&r=${mine.r}${next === null ? '' : `&from=${next}`}`));
    if (stopped || mine.s !== asked().s || mine.r !== asked().r) return;
    if (next !== null && got.from < next) text.textContent = '';
    if (next === null && got.from > 0) text.append(`[the first ${number(got.from)} bytes are left out]\n`);
    next = got.next;
    const atEnd = text.scrollTop + text.clientHeight >= text.scrollHeight - 30;
    if (got.text) text.append(got.text);
    if (!got.is_there) text.textContent = '(there is no output)';
    while (text.childNodes.length > 200) text.firstChild.remove();
    if (atEnd && follow.on) text.scrollTop = text.scrollHeight;
  }
  function draw(ranks) {
    bar.replaceChildren(select('output', [['', 'stdout'], ['stderr', 'stderr']], state.get('out'), (out) => { state.set({out}); load(true); }),
        ...(ranks > 1 ? [select('rank', Array.from({length: ranks}, (_, i) => [i, String(i)]), asked().r, (rank) => { state.set({rank: rank === '0' ? '' : rank}); load(true); })] : []),
        check('follow', follow.on, (on) => { follow.on = on; }));
  }
  const tick = async () => {
    if (stopped) return;
    try { if (follow.on && !document.hidden) await load(false); } catch { /* the server is gone for a while */ }
    timer = setTimeout(tick, 1000);
  };
  return {root: el('div', {class: 'panel wide'}, el('h2', {}, 'Output'), bar, text), draw,
    begin: async () => { await load(true); timer = setTimeout(tick, 1000); }, stop: () => { stopped = true; clearTimeout(timer); }};
}

export async function showTrial(main, experiment) {
  const number0 = () => Number(state.get('n', '0'));
  const trial = number0();
  let data = null, trials = [], behind = null;
  const metrics = () => { const chosen = state.get('ms').split('|').filter((name) => experiment.meta.metrics.includes(name)); return chosen.length ? chosen : [experiment.meta.metrics[Math.max(0, experiment.primary)]].filter(Boolean); };
  const chart = curveChart(experiment, () => ({metrics: metrics(), x: state.get('x', 'iteration'), isLog: state.get('ylog') === '1', weight: Number(state.get('smooth', '0')), trials, behind}));
  const said = saying();
  const head = el('div', {class: 'bar'}), bar = el('div', {class: 'bar'}), facts = el('div', {class: 'panel'}), config = el('div', {class: 'panel'});
  const reasons = el('div', {class: 'panel wide scroll'}), error = el('div', {class: 'wide'}), logs = logView(experiment, trial);
  const usage = usageView(experiment, trial);
  main.replaceChildren(head, bar, el('div', {class: 'grid'}, el('div', {class: 'wide'}, chart.root), usage.root, config, facts, reasons, error, logs.root));
  const beside = () => state.get('beside').split(',').filter((word) => /^\d+$/.test(word)).map(Number).slice(0, kMostBeside);
  const open = (wanted) => state.go(state.address({query: {...Object.fromEntries([...state.state.query].filter(([name]) => name !== 'zc')), n: String(wanted)}}));

  function drawBar() {
    const set = (name) => async (value) => { state.set({[name]: value, ...(name === 'beside' ? {} : {zc: ''})}); await update(); };
    const wanted = el('input', {class: 'search', type: 'number', min: '0', value: String(trial), style: {width: '9ch'}, 'aria-label': 'Trial', onchange: () => open(wanted.value)});
    head.replaceChildren(button('Previous', () => step(-1), 'Key k'), button('Next', () => step(1), 'Key j'), el('label', {class: 'field'}, 'trial', wanted),
        el('b', {}, data.id), el('span', {class: 'state'}, data.status), el('span', {class: 'faint'}, `${number(data.iterations)} iterations`), ...trialButtons(experiment, data, said));
    const besides = el('input', {value: state.get('beside'), placeholder: 'other trials: 3, 5', size: 16, 'aria-label': 'Beside', onchange: () => set('beside')(besides.value.replace(/\s+/g, ''))});
    const weight = el('input', {type: 'range', min: '0', max: '0.98', step: '0.02', value: state.get('smooth', '0'), 'aria-label': 'Smoothing', oninput: () => { state.set({smooth: weight.value === '0' ? '' : weight.value}); chart.redraw(); }});
    bar.replaceChildren(metricChoice(), select('x', [['iteration', 'iteration'], ['time_total_s', 'training time'], ['timestamp', 'time'], ...experiment.meta.metrics.map((name) => [name, name])], state.get('x', 'iteration'), set('x')),
        select('y', [['', 'linear'], ['1', 'logarithmic']], state.get('ylog'), set('ylog')), el('label', {class: 'field'}, 'smoothing', weight), el('label', {class: 'field'}, 'beside', besides));
  }
  function metricChoice() {
    const chosen = metrics(), list = el('details', {class: 'field'}, el('summary', {}, `metric: ${chosen.length === 1 ? chosen[0] : `${chosen.length} chosen`}`));
    for (const name of experiment.meta.metrics.slice(0, 300)) {
      list.append(el('div', {}, check(name, chosen.includes(name), async (on) => {
        const next = new Set(metrics());
        if (on) next.add(name); else next.delete(name);
        state.set({ms: [...next].join('|'), zc: ''});
        await update();
      })));
    }
    return list;
  }
  function step(by) {
    const numbers = experiment.col('number'), at = numbers.indexOf(number0());
    const next = numbers[at + by];
    if (next !== undefined) open(next);
  }
  function drawFacts() {
    const row = experiment.col('number').indexOf(trial), started = experiment.col('started')[row], ended = experiment.col('ended')[row];
    const pairs = [['attempts', data.attempts], ['failures counted', data.failures], ['started', clock(started)], ['ended', clock(ended)],
      ['lasted', started && ended ? duration(ended - started) : ''], ['ranks', data.ranks]];
    facts.replaceChildren(el('h2', {}, 'Facts'), el('dl', {}, ...pairs.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, String(value))])),
        el('h2', {}, 'Checkpoints'), data.checkpoints.length === 0 ? el('span', {class: 'faint'}, 'none') :
          el('table', {}, ...data.checkpoints.slice(-20).reverse().map((one) => el('tr', {}, el('td', {}, one.name), el('td', {class: 'faint'}, clock(one.time))))));
    reasons.replaceChildren(el('h2', {}, 'What happened'), data.events.length === 0 ? el('span', {class: 'faint'}, 'nothing yet') :
      el('table', {}, ...data.events.map((event) => el('tr', {}, el('td', {class: 'faint short'}, clock(event.time)), el('td', {class: 'number'}, event.attempt ? `attempt ${event.attempt}` : ''), el('td', {class: 'short'}, String(event.event).replaceAll('_', ' ')), el('td', {}, eventText(event))))));
    error.replaceChildren(...(data.error ? [el('div', {class: 'problem'}, data.error)] : []));
  }
  async function update() {
    await experiment.need(['number', 'status', 'iterations', 'started', 'ended']);
    const others = beside().filter((one) => one !== trial && experiment.col('number').includes(one));
    let all;
    [data, ...all] = await Promise.all([json(experiment.address(`trial?n=${trial}`)), ...[trial, ...others].map((one) => resultsOf(experiment, one))]);
    trials = [trial, ...others].map((one, i) => ({number: one, columns: all[i]}));
    const index = experiment.metricIndex(metrics()[0]);
    const wanted = `${index} ${metrics().length}`;
    if (update.behind !== wanted) {
      behind = metrics().length === 1 && index >= 0 ? await blob(experiment.address(`curves?m=${index}&best=10&sample=120`)) : null;
      update.behind = wanted;
    }
    const now = JSON.stringify([data.config, data.status, experiment.meta.state, experiment.meta.metrics.length, state.state.query.toString()]);
    if (update.seen !== now && !bar.contains(document.activeElement)) {
      update.seen = now;
      drawBar();
      config.replaceChildren(el('h2', {}, 'Configuration'), configForms(data.config));
      logs.draw(data.ranks);
    }
    drawFacts();
    chart.redraw();
    await usage.update();
  }
  await update();
  await logs.begin();
  return {update, remove: () => { logs.stop(); usage.remove(); chart.remove(); }, key: (event) => {
    if (event.key === 'j' || event.key === 'ArrowRight') step(1);
    else if (event.key === 'k' || event.key === 'ArrowLeft') step(-1);
  }};
}
