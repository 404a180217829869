// Colours that people with colour-blindness tell apart: Okabe and Ito's for kinds, viridis for values.

export const kBlue = '#0072b2', kOrange = '#e69f00', kGreen = '#009e73', kRed = '#d55e00';
export const kSky = '#56b4e9', kPink = '#cc79a7', kYellow = '#f0e442';
const kKinds = [kBlue, kOrange, kGreen, kPink, kSky, kRed, '#999999', kYellow];

export const kStatus = ['PENDING', 'RUNNING', 'PAUSED', 'TERMINATED', 'ERROR'];
export const kStatusColour = ['#999999', kSky, kOrange, kBlue, kRed];

const kViridis = [
  [68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141],
  [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37],
];

// 256 colours as canvas pixels (ABGR) and as text, from dark to light.
export const viridis = (() => {
  const pixels = new Uint32Array(256), texts = [];
  for (let i = 0; i < 256; ++i) {
    const at = (i / 255) * (kViridis.length - 1), low = Math.min(kViridis.length - 2, Math.floor(at));
    const [r, g, b] = [0, 1, 2].map((c) => Math.round(kViridis[low][c] + (kViridis[low + 1][c] - kViridis[low][c]) * (at - low)));
    pixels[i] = (255 << 24) | (b << 16) | (g << 8) | r;
    texts.push(`rgb(${r},${g},${b})`);
  }
  return {pixels, texts};
})();

export function pixel(hex, alpha = 255) {
  const value = parseInt(hex.slice(1), 16);
  return ((alpha << 24) | ((value & 255) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

// The theme's own colours, from the style sheet.
let inkOf = {theme: null};
export function ink() {
  const {theme} = document.documentElement.dataset;
  if (inkOf.theme === theme) return inkOf;
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(name).trim();
  inkOf = {theme, text: get('--text'), faint: get('--faint'), line: get('--line'), paper: get('--paper'), grid: get('--grid'), dark: get('--dark') === '1'};
  return inkOf;
}

// The colour of one of several; in the dark the light blue comes before the other one.
export function kind(i) {
  const colour = kKinds[i % kKinds.length];
  return !ink().dark || (colour !== kBlue && colour !== kSky) ? colour : colour === kBlue ? kSky : kBlue;
}
