// SPDX-License-Identifier: MIT
// The table of call sites: by function, file, module, thread, heap, line or stack, or by class.
import { breakable, choice, element, menu, setText } from './dom.js';
import { baseName, bytes, count, percent, signed, things } from './format.js';
import { AT, FROM, TO } from './heap.js';
import { MEASURES, countsAllocations, measureOf, nestedText, valuesOf } from './measures.js';
import { palette } from './surface.js';
import { Table, shareOf } from './table.js';
import { curveNode } from './verdicts.js';

const KEYS = [['function', 'function'], ['line', 'line'], ['file', 'file'], ['module', 'module'],
  ['stack', 'stack'], ['thread', 'thread'], ['heap', 'heap']];

/** The points of the curves in rows. */
const POINTS = 48;

/** The meaning of the column Change, whatever the measure of the others. */
const CHANGE = 'Change: live bytes at the end of the range, less those at its beginning';

/** The column of a table that has the amount. */
const AMOUNT = 2;

export class SitesView {
  /** @param classes  the table of classes; null if no snapshot has them */
  constructor(heap, state, pieces, classes) {
    Object.assign(this, { heap, state, pieces, classes, groups: {} });
    this.keys = [...KEYS, ...(classes ? [['class', 'class']] : [])];
    this.tools = element('span');
    this.bar = element('div', { class: 'bar' }, choice(state, 'by', 'By', this.keys),
      menu('Table', this.tools));
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
      const key = by === 'stack' && node >= 0 && !this.heap.isOther(site) ? stacks[site] : group.key;
      if (!index.has(key)) {
        index.set(key, list.length);
        list.push({ ...group, key, site, index: list.length, bytes: 0, blocks: 0, grown: 0 });
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
    if (frame < 0) return { key: `none ${number}`, name: made.name, whole: '', own: false, number };
    const module = made.module ? baseName(made.module) : '';
    const line = calls.line(frame);
    const file = calls.file(frame);
    if (by === 'file') {
      return { key: file || made.module, name: file ? baseName(file) : `${module}, no file`,
        whole: file || made.module, own: made.own, file };
    }
    if (by === 'module') {
      return { key: made.module, name: module || '(no module)', whole: made.module, own: made.own };
    }
    const is_other = by !== 'function' && this.heap.isOther(site);
    const key = is_other ? `others ${number}` : by === 'line' ? `${frame}` : `${calls.functionOf[frame]}`;
    return {
      key, number, name: is_other ? `${made.plain} (other call sites)` : by === 'stack' ? `${made.plain} (stack ${this.heap.stacks[site]})` : made.plain,
      place: line || (made.name.startsWith(module) ? '' : module),
      whole: `${made.name}\n${line || ''} ${made.module}`, own: made.own, file, line: calls.frames.line[frame] || '',
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
    const { heap, state, pieces: { search } } = this;
    const { list, of } = this.groupsBy(by);
    const sums = new Float64Array(list.length);
    const addUp = (name, values) => {
      sums.fill(0);
      for (let site = 0; site < of.length; site++) sums[of[site]] += values[site];
      for (let i = 0; i < list.length; i++) list[i][name] = sums[i];
    };
    const grown = heap.growth(state.get('from'), state.get('to'));
    if (this.groups[by].grown !== grown || this.groups[by].text !== search.text) {
      Object.assign(this.groups[by], { grown, text: search.text });
      addUp('grown', search.filter(grown.bytes, heap.sites));
    }
    for (const unit of ['bytes', 'blocks']) {
      const values = search.filter(valuesOf(heap, state, unit), heap.sites);
      addUp(unit, values);
      if (unit === this.unit && by === 'function') this.placeRows(list, of, values);
    }
    return list;
  }

  /** Gives each function the line that has most of the measure. */
  placeRows(list, of, values) {
    const { calls, own } = this.heap;
    const sums = new Map();
    const best = [];
    for (let site = 0; site < of.length; site++) {
      if (!values[site] || own[site] < 0 || this.heap.isOther(site)) continue;
      const frame = calls.frame[own[site]];
      const key = `${of[site]} ${calls.line(frame, true)}`;
      const sum = (sums.get(key) || 0) + values[site];
      sums.set(key, sum);
      if (!(sum <= best[of[site]]?.sum)) best[of[site]] = { sum, frame };
    }
    list.forEach((row, i) => {
      const place = best[i] && calls.line(best[i].frame);
      if (!place) return;
      const { name, module } = calls.functions[row.number];
      Object.assign(row, { place, whole: `${name}\n${place} ${module}`, file: calls.file(best[i].frame),
        line: calls.frames.line[best[i].frame] || '' });
    });
  }

  /** The live bytes of groups in the course of time: for each so many points. */
  curvesBy(by) {
    const { heap } = this;
    const group = this.groups[by];
    if (group.curves && group.ticks === heap.position) return group.curves;
    const { list, of } = group;
    const live = new Float64Array(list.length);
    const curves = Array.from(list, () => new Float32Array(POINTS));
    const values = heap[this.axis()];
    const [first, length] = [values[0], values[heap.last] - values[0] || 1];
    const { bySite } = heap;
    let point = 0;
    for (let tick = 0; tick <= heap.last; tick++) {
      for (let i = bySite.first[tick]; i < bySite.end[tick]; i++) live[of[bySite.record[i]]] += bySite.bytes[i];
      const next = tick < heap.last ? (values[tick + 1] - first) / length * (POINTS - 1) : POINTS;
      for (; point < next && point < POINTS; point++) {
        for (let k = 0; k < curves.length; k++) if (live[k]) curves[k][point] = live[k];
      }
    }
    Object.assign(group, { curves, ticks: heap.position });
    return curves;
  }

  axis() {
    return this.pieces.scope.has_times ? 'time' : 'event';
  }

  /** The colour of a row: its function's, if that has one of its own. */
  colorOf(row) {
    const color = row.number === undefined ? -1 : this.pieces.functions.of(row.number);
    const colors = palette();
    return color < 0 ? colors.own : colors.series[color];
  }

  nameCell(row) {
    const swatch = element('i');
    swatch.style.background = this.colorOf(row);
    return element('span', { class: row.own ? 'own' : 'foreign' }, swatch, element('b', {}, ...breakable(row.name)),
      element('small', {}, row.place ? ` ${row.place}` : ''));
  }

  /** The share of a row, with a bar that is kept and changes its length. */
  shareCell(row) {
    if (!row.bar) {
      row.bar = element('span', { class: 'bar-of' });
      row.path = '';
      row.bar.style.background = this.colorOf(row);
      row.text = document.createTextNode('');
      row.cell = element('span', { class: 'share-of' }, element('span', { class: 'track' }, row.bar), row.text);
    }
    // The part cut off by a path needs no layout.
    const cut = 100 - (this.whole ? Math.max(0, 100 * row[this.unit] / this.whole) : 0);
    const path = `inset(0 ${cut.toFixed(1)}% 0 0 round 5px)`;
    if (row.path !== path) row.bar.style.clipPath = path;
    row.path = path;
    setText(row.text, percent(row[this.unit], this.whole));
    return row.cell;
  }

  makeTable() {
    const { by } = this;
    const is_series = by === 'thread' || by === 'heap';
    const columns = [
      { title: KEYS.find(([key]) => key === by)[1].replace(/^./, (c) => c.toUpperCase()),
        value: (row) => row.whole.split('\n')[0] || row.name, is_number: false, class: 'name',
        key: (row) => row.key, title_of: (row) => row.whole,
        show: (row) => {
          row.named ||= this.nameCell(row);
          setText(row.named.lastChild, row.place ? ` ${row.place}` : '');
          return row.named;
        } },
      { title: 'Share', value: (row) => row[this.unit], show: (row) => this.shareCell(row),
        csv: [...(is_series || by === 'module' ? [] : [['File', (row) => row.file], ['Line', (row) => row.line]]),
          shareOf((row) => row[this.unit], () => this.whole)] },
      { title: 'Bytes', value: (row) => row.bytes, show: (row) => bytes(row.bytes),
        title_of: (row) => `${count(row.bytes)} bytes` },
      { title: this.counted, value: (row) => row.blocks, show: (row) => count(row.blocks) },
      { title: 'Change', hint: CHANGE,
        value: (row) => row.grown, show: (row) => (row.grown ? signed(row.grown, bytes) : ''),
        title_of: (row) => `${count(row.grown)} bytes` },
      ...(is_series ? [] : [{ title: 'Over time', is_number: false, is_fixed: true,
        hint: 'Its live bytes, from the first moment to the last', value: (row) => row.bytes, csv: [],
        show: (row) => curveNode(this.curvesBy(by)[row.index], 110, 18, 'Live bytes over time') }]),
    ];
    this.table = new Table('call-sites', columns, {
      sort: AMOUNT,
      detail: by === 'stack' ? (row) => this.pieces.stack(this.heap.sites[row.site] + 1) : null,
      open: by === 'function' || by === 'line'
        ? (row) => this.state.set({ search: row.whole.split('\n')[0], root: '' }) : null,
    });
    this.made = `${by} ${this.counted}`;
    this.place.replaceChildren(this.table.node);
    this.showTools(this.table.tools);
  }

  /** The unit by which boxes and rows are weighed. */
  get unit() {
    return this.state.get('unit') === 'blocks' ? 'blocks' : 'bytes';
  }

  /** Sorts by a unit, if the table was sorted by the other one. */
  orderBy(unit) {
    const { table } = this;
    if (table.weighed === unit) return;
    table.weighed = unit;
    table.orderUsuallyBy(unit === 'bytes' ? AMOUNT : AMOUNT + 1);
  }

  /** The subject of a row's numbers. */
  get counted() {
    const { by } = this;
    return countsAllocations(this.state) && by !== 'thread' && by !== 'heap'
      ? 'Allocations' : 'Blocks';
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
    classes.draw(this.state.get('search').toLowerCase());
    setText(this.note, classes.note);
  }

  draw() {
    const { by } = this;
    if (by === 'class') {
      this.drawClasses();
      return;
    }
    const is_series = by === 'thread' || by === 'heap';
    if (this.made !== `${by} ${this.counted}` || this.colors !== palette()) {
      this.colors = palette();
      Object.values(this.groups).flatMap((group) => group.list || group).forEach((row) => { row.bar = row.named = null; });
      this.makeTable();
    }
    const all = is_series ? this.seriesRows(by) : this.groupRows(by);
    this.whole = all.reduce((sum, row) => sum + row[this.unit], 0);
    this.orderBy(this.unit);
    this.table.setRows(all.filter((row) => row.bytes || row.blocks));
    const measure = is_series ? MEASURES.live : measureOf(this.state);
    const unit = this.unit === 'bytes' ? 'byte' : this.counted.slice(0, -1).toLowerCase();
    setText(this.note, `${measure.title}: ${things(this.whole, unit)} by ${by}` +
      (is_series ? '' : measure.is_of_change ? ': the sum of the stacks that did; the column Change has the difference, like the command'
      : by === 'function' ? ', counted for the innermost function of your program' : '') +
      nestedText(this.heap, this.state, measure) + (measure.is_of_change ? '' : `. ${CHANGE}.`));
  }
}
