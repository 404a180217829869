// Orders to the driver of a sweep that runs: buttons, dialogs, and what came of them. The server
// takes them when it was started with --control.
import {el, button} from '/dom.js';

export function canOrder(experiment) { return experiment.meta.control === true && experiment.meta.state === 'running'; }

// {done} or {error}, in words.
export async function order(experiment, what) {
  const answer = await fetch('/api/order', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({x: experiment.key, ...what})});
  const words = await answer.text();
  try { return JSON.parse(words); } catch { return {error: words.trim() || String(answer.status)}; }
}

// The driver's last answer, beside the buttons.
export function saying() {
  const line = el('span', {class: 'said', role: 'status'});
  return {line, say: (told) => {
    line.textContent = told.done ?? told.error;
    line.classList.toggle('refused', told.done === undefined);
  }};
}

// A dialog with fields {name, label, kind, value}; their values, or null when it was given up.
export function ask(title, fields, words, note = '') {
  return new Promise((resolve) => {
    const inputs = fields.map(({name, label, kind = 'text', value = ''}) => [name, label,
      kind === 'area' ? el('textarea', {rows: 12, cols: 56, spellcheck: false, 'aria-label': label}) : el('input', {type: kind, size: 44, 'aria-label': label}), value]);
    for (const [, , input, value] of inputs) input.value = value;
    let given = null;
    const dialog = el('dialog', {class: 'ask'}, el('h2', {}, title), note ? el('p', {class: 'faint'}, note) : '',
        ...inputs.map(([, label, input]) => el('label', {class: 'field'}, label, input)),
        el('div', {class: 'bar'}, button(words, () => { given = Object.fromEntries(inputs.map(([name, , input]) => [name, input.value])); dialog.close(); }), button('Cancel', () => dialog.close())));
    dialog.addEventListener('close', () => { dialog.remove(); resolve(given); });
    dialog.addEventListener('keydown', (event) => { if (event.key === 'Enter' && event.target.matches('input')) { event.preventDefault(); dialog.querySelector('button').click(); } });
    document.body.append(dialog);
    dialog.showModal();
  });
}

const kMayBe = {RUNNING: ['pause', 'stop'], PENDING: ['pause', 'stop'], PAUSED: ['unpause', 'pause', 'stop'], TERMINATED: ['retry'], ERROR: ['retry']};
const kWords = {pause: 'Pause', unpause: 'Unpause', stop: 'Stop', retry: 'Retry'};

// The buttons of one trial.
export function trialButtons(experiment, data, said) {
  if (!canOrder(experiment)) return [];
  const given = async (what, fields) => {
    const filled = await ask(`${kWords[what] ?? 'Note about'} trial ${data.number}`, fields, kWords[what] ?? 'Keep the note');
    if (filled) said.say(await order(experiment, {do: what, trial: data.number, ...filled}));
  };
  return [...(kMayBe[data.status] ?? []).map((what) => button(kWords[what], () => given(what, [{name: 'reason', label: 'reason, may be empty'}]))),
    button('Note', () => given('note', [{name: 'text', label: 'note'}])), said.line];
}

const kMostAtOnce = 200;

// The buttons of the table: the trials that are shown, a new configuration, num_samples.
export function tableButtons(experiment, shown, said) {
  if (!canOrder(experiment)) return [];
  const all = async (what) => {
    const trials = shown().filter(({status}) => kMayBe[status]?.includes(what)).map(({number}) => number);
    if (trials.length === 0 || trials.length > kMostAtOnce) return said.say({error: trials.length ? `${trials.length} trials are shown: filter to ${kMostAtOnce} at most` : `no trial that is shown is one to ${what}`});
    const filled = await ask(`${kWords[what]} ${trials.length} trial${trials.length === 1 ? '' : 's'}`, [{name: 'reason', label: 'reason, may be empty'}], kWords[what], `Those that are shown: ${trials.slice(0, 20).join(', ')}${trials.length > 20 ? ' ...' : ''}`);
    if (!filled) return;
    let done = 0, last = {};
    for (const trial of trials) {
      last = await order(experiment, {do: what, trial, ...filled});
      if (last.done !== undefined) ++done; else break;
    }
    said.say(trials.length === 1 || last.done === undefined ? last : {done: `${what}: ${done} trials`});
  };
  const add = async () => {
    const best = experiment.meta.best?.config?.json ?? '{}';
    const filled = await ask('Try a configuration', [{name: 'config', label: 'JSON; what it leaves out is drawn', kind: 'area', value: best}, {name: 'reason', label: 'reason, may be empty'}], 'Add it');
    if (!filled) return;
    try {
      said.say(await order(experiment, {do: 'add', config: JSON.parse(filled.config), reason: filled.reason}));
    } catch (error) {
      said.say({error: `this is not JSON: ${error.message}`});
    }
  };
  const samples = async () => {
    const filled = await ask('num_samples', [{name: 'number', label: 'samples in all', kind: 'number', value: String(experiment.meta.num_samples ?? '')}, {name: 'reason', label: 'reason, may be empty'}], 'Change it');
    if (filled) said.say(await order(experiment, {do: 'change', num_samples: Math.round(Number(filled.number)), reason: filled.reason}));
  };
  return [...Object.entries(kWords).map(([what, words]) => button(words, () => all(what), `${words} all trials that are shown`)),
    button('Add ...', add, 'A configuration to try next'), button('Samples ...', samples, 'Change num_samples'), said.line];
}
