// SPDX-License-Identifier: MIT
// The timeline: how much was live, by whom, and how fast it came and went.
import { button, element, setText } from './dom.js';
import { bytes, count, duration, moment, briefName, percent, short, signed, things } from './format.js';
import { graphButtons } from './export.js';
import { CanvasSurface, palette, placeOf, scaleOf, sizeOf } from './surface.js';

const LEFT = 64;
/** Room for the names of functions, where the picture is wide enough. */
const NAMES_ROOM = 220;
const WIDE = 800;
const TOP = 14;
const BOTTOM = 18;
const STRIP = 42;

/** Of times, so many parts of the axis must have ticks in them, or it is one of events. */
const PARTS = 100;
const PARTS_LEAST = 4;

/** The largest functions that the hint at the pointer has. */
const HINTED = 3;

/** Marks nearer to each other are drawn as one; a label at the end has this much room for a letter,
 * as it reaches back to the one before; and the word at the peak takes so much. */
const MARKS_APART = 3;
const LETTER = 11;
const PEAK_ROOM = 56;

/** The width of a column of rates; and the parts of the axis, at most, in which the fastest is looked for. */
const COLUMN = 2;
const RATE_PARTS = 500;

/** A step of 1, 2 or 5 times a power of ten, at least 1, that divides a length into about `parts`. */
function roundStep(length, parts) {
  const least = Math.max(length / parts, 1);
  const ten = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find((step) => step * ten >= least) * ten;
}

export class Timeline {
  constructor(heap, state, notes, scope, { functions, search }) {
    Object.assign(this, { heap, state, notes, scope, functions, search });
    this.canvas = element('canvas', {
      class: 'timeline', tabindex: 0, role: 'slider', 'aria-label': 'Moment in the trace',
      'aria-valuemin': 0, 'aria-valuemax': heap.last,
    });
    this.legend = element('ul', { class: 'legend', 'aria-label': 'Colours of the functions' });
    this.tools = graphButtons('timeline', this.canvas, (surface, colors) => {
      this.drawOn(surface, colors);
    });
    this.line = element('div', { class: 'second-cursor', hidden: true });
    this.hint = element('div', { class: 'tip', hidden: true });
    this.chipText = element('span');
    this.chip = element('div', { class: 'chip', hidden: true }, this.chipText,
      button('✕', () => state.set({ from: 0, to: heap.last }), { 'aria-label': 'Whole trace' }));
    this.node = element('div', { class: 'timeline-box' }, this.canvas, this.legend, this.line,
      this.chip, this.hint);
  }

  /** Over events if that is wished, if there are no times, or if these are too coarse to distinguish
   * the ticks, as in a short program. */
  get axis() {
    const wish = this.state.get('axis');
    if (wish === 'events' || !this.scope.has_times) return 'event';
    this.is_coarse ??= this.areTimesCoarse();
    return wish === 'auto' && this.is_coarse ? 'event' : 'time';
  }

  areTimesCoarse() {
    const { time, last, count: ticks } = this.heap;
    const part = (time[last] - time[0] || 1) / PARTS;
    return ticks > 2 * PARTS_LEAST &&
      new Set(Array.from(time, (value) => Math.floor((value - time[0]) / part))).size < PARTS_LEAST;
  }

  /** The room at the right of the curves. */
  right(width) {
    return width >= WIDE ? NAMES_ROOM : 8;
  }

  /** The part of the axis that is shown. */
  window() {
    const values = this.heap[this.axis];
    const all = [values[0], Math.max(values[this.heap.last], values[0] + 1)];
    const [from, to] = this.state.get('zoom').split('-').map(Number);
    return this.state.get('zoom') && to > from ? [from, to] : all;
  }

  scale(width) {
    const [from, to] = this.window();
    const right = width - this.right(width);
    const room = right - LEFT;
    return {
      from, to, right,
      x: (value) => LEFT + (value - from) / (to - from) * room,
      value: (x) => from + (x - LEFT) / room * (to - from),
    };
  }

  /** The value of the axis at an abscissa. */
  valueAt(x) {
    return this.scale(sizeOf(this.canvas).width).value(x);
  }

  /** Whether ticks are so far apart there that a moment between them can be pointed at. */
  isCoarse(x) {
    const { x: place } = this.scale(sizeOf(this.canvas).width);
    const values = this.heap[this.axis];
    const tick = this.tickAt(x);
    return tick < this.heap.last && place(values[tick + 1]) - place(values[tick]) > 2;
  }

  /** The tick that is shown at an abscissa: the last that begins there or before. */
  tickAt(x) {
    const wanted = this.scale(sizeOf(this.canvas).width).value(x);
    const values = this.heap[this.axis];
    let low = 0;
    let high = this.heap.count;
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (values[middle] <= wanted) low = middle;
      else high = middle;
    }
    return low;
  }

  /** The picture without the cursor is drawn once, and copied below it. */
  draw() {
    const colors = palette();
    const size = sizeOf(this.canvas);
    const key = [size.width, size.height, devicePixelRatio, this.axis, this.state.get('plot'),
      this.state.get('zoom'), this.search.is_on && this.search.text].join(' ');
    if (this.key !== key || this.colors !== colors || this.ticks !== this.heap.position) {
      this.ground = new CanvasSurface(this.ground?.canvas || element('canvas'), colors, size);
      this.drawGround(this.frame(this.ground, colors));
      Object.assign(this, { key, colors, ticks: this.heap.position });
    }
    const surface = new CanvasSurface(this.canvas, colors, size);
    surface.copy(this.ground);
    const frame = this.frame(surface, colors);
    this.drawCursor(frame);
    this.showValues();
    this.showChip(frame);
    this.describe();
  }

  drawOn(surface, colors) {
    const frame = this.frame(surface, colors);
    this.drawGround(frame);
    this.drawCursor(frame);
    frame.rows.slice().reverse().forEach((row, i) => {
      surface.text(row.name, frame.right + 8, TOP + 10 + 20 * i, colors.inks[row.color], { width: NAMES_ROOM - 12 });
    });
    const [memory] = this.memoryTexts();
    if (memory) surface.text(memory, frame.right + 8, TOP + 10 + 20 * frame.rows.length, colors.dim, { width: NAMES_ROOM - 12 });
  }

  drawGround(frame) {
    this.drawGrid(frame);
    this.drawAreas(frame);
    this.drawRates(frame);
    this.drawNotes(frame);
  }

  frame(surface, colors) {
    const unit = this.unit();
    const frame = {
      ...this.scale(surface.width), surface, colors, values: this.heap[this.axis],
      bottom: surface.height - BOTTOM - STRIP, unit, ...this.curves(unit),
    };
    frame.most = this.most(frame);
    frame.y = (value) => frame.bottom - value / frame.most * (frame.bottom - TOP);
    return frame;
  }

  unit() {
    return this.state.get('plot').startsWith('blocks') ? 'blocks' : 'bytes';
  }

  get has_memory() {
    return this.state.get('plot') === 'memory' && this.heap.memory.time.length > 0;
  }

  most({ from, to, values, unit, rows, total }) {
    const is_all = total === this.heap[unit];
    const shown = !is_all ? total : unit === 'bytes' ? this.heap.peak : this.heap.blocks;
    const all = is_all && rows.length ? this.heap.all[unit] : shown;
    // Mappings may be of any size, whatever is used of them.
    const { resident, mapped } = this.heap.memory;
    const used = Math.max(...resident);
    let most = this.has_memory ? Math.max(used, ...mapped.filter((value) => value < 3 * used)) : 1;
    for (let i = 0; i < this.heap.count; i++) {
      if (values[i] >= from && values[i] <= to) most = Math.max(most, shown[i], all[i]);
    }
    return most;
  }

  drawGrid({ surface, colors, most, y, x, from, to, bottom, unit, right }) {
    const format = unit === 'bytes' ? bytes : short;
    const step = roundStep(most, 5);
    for (let value = 0; value <= most; value += step) {
      surface.line([LEFT, y(value), right, y(value)], colors.line);
      surface.text(format(value), LEFT - 6, y(value), colors.dim, { align: 'right' });
    }
    const across = roundStep(to - from, Math.max(2, (right - LEFT) / 110));
    for (let value = Math.ceil(from / across) * across; value <= to; value += across) {
      const label = this.axis === 'time' ? moment(value, across, true) : count(value);
      surface.line([x(value), TOP, x(value), bottom + STRIP], colors.line);
      const is_last = x(value) > surface.width - LEFT / 2 && right > surface.width - LEFT / 2;
      if (is_last && label.length * LETTER > x(value) - x(value - across)) continue;
      surface.text(label, is_last ? surface.width - 2 : x(value), surface.height - BOTTOM / 2,
        colors.dim, { align: is_last ? 'right' : 'center' });
    }
  }

  /** The points of a stepped curve, from one tick to the next and to the end of the axis, which is
   * behind the last tick if all ticks are at one time. */
  steps({ x, y, values, to }, amounts) {
    const points = [];
    for (let i = 0; i < values.length; i++) {
      if (i) points.push(x(values[i]), points.at(-1));
      points.push(x(values[i]), y(amounts[i]));
    }
    if (values.at(-1) < to) points.push(x(to), points.at(-1));
    return points;
  }

  drawAreas(frame) {
    const { surface, colors, unit, rows, total } = frame;
    const clip = { ...frame, x: (value) => Math.max(LEFT, Math.min(frame.right, frame.x(value))) };
    const base = new Float64Array(this.heap.count);
    const area = (amounts, color, opacity) => {
      const below = this.steps(clip, base);
      const above = this.steps(clip, amounts);
      const back = [];
      for (let i = below.length - 2; i >= 0; i -= 2) back.push(below[i], below[i + 1]);
      surface.area([...above, ...back], color, opacity);
    };
    if (unit === 'bytes' && total === this.heap.bytes) area(this.heap.peak, colors.accent, 0.18);
    area(total, rows.length ? colors.other : colors.accent, rows.length ? 0.6 : 0.45);
    const sum = new Float64Array(this.heap.count);
    rows.forEach((row) => {
      base.set(sum);
      for (let tick = 0; tick < sum.length; tick++) sum[tick] += row.values[tick];
      area(sum, colors.series[row.color], 1);
    });
    base.fill(0);
    surface.line(this.steps(clip, total), rows.length ? colors.text : colors.accent, 1.2);
    if (this.has_memory) this.drawMemory(clip);
    this.showLegend(rows, colors);
  }

  /** Samples of the process's memory, and lines from one to the next. */
  drawMemory({ surface, colors, x, y, most, right }) {
    const { memory, last } = this.heap;
    const places = Array.from(memory.time, (time) => x(this.axis === 'time' ? time
      : this.heap.event[this.heap.time.findIndex((value) => value >= time)] ?? this.heap.event[last]));
    ['resident', 'mapped'].forEach((name, i) => {
      const values = memory[name].map((value) => Math.min(value, most));
      surface.line(Array.from(values, (value, k) => [places[k], y(value)]).flat(), colors.dim, 1.5, i ? [2, 4] : [7, 3]);
      values.forEach((value, k) => surface.dot(places[k], y(value), 2, colors.dim, colors.dim));
      if (values.length) surface.text(name, Math.min(places[0] + 6, right - 60), y(values[0]) - 8, colors.dim);
    });
  }

  /** The resident and the mapped memory of the process, heap or not, by the sample that is nearest to the cursor, and
   * when that was: it may be far from the cursor. Two empty texts without samples or times. */
  memoryTexts() {
    const { heap, scope } = this;
    const sample = heap.sampleAt(this.state.get('at'));
    if (sample < 0 || !scope.has_times) return ['', ''];
    const { time, resident, mapped } = heap.memory;
    const when = moment(time[sample], Math.max(heap.time[heap.last], time[sample]) / 1000);
    return [`resident ${bytes(resident[sample])} at ${when}`, `mapped ${bytes(mapped[sample])} at ${when}`];
  }

  /** The curves: the functions with colours of their own, if they are wished, and the sum of all;
   * of the records that the search finds only. Kept until something else is wished. */
  curves(unit) {
    const { heap, search } = this;
    const mask = search.mask(heap.sites);
    const is_stacked = this.state.get('plot').endsWith('sites');
    const key = [unit, is_stacked, mask && search.text].join(' ');
    if (this.drawn?.key === key && this.drawn.ticks === heap.position) return this.drawn;
    const rows = is_stacked ? this.functions.rows(heap, unit, mask) : [];
    this.drawn = { key, ticks: heap.position, rows,
      total: this.followed[unit] };
    return this.drawn;
  }

  /** Live bytes and blocks by tick of the records that the search finds, kept until it changes; the heap
   * itself without a search. */
  get followed() {
    const { heap, search } = this;
    const mask = search.mask(heap.sites);
    if (!mask) return heap;
    if (this.found?.mask !== mask || this.found.ticks !== heap.position) {
      this.found = { mask, ticks: heap.position, text: search.text,
        bytes: this.maskedTotal('bytes', mask), blocks: this.maskedTotal('blocks', mask) };
    }
    return this.found;
  }

  maskedTotal(unit, mask) {
    const { bySite, count: ticks } = this.heap;
    const total = new Float64Array(ticks);
    for (let tick = 0, sum = 0; tick < ticks; tick++) {
      for (let i = bySite.first[tick]; i < bySite.end[tick]; i++) {
        if (mask[bySite.record[i]]) sum += bySite[unit][i];
      }
      total[tick] = sum;
    }
    return total;
  }

  /** The names of functions at the right, from the top of the stack; a click follows one. */
  showLegend(rows, colors) {
    const has_memory = this.heap.memory.time.length > 0;
    this.legend.hidden = !rows.length && !has_memory;
    this.memoryValue = element('span');
    this.values = [];
    this.legend.replaceChildren(...rows.slice().reverse().map((row) => {
      const { name } = this.heap.calls.functions[row.key];
      const swatch = element('i');
      swatch.style.background = colors.series[row.color];
      const value = element('small');
      const node = element('button', { type: 'button', title: `${name}\nClick: show this function in all views`,
        on: { click: () => this.state.set({ search: this.state.get('search') === name ? '' : name, root: '' }) },
      }, swatch, element('b', {}, row.name), value);
      node.style.color = colors.inks[row.color];
      this.values.push([value, row]);
      return element('li', {}, node);
    }), rows.length && this.heap.has_nested
      ? element('li', {}, 'blocks within others count, too: above the line') : '',
    has_memory ? element('li', {}, this.memoryButton = element('button', { type: 'button', class: 'dim',
      on: { click: () => this.state.set({ plot: this.has_memory ? 'bytes-sites' : 'memory' }) },
    }, this.memoryValue)) : '');
  }

  /** The live bytes of each function at the cursor. */
  showValues() {
    const at = this.state.get('at');
    const format = this.unit() === 'bytes' ? bytes : count;
    if (this.heap.memory.time.length) {
      const [resident, mapped] = this.memoryTexts();
      setText(this.memoryValue, resident || 'resident, mapped memory');
      const title = `Memory of the process, heap or not${mapped && `: the sample nearest to the cursor. ${
        mapped[0].toUpperCase()}${mapped.slice(1)}`}\nClick: draw it`;
      if (this.memoryButton.title !== title) this.memoryButton.title = title;
    }
    this.values?.forEach(([node, row]) => setText(node, row.values[at] ? format(row.values[at]) : ''));
  }

  /** The growth in a range, in words at the range. */
  showChip({ x, right }) {
    const [from, to] = [this.state.get('from'), this.state.get('to')];
    const { heap } = this;
    const is_part = from > 0 || to < heap.last;
    if (this.chip.hidden === is_part) this.chip.hidden = !is_part;
    if (!is_part) return;
    const grown = heap.growth(from, to);
    const text = this.search.is_on ? this.search.text : '';
    if (this.said !== grown || this.saidOf !== text) {
      Object.assign(this, { said: grown, saidOf: text });
      setText(this.chipText, this.rangeText(from, to, grown.bytes));
      this.chip.size = this.chip.offsetWidth / scaleOf();
    }
    const middle = (Math.max(LEFT, x(heap[this.axis][from])) + Math.min(right, x(heap[this.axis][to]))) / 2;
    this.chip.style.left = `${scaleOf() * Math.max(LEFT, Math.min(right - this.chip.size, middle - this.chip.size / 2))}px`;
  }

  rangeText(from, to, grown) {
    const { heap, scope } = this;
    const mask = this.search.mask(heap.sites);
    const { total } = this.curves('bytes');
    const sums = new Map();
    grown.forEach((value, site) => {
      if (value && (!mask || mask[site])) sums.set(heap.functionOf[site], (sums.get(heap.functionOf[site]) || 0) + value);
    });
    const [key, most] = [...sums].reduce((a, b) => (Math.abs(b[1]) > Math.abs(a[1]) ? b : a), [-1, 0]);
    return `${signed(total[to] - total[from], bytes)} in ` +
      (scope.has_times ? `${duration(Math.max(0, heap.time[to] - heap.time[from]))}, ` +
        [from, to].map((tick) => moment(heap.time[tick], heap.time[heap.last] / 1000)).join(' to ')
        : things(heap.event[to] - heap.event[from], 'event')) +
      (most ? `, mostly ${heap.calls.functions[key].plain} ${signed(most, bytes)}` : '');
  }

  /** The second cursor and a hint: the live bytes at the pointer, and the functions that had most. */
  preview(x, event) {
    const { right } = this.scale(sizeOf(this.canvas).width);
    const is_shown = x >= LEFT && x <= right;
    this.line.hidden = this.hint.hidden = !is_shown;
    if (!is_shown) return;
    const { heap, scope } = this;
    const tick = this.tickAt(x);
    const unit = this.unit();
    const { total, rows } = this.curves(unit);
    const colors = palette();
    const near = this.places?.find(({ at }) => Math.abs(at - x) < 6);
    const format = unit === 'bytes' ? bytes : (value) => things(value, 'block');
    const largest = rows.filter(({ values }) => values[tick] > 0)
      .sort((a, b) => b.values[tick] - a.values[tick]).slice(0, HINTED);
    this.hint.replaceChildren(element('strong', {}, `${format(total[tick])} live at ` +
      (scope.has_times ? moment(heap.time[tick], (heap.time[heap.last] - heap.time[0]) / 1000)
        : `event ${count(heap.event[tick])}`)),
    ...largest.map((row) => {
      const swatch = element('i');
      swatch.style.background = colors.series[row.color];
      return element('div', { class: 'share' }, swatch, element('span', {}, row.name),
        element('b', {}, percent(row.values[tick], total[tick])));
    }), near ? element('div', {}, near.text) : '');
    this.line.style.left = `${x * scaleOf()}px`;
    const left = event.clientX + 16 + this.hint.offsetWidth > innerWidth
      ? event.clientX - 16 - this.hint.offsetWidth : event.clientX + 16;
    this.hint.style.left = `${Math.max(4, left)}px`;
    // At the lower edge below the pointer: the range says there what it added.
    this.hint.style.top = this.isStrip(placeOf(event)[1]) ? `${event.clientY + 20}px`
      : `${Math.max(4, event.clientY - 20 - this.hint.offsetHeight)}px`;
  }

  hidePreview() {
    this.line.hidden = this.hint.hidden = true;
  }

  /** The end of the range whose handle is at a place; null for none. */
  handleAt(x, y) {
    if (!this.isStrip(y)) return null;
    const { x: place } = this.scale(sizeOf(this.canvas).width);
    const values = this.heap[this.axis];
    return ['from', 'to'].find((name) => Math.abs(place(values[this.state.get(name)]) - x) < 7) || null;
  }

  /** Whether a place is at the lower edge, where ranges are chosen. */
  isStrip(y) {
    return y > sizeOf(this.canvas).height - BOTTOM - STRIP;
  }

  /** Calls by column of the picture: the calls between two ticks are spread over all columns
   * that it covers, so that steady calls are a level line however ticks and columns meet. */
  ratesOf(amounts, { x, values }, columns) {
    const sums = new Float64Array(columns);
    for (let i = 1; i < this.heap.count; i++) {
      if (!amounts[i]) continue;
      const [begin, end] = [values[i - 1], values[i]].map((value) => (x(value) - LEFT) / COLUMN);
      if (end < 0 || begin >= columns) continue;
      if (end - begin < 1e-9) {
        sums[Math.min(columns - 1, Math.floor(end))] += amounts[i];
        continue;
      }
      for (let k = Math.max(0, Math.floor(begin)); k < Math.min(columns, end); k++) {
        sums[k] += amounts[i] * (Math.min(end, k + 1) - Math.max(begin, k)) / (end - begin);
      }
    }
    return sums;
  }

  /** The most calls in a second, of allocations or releases, in stretches of a round length, which does
   * not depend on the picture. */
  fastest({ values, from, to }) {
    const length = roundStep(to - from, RATE_PARTS);
    const first = Math.floor(from / length) * length;
    const frame = { values, x: (value) => LEFT + COLUMN * (value - first) / length };
    const [most] = [this.heap.allocations, this.heap.releases]
      .map((amounts) => this.ratesOf(amounts, frame, Math.ceil((to - first) / length)).reduce((a, b) => Math.max(a, b), 0))
      .sort((a, b) => b - a);
    return `${short(most / (length / 1e9))} calls/s in ${duration(length).replace(/\.0+ /, ' ')}`;
  }

  /** Allocations upwards and releases downwards, on a scale of square roots. */
  drawRates(frame) {
    const { surface, colors, bottom, right } = frame;
    const middle = bottom + STRIP / 2 + 4;
    const half = STRIP / 2 - 6;
    const columns = Math.max(1, Math.floor((right - LEFT) / COLUMN));
    const all = [this.heap.allocations, this.heap.releases].map((amounts) => this.ratesOf(amounts, frame, columns));
    const most = Math.max(...all.map((sums) => sums.reduce((a, b) => Math.max(a, b), 0)));
    all.forEach((sums, i) => sums.forEach((value, k) => {
      if (!value) return;
      const height = Math.max(1, Math.sqrt(value / most) * half);
      surface.rect(LEFT + k * COLUMN, i ? middle : middle - height, COLUMN, height, i ? colors.down : colors.up);
    }));
    surface.text('alloc', LEFT - 6, middle - half / 2, colors.dim, { align: 'right' });
    surface.text('free', LEFT - 6, middle + half / 2, colors.dim, { align: 'right' });
    if (this.axis === 'time' && most && surface.width - right > 100) {
      surface.text(`${this.search.is_on ? 'all: ' : ''}up to ${this.fastest(frame)}`, right + 8, middle, colors.dim, { width: NAMES_ROOM - 12 });
    }
  }

  drawNotes({ surface, colors, x, values, bottom, right }) {
    this.places = [];
    const last = {};
    for (const note of this.notes.filter(({ position }) => this.scope.has(position))) {
      const at = x(values[this.heap.tickAt(note.position)]);
      if (at < LEFT || at > right) continue;
      this.places.push({ at, text: note.text });
      const is_drawn = last[note.kind] !== undefined && at - last[note.kind] < MARKS_APART;
      if (is_drawn) continue;
      last[note.kind] = at;
      const color = { loss: colors.alarm, thread: colors.dim }[note.kind] || colors.mark;
      if (note.kind === 'thread') {
        surface.rect(at - 1, TOP - 8, 2, 6, color);
        continue;
      }
      surface.line([at, TOP, at, bottom], color, 1, [3, 3]);
      surface.area([at - 4, TOP - 12, at + 4, TOP - 12, at, TOP - 4], color);
    }
  }

  drawCursor(frame) {
    const { surface, colors, x, y, values, bottom, right, total } = frame;
    const [from, to] = [this.state.get('from'), this.state.get('to')];
    const ends = [Math.max(LEFT, x(values[from])), Math.min(right, x(values[to]))];
    if (from > 0 || to < this.heap.last) {
      surface.rect(ends[0], TOP, Math.max(1, ends[1] - ends[0]), bottom + STRIP - TOP, colors.range, 0.18);
    }
    if (ends[1] >= LEFT && ends[0] <= right) {
      for (const end of ends) surface.rect(end - 2, bottom + 6, 4, STRIP - 8, colors.range);
    }
    this.drawPeak(frame);
    const tick = this.state.get('at');
    const at = x(values[tick]);
    if (at < LEFT || at > right) return;
    surface.line([at, TOP - 8, at, bottom + STRIP], colors.text, 2);
    surface.dot(at, y(total[tick]), 4, colors.back, colors.text);
  }

  drawPeak({ surface, colors, x, y, values, total, unit, right }) {
    const peak = this.heap.peakTick();
    if (!this.heap.peak[peak] || total !== this.heap[unit] || x(values[peak]) < LEFT || x(values[peak]) > right) return;
    const top = unit === 'bytes' ? y(this.heap.peak[peak]) : TOP;
    const has_room = x(values[peak]) < right - PEAK_ROOM;
    surface.text(has_room ? '▼ peak' : 'peak ▼', x(values[peak]) + (has_room ? 3 : -3), top - 7,
      colors.dim, { align: has_room ? 'left' : 'right' });
  }

  describe() {
    const tick = this.state.get('at');
    const { heap, followed } = this;
    const memory = this.memoryTexts().filter((text) => text).join(', ');
    this.canvas.setAttribute('aria-valuenow', tick);
    this.canvas.setAttribute('aria-valuetext', `${this.scope.has_times ? `${moment(heap.time[tick])}, ` : ''}position ` +
      `${heap.position[tick]}: ${things(followed.bytes[tick], 'byte')} in ${things(followed.blocks[tick], 'block')} ` +
      `live${followed === heap ? '' : ` of “${briefName(followed.text)}”`}${memory && `; ${memory}`}`);
  }
}
