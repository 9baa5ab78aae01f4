// SPDX-License-Identifier: MIT
// The calls around the cursor of an exact page.
import { button, element } from './dom.js';
import { positionText } from './exact.js';
import { bytes, count, moment, positionRank } from './format.js';
import { Table, nameColumn } from './table.js';

/** Calls that are shown before the cursor and from there on. */
const BEFORE = 25;
const SHOWN = 51;

const FIELDS = ['number', 'start_sequence', 'start_steps', 'end_sequence', 'end_steps', 'wall_time',
  'action', 'api', 'thread', 'stack', 'heap', 'address', 'base', 'size', 'result'];
const NO_SEQUENCE = (1n << 64n) - 1n;

export function hex(value) {
  return `0x${value.toString(16)}`;
}

/** Calls of the trace, read by the engine. */
export class CallReader {
  constructor(engine) {
    this.engine = engine;
    this.names = { action: new Map(), api: new Map() };
  }

  async read(first, number) {
    const [values] = await this.engine.ask(['events', BigInt(Math.max(0, first)), number]);
    const list = [];
    for (let i = 0; i < values.length; i += FIELDS.length) {
      const raw = Object.fromEntries(FIELDS.map((field, k) => [field, values[i + k]]));
      list.push({
        ...raw, number: Number(raw.number), size: Number(raw.size), time: Number(raw.wall_time),
        thread: Number(raw.thread), stack: Number(raw.stack),
        returned: raw.end_sequence !== NO_SEQUENCE,
        start: positionText(raw.start_sequence, raw.start_steps),
        end: positionText(raw.end_sequence, raw.end_steps),
      });
    }
    await Promise.all(list.map((call) => this.name(call)));
    list.forEach((call) => {
      const acquires = ['Alloc', 'Create'].includes(call.action) && call.returned;
      call.position = acquires ? call.end : call.start;
    });
    return list;
  }

  async name(call) {
    for (const kind of ['action', 'api']) {
      const key = call[kind];
      const names = this.names[kind];
      if (!names.has(key)) {
        names.set(key, this.engine.ask([kind, Number(key)]).then(([text]) => text));
      }
      call[kind] = await names.get(key);
    }
  }
}

/** The positions at which a call took effect: of a reallocation two, or one. */
function positionsOf({ action, returned, position, start, end }) {
  return action === 'ReAlloc' && returned && start !== end ? `${start} – ${end}` : position;
}

/** An address: a click shows its biography. */
export function addressLink(state, address) {
  return button(address, () => state.set({ view: 'memory', address }), { class: 'link', title: 'Its biography' });
}

/** A call as C writes it. */
export function callText({ action, api, size, base, address, returned }) {
  const given = [...(base || action === 'Free' || action === 'ReAlloc' ? [base ? hex(base) : 'NULL'] : []),
    ...(action === 'Alloc' || action === 'ReAlloc' || (action === 'Free' && size) ? [count(size)] : [])];
  const result = action !== 'Alloc' && action !== 'ReAlloc' ? ''
    : !returned ? ' …' : ` = ${address ? hex(address) : 'NULL'}`;
  return `${api === '?' ? action : api}(${given.join(', ')})${result}`;
}

export class EventsView {
  constructor(exact, pieces) {
    Object.assign(this, { exact, pieces, reader: new CallReader(exact.engine) });
    const { state, heap, scope } = pieces;
    Object.assign(this, { state, heap });
    this.table = new Table('calls', [
      { title: 'Number', value: (call) => call.number, show: (call) => `#${count(call.number)}`,
        key: (call) => call.number },
      { title: 'Position', value: positionsOf, is_number: false, rank: (call) => positionRank(call.position),
        show: (call) => (call.position === positionsOf(call) ? pieces.position(call.position)
          : element('span', { title: 'The old block ends, and the new one begins' },
            pieces.position(call.start), ' – ', pieces.position(call.end))) },
      ...(scope.has_times ? [{ title: 'Time', value: (call) => call.time,
        show: (call) => moment(call.time, 1e3) }] : []),
      { title: 'Thread', value: (call) => call.thread },
      { title: 'Call', value: callText, is_number: false, class: 'name',
        show: (call) => element('span', { class: 'own' },
          ...callText(call).split(/(0x[0-9a-f]+)/).map((part, i) => (i % 2 ? addressLink(state, part) : part)),
          element('small', {}, ` ${call.size ? bytes(call.size) : ''}`)) },
      nameColumn('By', (call) => this.by(call)),
    ], { detail: (call) => pieces.stack(this.number(call.stack)), is_down: false });
    this.note = element('p', { class: 'said' });
    this.node = element('section', { class: 'panel', 'aria-label': 'Calls around the cursor' },
      element('div', { class: 'bar' }, element('h3', {}, 'Calls around the cursor'), this.table.tools), this.table.node, this.note);
    this.asked = null;
  }

  number(stack) {
    return this.exact.stackNumber(stack);
  }

  by(call) {
    const { calls } = this.pieces;
    const list = calls.stack(this.number(call.stack)).map((frame) => calls.functions[calls.functionOf[frame]]);
    return (list.find(({ own }) => own) ?? list[0])?.short ?? '';
  }

  /** The numbers of the calls that are shown, and of the one behind them. */
  range() {
    const first = Math.max(0, this.heap.event[this.state.get('at')] - BEFORE);
    return [first, first + SHOWN];
  }

  words() {
    const [first, behind] = this.range();
    return ['events', '--stacks', '--from', `#${first}`, '--to', `#${behind}`];
  }

  draw() {
    if (!this.exact.is_ready) return;
    const [first] = this.range();
    if (this.asked === first) {
      this.mark();
      return;
    }
    this.asked = first;
    this.reader.read(first, SHOWN).then((calls) => {
      if (this.asked !== first) return;
      this.table.setRows(calls);
      this.mark();
    });
  }

  /** Marks the last call that has taken effect at the cursor. */
  mark() {
    const at = this.heap.event[this.state.get('at')];
    for (const { key, node } of this.table.lines.values()) node.classList.toggle('current', key === at);
    this.note.textContent = 'Calls in the order in which they took effect. The marked one is the last ' +
      'at the cursor. Keys , and . go one back and one forward.';
  }
}

