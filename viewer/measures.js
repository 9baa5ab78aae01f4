// SPDX-License-Identifier: MIT
// Measures: what flame graph and table show of each call site.
import { count } from './format.js';

/** Each measure: its title, the amounts by call site in a unit, and the words of the command that
 * prints it. Position of the cursor and range are those of the state. `has_nested` says
 * whether blocks that lie within others count. */
export const MEASURES = {
  live: {
    title: 'Live at the cursor',
    values: (heap, state, unit) => heap.bySite.at(state.get('at'))[unit],
    has_nested: true,
    words: (heap, state) => ['state', '--at', heap.position[state.get('at')]],
  },
  grown: {
    title: 'Grown in the range',
    values: (heap, state, unit) => change(heap, state, unit, 1),
    has_nested: true,
    words: range('--changes'),
  },
  shrunk: {
    title: 'Shrunk in the range',
    values: (heap, state, unit) => change(heap, state, unit, -1),
    has_nested: true,
    words: range('--changes'),
  },
  allocated: {
    title: 'Allocated, in the whole trace',
    values: (heap, state, unit) => heap.usage[unit === 'bytes' ? 'bytes' : 'allocations'],
    has_nested: true,
    words: () => ['hot'],
  },
  temporary: {
    title: 'Temporary, in the whole trace',
    values: (heap, state, unit) => heap.usage[unit === 'bytes' ? 'temporary_bytes' : 'temporary'],
    has_nested: true,
    words: () => ['temporary'],
  },
  peak: {
    title: 'At the peak',
    values: (heap, state, unit) => heap.atPeak[unit],
    words: (heap, state, scope) => (scope.to === null ? ['peak']
      : ['state', '--at', heap.part.peak.position]),
  },
  lost: lost('Definitely lost', 'definitely', 'definite'),
  indirect: lost('Indirectly lost', 'indirectly', 'indirect'),
  possible: lost('Possibly lost', 'possibly', 'possible'),
};

/** A measure of lost blocks, which there is only if a snapshot tells. */
function lost(title, name, kind) {
  return {
    title,
    is_there: (heap) => heap.lost !== null,
    values: (heap, state, unit) => heap.lost[name][unit],
    has_nested: true,
    words: (heap, state, scope) => ['leaks', '--show', kind,
      ...(scope.to === null ? [] : ['--at', scope.to])],
  };
}

/** The measures that a page has. */
export function measuresOf(heap) {
  return Object.entries(MEASURES).filter(([, { is_there }]) => !is_there || is_there(heap));
}

function range(...words) {
  return (heap, state) => ['diff', ...words, '--from', heap.position[state.get('from')],
    '--to', heap.position[state.get('to')]];
}

function change(heap, state, unit, sign) {
  return heap.growth(state.get('from'), state.get('to'))[unit]
    .map((value) => Math.max(0, sign * value));
}

export function measureOf(state) {
  const name = state.get('measure');
  const found = Object.hasOwn(MEASURES, name) ? MEASURES[name] : MEASURES.live;
  return found.is_there && !found.is_there(state.heap) ? MEASURES.live : found;
}

/** A remark on sums of the measure in which blocks within others count; or "". */
export function nestedText(heap, state, measure = measureOf(state)) {
  if (!heap.has_nested || !measure.has_nested) return '';
  if (measure !== MEASURES.live) return '; blocks that lie within others count, too';
  const { bytes: size, blocks } = heap.nestedAt(state.get('at'));
  return blocks ? `; ${count(size)} bytes of it lie within other blocks` : '';
}

export function valuesOf(heap, state, unit = state.get('unit')) {
  return measureOf(state).values(heap, state, unit === 'blocks' ? 'blocks' : 'bytes');
}

/** The heap as the source of a flame graph. */
export class HeapSource {
  constructor(heap, state) {
    Object.assign(this, { heap, state, calls: heap.calls, sites: heap.sites });
  }

  title() {
    return measureOf(this.state).title;
  }

  values() {
    return valuesOf(this.heap, this.state);
  }

  note() {
    return nestedText(this.heap, this.state);
  }

  most() {
    return (this.state.get('unit') === 'bytes' ? this.heap.peak : this.heap.blocks)
      .reduce((a, b) => Math.max(a, b), 0);
  }

  counted() {
    return ['allocated', 'temporary'].includes(this.state.get('measure')) ? 'allocations' : 'blocks';
  }
}
