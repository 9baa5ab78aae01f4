// SPDX-License-Identifier: MIT
// The timeline: how much was live, by whom, and how fast it came and went.
import { element } from './dom.js';
import { bytes, count, moment, short } from './format.js';
import { graphButtons } from './export.js';
import { topFunctions } from './top_functions.js';
import { CanvasSurface, palette, sizeOf } from './surface.js';

const LEFT = 64;
const RIGHT = 8;
const TOP = 14;
const BOTTOM = 18;
const STRIP = 38;

/** Marks nearer to each other are drawn as one; a label at the end has this much room for a letter,
 * as it reaches back to the one before; and the word at the peak takes so much. */
const MARKS_APART = 3;
const LETTER = 11;
const PEAK_ROOM = 56;

/** A step of 1, 2 or 5 times a power of ten, at least 1, that divides a length into about `parts`. */
function roundStep(length, parts) {
  const least = Math.max(length / parts, 1);
  const ten = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find((step) => step * ten >= least) * ten;
}

export class Timeline {
  constructor(heap, state, notes, scope) {
    Object.assign(this, { heap, state, notes, scope, stacks: {} });
    this.canvas = element('canvas', {
      class: 'timeline', tabindex: 0, role: 'slider', 'aria-label': 'Moment in the trace',
      'aria-valuemin': 0, 'aria-valuemax': heap.last,
    });
    this.legend = element('ul', { class: 'legend', 'aria-label': 'Colours of the functions' });
    this.tools = graphButtons('timeline', this.canvas, (surface, colors) => {
      this.drawOn(surface, colors);
    });
    this.node = element('div', { class: 'timeline-box' }, this.canvas, this.legend);
  }

  get axis() {
    return this.state.get('axis') === 'events' || !this.scope.has_times ? 'event' : 'time';
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
    const room = width - LEFT - RIGHT;
    return {
      from, to,
      x: (value) => LEFT + (value - from) / (to - from) * room,
      value: (x) => from + (x - LEFT) / room * (to - from),
    };
  }

  /** The value of the axis at an abscissa. */
  valueAt(x) {
    return this.scale(sizeOf(this.canvas).width).value(x);
  }

  /** Whether ticks are so far apart there that what is between them can be pointed at. */
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

  /** What only time shows is drawn once, and copied below the cursor. */
  draw() {
    const colors = palette();
    const size = sizeOf(this.canvas);
    const key = [size.width, size.height, devicePixelRatio, this.axis, this.state.get('plot'),
      this.state.get('zoom')].join(' ');
    if (this.key !== key || this.colors !== colors || this.ticks !== this.heap.position) {
      this.ground = new CanvasSurface(this.ground?.canvas || element('canvas'), colors, size);
      this.drawGround(this.frame(this.ground, colors));
      Object.assign(this, { key, colors, ticks: this.heap.position });
    }
    const surface = new CanvasSurface(this.canvas, colors, size);
    surface.copy(this.ground);
    this.drawCursor(this.frame(surface, colors));
    this.describe();
  }

  drawOn(surface, colors) {
    const frame = this.frame(surface, colors);
    this.drawGround(frame);
    this.drawCursor(frame);
  }

  drawGround(frame) {
    this.drawGrid(frame);
    this.drawAreas(frame);
    this.drawRates(frame);
    this.drawNotes(frame);
  }

  frame(surface, colors) {
    const frame = {
      ...this.scale(surface.width), surface, colors, values: this.heap[this.axis],
      bottom: surface.height - BOTTOM - STRIP, unit: this.unit(),
    };
    frame.most = this.most(frame);
    frame.y = (value) => frame.bottom - value / frame.most * (frame.bottom - TOP);
    return frame;
  }

  unit() {
    return this.state.get('plot').startsWith('blocks') ? 'blocks' : 'bytes';
  }

  most({ from, to, values, unit }) {
    const is_stacked = this.state.get('plot').endsWith('sites');
    const shown = unit === 'bytes' ? this.heap.peak : this.heap.blocks;
    const all = is_stacked ? this.heap.all[unit] : shown;
    let most = 1;
    for (let i = 0; i < this.heap.count; i++) {
      if (values[i] >= from && values[i] <= to) most = Math.max(most, shown[i], all[i]);
    }
    return most;
  }

  drawGrid({ surface, colors, most, y, x, from, to, bottom, unit }) {
    const format = unit === 'bytes' ? bytes : short;
    const step = roundStep(most, 5);
    for (let value = 0; value <= most; value += step) {
      surface.line([LEFT, y(value), surface.width - RIGHT, y(value)], colors.line);
      surface.text(format(value), LEFT - 6, y(value), colors.dim, { align: 'right' });
    }
    const across = roundStep(to - from, Math.max(2, (surface.width - LEFT) / 110));
    for (let value = Math.ceil(from / across) * across; value <= to; value += across) {
      const label = this.axis === 'time' ? moment(value, across) : count(value);
      surface.line([x(value), TOP, x(value), bottom + STRIP], colors.line);
      const is_last = x(value) > surface.width - LEFT / 2;
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
    const { surface, colors, unit } = frame;
    const clip = { ...frame, x: (value) => Math.max(LEFT, Math.min(surface.width, frame.x(value))) };
    const base = new Float64Array(this.heap.count);
    const area = (amounts, color, opacity) => {
      const below = this.steps(clip, base);
      const above = this.steps(clip, amounts);
      const back = [];
      for (let i = below.length - 2; i >= 0; i -= 2) back.push(below[i], below[i + 1]);
      surface.area([...above, ...back], color, opacity);
    };
    if (unit === 'bytes') area(this.heap.peak, colors.accent, 0.18);
    const rows = this.state.get('plot').endsWith('sites') ? this.rows(unit) : [];
    area(this.heap[unit], rows.length ? colors.other : colors.accent, rows.length ? 0.6 : 0.45);
    const sum = new Float64Array(this.heap.count);
    rows.forEach((row, i) => {
      base.set(sum);
      for (let tick = 0; tick < sum.length; tick++) sum[tick] += row.values[tick];
      area(sum, colors.series[i], 0.9);
    });
    base.fill(0);
    surface.line(this.steps(clip, this.heap[unit]), rows.length ? colors.text : colors.accent, 1.2);
    this.showLegend(rows, colors);
  }

  rows(unit) {
    const { refined } = this.heap;
    this.stacks[unit] ||= topFunctions(this.heap, unit).map((row) =>
      ({ ...row, values: refined ? refined.ofPage(row.values) : row.values }));
    return refined ? this.stacks[unit].map((row) =>
      ({ ...row, values: refined.spread(row.values) })) : this.stacks[unit];
  }

  showLegend(rows, colors) {
    this.legend.hidden = !rows.length;
    this.legend.replaceChildren(...rows.map((row, i) => {
      const swatch = element('i');
      swatch.style.background = colors.series[i];
      return element('li', { title: row.name }, swatch, row.name);
    }), rows.length && this.heap.has_nested
      ? element('li', {}, 'blocks within others count, too: above the line') : '');
  }

  /** Allocations upwards and releases downwards, on a scale of square roots. */
  drawRates({ surface, colors, x, values, bottom, from, to }) {
    const middle = bottom + STRIP / 2 + 4;
    const half = STRIP / 2 - 5;
    const columns = new Map();
    for (let i = 1; i < this.heap.count; i++) {
      if (values[i] < from || values[i] > to) continue;
      const column = Math.floor(x(values[i]) / 2) * 2;
      const sum = columns.get(column) || [0, 0];
      columns.set(column, [sum[0] + this.heap.allocations[i], sum[1] + this.heap.releases[i]]);
    }
    const most = Math.sqrt(Math.max(1, ...[...columns.values()].flat()));
    columns.forEach(([up, down], column) => {
      const heights = [up, down].map((value) => Math.sqrt(value) / most * half);
      surface.rect(column, middle - heights[0], 2, heights[0], colors.up);
      surface.rect(column, middle, 2, heights[1], colors.down);
    });
    surface.text('alloc', LEFT - 6, middle - half / 2, colors.dim, { align: 'right' });
    surface.text('free', LEFT - 6, middle + half / 2, colors.dim, { align: 'right' });
  }

  drawNotes({ surface, colors, x, values, bottom }) {
    this.places = [];
    const last = {};
    for (const note of this.notes.filter(({ position }) => this.scope.has(position))) {
      const at = x(values[this.heap.tickAt(note.position)]);
      if (at < LEFT || at > surface.width - RIGHT) continue;
      this.places.push({ at, text: note.text });
      const is_drawn = last[note.kind] !== undefined && at - last[note.kind] < MARKS_APART;
      if (is_drawn) continue;
      last[note.kind] = at;
      const color = { loss: colors.alarm, thread: colors.dim }[note.kind] || colors.mark;
      if (note.kind !== 'thread') surface.line([at, TOP, at, bottom], color, 1, [3, 3]);
      surface.area([at - 4, TOP - 12, at + 4, TOP - 12, at, TOP - 4], color);
    }
  }

  drawCursor({ surface, colors, x, y, values, bottom }) {
    const [from, to] = [this.state.get('from'), this.state.get('to')];
    if (from > 0 || to < this.heap.last) {
      const left = Math.max(LEFT, x(values[from]));
      const right = Math.min(surface.width - RIGHT, x(values[to]));
      surface.rect(left, TOP, Math.max(1, right - left), bottom - TOP, colors.range, 0.18);
    }
    this.drawPeak({ surface, colors, x, y, values });
    const at = x(values[this.state.get('at')]);
    surface.line([at, TOP - 8, at, bottom + STRIP], colors.text, 2);
  }

  drawPeak({ surface, colors, x, y, values }) {
    const peak = this.heap.peakTick();
    if (!this.heap.peak[peak]) return;
    const top = this.unit() === 'bytes' ? y(this.heap.peak[peak]) : TOP;
    const has_room = x(values[peak]) < surface.width - PEAK_ROOM;
    surface.text(has_room ? '▼ peak' : 'peak ▼', x(values[peak]) + (has_room ? 3 : -3), top - 7,
      colors.dim, { align: has_room ? 'left' : 'right' });
  }

  describe() {
    const tick = this.state.get('at');
    const { heap } = this;
    this.canvas.setAttribute('aria-valuenow', tick);
    this.canvas.setAttribute('aria-valuetext', `${this.scope.has_times ? `${moment(heap.time[tick])}, ` : ''}position ` +
      `${heap.position[tick]}: ${count(heap.bytes[tick])} bytes in ${count(heap.blocks[tick])} ` +
      'blocks live');
  }
}
