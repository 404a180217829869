// Which parameters set the best trials apart: the numbers of `tune importance`. The server finds
// them beside its other work, so that they are asked for again until they are there.
import {Chart, nothing} from '/chart.js';
import {kBlue, kSky} from '/colour.js';
import {json} from '/data.js';

import {number, short} from '/scale.js';

const kAgainMs = 1000, kEveryMs = 30000, kMostBars = 12;

export function importanceChart(experiment) {
  let told = null, asked = -Infinity, timer = null, removed = false;
  const chart = new Chart({
    title: 'Importance of parameters',
    name: 'importance',
    height: 300,
    margin: {left: 150, right: 60, bottom: 12},
    draw
  });

  function draw(painter, box, colours) {
    const found = told?.importance;
    chart.note.textContent = found ?
        `what sets the best ${number(found.best)} of ${
            number(found.trials)} trials apart from all; pale: no more than chance gives` :
        '';
    if (!found)
      return nothing(
          painter, box, colours, told?.problem ? short(told.problem, 90) : 'being found ...');
    const shown = found.parameters.slice(0, kMostBars);
    const most = Math.max(0.01, ...shown.map((one) => one.importance));
    const high = Math.min(34, box.height / Math.max(1, shown.length));
    shown.forEach((one, i) => {
      const middle = box.y + (i + 0.5) * high, wide = (one.importance / most) * box.width;
      painter.text(short(one.path, 22), box.x - 8, middle, {colour: colours.text, align: 'right'});
      painter.rect(
          box.x, box.y + i * high + 0.18 * high, Math.max(1, wide), 0.64 * high,
          {fill: colours.dark ? kSky : kBlue, alpha: one.stands_out ? 1 : 0.35});
      painter.text(
          `${(100 * one.importance).toFixed(1)} %`, box.x + wide + 6, middle,
          {colour: colours.text});
    });
    chart.bars = shown.map((one, i) => ({one, from: box.y + i * high, to: box.y + (i + 1) * high}));
  }
  chart.onPoint((_px, py) => {
    const bar = chart.bars?.find(({from, to}) => py >= from && py < to);
    if (!bar) return null;
    const {one} = bar;
    return [
      one.path, `${(100 * one.importance).toFixed(1)} % of the importance of all`,
      one.stands_out ? 'stands out from chance' : 'no more than chance gives',
      `${number(one.trials)} trials${one.when ? `, when ${one.when}` : ''}`
    ];
  });
  async function ask() {
    timer = null;
    asked = performance.now();
    try {
      told = await json(experiment.address('importance'));
    } catch (error) {
      told = {problem: error.message, is_current: true};
    }
    if (removed) return;
    const bars = Math.min(kMostBars, told.importance?.parameters.length ?? 0);
    if (bars > 0) chart.resize(Math.max(140, Math.min(300, 22 + 34 * bars)));
    if (!told.is_current) timer = setTimeout(ask, told.importance ? kEveryMs : kAgainMs);
    chart.redraw();
  }
  // A sweep that runs changes all the time: it is asked for now and then.
  async function update() {
    chart.redraw();
    if (timer === null && performance.now() - asked > kEveryMs) await ask();
  }
  return {
    chart,
    update,
    told: () => told,
    remove: () => {
      removed = true;
      clearTimeout(timer);
      chart.remove();
    }
  };
}
