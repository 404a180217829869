// A table of rows of one height, of which those in sight are there: a hundred thousand scroll like a
// hundred. Rows that stay in sight are left alone, and those that leave are given to those that come.
import {el} from '/dom.js';

const kRow = 24;
const kBeyond = 8;       // rows made above and below those in sight
const kBeside = 200;     // pixels left and right of the columns in sight
const kRestMs = 100;

// texts(index, column), looks(index) -> {chosen, colour of its dot}, open(index); columns: {width, isNumber, isWord}.
export class RowTable {
  constructor({head, texts, looks, open}) {
    Object.assign(this, {texts, looks, open, columns: [], lefts: [], count: 0});
    this.space = el('div', {class: 'space'});
    this.root = el('div', {class: 'vtable', tabIndex: 0, role: 'table', 'aria-label': 'Trials'}, head, this.space);
    this.rows = new Map();  // by their index
    this.top = 0;
    this.root.addEventListener('scroll', () => this.draw());
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.root);
  }
  remove() {
    this.observer.disconnect();
    clearTimeout(this.rest);
  }
  // Other rows, columns or values: what is in sight is written anew.
  show(columns, count) {
    this.count = count;
    this.space.style.height = `${count * kRow}px`;
    let left = 0;
    const lefts = columns.map(({width}) => { left += width; return left - width; });
    const layout = columns.map(({width, isNumber, isWord}) => `${width}${isNumber ? 'n' : ''}${isWord ? 'w' : ''}`).join();
    Object.assign(this, {columns, lefts, width: left});
    if (layout !== this.layout) this.clear();
    this.layout = layout;
    this.draw(true);
  }
  clear() {
    this.space.replaceChildren();
    this.rows.clear();
  }
  // The first and the last column in sight.
  across() {
    const from = this.root.scrollLeft - kBeside, to = this.root.scrollLeft + this.root.clientWidth + kBeside;
    const first = this.lefts.findIndex((left, i) => left + this.columns[i].width > from);
    const last = this.lefts.findLastIndex((left) => left < to);
    return [Math.max(0, first), last];
  }
  draw(anew = false) {
    const top = this.root.scrollTop, high = this.root.clientHeight;
    // Rows beyond those in sight would not be seen before the next leap.
    const beyond = Math.abs(top - this.top) > high / 2 ? 0 : kBeyond;
    const from = Math.max(0, Math.floor(top / kRow) - beyond), to = Math.min(this.count, Math.ceil((top + high) / kRow) + beyond);
    this.top = top;
    const [first, last] = this.across();
    if (first !== this.first || last !== this.last) this.clear();
    Object.assign(this, {first, last});
    const free = [];
    for (const [index, row] of this.rows) {
      if (index >= from && index < to) continue;
      this.rows.delete(index);
      free.push(row);
    }
    free.sort((a, b) => a.index - b.index);
    // From the last one up, so that few nodes move: they stand in the order of their rows.
    for (let index = to - 1, after = null; index >= from; --index) {
      const there = this.rows.get(index), row = there ?? free.pop() ?? this.made();
      if (row.node.nextSibling !== after || !row.node.parentNode) this.space.insertBefore(row.node, after);
      after = row.node;
      if (there && !anew) continue;
      this.rows.set(index, row);
      this.write(row, index);
    }
    for (const row of free) row.node.remove();
    clearTimeout(this.rest);
    if (beyond === 0) this.rest = setTimeout(() => this.draw(), kRestMs);
  }
  made() {
    const cells = [], dot = el('span', {class: 'dot'});
    for (let i = this.first; i <= this.last; ++i) {
      const {width, isNumber, isWord, hasDot} = this.columns[i], text = document.createTextNode('');
      cells.push(text);
      el('div', {class: `vcell${isNumber ? ' number' : ''}${isWord ? ' word' : ''}`, role: 'cell', style: {left: `${this.lefts[i]}px`, width: `${width}px`}}, hasDot ? dot : null, text);
    }
    const row = {cells, dot, index: -1};
    row.node = el('div', {class: 'vrow', role: 'row', style: {width: `${this.width}px`}, onclick: () => this.open(row.index)}, ...cells.map((text) => text.parentNode));
    return row;
  }
  write(row, index) {
    if (row.index !== index) row.node.style.top = `${index * kRow}px`;
    row.index = index;
    const {chosen, colour} = this.looks(index), name = chosen ? 'vrow chosen' : 'vrow';
    if (row.node.className !== name) row.node.className = name;
    if (row.colour !== colour) row.dot.style.background = colour;
    row.colour = colour;
    row.cells.forEach((cell, i) => {
      const text = this.texts(index, this.columns[this.first + i]);
      if (cell.data !== text) cell.data = text;
    });
  }
  // Scrolls so far that this row is in sight.
  reveal(index) {
    const top = index * kRow, room = this.root.clientHeight - 2 * kRow;
    if (top < this.root.scrollTop) this.root.scrollTop = top;
    if (top > this.root.scrollTop + room) this.root.scrollTop = top - room;
  }
}
