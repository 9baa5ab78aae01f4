// SPDX-License-Identifier: MIT
// Measures: the figures of each call site in flame graph and table.
import { rangeWords } from './commands.js';
import { ThreadColors, changeColor, changeLegend } from './flame_colors.js';
import { bytes, count, signed, things } from './format.js';

/** Calls of a thread between the allocation of a block and its release soon after: the engine counts so many. */
export const SOON = 3;
export const SOON_TEXT = `at most ${SOON} calls between`;

/** The measures of allocations, not of blocks. */
const OF_ALLOCATIONS = ['allocated', 'temporary', 'soon'];

/** Each measure: its title, the amounts by call site in a unit, and the words of the command that
 * prints it. Position of the cursor and range come from the state. `has_nested` says whether blocks that lie within
 * others count, `is_of_change` that the amounts are of stacks that changed: their sums are no differences. */
export const MEASURES = {
  live: {
    title: 'Live at the cursor',
    values: (heap, state, unit) => heap.bySite.at(state.get('at'))[unit],
    has_nested: true,
    words: (heap, state) => ['state', '--at', heap.position[state.get('at')]],
  },
  changed: {
    title: 'Changed in the range',
    values: (heap, state, unit) => changes(heap, state, unit).map(Math.abs),
    is_of_change: true,
    has_nested: true,
    words: changeWords,
  },
  grown: {
    title: 'Grown in the range',
    values: (heap, state, unit) => change(heap, state, unit, 1),
    is_of_change: true,
    has_nested: true,
    words: changeWords,
  },
  shrunk: {
    title: 'Shrunk in the range',
    values: (heap, state, unit) => change(heap, state, unit, -1),
    is_of_change: true,
    has_nested: true,
    words: changeWords,
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
  soon: {
    title: `Freed with ${SOON_TEXT}, in the whole trace`,
    values: (heap, state, unit) => heap.usage[unit === 'bytes' ? 'soon_bytes' : 'soon'],
    has_nested: true,
    words: () => ['temporary', '--steps', SOON],
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

/** A measure of lost blocks, which needs a snapshot. */
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

function changeWords(heap, state, scope) {
  return rangeWords(heap, scope, [state.get('from'), state.get('to')], true);
}

function changes(heap, state, unit) {
  return heap.growth(state.get('from'), state.get('to'))[unit];
}

function change(heap, state, unit, sign) {
  return changes(heap, state, unit).map((value) => Math.max(0, sign * value));
}

export function measureOf(state) {
  const name = state.get('measure');
  const found = Object.hasOwn(MEASURES, name) ? MEASURES[name] : MEASURES.live;
  return found.is_there && !found.is_there(state.heap) ? MEASURES.live : found;
}

/** Whether the measure that is shown counts allocations. */
export function countsAllocations(state) {
  return OF_ALLOCATIONS.includes(state.get('measure'));
}

/** The name of the measure that is shown. */
export function measureName(state) {
  const measure = measureOf(state);
  return Object.keys(MEASURES).find((name) => MEASURES[name] === measure);
}

/** A remark on sums of the measure in which blocks within others count; or "". */
export function nestedText(heap, state, measure = measureOf(state)) {
  if (!heap.has_nested || !measure.has_nested) return '';
  if (measure !== MEASURES.live) return '; blocks that lie within others count, too';
  const { bytes: size, blocks } = heap.nestedAt(state.get('at'));
  return blocks ? `; ${things(size, 'byte')} of it lie within other blocks` : '';
}

export function valuesOf(heap, state, unit = state.get('unit')) {
  return measureOf(state).values(heap, state, unit === 'blocks' ? 'blocks' : 'bytes');
}

/** The heap as the source of a flame graph. */
export class HeapSource {
  constructor(heap, state, functions, search) {
    Object.assign(this, { heap, state, functions, search, calls: heap.calls, sites: heap.sites });
  }

  title() {
    return measureOf(this.state).title;
  }

  values() {
    return valuesOf(this.heap, this.state);
  }

  get unit() {
    return this.state.get('unit') === 'blocks' ? 'blocks' : 'bytes';
  }

  note() {
    const text = this.is_change ? `: ${this.changeText(this.nets[0], this.wholes[0])}` : '';
    const measure = measureOf(this.state);
    const position = measure === MEASURES.live ? this.heap.position[this.state.get('at')]
      : measure === MEASURES.peak ? this.heap.part.peak.position : null;
    const { others } = this.heap;
    const known = others ? `; ${things(others.count, 'other call site')} are known by function only: --exact has all` : '';
    return text + known + nestedText(this.heap, this.state) + (position && !this.search.is_on ? this.heap.kept.text(position) : '');
  }

  /** Whether the measure is of growth: its colours say so. */
  get is_change() {
    return measureOf(this.state) === MEASURES.changed;
  }

  /** The growth and the shrinkage, from their difference and their sum. */
  changeText(net, whole) {
    const format = this.unit === 'bytes' ? bytes : count;
    return `${signed((whole + net) / 2, format)} grown, ${signed((net - whole) / 2, format)} shrunk`;
  }

  /** Colours in which the tree of calls says more than modules do; null for others. */
  colorsOf(tree, colors) {
    if (this.is_change) {
      this.nets = tree.sum(changes(this.heap, this.state, this.unit)).total;
      this.wholes = tree.sum(this.values()).total;
      const of = ({ node }) => changeColor(this.nets[node] / (this.wholes[node] || 1), colors);
      return { of, legend: changeLegend(colors) };
    }
    if (this.state.get('color') !== 'thread') return null;
    this.threads ||= new ThreadColors(this.heap.threadOf,
      Array.from(this.heap.series.thread.keys, (_, i) => this.heap.nameOf('thread', i)));
    return { of: this.threads.of(tree, colors), legend: this.threads.legend(colors) };
  }

  linesOf(tree, { node }) {
    return this.is_change ? [this.changeText(this.nets[node], this.wholes[node])] : [];
  }

  most() {
    return (this.state.get('unit') === 'bytes' ? this.heap.peak : this.heap.blocks)
      .reduce((a, b) => Math.max(a, b), 0);
  }

  counted() {
    return countsAllocations(this.state) ? 'allocation' : 'block';
  }
}
