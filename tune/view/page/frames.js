// When pictures are drawn: a few milliseconds of each frame, so that the page follows the pointer
// whatever there is to draw. First comes the picture that a pointer holds, then those in sight, each in
// its turn; the ones out of sight follow when nothing else waits.
const kBudgetMs = 5;
const kRestMs = 150;  // after the pointer's last move: pictures out of sight may be drawn

const waiting = new Set();
const ends = [];
let frame = null, moved = -Infinity;

addEventListener('pointermove', (event) => { if (event.buttons) moved = performance.now(); }, {capture: true, passive: true});

function next(now) {
  let found = null;
  for (const chart of waiting) {
    if (chart.isHeld) return chart;
    if (!found && chart.inSight) found = chart;
  }
  if (found || now - moved < kRestMs) return found;
  return waiting.values().next().value ?? null;
}

function work() {
  const begun = performance.now();
  frame = null;
  try {
    for (let now = begun; now - begun < kBudgetMs; now = performance.now()) {
      const chart = next(now);
      if (!chart) break;
      waiting.delete(chart);
      chart.drawNow();
    }
  } finally {
    if (waiting.size > 0) frame = requestAnimationFrame(work);
    else for (const told of ends.splice(0)) told();
  }
}

export function ask(chart) {
  waiting.add(chart);
  frame ??= requestAnimationFrame(work);
}
export function forget(chart) { waiting.delete(chart); }

// When nothing waits to be drawn.
export function allDrawn() {
  return waiting.size === 0 ? Promise.resolve() : new Promise((told) => { ends.push(told); });
}

// Tells each chart whether it is in sight.
const sight = new IntersectionObserver((entries) => {
  for (const {target, isIntersecting} of entries) target.chart.inSight = isIntersecting;
}, {rootMargin: '100px'});
export function watch(plane, chart) { plane.chart = chart; sight.observe(plane); }
export function leave(plane) { sight.unobserve(plane); }
