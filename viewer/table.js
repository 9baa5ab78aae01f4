// SPDX-License-Identifier: MIT
// Tables that sort, filter, and unfold more rows on demand.
import { button, element } from './dom.js';
import { csvButtons } from './export.js';

const ROWS_SHOWN = 100;

/**
 * A table. Each column has a title, `value` of a row for sorting and CSV, and what `show` makes of
 * it; numbers are right-aligned. `detail` of a row is shown below it when it is opened.
 */
export class Table {
  constructor(name, columns, { detail = null, sort = 0, open = null } = {}) {
    Object.assign(this, { name, columns, detail, sort, open, rows: [], shown: ROWS_SHOWN });
    this.is_down = true;
    this.opened = new Set();
    this.body = element('tbody');
    this.head = element('tr');
    this.more = element('p', { class: 'more-rows' });
    this.tools = csvButtons(name, () => this.csv());
    this.node = element('div', { class: 'table-box' },
      element('table', { 'aria-label': name }, element('thead', {}, this.head), this.body),
      this.more);
  }

  csv() {
    return [this.columns.map((column) => column.title),
      ...this.sorted().map((row) => this.columns.map((column) => column.value(row)))];
  }

  setRows(rows) {
    this.rows = rows;
    this.draw();
  }

  sorted() {
    const { value } = this.columns[this.sort];
    const sign = this.is_down ? -1 : 1;
    const compare = (a, b) => (typeof a === 'number' || typeof b === 'number'
      ? a - b : String(a).localeCompare(String(b)));
    return this.rows.slice().sort((a, b) => sign * compare(value(a), value(b)));
  }

  sortBy(i) {
    this.is_down = this.sort === i ? !this.is_down : this.columns[i].is_number !== false;
    this.sort = i;
    this.draw();
  }

  drawHead() {
    this.head.replaceChildren(...this.columns.map((column, i) => {
      const order = i !== this.sort ? 'none' : this.is_down ? 'descending' : 'ascending';
      const sign = order === 'none' ? '' : this.is_down ? ' ▾' : ' ▴';
      return element('th', {
        scope: 'col', 'aria-sort': order, class: column.is_number === false ? '' : 'number',
      }, button(column.title + sign, () => this.sortBy(i), { title: column.hint || '' }));
    }));
  }

  row(row) {
    const key = this.columns[0].key ? this.columns[0].key(row) : row;
    const cells = this.columns.map((column) => {
      const shown = column.show ? column.show(row) : column.value(row);
      return element('td', {
        class: column.is_number === false ? column.class || '' : 'number',
        title: column.title_of ? column.title_of(row) : null,
      }, shown instanceof Node || typeof shown === 'string' ? shown : String(shown ?? ''));
    });
    const made = element('tr', {}, ...cells);
    if (this.detail || this.open) this.makeOpen(made, row, key);
    if (!this.detail || !this.opened.has(key)) return [made];
    return [made, element('tr', { class: 'detail' },
      element('td', { colspan: this.columns.length }, this.detail(row)))];
  }

  makeOpen(made, row, key) {
    const act = () => {
      if (this.open) {
        this.open(row);
        return;
      }
      if (!this.opened.delete(key)) this.opened.add(key);
      this.draw();
      [...this.body.querySelectorAll('tr[tabindex]')]
        .find((other) => other.key === key)?.focus();
    };
    made.key = key;
    made.tabIndex = 0;
    if (this.detail) made.setAttribute('aria-expanded', this.opened.has(key));
    made.addEventListener('click', (event) => {
      if (!event.target.closest('button')) act();
    });
    made.addEventListener('keydown', (event) => {
      if (event.target === made && event.key === 'Enter') act();
    });
  }

  draw() {
    const rows = this.sorted();
    this.drawHead();
    this.body.replaceChildren(...rows.slice(0, this.shown).flatMap((row) => this.row(row)));
    const left = rows.length - this.shown;
    this.more.replaceChildren(...(left > 0 ? [button(`${left} more rows`, () => {
      this.shown += 10 * ROWS_SHOWN;
      this.draw();
    })] : rows.length ? [] : ['Nothing.']));
  }
}
