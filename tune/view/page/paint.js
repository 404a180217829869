// Painters: what a picture is drawn with. The same drawing makes the canvas on the page and the SVG
// that is saved. Many points at once are drawn by setting pixels: a hundred thousand take some
// milliseconds, without a GPU.

const kFont = '11px system-ui, sans-serif';
const kMostCircles = 3000;  // of an SVG; more are an image in it

export class CanvasPainter {
  constructor(canvas, width, height, ratio) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    this.context = canvas.getContext('2d');
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.ratio = ratio;
    this.width = width;
    this.height = height;
  }
  rect(x, y, width, height, {fill = null, stroke = null, alpha = 1} = {}) {
    const c = this.context;
    c.globalAlpha = alpha;
    if (fill) { c.fillStyle = fill; c.fillRect(x, y, width, height); }
    if (stroke) { c.strokeStyle = stroke; c.lineWidth = 1; c.strokeRect(x, y, width, height); }
    c.globalAlpha = 1;
  }
  // NaN breaks a line.
  line(xs, ys, {colour, width = 1, alpha = 1, dash = []} = {}) {
    const c = this.context;
    c.globalAlpha = alpha;
    c.strokeStyle = colour;
    c.lineWidth = width;
    c.setLineDash(dash);
    c.lineJoin = 'round';
    c.beginPath();
    let open = false;
    for (let i = 0; i < xs.length; ++i) {
      if (xs[i] - xs[i] !== 0 || ys[i] - ys[i] !== 0) { open = false; continue; }
      if (open) c.lineTo(xs[i], ys[i]);
      else c.moveTo(xs[i], ys[i]);
      open = true;
    }
    c.stroke();
    c.setLineDash([]);
    c.globalAlpha = 1;
  }
  circle(x, y, radius, {fill = null, stroke = null, width = 1.5, alpha = 1} = {}) {
    const c = this.context;
    c.globalAlpha = alpha;
    c.beginPath();
    c.arc(x, y, radius, 0, 2 * Math.PI);
    if (fill) { c.fillStyle = fill; c.fill(); }
    if (stroke) { c.strokeStyle = stroke; c.lineWidth = width; c.stroke(); }
    c.globalAlpha = 1;
  }
  text(words, x, y, {colour, align = 'left', baseline = 'middle', bold = false, turn = 0, halo = null} = {}) {
    const c = this.context;
    c.save();
    c.font = bold ? `600 ${kFont}` : kFont;
    c.fillStyle = colour;
    c.textAlign = align;
    c.textBaseline = baseline;
    c.translate(x, y);
    if (turn) c.rotate(turn);
    if (halo) { c.strokeStyle = halo; c.lineWidth = 3; c.lineJoin = 'round'; c.strokeText(words, 0, 0); }
    c.fillText(words, 0, 0);
    c.restore();
  }
  clip(x, y, width, height) {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.context.clip();
  }
  unclip() { this.context.restore(); }
  image(canvas, x, y, width, height) { this.context.drawImage(canvas, x, y, width, height); }
  // Squares of about 2 * radius at pixels of the box, each with its pixel's colour, or all with one; of
  // those that the mask keeps.
  points(box, xs, ys, colours, radius, mask = null) {
    this.image(rasterOf(box, xs, ys, colours, radius, this.ratio, mask), box.x, box.y, box.width, box.height);
  }
}

let spare = null;
function rasterCanvas(width, height) {
  spare ??= document.createElement('canvas');
  if (spare.width !== width || spare.height !== height) { spare.width = width; spare.height = height; }
  return spare;
}

// A canvas with these pixels; it is used again by the next raster.
export function canvasOf(pixels, width, height) {
  const canvas = rasterCanvas(width, height);
  const context = canvas.getContext('2d');
  context.putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer, 0, width * height * 4), width, height), 0, 0);
  return canvas;
}

function rasterOf(box, xs, ys, colours, radius, ratio, mask) {
  const width = Math.max(1, Math.round(box.width * ratio)), height = Math.max(1, Math.round(box.height * ratio));
  const pixels = new Uint32Array(width * height);
  const size = Math.max(1, Math.round(radius * 2 * ratio)), half = size >> 1;
  const one = colours.length === undefined ? colours : null;
  for (let i = 0; i < xs.length; ++i) {
    if (mask !== null && mask[i] === 0) continue;
    const colour = one === null ? colours[i] : one;
    if (colour === 0) continue;
    const left = Math.round((xs[i] - box.x) * ratio) - half, top = Math.round((ys[i] - box.y) * ratio) - half;
    if (!(left >= -size && left < width && top >= -size && top < height)) continue;  // also NaN
    const right = Math.min(width, left + size), bottom = Math.min(height, top + size);
    for (let y = Math.max(0, top); y < bottom; ++y) {
      for (let x = Math.max(0, left), at = y * width + x; x < right; ++x, ++at) pixels[at] = colour;
    }
  }
  return canvasOf(pixels, width, height);
}

const escaped = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, '\ufffd');
const round = (value) => Math.round(value * 100) / 100;

export class SvgPainter {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.parts = [];
    this.clips = 0;
    this.ratio = 2;
  }
  rect(x, y, width, height, {fill = 'none', stroke = 'none', alpha = 1} = {}) {
    this.parts.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(Math.max(0, width))}" height="${round(Math.max(0, height))}" fill="${fill ?? 'none'}" stroke="${stroke ?? 'none'}" opacity="${alpha}"/>`);
  }
  line(xs, ys, {colour, width = 1, alpha = 1, dash = []} = {}) {
    let path = '', open = false;
    for (let i = 0; i < xs.length; ++i) {
      if (xs[i] - xs[i] !== 0 || ys[i] - ys[i] !== 0) { open = false; continue; }
      path += `${open ? 'L' : 'M'}${round(xs[i])} ${round(ys[i])}`;
      open = true;
    }
    if (path) this.parts.push(`<path d="${path}" fill="none" stroke="${colour}" stroke-width="${width}" opacity="${alpha}" stroke-dasharray="${dash.join(' ')}"/>`);
  }
  circle(x, y, radius, {fill = 'none', stroke = 'none', width = 1.5, alpha = 1} = {}) {
    if (x - x !== 0 || y - y !== 0) return;
    this.parts.push(`<circle cx="${round(x)}" cy="${round(y)}" r="${radius}" fill="${fill ?? 'none'}" stroke="${stroke ?? 'none'}" stroke-width="${width}" opacity="${alpha}"/>`);
  }
  text(words, x, y, {colour, align = 'left', baseline = 'middle', bold = false, turn = 0, halo = null} = {}) {
    const anchor = {left: 'start', right: 'end', center: 'middle'}[align];
    const shift = {middle: '0.35em', top: '0.8em', bottom: '0', alphabetic: '0'}[baseline];
    const turned = turn ? ` transform="rotate(${round((turn * 180) / Math.PI)} ${round(x)} ${round(y)})"` : '';
    this.parts.push(`<text x="${round(x)}" y="${round(y)}" dy="${shift}" text-anchor="${anchor}" fill="${colour}" font-weight="${bold ? 600 : 400}"${halo ? ` stroke="${halo}" stroke-width="3" paint-order="stroke"` : ''}${turned}>${escaped(words)}</text>`);
  }
  clip(x, y, width, height) {
    const id = `clip${++this.clips}`;
    this.parts.push(`<clipPath id="${id}"><rect x="${x}" y="${y}" width="${width}" height="${height}"/></clipPath><g clip-path="url(#${id})">`);
  }
  unclip() { this.parts.push('</g>'); }
  image(canvas, x, y, width, height) {
    this.parts.push(`<image x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" preserveAspectRatio="none" href="${canvas.toDataURL('image/png')}"/>`);
  }
  points(box, xs, ys, colours, radius, mask = null) {
    if (xs.length > kMostCircles) {
      return this.image(rasterOf(box, xs, ys, colours, radius, this.ratio, mask), box.x, box.y, box.width, box.height);
    }
    for (let i = 0; i < xs.length; ++i) {
      const colour = colours.length === undefined ? colours : colours[i];
      if (colour === 0 || (mask && !mask[i]) || xs[i] < box.x || xs[i] > box.x + box.width || ys[i] < box.y || ys[i] > box.y + box.height) continue;
      const fill = `#${[colour & 255, (colour >> 8) & 255, (colour >> 16) & 255].map((c) => c.toString(16).padStart(2, '0')).join('')}`;
      this.circle(xs[i], ys[i], radius, {fill, alpha: round((colour >>> 24) / 255)});
    }
  }
  toString(paper) {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}" font-family="system-ui, sans-serif" font-size="11"><rect width="100%" height="100%" fill="${paper}"/>${this.parts.join('')}</svg>\n`;
  }
}
