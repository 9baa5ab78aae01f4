// SPDX-License-Identifier: MIT
// The functions that a timeline shows by themselves.

const MOST = 8;

/** The functions that had most live at any time, and how much at each tick. */
export function topFunctions(heap, unit) {
  const { calls, bySite } = heap;
  const functions = heap.own.map((node) => calls.functionOfSite(node));
  const most = new Map();
  const cursor = new Map();
  const each = (visit) => {
    cursor.clear();
    for (let tick = 0; tick < heap.count; tick++) {
      for (let i = bySite.first[tick]; i < bySite.end[tick]; i++) {
        const key = functions[bySite.record[i]];
        const value = (cursor.get(key) || 0) + bySite[unit][i];
        cursor.set(key, value);
        visit(key, value, tick);
      }
    }
  };
  each((key, value) => most.set(key, Math.max(most.get(key) || 0, value)));
  const top = [...most].sort((a, b) => b[1] - a[1]).slice(0, MOST).map(([key]) => key);
  const rows = top.map((key) => ({
    name: calls.functions[key].short,
    values: new Float64Array(heap.count).fill(NaN),
  }));
  const rowOf = new Map(top.map((key, i) => [key, rows[i]]));
  each((key, value, tick) => { if (rowOf.has(key)) rowOf.get(key).values[tick] = value; });
  rows.forEach(({ values }) => {
    for (let i = 0, last = 0; i < values.length; i++) {
      if (Number.isNaN(values[i])) values[i] = last;
      last = values[i];
    }
  });
  return rows;
}
