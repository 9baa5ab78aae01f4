// SPDX-License-Identifier: MIT
// The table of call sites: by function, file, module, thread, heap, line or stack, or by class.
import { choice, element, setText, textField } from './dom.js';
import { baseName, bytes, count, percent, signed, things } from './format.js';
import { AT, FROM, TO } from './heap.js';
import { MEASURES, measureOf, nestedText, valuesOf } from './measures.js';
import { Table } from './table.js';

const KEYS = [['function', 'function'], ['line', 'line'], ['file', 'file'], ['module', 'module'],
  ['stack', 'stack'], ['thread', 'thread'], ['heap', 'heap']];

export class SitesView {
  /** @param classes  the table of classes; null if no snapshot tells them */
  constructor(heap, state, pieces, classes) {
    Object.assign(this, { heap, state, pieces, classes, groups: {} });
    this.keys = [...KEYS, ...(classes ? [['class', 'class']] : [])];
    this.tools = element('span');
    this.bar = element('div', { class: 'bar' }, choice(state, 'by', 'By', this.keys),
      textField(state, 'filter', 'Filter the table'), this.tools);
    this.note = element('p', { class: 'said' });
    this.place = element('div', { class: 'table-scroll' });
    this.place.is_scrolled = false;
    this.place.addEventListener('scroll', () => { this.place.is_scrolled = this.place.scrollTop > 0; });
    this.node = element('section', { class: 'panel sites-panel', 'aria-label': 'Call sites' },
      this.bar, this.place, this.note);
  }

  get by() {
    const by = this.state.get('by');
    return this.keys.some(([key]) => key === by) ? by : 'function';
  }

  /** The groups of all call sites by the last call of the program: a name for each, and the group
   * of each site. */
  groupsBy(by) {
    if (this.groups[by]) return this.groups[by];
    const { calls, own, stacks } = this.heap;
    const index = new Map();
    const list = [];
    const of = own.map((node, site) => {
      const frame = node < 0 ? -1 : calls.frame[node];
      const group = this.describe(by, frame, site);
      const key = by === 'stack' && node >= 0 ? stacks[site] : group.key;
      if (!index.has(key)) {
        index.set(key, list.length);
        list.push({ ...group, key, site, bytes: 0, blocks: 0, grown: 0 });
      }
      return index.get(key);
    });
    this.groups[by] = { list, of: Int32Array.from(of) };
    return this.groups[by];
  }

  describe(by, frame, site) {
    const { calls } = this.heap;
    const number = calls.functionOfSite(this.heap.own[site]);
    const made = calls.functions[number];
    if (frame < 0) return { key: `none ${number}`, name: made.name, whole: '', own: false };
    const module = made.module ? baseName(made.module) : '';
    const line = calls.line(frame);
    const file = calls.file(frame);
    if (by === 'file') {
      return { key: file || made.module, name: file ? baseName(file) : `${module}, no file`,
        whole: file || made.module, own: made.own };
    }
    if (by === 'module') {
      return { key: made.module, name: module || '(no module)', whole: made.module, own: made.own };
    }
    const key = by === 'line' ? `${frame}` : `${calls.functionOf[frame]}`;
    return {
      key, name: by === 'stack' ? `${made.short} (stack ${this.heap.stacks[site]})` : made.short,
      place: by === 'function' ? module : [line, module].filter((text) => text).join(' in '),
      whole: `${made.name}\n${made.module}`, own: made.own,
    };
  }

  /** The rows of a series with few records: threads or heaps, live at cursor and range. */
  seriesRows(by) {
    const { heap, state } = this;
    const series = heap.series[by];
    const before = series.at(state.get('from'), FROM).bytes;
    const after = series.at(state.get('to'), TO).bytes;
    const live = series.at(state.get('at'), AT);
    this.groups[by] ||= Array.from(series.keys, (key, i) =>
      ({ key, name: heap.nameOf(by, i), own: true, whole: '' }));
    this.groups[by].forEach((row, i) => Object.assign(row,
      { bytes: live.bytes[i], blocks: live.blocks[i], grown: after[i] - before[i] }));
    return this.groups[by];
  }

  groupRows(by) {
    const { heap, state } = this;
    const { list, of } = this.groupsBy(by);
    const sums = new Float64Array(list.length);
    const addUp = (name, values) => {
      sums.fill(0);
      for (let site = 0; site < of.length; site++) sums[of[site]] += values[site];
      for (let i = 0; i < list.length; i++) list[i][name] = sums[i];
    };
    const grown = heap.growth(state.get('from'), state.get('to'));
    if (this.groups[by].grown !== grown) {
      this.groups[by].grown = grown;
      addUp('grown', grown.bytes);
    }
    for (const unit of ['bytes', 'blocks']) addUp(unit, valuesOf(heap, state, unit));
    return list;
  }

  makeTable() {
    const is_series = this.by === 'thread' || this.by === 'heap';
    const counted = ['allocated', 'temporary'].includes(this.state.get('measure')) && !is_series
      ? 'Allocations' : 'Blocks';
    const columns = [
      { title: 'Bytes', value: (row) => row.bytes, show: (row) => bytes(row.bytes),
        title_of: (row) => `${count(row.bytes)} bytes`, key: (row) => row.key },
      { title: 'Share', value: (row) => row.bytes, show: (row) => percent(row.bytes, this.total) },
      { title: counted, value: (row) => row.blocks, show: (row) => count(row.blocks) },
      { title: 'Growth', hint: 'From the beginning of the range to its end',
        value: (row) => row.grown, show: (row) => (row.grown ? signed(row.grown, bytes) : ''),
        title_of: (row) => `${count(row.grown)} bytes` },
      { title: KEYS.find(([key]) => key === this.by)[1].replace(/^./, (c) => c.toUpperCase()),
        value: (row) => row.whole.split('\n')[0] || row.name, is_number: false, class: 'name',
        is_fixed: true,
        title_of: (row) => row.whole,
        show: (row) => element('span', { class: row.own ? 'own' : 'foreign' }, row.name,
          row.place ? element('small', {}, ` ${row.place}`) : '') },
    ];
    this.table = new Table('call-sites', columns, {
      detail: this.by === 'stack' ? (row) => this.pieces.stack(this.heap.sites[row.site] + 1) : null,
      open: this.by === 'function' || this.by === 'line'
        ? (row) => this.state.set({ search: row.whole.split('\n')[0] }) : null,
    });
    this.made = `${this.by} ${counted}`;
    this.place.replaceChildren(this.table.node);
    this.showTools(this.table.tools);
  }

  showTools(tools) {
    this.tools.replaceWith(tools);
    this.tools = tools;
  }

  drawClasses() {
    const { classes } = this;
    if (this.made !== 'class') {
      this.made = 'class';
      this.place.replaceChildren(classes.node);
      this.showTools(classes.table.tools);
    }
    classes.draw(this.state.get('filter').toLowerCase());
    setText(this.note, classes.note);
  }

  draw() {
    const { by } = this;
    if (by === 'class') {
      this.drawClasses();
      return;
    }
    const is_series = by === 'thread' || by === 'heap';
    const counted = ['allocated', 'temporary'].includes(this.state.get('measure')) && !is_series
      ? 'Allocations' : 'Blocks';
    if (this.made !== `${by} ${counted}`) this.makeTable();
    const wanted = this.state.get('filter').toLowerCase();
    const all = is_series ? this.seriesRows(by) : this.groupRows(by);
    this.total = all.reduce((sum, row) => sum + row.bytes, 0);
    this.table.setRows(all.filter((row) => (row.bytes || row.blocks || row.grown) &&
      (!wanted || `${row.name} ${row.whole} ${row.place || ''}`.toLowerCase().includes(wanted))));
    const measure = is_series ? MEASURES.live : measureOf(this.state);
    setText(this.note, `${measure.title}: ${things(this.total, 'byte')} by ${by}` +
      (is_series ? '' : ': that of the last call of the program itself') +
      nestedText(this.heap, this.state, measure));
  }
}
