// Nodes: who is there, what each did, and which places are set aside.
import {el} from '/dom.js';
import {clock, number} from '/scale.js';
import {lanesChart} from '/lanes.js';
import * as state from '/state.js';

export async function showNodes(main, experiment) {
  const lanes = lanesChart(experiment, (trial) => state.go(state.address({page: 'trial', query: {n: String(trial)}})));
  const table = el('div', {class: 'panel scroll'}), aside = el('div', {class: 'panel'}), news = el('div', {class: 'panel scroll'});
  main.replaceChildren(table, el('h2', {}, 'What ran where'), lanes.chart.root, el('h2', {}, 'Set aside'), aside, el('h2', {}, 'News'), news);
  async function update() {
    const {meta} = experiment;
    table.replaceChildren(meta.nodes.length === 0 ? el('span', {class: 'faint'}, 'No node has joined, or the sweep is older than events.jsonl.') :
      el('table', {}, el('tr', {}, ...['node', 'address', 'CPUs', 'GPUs', 'memory', 'trials now', 'joined', 'left'].map((name) => el('th', {}, name))),
          ...meta.nodes.map((one) => el('tr', {}, el('td', {}, one.name), el('td', {}, one.ip), el('td', {}, number(one.cpus)), el('td', {}, String(one.gpus)),
              el('td', {}, `${number(one.memory_bytes / 2 ** 30, 3)} GiB`), el('td', {}, String(one.running)), el('td', {}, clock(one.joined)),
              el('td', {}, one.left ? `${clock(one.left)} ${one.cause}` : '')))));
    aside.replaceChildren(meta.set_aside.length === 0 ? el('span', {class: 'faint'}, 'nothing') :
      el('table', {}, ...meta.set_aside.map((one) => el('tr', {}, el('td', {}, one.place), el('td', {class: 'faint'}, `since ${clock(one.since)}`)))));
    news.replaceChildren(meta.notices.length === 0 ? el('span', {class: 'faint'}, 'none') : el('table', {}, ...meta.notices.slice().reverse().map((one) => el('tr', {}, el('td', {class: 'faint'}, clock(one.time)), el('td', {}, one.event), el('td', {}, one.text)))));
    await lanes.update();
  }
  await update();
  return {update, remove: () => lanes.chart.remove()};
}
