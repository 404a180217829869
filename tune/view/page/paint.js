// Painters: what a picture is drawn with. The same drawing makes the canvas on the page and the SVG
// that is saved. Many points at once are drawn by setting pixels: a hundred thousand take some
// milliseconds, without a GPU.

const kFont = '11px system-ui, sans-serif';
const kMostCircles = 3000;  // of an SVG; more are an image in it

export class CanvasPainter {
  constructor(canvas, width, height, ratio) {
    const across = Math.round(width * ratio), down = Math.round(height * ratio);
    this.context = canvas.getContext('2d');
    if (canvas.width === across && canvas.height === down && this.context.reset) {
      this.context.reset();  // without new memory
    } else {
      canvas.width = across;
      canvas.height = down;
    }
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
  // Squares of the points that the mask keeps, each with its own pixel's colour, or all with one.
  points(points, colours, mask = null) {
    const {x, y, width, height} = points.box;
    this.image(points.raster(this.ratio, colours, mask), x, y, width, height);
  }
}

let spare = null;
function spareCanvas(width, height) {
  spare ??= document.createElement('canvas');
  if (spare.width !== width || spare.height !== height) { spare.width = width; spare.height = height; }
  return spare;
}

// Empty pixels, whose memory is used again by the next picture of the same size.
const images = new Map();
export function spareImage(width, height) {
  const key = `${width} ${height}`;
  if (!images.has(key)) {
    if (images.size >= 6) images.clear();
    images.set(key, new ImageData(width, height));
  } else {
    images.get(key).data.fill(0);
  }
  return images.get(key);
}

// A canvas with these pixels; it is used again by the next raster.
export function canvasOf(pixels, width, height) {
  return canvasWith(new ImageData(new Uint8ClampedArray(pixels.buffer, 0, width * height * 4), width, height));
}
export function canvasWith(image) {
  const made = spareCanvas(image.width, image.height);
  made.getContext('2d').putImageData(image, 0, 0);
  return made;
}

// Points in a box, with squares of about 2 * radius. Where each of them lies among the pixels is found
// once: points that stay where they are while others of them are shown are drawn in a fifth of the time.
export class Points {
  constructor(box, xs, ys, radius) {
    Object.assign(this, {box, xs, ys, radius, ratio: 0});
  }
  place(ratio) {
    const {box, xs, ys} = this;
    this.ratio = ratio;
    this.width = Math.max(1, Math.round(box.width * ratio));
    this.height = Math.max(1, Math.round(box.height * ratio));
    const size = this.size = Math.max(1, Math.round(this.radius * 2 * ratio)), half = size >> 1;
    // Around the box lie as many pixels as a square may reach beyond it; the first one is nobody's.
    const across = this.across = this.width + 2 * size;
    this.down = this.height + 2 * size;
    this.at = new Uint32Array(xs.length);
    for (let i = 0; i < xs.length; ++i) {
      const left = Math.round((xs[i] - box.x) * ratio) - half, top = Math.round((ys[i] - box.y) * ratio) - half;
      if (left > -size && left < this.width && top > -size && top < this.height) this.at[i] = (top + size) * across + left + size;  // NaN is not
    }
  }
  raster(ratio, colours, mask) {
    if (ratio !== this.ratio) this.place(ratio);
    const {at, across, size} = this, image = spareImage(across, this.down), pixels = new Uint32Array(image.data.buffer);
    const one = colours.length === undefined ? colours : null;
    for (let i = 0; i < at.length; ++i) {
      if (at[i] === 0 || (mask !== null && mask[i] === 0)) continue;
      const colour = one ?? colours[i];
      if (colour === 0) continue;
      if (size === 2) {
        const p = at[i];
        pixels[p] = pixels[p + 1] = pixels[p + across] = pixels[p + across + 1] = colour;
      } else {
        for (let row = 0, p = at[i]; row < size; ++row, p += across) pixels.fill(colour, p, p + size);
      }
    }
    const made = spareCanvas(this.width, this.height);
    made.getContext('2d').putImageData(image, -size, -size);
    return made;
  }
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
  points(points, colours, mask = null) {
    const {box, xs, ys, radius} = points;
    if (xs.length > kMostCircles) {
      // Of its own, as the screen's would have to be placed anew.
      const image = new Points(box, xs, ys, radius).raster(this.ratio, colours, mask);
      return this.image(image, box.x, box.y, box.width, box.height);
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
