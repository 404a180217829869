// Parallel coordinates: between two axes a density of all trials (64 x 64 bins), above it the best as
// lines. A line a trial would take a hundred times as long, and show a hundred thousand as one block.
import {Chart, nothing} from '/chart.js';
import {canvasWith, spareImage} from '/paint.js';
import {viridis} from '/colour.js';
import {extent, linear, log, number, short, words} from '/scale.js';
import {tip} from '/dom.js';

const kBins = 64, kCells = kBins * kBins;
const kLines = 30;
const kRibbonWidth = 48, kRibbonHeight = 128;  // pixels of a density, which is drawn larger
const kThick = kRibbonHeight / kBins;  // rows of a ribbon: 2

// Where each value lies on its axis: a bin, 255 for none.
export function binsOf(data, axis, isLog) {
  const bins = new Uint8Array(data.length);
  const [lo, hi] = isLog ? [Math.log(axis.lo), Math.log(axis.hi)] : [axis.lo, axis.hi];
  const factor = (kBins - 1e-6) / (hi - lo);
  for (let i = 0; i < data.length; ++i) {
    const at = ((isLog ? Math.log(data[i]) : data[i]) - lo) * factor;
    bins[i] = at >= -0.5 && at <= kBins + 0.5 ? Math.min(kBins - 1, Math.max(0, Math.floor(at))) : 255;
  }
  return bins;
}

// Between two axes: the cell (a pair of bins) of each row, and how many kept rows are in each; the last
// cell is of rows that have no place.
function gapOf(left, right) {
  const cells = new Uint16Array(left.length);
  for (let i = 0; i < cells.length; ++i) cells[i] = left[i] === 255 || right[i] === 255 ? kCells : left[i] * kBins + right[i];
  return {cells, counts: new Uint32Array(kCells + 1)};
}

// The pixels of the ribbon of each cell, from the one bin to the other; column by column its upper one.
let paths = null;
function pathsOf() {
  if (paths) return paths;
  paths = new Uint16Array(kCells * kRibbonWidth);
  for (let cell = 0, at = 0; cell < kCells; ++cell) {
    const from = kRibbonHeight - (Math.floor(cell / kBins) + 1) * kThick, to = kRibbonHeight - ((cell % kBins) + 1) * kThick;
    for (let x = 0; x < kRibbonWidth; ++x, ++at) {
      paths[at] = Math.floor(from + ((to - from) * x) / (kRibbonWidth - 1) + 1e-6) * kRibbonWidth + x;
    }
  }
  return paths;
}

// Every pair of bins is a ribbon; where ribbons meet their weights add up, in `thick`. The greatest sum.
const upper = new Float32Array(kRibbonWidth * kRibbonHeight), thick = new Float32Array(upper.length);
function ribbons(counts) {
  const to = pathsOf();
  upper.fill(0);
  for (let cell = 0; cell < kCells; ++cell) {
    if (counts[cell] === 0) continue;
    const weight = Math.sqrt(counts[cell]);
    for (let at = cell * kRibbonWidth, end = at + kRibbonWidth; at < end; ++at) upper[to[at]] += weight;
  }
  let greatest = 1e-9;
  for (let i = 0; i < thick.length; ++i) {
    thick[i] = upper[i] + (i >= kRibbonWidth ? upper[i - kRibbonWidth] : 0);
    if (thick[i] > greatest) greatest = thick[i];
  }
  return greatest;
}

// axes: [{name, column, words, log}]; best(): rows to be drawn as lines, best first.
export function parallelChart(experiment, {axes, mask, best, filters, onFilters}) {
  let prepared = [], version = -1, moving = null, held = new Uint8Array(0), gaps = [], count = 0;
  const chart = new Chart({title: 'Parallel coordinates', height: 330, margin: {left: 40, right: 60, top: 34, bottom: 24}, draw});

  function prepare() {
    const names = axes().map((axis) => axis.column).join();
    if (version === experiment.version && names === chart.names) return;
    version = experiment.version;
    chart.names = names;
    prepared = axes().map((axis) => {
      const data = experiment.col(axis.column), list = experiment.words(axis.column);
      const scale = list ? words(list, 1, 0) : (axis.log ? log : linear)(...extent(data, axis.log), 1, 0);
      return {...axis, data, list, scale, bins: binsOf(data, scale, scale.log)};
    });
    gaps = prepared.slice(1).map((right, i) => gapOf(prepared[i].bins, right.bins));
    held = new Uint8Array(experiment.trials);
    count = 0;
  }
  // What a brush changes is counted anew, and nothing else.
  function keep(kept) {
    for (let i = 0; i < held.length; ++i) {
      if (held[i] === kept[i]) continue;
      held[i] = kept[i];
      const step = kept[i] === 1 ? 1 : -1;
      count += step;
      for (let gap = 0; gap < gaps.length; ++gap) gaps[gap].counts[gaps[gap].cells[i]] += step;
    }
  }
  const xOf = (i, box) => box.x + (prepared.length > 1 ? (i / (prepared.length - 1)) * box.width : box.width / 2);

  function density(painter, box, colours) {
    if (gaps.length === 0) return;
    const wide = kRibbonWidth * gaps.length, image = spareImage(wide, kRibbonHeight), pixels = new Uint32Array(image.data.buffer);
    const base = colours.dark ? 0xe9b456 : 0xb27200;  // BGR of blue
    gaps.forEach(({counts}, gap) => {
      const greatest = ribbons(counts);
      for (let row = 0, from = 0; row < kRibbonHeight; ++row) {
        for (let x = 0, to = row * wide + gap * kRibbonWidth; x < kRibbonWidth; ++x, ++from, ++to) {
          if (thick[from] > 0) pixels[to] = ((Math.min(200, 24 + 210 * Math.sqrt(thick[from] / greatest)) << 24) | base) >>> 0;
        }
      }
    });
    painter.image(canvasWith(image), box.x, box.y, box.width, box.height);
  }
  function draw(painter, box, colours) {
    if (experiment.trials === 0) return nothing(painter, box, colours, 'no trials yet');
    prepare();
    const kept = mask();
    keep(kept);
    density(painter, box, colours);
    const at = (i, row) => box.y + prepared[i].scale.map(prepared[i].data[row]) * box.height;
    const rows = best(kept, kLines);
    for (let rank = rows.length - 1; rank >= 0; --rank) {
      const colour = viridis.texts[Math.round((colours.dark ? 255 : 205) - (rank / kLines) * 120)];
      painter.line(prepared.map((_, i) => xOf(i, box)), prepared.map((_, i) => at(i, rows[rank])), {colour: rank === 0 ? (colours.dark ? '#ffb03b' : '#d55e00') : colour, width: rank === 0 ? 2.5 : 1.3});
    }
    prepared.forEach((axis, i) => drawAxis(painter, axis, xOf(i, box), box, colours));
    chart.note.textContent = `${number(count)} of ${number(kept.length)} trials; drag along an axis to choose`;
  }
  function drawAxis(painter, axis, x, box, colours) {
    painter.line([x, x], [box.y, box.y + box.height], {colour: colours.text});
    const room = box.width / Math.max(1, prepared.length - 1) / 6.5;
    painter.text(short(axis.name, Math.max(6, Math.floor(room))), x, box.y - 20, {colour: colours.text, align: 'center', bold: true});
    const ticks = axis.scale.ticks(6);
    for (const tick of ticks) {
      const y = box.y + axis.scale.map(tick) * box.height;
      if (!(y >= box.y - 1 && y <= box.y + box.height + 1)) continue;
      painter.line([x - 3, x], [y, y], {colour: colours.text});
      painter.text(axis.scale.format(tick), x + 4, y, {colour: colours.text, halo: colours.paper});
    }
    const range = moving?.column === axis.column ? moving.range : filters()[axis.column];
    if (!range) return;
    const [top, bottom] = [axis.scale.map(range[1]), axis.scale.map(range[0])].map((share) => box.y + Math.min(1, Math.max(0, share)) * box.height);
    painter.rect(x - 7, top, 14, Math.max(2, bottom - top), {fill: '#56b4e9', alpha: 0.35});
    painter.rect(x - 7, top, 14, Math.max(2, bottom - top), {stroke: '#0072b2'});
  }
  function axisAt(px) {
    const box = chart.box();
    let best = -1, least = 24;
    prepared.forEach((_, i) => { const d = Math.abs(xOf(i, box) - px); if (d < least) { least = d; best = i; } });
    return best;
  }
  const shareAt = (py) => { const box = chart.box(); return Math.min(1, Math.max(0, (py - box.y) / box.height)); };
  let from = null;
  chart.canvas.addEventListener('pointerdown', (event) => {
    const [px, py] = chart.at(event), axis = axisAt(px);
    if (axis < 0 || event.button !== 0) return;
    from = {axis, share: shareAt(py), moved: false};
    chart.isHeld = true;
    chart.canvas.setPointerCapture(event.pointerId);
  });
  chart.canvas.addEventListener('pointermove', (event) => {
    const [px, py] = chart.at(event);
    if (!from) { chart.canvas.style.cursor = axisAt(px) >= 0 ? 'row-resize' : 'default'; return; }
    tip.hide();
    from.moved = true;
    moveTo(from, shareAt(py));
  });
  function moveTo({axis, share}, now) {
    const {scale, column, list} = prepared[axis];
    let lo = scale.invert(Math.max(share, now)), hi = scale.invert(Math.min(share, now));
    if (list) { lo = Math.round(lo) - 0.5; hi = Math.round(hi) + 0.5; }
    moving = {column, range: [lo, hi]};
    onFilters({...filters(), [column]: [lo, hi]}, false);
  }
  function end() {
    if (!from) return;
    const {axis, moved} = from, {column} = prepared[axis];
    from = null;
    chart.isHeld = false;
    const next = {...filters()};
    if (moved) next[column] = moving.range;
    else delete next[column];  // a click takes the brush away
    moving = null;
    onFilters(next, true);
  }
  chart.canvas.addEventListener('pointerup', end);
  chart.canvas.addEventListener('pointercancel', end);
  chart.canvas.addEventListener('dblclick', () => onFilters({}, true));
  // For measurements: a brush without a pointer.
  chart.brushTo = (axis, a, b) => moveTo({axis, share: a}, b);
  return {chart};
}
