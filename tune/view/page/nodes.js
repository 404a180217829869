// Nodes: who is there with what load, what each did, why trials wait, and which places are set aside.
import {json} from '/data.js';
import {el} from '/dom.js';
import {clock, duration, number} from '/scale.js';
import {lanesChart} from '/lanes.js';
import * as state from '/state.js';

const kGiB = 2 ** 30;
const kRefreshMs = 5000;

// Columns in which no row has anything are left out.
function table(names, rows) {
  const isUsed = names.map((_, i) => rows.some((row) => row[i] !== '' && row[i].textContent !== ''));
  const used = (row) => row.filter((_, i) => isUsed[i]);
  return el('table', {}, el('tr', {}, ...used(names).map((name) => el('th', {}, name))),
      ...rows.map((row) => el('tr', {}, ...used(row).map((cell) => el('td', {}, cell)))));
}

// A bar with its words: how much of a thing is in use.
function share(used, all, words) {
  const part = all > 0 ? Math.min(1, used / all) : 0;
  return el('span', {class: 'share'}, el('span', {class: 'track'}, el('span', {class: 'filled', style: {width: `${100 * part}%`}})), words);
}

function nodeRow(one) {
  const measured = one.cpus_used === null ? '' : `${number(one.cpus_used, 3)} cores, ${number(one.memory_used / kGiB, 3)} GiB`;
  return [el('span', {class: 'short'}, one.name.slice(0, 40)), one.ip, String(one.running),
    one.left ? '' : share(one.cpus_held, one.cpus, `${number(one.cpus_held)} of ${number(one.cpus)}`),
    one.left || !one.gpus ? '' : share(one.gpus_held, one.gpus, `${number(one.gpus_held)} of ${one.gpus}`),
    `${number(one.memory_bytes / kGiB, 3)} GiB`, one.left ? '' : measured, el('span', {class: 'short'}, clock(one.joined)), one.left ? `${clock(one.left)} ${one.cause}` : ''];
}

// "12 trials wait: 2 jobs queued (Priority) for 41 min", and then each job.
function queueView(got, meta, now) {
  const jobs = got.allocations, waiting = jobs.filter(({state: one}) => one !== 'running');
  const here = got.nodes.filter((one) => !one.left);
  const lines = [];
  if (meta.state !== 'running') lines.push('The sweep does not run.');
  else if (got.waiting === 0) lines.push('No trial that was made waits for a place.');
  else {
    const groups = new Map();
    for (const one of waiting) {
      const word = `${one.state}${one.reason ? ` (${one.reason})` : ''}`;
      const group = groups.get(word) ?? {count: 0, asked: one.asked};
      groups.set(word, {count: group.count + 1, asked: Math.min(group.asked, one.asked)});
    }
    const why = [...groups].map(([word, {count, asked}]) => `${number(count)} job${count === 1 ? '' : 's'} ${word} for ${duration(now - asked)}`);
    if (why.length === 0) why.push(here.length === 0 ? 'no node is there' : 'all places are in use');
    lines.push(`${number(got.waiting)} trial${got.waiting === 1 ? ' waits' : 's wait'}: ${why.join(', ')}.`);
  }
  if (got.why_paused) lines.push(`The pool is paused: ${got.why_paused}`);
  return [...lines.map((line) => el('p', {}, line)), jobs.length === 0 ? '' :
    table(['job', 'state', 'for', 'asked for', 'id', 'host', 'reason'], jobs.slice(0, 200).map((one) =>
      [String(one.number), one.state, duration(now - one.since), clock(one.asked), one.id, one.host, one.reason]))];
}

export async function showNodes(main, experiment) {
  const lanes = lanesChart(experiment, (trial) => state.go(state.address({page: 'trial', query: {n: String(trial)}})));
  const nodes = el('div', {class: 'panel scroll'}), queue = el('div', {class: 'panel scroll', id: 'queue'});
  const aside = el('div', {class: 'panel'}), news = el('div', {class: 'panel scroll'}), engine = el('h2', {}, 'Queue');
  main.replaceChildren(nodes, engine, queue, el('h2', {}, 'What ran where'), lanes.chart.root, el('h2', {}, 'Set aside'), aside, el('h2', {}, 'News'), news);
  async function load() {
    const {meta} = experiment;
    const got = await json(experiment.address('nodes'));
    nodes.replaceChildren(got.nodes.length === 0 ? el('span', {class: 'faint'}, 'No node has joined, or the sweep is older than events.jsonl.') :
      table(['node', 'address', 'trials now', 'CPUs held', 'GPUs held', 'memory', 'measured', 'joined', 'left'], got.nodes.map(nodeRow)));
    engine.textContent = got.pool ? `Queue of ${got.pool}` : 'Queue';
    queue.replaceChildren(...queueView(got, meta, Date.now() / 1000));
  }
  async function update() {
    const {meta} = experiment;
    await load();
    aside.replaceChildren(meta.set_aside.length === 0 ? el('span', {class: 'faint'}, 'nothing') :
      el('table', {}, ...meta.set_aside.map((one) => el('tr', {}, el('td', {}, one.place), el('td', {class: 'faint'}, `since ${clock(one.since)}`)))));
    news.replaceChildren(meta.notices.length === 0 ? el('span', {class: 'faint'}, 'none') : el('table', {}, ...meta.notices.slice().reverse().map((one) => el('tr', {}, el('td', {class: 'faint'}, clock(one.time)), el('td', {}, one.event), el('td', {}, one.text)))));
    await lanes.update();
  }
  await update();
  // The load changes though no event tells of it.
  const timer = setInterval(() => { if (!document.hidden && experiment.meta.state === 'running') load().catch(() => {}); }, kRefreshMs);
  return {update, remove: () => { clearInterval(timer); lanes.chart.remove(); }};
}
