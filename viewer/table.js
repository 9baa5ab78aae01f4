// SPDX-License-Identifier: MIT
// Tables that sort, filter, and unfold more rows on demand.
import { breakable, button, element, setText } from './dom.js';
import { csvButtons } from './export.js';
import { things } from './format.js';

const ROWS_SHOWN = 100;

/** The height of a line at least, the part of the window that a table has; and the time after which the rows below the visible ones follow. */
const LINE_HEIGHT = 27;
const PART = 0.6;
const REST_AFTER = 60;

const rowsThatFit = () => Math.ceil(Math.max(340, innerHeight * PART) / LINE_HEIGHT);
let rows_visible = rowsThatFit();
addEventListener('resize', () => { rows_visible = rowsThatFit(); });

/** What headings that are not plain mean. */
const HINTS = {
  Copied: 'Bytes that moves copied: of each the smaller one of the old and the new size',
  'Copied at most': 'Bytes that moves copied, if those did, too, of which it is not known',
  'At most': 'Bytes copied, if each copy was of the whole old block',
  Remapped: 'Moved by the kernel, without a copy', Avoidable: 'Bytes that room for the final size would have spared',
  'In place': 'Grew or shrank where it was', Moved: 'Got another address',
  Retained: 'Bytes that would become free without it', Itself: 'Its own bytes, without what it holds',
  Reaches: 'Bytes that its pointers lead to, even if others lead there as well',
};

/** The first `count` of a list as a comparison orders it: a heap of them, the last one on top, spares
 * sorting the others. */
function firstOf(list, count, compare) {
  if (list.length <= 2 * count) return list.slice().sort(compare).slice(0, count);
  const heap = list.slice(0, count);
  const sink = (i) => {
    for (;;) {
      let last = i;
      for (const child of [2 * i + 1, 2 * i + 2]) {
        if (child < count && compare(heap[child], heap[last]) > 0) last = child;
      }
      if (last === i) return;
      [heap[i], heap[last]] = [heap[last], heap[i]];
      i = last;
    }
  };
  for (let i = count >> 1; i >= 0; i--) sink(i);
  for (let i = count; i < list.length; i++) {
    if (compare(list[i], heap[0]) < 0) {
      heap[0] = list[i];
      sink(0);
    }
  }
  return heap.sort(compare);
}

/** A column of names. */
export function nameColumn(title, value) {
  return { title, is_number: false, class: 'name', value, show: (row) => element('span', {}, ...breakable(value(row))) };
}

/** The column of CSV of shares in a total, in percent. */
export function shareOf(value, total) {
  return ['Share in %', (row) => (total() ? (100 * value(row) / total()).toFixed(2) : '')];
}

/** The orders that were chosen, as the state has them: a list of the name of a table, the number of a column and
 * "up" or "down". */
const ORDER = /^([a-z-]+)\.(\d{1,2})\.(up|down)$/;

function readOrders(text) {
  return new Map(text.split('*').map((part) => ORDER.exec(part)).filter((found) => found)
    .map(([, name, column, direction]) => [name, { sort: Number(column), is_down: direction === 'down' }]));
}

/** Has the tables that are shown follow the orders of the state. */
export function followOrders(state) {
  document.querySelectorAll('.table-box').forEach(({ table }) => table?.follow(state));
}

/**
 * A table. Each column has a title, `value` of a row for CSV and, without a `rank`, for sorting; instead of
 * these, `csv` lists columns of CSV, each a title and a value; and
 * what `show` makes of it, which stays the same for a row with `is_fixed`; numbers are right-aligned. `detail` of a row is
 * shown below it when it is opened; `wants` says which rows are shown. The first column has the `key` of a row. Rows that were shown
 * before are kept, and only the differences in them are written.
 */
export class Table {
  constructor(name, columns, { detail = null, sort = 0, open = null, is_down = true, wants = null } = {}) {
    Object.assign(this, { name, columns, detail, sort, open, is_down, wants, all: [], rows: [], shown: ROWS_SHOWN });
    Object.assign(this, { usual: { sort, is_down }, state: null, followed: '' });
    this.opened = new Set();
    this.lines = new Map();
    this.body = element('tbody');
    this.head = element('tr');
    this.more = element('p', { class: 'more-rows' });
    this.tools = csvButtons(name, () => this.csv());
    this.node = element('div', { class: 'table-box' },
      element('table', { 'aria-label': name.replaceAll('-', ' ') }, element('thead', {}, this.head), this.body),
      this.more);
    this.node.table = this;
    this.drawHead();
  }

  csv() {
    const columns = this.columns.flatMap((column) => column.csv ?? [[column.title, column.value]]);
    return [columns.map(([title]) => title),
      ...this.rows.slice().sort(this.order()).map((row) => columns.map(([, value]) => value(row)))];
  }

  setRows(rows) {
    this.all = rows;
    this.choose();
  }

  /** Chooses anew which of the rows are shown: those that the search finds. */
  choose() {
    this.rows = this.wants ? this.all.filter(this.wants) : this.all;
    this.draw();
  }

  /** The order of rows, as a comparison. */
  order() {
    const { value, rank = value } = this.columns[this.sort];
    const sign = this.is_down ? -1 : 1;
    const compare = (a, b) => (typeof a === 'number' || typeof b === 'number'
      ? a - b : String(a).localeCompare(String(b)));
    return (a, b) => sign * compare(rank(a), rank(b));
  }

  /** Sorts by a column, or the other way round if it is sorted by that; the link has it. */
  sortBy(i) {
    this.orderBy({ sort: i, is_down: this.sort === i ? !this.is_down : this.columns[i].is_number !== false });
    this.writeOrder();
  }

  orderBy({ sort, is_down }) {
    if (this.sort === sort && this.is_down === is_down) return;
    Object.assign(this, { sort, is_down });
    this.drawHead();
    this.draw();
  }

  /** Has the table sorted by a column, downwards, unless somebody chose another one than was usual. */
  orderUsuallyBy(i) {
    const is_usual = this.sort === this.usual.sort;
    this.usual = { sort: i, is_down: true };
    if (is_usual) this.orderBy(this.usual);
    this.writeOrder();
  }

  /** Writes the order to the state, or that it is the usual one. */
  writeOrder() {
    const { state, name, sort, is_down, usual } = this;
    if (!state) return;
    const orders = readOrders(state.get('sort'));
    orders.delete(name);
    if (sort !== usual.sort || is_down !== usual.is_down) orders.set(name, { sort, is_down });
    const text = [...orders].map(([key, order]) => `${key}.${order.sort}.${order.is_down ? 'down' : 'up'}`).join('*');
    this.followed = text;
    if (text !== state.get('sort')) state.set({ sort: text });
  }

  /** Takes over the order that the state has for this table. */
  follow(state) {
    this.state = state;
    const text = state.get('sort');
    if (text === this.followed) return;
    this.followed = text;
    const order = readOrders(text).get(this.name);
    this.orderBy(order && order.sort < this.columns.length ? order : this.usual);
  }

  drawHead() {
    this.head.replaceChildren(...this.columns.map((column, i) => {
      const order = i !== this.sort ? 'none' : this.is_down ? 'descending' : 'ascending';
      const sign = order === 'none' ? '' : this.is_down ? ' ▾' : ' ▴';
      return element('th', {
        scope: 'col', 'aria-sort': order, class: column.is_number === false ? '' : 'number',
      }, button(column.title + sign, () => this.sortBy(i), { title: column.hint || HINTS[column.title] || '' }));
    }));
  }

  /** The line of a row: the element, and its contents. */
  makeLine(row, key) {
    const cells = this.columns.map((column) => element('td', {
      class: column.is_number === false ? column.class || '' : 'number',
    }));
    const line = { row, key, cells, node: element('tr', {}, ...cells), texts: [], titles: [] };
    if (this.detail || this.open) this.makeOpen(line);
    return line;
  }

  showCell(line, column, i) {
    const is_new = !(i in line.texts);
    if (!is_new && column.is_fixed) return;
    const shown = column.show ? column.show(line.row) : column.value(line.row);
    const title = column.title_of ? column.title_of(line.row) : null;
    if (shown instanceof Node) {
      if (line.cells[i].firstChild !== shown) line.cells[i].replaceChildren(shown);
    } else setText(line.cells[i], String(shown ?? ''));
    line.texts[i] = true;
    if (title !== null && line.titles[i] !== title) {
      line.cells[i].title = title;
      line.titles[i] = title;
    }
  }

  /** The contents below a row that is opened. */
  showDetail(line) {
    const is_open = Boolean(this.detail) && this.opened.has(line.key);
    if (this.detail) {
      const text = String(is_open);
      if (line.node.ariaExpanded !== text) line.node.ariaExpanded = text;
    }
    if (!is_open) line.below = null;
    else if (!line.below) {
      line.below = element('tr', { class: 'detail' },
        element('td', { colspan: this.columns.length }, this.detail(line.row)));
    }
  }

  makeOpen(line) {
    const act = () => {
      if (this.open) {
        this.open(line.row);
        return;
      }
      if (!this.opened.delete(line.key)) this.opened.add(line.key);
      this.draw();
    };
    line.node.tabIndex = 0;
    line.node.addEventListener('click', (event) => {
      if (!event.target.closest('button')) act();
    });
    line.node.addEventListener('keydown', (event) => {
      if (event.target === line.node && event.key === 'Enter') act();
    });
  }

  /** The lines of rows, the old ones as far as they are still there. */
  linesOf(rows) {
    const { key: keyOf } = this.columns[0];
    const lines = new Map();
    for (const row of rows) {
      const given = keyOf ? keyOf(row) : row;
      let key = given;
      for (let i = 2; lines.has(key); i++) key = `${given} ${i}`;
      const line = this.lines.get(key) || this.makeLine(row, key);
      line.row = row;
      lines.set(key, line);
    }
    return lines;
  }

  draw() {
    this.lines = this.linesOf(firstOf(this.rows, this.shown, this.order()));
    this.place();
    this.drawMore();
  }

  /** Places and fills the rows that can be seen, and soon the others: while the cursor moves, these wait. */
  place() {
    clearTimeout(this.rest);
    const lines = [...this.lines.values()];
    lines.forEach((line) => this.showDetail(line));
    const is_scrolled = this.body.closest('.table-scroll')?.is_scrolled;
    const first = is_scrolled === false && !this.opened.size ? rows_visible : lines.length;
    const is_part = first < lines.length;
    this.placeLines(lines.slice(0, first), is_part);
    if (is_part) this.rest = setTimeout(() => this.placeLines(lines, false, first), REST_AFTER);
  }

  /** Places lines in their order, and fills those from number `unfilled` on. Of a part of all lines, others stay below. */
  placeLines(lines, is_part, unfilled = 0) {
    const { children } = this.body;
    const nodes = lines.flatMap(({ node, below }) => (below ? [node, below] : [node]));
    const wanted = new Set(nodes);
    for (let i = children.length - 1; i >= 0 && !is_part; i--) if (!wanted.has(children[i])) children[i].remove();
    nodes.forEach((node, i) => {
      if (children[i] !== node) this.body.insertBefore(node, children[i] || null);
    });
    lines.slice(unfilled).forEach((line) => this.columns.forEach((column, i) => this.showCell(line, column, i)));
  }

  drawMore() {
    const left = this.rows.length - this.lines.size;
    const said = this.rows.length ? left : this.all.length ? -2 : -1;
    if (this.said === said) return;
    this.said = said;
    this.more.replaceChildren(...(left > 0 ? [button(things(left, 'more row'), () => {
      this.shown += 10 * ROWS_SHOWN;
      this.draw();
    })] : this.rows.length ? [] : [this.all.length ? 'Nothing that the search finds.' : 'Nothing.']));
  }
}
