// SPDX-License-Identifier: MIT
// Colours of the boxes of a flame graph, and their meanings.

/** A part of a box above this has the full colour of its change. */
const STRONGEST = 0.5;

/** The colour of a change by a part of what there is, from -1 to 1. */
export function changeColor(part, colors) {
  if (!part) return colors.other;
  return (part > 0 ? colors.rise : colors.fall)[Math.min(4, Math.floor(Math.abs(part) / STRONGEST * 5))];
}

export function changeLegend(colors) {
  return [[colors.rise[4], 'grown'], [colors.fall[4], 'shrunk'], [colors.other, 'neither, or both alike']];
}

/** The colours of the first names of a list, the others have one together. */
function ranked(names, colors, others) {
  const shown = names.slice(0, colors.series.length);
  return [...shown.map((name, i) => [colors.series[i], name]),
    ...(names.length > shown.length ? [[colors.other, others]] : [])];
}

/** Colours by module: the first go to those with most functions, the program's own before others. */
export class ModuleColors {
  constructor(calls) {
    const sums = new Map();
    for (const made of calls.functions.slice(0, calls.noStack)) {
      sums.set(made.module, (sums.get(made.module) || 0) + (made.own ? 1 : 0.001));
    }
    this.names = [...sums].sort((a, b) => b[1] - a[1]).map(([name]) => name);
    this.ranks = new Map(this.names.map((name, i) => [name, i]));
  }

  of(colors) {
    return (tree) => ({ last }) => colors.series[this.ranks.get(tree.function(last).module)] || colors.other;
  }

  legend(colors, nameOf) {
    return ranked(this.names.map((name) => nameOf(name) || '(no module)'), colors, 'other modules');
  }
}

/** Colours by function, the same as in the other views: the program's own have full colours, and those
 * that they call a tint of theirs. */
export class BoxColors {
  /** @param functions  gives a function's colour by its number; -1 for none */
  constructor(functions) {
    Object.assign(this, { functions, known: new WeakMap() });
  }

  /** The colour of each node: 0 for none, from 1 on the full ones, below 0 the tints. */
  ofNodes(tree) {
    if (this.known.has(tree)) return this.known.get(tree);
    const found = new Int8Array(tree.parent.length);
    for (let node = 1; node < found.length; node++) {
      const own = tree.function(node).own;
      const color = this.functions.of(tree.label[node]) + 1;
      found[node] = color || (own ? 0 : -Math.abs(found[tree.parent[node]]));
    }
    this.known.set(tree, found);
    return found;
  }

  of(tree, colors) {
    const nodes = this.ofNodes(tree);
    return ({ last }) => {
      const color = nodes[last];
      if (color) return color > 0 ? colors.series[color - 1] : colors.tints[-color - 1];
      return tree.function(last).own ? colors.own : colors.pale;
    };
  }
}

/** Colours by thread: of the threads that most call sites are of. A box that several threads have
 * in common has the colour of none. */
export class ThreadColors {
  /** @param threads  by call site: a number of a thread from 1, or 0 for several
   * @param names    of threads */
  constructor(threads, names) {
    this.threads = threads;
    const sums = new Map();
    for (const thread of threads) if (thread) sums.set(thread, (sums.get(thread) || 0) + 1);
    const order = [...sums].sort((a, b) => b[1] - a[1]).map(([thread]) => thread);
    this.ranks = new Map(order.map((thread, i) => [thread, i]));
    this.names = order.map((thread) => names[thread - 1]);
    this.known = new WeakMap();
  }

  /** The thread of each node of a tree; 0 for several, -1 for none. */
  ofNodes(tree) {
    if (this.known.has(tree)) return this.known.get(tree);
    const found = new Int32Array(tree.parent.length).fill(-1);
    const join = (node, thread) => {
      if (thread >= 0) found[node] = found[node] < 0 || found[node] === thread ? thread : 0;
    };
    this.threads.forEach((thread, site) => join(tree.leaf[site], thread));
    for (let node = found.length - 1; node > 0; node--) join(tree.parent[node], found[node]);
    this.known.set(tree, found);
    return found;
  }

  of(tree, colors) {
    const nodes = this.ofNodes(tree);
    return ({ last }) => colors.series[this.ranks.get(nodes[last])] || colors.other;
  }

  legend(colors) {
    const list = ranked(this.names, colors, '');
    return [...list.slice(0, colors.series.length),
      [colors.other, this.names.length > colors.series.length ? 'other threads, or several' : 'several threads']];
  }
}
