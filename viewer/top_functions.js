// SPDX-License-Identifier: MIT
// The functions that have colours of their own, the same in all views; and their curves.
import { cutMiddle } from './format.js';

export const COLORS = 8;

/** The colours of the functions that verdicts name, in the order of these; then of others. */
const OF_VERDICTS = [0, 3, 4, 2];
const OF_OTHERS = [1, 5, 6, 7, 2, 4, 3, 0];

/** Visits the sums by function each time that they change. `mask` says which call sites count. */
function eachSum(heap, unit, mask, visit) {
  const { bySite, functionOf } = heap;
  const sums = new Map();
  for (let tick = 0; tick < heap.count; tick++) {
    for (let i = bySite.first[tick]; i < bySite.end[tick]; i++) {
      const site = bySite.record[i];
      if (mask && !mask[site]) continue;
      const key = functionOf[site];
      const value = (sums.get(key) || 0) + bySite[unit][i];
      sums.set(key, value);
      visit(key, value, tick);
    }
  }
}

/** Characters of a function beside the timeline. */
const NAME_LONG = 18;

/** A name that fits there: of a long one the last part, if that is enough to know it by; else both ends; or, if
 * another name has the same, what follows the first difference. */
function labelOfName(name, names) {
  const cut = cutMiddle(name, NAME_LONG);
  const twin = names.find((other) => other !== name && cut !== name && cutMiddle(other, NAME_LONG) === cut);
  if (twin) {
    const start = Math.max(0, [...name].findIndex((c, i) => c !== twin[i]) - 5);
    return `…${name.slice(start, start + NAME_LONG - 2)}…`;
  }
  const last = name.lastIndexOf('::');
  const part = `…${name.slice(last)}`;
  const is_enough = last > 0 && part.length <= NAME_LONG && !part.includes('>') &&
    names.filter((other) => other.endsWith(name.slice(last))).length === 1;
  return name.length > NAME_LONG && is_enough ? part : cut;
}

/** Gives colours to functions by number: to those that verdicts name, and to those that had most
 * live at any time. */
export class FunctionColors {
  /** @param named  functions that verdicts name, in the order of OF_VERDICTS; -1 for none */
  constructor(heap, named) {
    const most = new Map();
    eachSum(heap, 'bytes', null, (key, value) => most.set(key, Math.max(most.get(key) || 0, value)));
    this.colorOf = new Map();
    const given = new Set();
    const give = (key, color) => {
      if (key < 0 || this.colorOf.has(key) || given.has(color)) return;
      this.colorOf.set(key, color);
      given.add(color);
    };
    named.forEach((key, i) => give(key, OF_VERDICTS[i]));
    const left = OF_OTHERS.filter((color) => !given.has(color));
    const order = [...most].sort((a, b) => b[1] - a[1]).map(([key]) => key);
    order.filter((key) => !this.colorOf.has(key)).slice(0, left.length)
      .forEach((key, i) => give(key, left[i]));
    this.ordered = [...this.colorOf.keys()].sort((a, b) => (most.get(b) || 0) - (most.get(a) || 0));
  }

  /** The number of a function's colour; -1 for none of its own. */
  of(key) {
    return this.colorOf.get(key) ?? -1;
  }

  /** The curves of these functions, with the most live first: how much each had at each tick. */
  rows(heap, unit, mask) {
    const names = this.ordered.map((key) => heap.calls.functions[key].plain);
    const rows = new Map(this.ordered.map((key, i) => [key, {
      key, name: labelOfName(names[i], names), color: this.of(key),
      values: new Float64Array(heap.count).fill(NaN),
    }]));
    eachSum(heap, unit, mask, (key, value, tick) => {
      if (rows.has(key)) rows.get(key).values[tick] = value;
    });
    return [...rows.values()].filter(({ values }) => {
      let last = 0;
      let has_any = false;
      for (let i = 0; i < values.length; i++) {
        if (Number.isNaN(values[i])) values[i] = last;
        last = values[i];
        has_any ||= last > 0;
      }
      return has_any;
    });
  }
}
