// Rungs: which values reached each of them, who was stopped there, and the cut-offs.
import {axisLeft, Chart, nearest, nothing} from '/chart.js';
import {ink, kBlue, kGreen, kOrange, kRed, kSky, pixel} from '/colour.js';
import {blob} from '/data.js';
import {el, select} from '/dom.js';
import {lineageChart} from '/lineage.js';
import {openTrial} from '/overview.js';
import {Points} from '/paint.js';
import {extent, linear, log, number, robustExtent, roomy} from '/scale.js';
import * as state from '/state.js';

const kWords = ['went on', 'stopped here', 'waits here', 'waited here and went on'];
const kNoBracket = 0xffffffff, kMostBrackets = 200;

// Columns of all entries, or of those of one bracket.
function entriesOf(got, bracket) {
  const names = ['rung', 'row', 'value', 'cut_off', 'rank', 'of', 'bracket', 'verdict'];
  const all = Object.fromEntries(names.map((name) => [name, got.columns.get(name).data]));
  if (bracket === null) return all;
  const kept = [];
  all.bracket.forEach((one, i) => { if (one === bracket) kept.push(i); });
  return Object.fromEntries(names.map((name) => [name, Float64Array.from(kept, (i) => all[name][i])]));
}

// One for each bracket and rung that a trial came to; entries are in the order of time.
function summaries(entries, milestones, mode) {
  const found = new Map();
  for (let i = 0; i < entries.rung.length; ++i) {
    const key = entries.bracket[i] * 64 + entries.rung[i];
    if (!found.has(key)) found.set(key, {bracket: entries.bracket[i], rung: entries.rung[i], milestone: milestones[entries.rung[i]], counts: [0, 0, 0, 0], best: NaN, cutOff: NaN});
    const one = found.get(key), value = entries.value[i];
    ++one.counts[entries.verdict[i]];
    if (entries.cut_off[i] - entries.cut_off[i] === 0) one.cutOff = entries.cut_off[i];
    if (value - value === 0 && !(mode === 'max' ? one.best >= value : one.best <= value)) one.best = value;
  }
  return [...found.values()].sort((a, b) => a.bracket - b.bracket || a.rung - b.rung);
}

export async function showRungs(main, experiment) {
  let got = null, entries = null, milestones = [], sums = [], xs = new Float32Array(0), ys = xs;
  const table = el('div', {class: 'panel scroll'}), bar = el('div', {class: 'bar'});
  const {meta} = experiment;
  // Several objectives have no value to draw, but a place in the order of their fronts.
  const hasRanks = !meta.metric && meta.objectives.length > 0;
  const title = hasRanks ? 'Place at each rung by non-dominated rank' : `${meta.metric} at each rung`;
  const chart = new Chart({title, name: 'rungs', height: 420, draw});
  const lineage = meta.descents > 0 ? lineageChart(experiment) : null;
  const isLog = () => state.get('ylog') === '1' && !hasRanks;
  const chosen = () => (/^\d+$/.test(state.get('bracket')) ? Number(state.get('bracket')) : null);
  // 0 is the best of all that were there then, 1 the worst.
  const heightOf = (i) => (hasRanks ? (entries.of[i] > 1 ? (entries.rank[i] - 1) / (entries.of[i] - 1) : 0) : entries.value[i]);

  function draw(painter, box, colours) {
    if (!entries || entries.rung.length === 0) return nothing(painter, box, colours, 'no trial has reached a rung yet');
    const {rung, verdict, cut_off: cutOff} = entries;
    const heights = Float64Array.from(rung, (_, i) => heightOf(i));
    const y = hasRanks ? linear(-0.02, 1.02, box.y, box.y + box.height) :
      (isLog() ? log : linear)(...roomy(isLog() ? extent(heights, true) : robustExtent(heights), isLog()), box.y + box.height, box.y);
    axisLeft(painter, box, y, colours, hasRanks ? 'best 0 ... worst 1' : meta.metric);
    const wide = box.width / milestones.length;
    if (xs.length !== rung.length) { xs = new Float32Array(rung.length); ys = new Float32Array(rung.length); }
    const table = new Uint32Array(rung.length), alpha = rung.length > 20000 ? 140 : 220;
    const colour = [pixel(colours.dark ? kSky : kBlue, alpha), pixel(kRed, alpha), pixel(kOrange, alpha), pixel(kGreen, alpha)];
    for (let i = 0; i < rung.length; ++i) {
      const side = (((i * 2654435761) >>> 0) / 4294967296 - 0.5) * 0.62;
      xs[i] = box.x + (rung[i] + 0.5 + side) * wide;
      ys[i] = y.map(heights[i]);
      table[i] = colour[verdict[i]];
    }
    painter.clip(box.x, box.y, box.width, box.height);
    painter.points(new Points(box, xs, ys, rung.length > 20000 ? 1 : rung.length > 2000 ? 1.6 : 2.6), table);
    if (new Set(sums.map((one) => one.bracket)).size === 1) for (const one of sums) {
      if (Number.isNaN(one.cutOff) || hasRanks) continue;
      const at = y.map(one.cutOff);
      painter.line([box.x + (one.rung + 0.12) * wide, box.x + (one.rung + 0.88) * wide], [at, at], {colour: colours.text, width: 2, dash: [6, 3]});
    }
    painter.unclip();
    [...milestones].forEach((milestone, i) => {
      const middle = box.x + (i + 0.5) * wide;
      if (wide > 26 || i % Math.ceil(26 / wide) === 0) painter.text(number(milestone), middle, box.y + box.height + 8, {colour: colours.text, align: 'center', baseline: 'top'});
      if (i > 0) painter.line([box.x + i * wide, box.x + i * wide], [box.y, box.y + box.height], {colour: colours.grid});
    });
    painter.text(timeName(), box.x + box.width / 2, box.y + box.height + 22, {colour: colours.text, align: 'center', baseline: 'top'});
    chart.note.textContent = hasRanks ? 'the place when it came' : cutOff.some((one) => one - one === 0) ? 'dashed: the newest cut-off; it moves as values come' : '';
  }
  const timeName = () => (got.header.time === 'training_iteration' ? 'iteration' : got.header.time);
  function describe(i) {
    const {row, cut_off: cutOff, rank, of, bracket, verdict, value} = entries;
    return [`trial ${experiment.col('number')[row[i]]}: ${kWords[verdict[i]]}`,
      ...(hasRanks ? [] : [`${meta.metric} ${number(value[i], 6)}`]),
      ...(of[i] > 0 ? [`rank ${number(rank[i])} of ${number(of[i])} when it came`] : []),
      ...(cutOff[i] - cutOff[i] === 0 ? [`cut-off ${number(cutOff[i], 6)}`] : []), ...(bracket[i] === kNoBracket ? [] : [`bracket ${bracket[i]}`])];
  }
  chart.onPoint((px, py) => { const i = nearest(xs, ys, px, py); return i < 0 ? null : describe(i); },
      (px, py) => { const i = nearest(xs, ys, px, py); if (i >= 0) openTrial(experiment, entries.row[i]); });
  chart.onDrag(() => {}, () => {});

  function drawBar(brackets) {
    bar.replaceChildren(...(hasRanks ? [] : [select('y', [['', 'linear'], ['1', 'logarithmic']], state.get('ylog'), (value) => { state.set({ylog: value}); chart.redraw(); })]),
        ...(brackets.length > 1 ? [select('bracket', [['', `all ${brackets.length}`], ...brackets.slice(-kMostBrackets).map((one) => [one, String(one)])], state.get('bracket'), (value) => { state.set({bracket: value}); arrange(); })] : []),
        el('span', {class: 'legend'}, ...[[ink().dark ? kSky : kBlue, 0], [kRed, 1], [kOrange, 2], [kGreen, 3]].map(([colour, word]) =>
          el('span', {}, el('span', {class: 'dot', style: {background: colour}}), kWords[word]))));
  }
  function drawTable() {
    const hasBrackets = sums.some((one) => one.bracket !== kNoBracket);
    const hasCutOffs = sums.some((one) => !Number.isNaN(one.cutOff));
    const names = [...(hasBrackets ? ['bracket'] : []), timeName(), 'reached', 'went on', 'stopped', 'wait', ...(hasRanks ? [] : [`best ${meta.metric}`, ...(hasCutOffs ? ['newest cut-off'] : [])])];
    const cells = (one) => [...(hasBrackets ? [one.bracket === kNoBracket ? '' : String(one.bracket)] : []), number(one.milestone), number(one.counts.reduce((a, b) => a + b)),
      number(one.counts[0] + one.counts[3]), number(one.counts[1]), number(one.counts[2]),
      ...(hasRanks ? [] : [Number.isNaN(one.best) ? '' : number(one.best, 6), ...(hasCutOffs ? [Number.isNaN(one.cutOff) ? '' : number(one.cutOff, 6)] : [])])];
    table.replaceChildren(el('table', {}, el('tr', {}, ...names.map((name) => el('th', {class: 'number'}, name))),
        ...sums.slice(-kMostBrackets).map((one) => el('tr', {}, ...cells(one).map((words) => el('td', {class: 'number'}, words))))));
  }
  function arrange() {
    if (!got) return;
    entries = entriesOf(got, chosen());
    milestones = got.columns.get('milestone').data;
    sums = summaries(entries, milestones, experiment.meta.mode);
    drawTable();
    chart.redraw();
  }
  async function update() {
    if (!meta.metric && !hasRanks) return main.replaceChildren(el('p', {class: 'faint'}, 'The sweep has no metric, so nothing is judged.'));
    await experiment.need(['number', 'status', 'iterations']);
    got = await blob(experiment.address('rungs')) ?? got;
    if (got && !bar.contains(document.activeElement)) drawBar([...new Set(got.columns.get('bracket').data)].filter((one) => one !== kNoBracket).sort((a, b) => a - b));
    arrange();
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
