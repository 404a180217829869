// Chart: a figure with a title, one canvas, and buttons that save it as PNG and SVG. What it shows is
// a function that draws with a painter; the pointer's doings are callbacks.
import {el, button, save, tip} from '/dom.js';
import {CanvasPainter, SvgPainter} from '/paint.js';
import {ink} from '/colour.js';
import * as frames from '/frames.js';

export const kMargin = {left: 62, right: 14, top: 10, bottom: 38};

export class Chart {
  // draw(painter, box, ink): the box is the plane within the margins.
  constructor({title, height = 260, margin = {}, draw, name = null, controls = []}) {
    this.title = title;
    this.name = name ?? title.toLowerCase().replace(/[^a-z0-9]+/g, '-');
    this.height = height;
    this.margin = {...kMargin, ...margin};
    this.drawing = draw;
    this.canvas = el('canvas', {role: 'img', 'aria-label': title, style: {height: `${height}px`}});
    this.brush = el('div', {class: 'brush', hidden: true});
    this.note = el('span', {class: 'faint note'});
    this.plane = el('div', {class: 'plane'}, this.canvas, this.brush);
    this.root = el('figure', {class: 'chart', id: `chart-${this.name}`},
        el('figcaption', {}, el('b', {}, title), this.note, el('span', {class: 'controls'}, ...controls),
            el('span', {class: 'saves'}, button('PNG', () => this.savePng(), 'Save this picture as PNG'),
                button('SVG', () => this.saveSvg(), 'Save this picture as SVG'))),
        this.plane);
    this.observer = new ResizeObserver(() => this.redraw());
    this.observer.observe(this.plane);
    this.inSight = true;  // until it is known
    this.isHeld = false;  // by the pointer
    frames.watch(this.plane, this);
    this.canvas.addEventListener('pointerleave', () => tip.hide());
  }
  box(width = this.plane.clientWidth, height = this.height) {
    const {left, right, top, bottom} = this.margin;
    return {x: left, y: top, width: Math.max(10, width - left - right), height: Math.max(10, height - top - bottom)};
  }
  // Draws at one of the next frames; several calls before it draw once.
  redraw() { frames.ask(this); }
  drawNow() {
    const width = this.plane.clientWidth;
    if (width < 20) return;
    if (this.sized !== `${width} ${this.height}`) {
      this.sized = `${width} ${this.height}`;
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${this.height}px`;
      this.plane.style.height = `${this.height}px`;
    }
    const painter = new CanvasPainter(this.canvas, width, this.height, Math.min(2, devicePixelRatio || 1));
    this.drawing(painter, this.box(width), ink());
  }
  resize(height) {
    if (height === this.height) return;
    this.height = height;
    this.redraw();
  }
  at(event) {
    const frame = this.canvas.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  }
  savePng() {
    const canvas = document.createElement('canvas');
    const width = this.plane.clientWidth, colours = ink();
    const painter = new CanvasPainter(canvas, width, this.height, 2);
    painter.rect(0, 0, width, this.height, {fill: colours.paper});
    this.drawing(painter, this.box(width), colours);
    canvas.toBlob((blob) => save(`${this.name}.png`, blob), 'image/png');
  }
  svg() {
    const width = this.plane.clientWidth, colours = ink();
    const painter = new SvgPainter(width, this.height);
    this.drawing(painter, this.box(width), colours);
    return painter.toString(colours.paper);
  }
  saveSvg() { save(`${this.name}.svg`, new Blob([this.svg()], {type: 'image/svg+xml'})); }
  remove() {
    this.observer.disconnect();
    frames.leave(this.plane);
    frames.forget(this);
  }

  // hover(x, y) gives lines of text or null; click(x, y).
  onPoint(hover, click = null) {
    this.canvas.addEventListener('pointermove', (event) => {
      if (event.buttons) return;
      const lines = hover(...this.at(event));
      this.canvas.style.cursor = lines && click ? 'pointer' : 'crosshair';
      if (lines) tip.show(event, lines);
      else tip.hide();
    });
    if (click) this.clicked = click;
  }
  // Dragging marks a box: done(x0, y0, x1, y1); a double click: reset().
  onDrag(done, reset) {
    let from = null;
    const place = (a, b) => Object.assign(this.brush.style, {
      left: `${Math.min(a[0], b[0])}px`, top: `${Math.min(a[1], b[1])}px`,
      width: `${Math.abs(a[0] - b[0])}px`, height: `${Math.abs(a[1] - b[1])}px`});
    this.canvas.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      from = this.at(event);
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener('pointermove', (event) => {
      if (!from) return;
      tip.hide();
      this.brush.hidden = false;
      place(from, this.at(event));
    });
    this.canvas.addEventListener('pointerup', (event) => {
      if (!from) return;
      const to = this.at(event), begun = from;
      from = null;
      this.brush.hidden = true;
      if (Math.hypot(to[0] - begun[0], to[1] - begun[1]) < 5) { this.clicked?.(...to); return; }
      done(Math.min(begun[0], to[0]), Math.min(begun[1], to[1]), Math.max(begun[0], to[0]), Math.max(begun[1], to[1]));
    });
    this.canvas.addEventListener('pointercancel', () => { from = null; this.brush.hidden = true; });
    this.canvas.addEventListener('dblclick', () => reset());
  }
}

export function axisLeft(painter, box, scale, colours, label = '') {
  for (const tick of scale.ticks(Math.max(2, Math.floor(box.height / 36)))) {
    const y = scale.map(tick);
    if (!(y >= box.y - 0.5 && y <= box.y + box.height + 0.5)) continue;
    painter.line([box.x, box.x + box.width], [y, y], {colour: colours.grid});
    painter.text(scale.format(tick), box.x - 6, y, {colour: colours.faint, align: 'right'});
  }
  if (label) painter.text(label, 10, box.y + box.height / 2, {colour: colours.text, align: 'center', turn: -Math.PI / 2});
}

export function axisBottom(painter, box, scale, colours, label = '') {
  const bottom = box.y + box.height;
  painter.line([box.x, box.x + box.width], [bottom, bottom], {colour: colours.line});
  let end = -Infinity;
  for (const tick of scale.ticks(Math.max(2, Math.floor(box.width / 62)))) {
    const x = scale.map(tick), words = scale.format(tick);
    if (!(x >= box.x - 0.5 && x <= box.x + box.width + 0.5)) continue;
    painter.line([x, x], [bottom, bottom + 4], {colour: colours.line});
    const half = words.length * 3.1;
    if (x - half < end) continue;  // no room
    end = x + half + 6;
    painter.text(words, Math.min(Math.max(x, half), painter.width - half - 2), bottom + 7, {colour: colours.faint, align: 'center', baseline: 'top'});
  }
  if (label) painter.text(label, box.x + box.width / 2, bottom + 22, {colour: colours.text, align: 'center', baseline: 'top'});
}

export function nothing(painter, box, colours, words) {
  painter.text(words, box.x + box.width / 2, box.y + box.height / 2, {colour: colours.faint, align: 'center'});
}

// The row whose point is nearest, at most 12 pixels away; -1: none.
export function nearest(xs, ys, x, y, mask = null) {
  let best = -1, least = 144;
  for (let i = 0; i < xs.length; ++i) {
    if (mask && !mask[i]) continue;
    const dx = xs[i] - x, dy = ys[i] - y, distance = dx * dx + dy * dy;
    if (distance < least) { least = distance; best = i; }
  }
  return best;
}
