// The page: which part of it is shown, and what is common to all parts.
import {el, button, tip} from '/dom.js';
import {Experiment} from '/data.js';
import {allDrawn} from '/frames.js';
import {listen} from '/live.js';
import * as state from '/state.js';
import {showExperiments} from '/experiments.js';
import {showOverview} from '/overview.js';
import {showSearch} from '/search.js';
import {showRungs} from '/rungs.js';
import {showTrials} from '/trials.js';
import {showTrial} from '/trial.js';
import {showNodes} from '/nodes.js';

const kPages = [
  ['overview', 'Overview', showOverview], ['search', 'Search', showSearch], ['rungs', 'Rungs', showRungs],
  ['trials', 'Trials', showTrials], ['trial', 'Trial', showTrial], ['nodes', 'Nodes', showNodes]];

const top = document.getElementById('top'), main = document.getElementById('page');
const status = el('span', {class: 'faint', id: 'online'});
let experiment = null;  // the one that is shown
let shown = null;       // {update, remove, keys} of the part that is shown
let turn = 0;

function theme(next = null) {
  const stored = localStorage.getItem('theme') ?? 'auto';
  const wanted = next ?? stored;
  localStorage.setItem('theme', wanted);
  const dark = wanted === 'dark' || (wanted === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  shown?.update?.();
}
function turnTheme() { theme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'); }

function drawTop() {
  const meta = experiment?.meta;
  const links = !experiment ? [] : kPages.map(([page, label], i) => el('a', {
    href: state.address({page, query: page === 'trial' ? {n: state.get('n', String(meta?.best?.number ?? 0))} : {}}),
    class: page === state.state.page ? 'here' : '', title: `Key ${i + 1}`}, label));
  top.replaceChildren(
      el('a', {href: '#/', class: 'home', title: 'All experiments (key 0)'}, 'tune'),
      el('span', {class: 'name'}, meta?.name ?? ''),
      meta ? el('span', {class: `state ${meta.state.replace(' ', '-')}`}, meta.state) : '',
      el('nav', {}, ...links), status,
      button('Keys', showKeys, 'Keys (?)'), button('Dark / light', turnTheme, 'Dark or light (key d)'));
}

function fail(error) {
  main.replaceChildren(el('div', {class: 'problem', role: 'alert'}, `${error.message ?? error}`));
}

async function wait(mine) {
  while (mine === turn) {
    const meta = await experiment.loadMeta();
    if (meta.is_loaded) return true;
    main.replaceChildren(el('p', {}, 'Reading the trials: ', el('progress', {max: 1, value: meta.loaded}), ` ${Math.round(meta.loaded * 100)} %`));
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return false;
}

// For measurements and tests: when a part was painted, and how long that took.
async function noteShown(begun) {
  await allDrawn();
  requestAnimationFrame(() => requestAnimationFrame(() => {
    document.documentElement.dataset.shownAt = String(Math.round(performance.now()));
    document.documentElement.dataset.shownMs = String(Math.round(performance.now() - begun));
  }));
}

async function show() {
  const mine = ++turn;
  const begun = performance.now();
  shown?.remove?.();
  shown = null;
  tip.hide();
  try {
    if (!state.state.key) {
      experiment = null;
      document.title = 'tune view';
      drawTop();
      const part = await showExperiments(main);
      if (mine !== turn) return part.remove?.();
      shown = part;
      return noteShown(begun);
    }
    if (experiment?.key !== state.state.key) experiment = new Experiment(state.state.key);
    if (!kPages.some(([page]) => page === state.state.page)) state.state.page = 'overview';
    drawTop();
    if (!experiment.meta?.is_loaded && !(await wait(mine))) return;
    if (mine !== turn) return;
    document.title = `${experiment.meta.name} - tune view`;
    drawTop();
    const part = await kPages.find(([page]) => page === state.state.page)[2](main, experiment);
    if (mine !== turn) return part.remove?.();
    shown = part;
    noteShown(begun);
  } catch (error) {
    if (mine === turn) fail(error);
  }
}

// ---- Changes ----

const kTryAgainMs = 3000;
let asked = false, running = false, hasFailed = false;
async function refresh() {
  if (running) { asked = true; return; }
  running = true;
  const mine = turn;
  try {
    if (experiment) {
      await experiment.refresh();
      if (!experiment.meta.is_loaded) { if (mine === turn) await show(); return; }
      drawTop();
    }
    if (mine === turn) await shown?.update?.();
    if (hasFailed) status.textContent = '';
    hasFailed = false;
  } catch (error) {
    status.textContent = error.message;
    hasFailed = true;
  } finally {
    running = false;
    if (asked) setTimeout(refresh, 100);
    else if (hasFailed) setTimeout(refresh, kTryAgainMs);  // the network of a machine that wakes, say
    asked = false;
  }
}

let boot = null;
listen((told) => {
  if (told.online !== undefined) status.textContent = told.online ? '' : 'not connected';
  if (told.hello) {
    if (boot && boot !== told.hello.boot) location.reload();  // another server
    boot = told.hello.boot;
    if (shown) refresh();
  }
  if (told.change && (!experiment || told.change.includes(experiment.key))) refresh();
});
// The server forgets experiments that nobody asks for.
setInterval(() => { if (!document.hidden) refresh(); }, 60000);
document.addEventListener('visibilitychange', () => { if (!document.hidden && shown) refresh(); });

// ---- Keys ----

const kKeys = [
  ['0', 'all experiments'], ['1 to 6', 'parts of an experiment'], ['/', 'to the filter or search field'], ['j, k', 'next, previous trial or row'],
  ['Enter', 'open the chosen row'], ['Esc', 'remove all filters'], ['d', 'dark or light'], ['?', 'this list'],
  ['drag in a picture', 'zoom or brush'], ['double click', 'the whole picture again']];
function showKeys() {
  const dialog = el('dialog', {class: 'keys'}, el('h2', {}, 'Keys'),
      el('table', {}, ...kKeys.map(([key, what]) => el('tr', {}, el('th', {}, key), el('td', {}, what)))),
      el('form', {method: 'dialog'}, el('button', {}, 'Close')));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  if (event.target.matches('input, select, textarea')) {
    if (event.key === 'Escape') event.target.blur();
    return;
  }
  const page = kPages[Number(event.key) - 1];
  if (event.key === '0') state.go('#/');
  else if (page && experiment) state.go(state.address({page: page[0], query: page[0] === 'trial' ? {n: String(experiment.meta?.best?.number ?? 0)} : {}}));
  else if (event.key === 'd') turnTheme();
  else if (event.key === '?') showKeys();
  else if (event.key === '/') { event.preventDefault(); document.querySelector('input.search')?.focus(); }
  else shown?.key?.(event);
});

theme();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => theme());
state.onMove(show);
show();
