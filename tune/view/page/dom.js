// Elements of text nodes: nothing that an experiment's files hold is ever read as HTML.

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'class') node.className = value;
    else if (name === 'style') Object.assign(node.style, value);
    else if (name.startsWith('aria-') || name === 'role' || name === 'for') node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export function button(label, onclick, title = '') {
  return el('button', {type: 'button', onclick, title}, label);
}

// A choice of [value, label] pairs.
export function select(label, options, value, onchange) {
  const box = el('select', {onchange: () => onchange(box.value), 'aria-label': label});
  for (const [key, text] of options) {
    box.append(el('option', {value: String(key), selected: String(key) === String(value)}, text));
  }
  return el('label', {class: 'field'}, label, box);
}

export function check(label, checked, onchange) {
  const box = el('input', {type: 'checkbox', checked, onchange: () => onchange(box.checked)});
  return el('label', {class: 'field'}, box, label);
}

export async function copy(text, from) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // no permission: the old way
    const area = el('textarea', {value: text});
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  const label = from.textContent;
  from.textContent = 'Copied';
  setTimeout(() => { from.textContent = label; }, 1200);
}

export function save(name, blob) {
  const link = el('a', {href: URL.createObjectURL(blob), download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The box that says what is under the pointer.
export const tip = {
  show(event, lines) {
    const box = document.getElementById('tip');
    box.replaceChildren(...lines.map((line) => el('div', {}, line)));
    box.hidden = false;
    const {clientX: x, clientY: y} = event;
    box.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.offsetWidth - 8))}px`;
    box.style.top = `${Math.max(4, y + 14 + box.offsetHeight > innerHeight ? y - box.offsetHeight - 10 : y + 14)}px`;
  },
  hide() { document.getElementById('tip').hidden = true; },
};
