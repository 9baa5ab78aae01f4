// SPDX-License-Identifier: MIT
// The timeline as a table: its ticks, of the part of the axis that is shown.
import { button, element, setText } from './dom.js';
import { CommandLine } from './commands.js';
import { bytes, count, moment, things } from './format.js';
import { Table } from './table.js';

export class TimelineTable {
  constructor(heap, state, timeline, commands) {
    Object.assign(this, { heap, state, timeline, commands });
    this.button = button('Table', () => this.toggle(), {
      'aria-controls': 'timeline-table', 'aria-expanded': 'false', title: 'The timeline as a table',
    });
    this.note = element('p', { class: 'said' });
    this.command = new CommandLine();
    this.node = element('section', {
      id: 'timeline-table', class: 'panel', 'aria-label': 'The timeline as a table', hidden: true,
    });
  }

  get is_open() {
    return this.state.get('table') === 'timeline';
  }

  toggle() {
    this.state.set({ table: this.is_open ? '' : 'timeline' });
  }

  makeTable() {
    const { heap, state, timeline } = this;
    const number = (title, name, format = count) => ({
      title, value: (tick) => heap[name][tick], show: (tick) => format(heap[name][tick]),
      title_of: (tick) => (format === bytes ? `${count(heap[name][tick])} bytes` : null),
    });
    this.table = new Table('timeline', [
      ...(timeline.scope.has_times ? [{ title: 'Time', value: (tick) => heap.time[tick] / 1e9, rank: (tick) => tick,
        show: (tick) => moment(heap.time[tick], heap.time[heap.last] / 1000) }] : []),
      { title: 'Event', value: (tick) => heap.event[tick], rank: (tick) => tick,
        show: (tick) => count(heap.event[tick]) },
      { title: 'Position', is_number: false, value: (tick) => heap.position[tick], rank: (tick) => tick },
      number('Live', 'bytes', bytes), number('Blocks', 'blocks'), number('Most live', 'peak', bytes),
      number('Allocations', 'allocations'), number('Allocated', 'allocated', bytes),
      number('Releases', 'releases'),
    ], { is_down: false, open: (tick) => state.set({ at: tick }) });
    this.node.append(element('div', { class: 'bar' }, element('h3', {}, 'The timeline as a table'), this.table.tools),
      element('div', { class: 'table-scroll' }, this.table.node), this.note, this.command.node);
  }

  draw() {
    const { is_open } = this;
    if (this.node.hidden === is_open) this.node.hidden = !is_open;
    if (this.button.ariaExpanded !== String(is_open)) this.button.ariaExpanded = String(is_open);
    if (!is_open) return;
    if (!this.table) this.makeTable();
    this.setRows();
    this.mark();
  }

  /** The ticks in the part that is shown. Lines stay the same elements while their ticks stay. */
  setRows() {
    const { heap, timeline, state } = this;
    const [from, to] = timeline.window();
    const key = [from, to, timeline.axis].join(' ');
    if (this.ticks === heap.position && this.key === key) return;
    Object.assign(this, { ticks: heap.position, key });
    const values = heap[timeline.axis];
    this.table.lines.clear();
    this.table.setRows(Array.from(values.keys()).filter((tick) =>
      values[tick] >= from && values[tick] <= to));
    setText(this.note, `${things(this.table.rows.length, 'moment')}. Allocations, releases and the most live bytes ` +
      'count since the moment before. Enter moves the cursor there. ' +
      'The command has stretches of a round length' +
      `${heap.kept.is_empty ? '' : ', and counts the blocks that the runtimes keep'}.`);
    this.command.set(this.commands.line('timeline', '--over',
      timeline.axis === 'event' ? 'position' : 'time', '--points', '200'));
  }

  /** Marks the line of the cursor. */
  mark() {
    const at = this.state.get('at');
    for (const { row, node } of this.table.lines.values()) node.classList.toggle('current', row === at);
  }
}
