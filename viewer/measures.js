// SPDX-License-Identifier: MIT
// Measures: what flame graph and table show of each call site.

/** Each measure: its title, the amounts by call site in a unit, and the words of the command that
 * prints it. Position of the cursor and range are those of the state. */
export const MEASURES = {
  live: {
    title: 'Live at the cursor',
    values: (heap, state, unit) => heap.bySite.at(state.get('at'))[unit],
    words: (heap, state) => ['state', '--at', heap.position[state.get('at')]],
  },
  grown: {
    title: 'Grown in the range',
    values: (heap, state, unit) => change(heap, state, unit, 1),
    words: range('--changes'),
  },
  shrunk: {
    title: 'Shrunk in the range',
    values: (heap, state, unit) => change(heap, state, unit, -1),
    words: range('--changes'),
  },
  allocated: {
    title: 'Allocated, in the whole trace',
    values: (heap, state, unit) => heap.usage[unit === 'bytes' ? 'bytes' : 'allocations'],
    words: () => ['hot'],
  },
  temporary: {
    title: 'Temporary, in the whole trace',
    values: (heap, state, unit) => heap.usage[unit === 'bytes' ? 'temporary_bytes' : 'temporary'],
    words: () => ['temporary'],
  },
  peak: {
    title: 'At the peak',
    values: (heap, state, unit) => heap.atPeak[unit],
    words: () => ['peak'],
  },
};

function range(...words) {
  return (heap, state) => ['diff', ...words, '--from', heap.position[state.get('from')],
    '--to', heap.position[state.get('to')]];
}

function change(heap, state, unit, sign) {
  const before = heap.bySite.at(state.get('from'), 1)[unit];
  const after = heap.bySite.at(state.get('to'), 0)[unit];
  return after.map((value, i) => Math.max(0, sign * (value - before[i])));
}

export function measureOf(state) {
  const name = state.get('measure');
  return Object.hasOwn(MEASURES, name) ? MEASURES[name] : MEASURES.live;
}

export function valuesOf(heap, state, unit = state.get('unit')) {
  return measureOf(state).values(heap, state, unit === 'blocks' ? 'blocks' : 'bytes');
}
