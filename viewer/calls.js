// SPDX-License-Identifier: MIT
// Frames, the tree of calls, and trees by function that are made of it.
import { baseName, plainName, shortName, things, visible } from './format.js';

const INLINED = 1;
const OWN = 2;
const ALLOCATES = 4;

/** The recorder's library in the program. */
const RECORDER = 'libttdpreload.so';

/** Levels of a tree from the allocating functions outwards: it is far larger than the other. */
export const OUTWARD_LEVELS = 16;

export class Calls {
  constructor(part) {
    this.strings = part.strings.map(visible);
    this.frames = part.frames;
    this.parent = Int32Array.from(part.nodes.up, (up, i) => (up ? i - up : -1));
    this.frame = Int32Array.from(part.nodes.frame);
    this.findFunctions();
  }

  /** Frames of the same name and module are of one function. */
  findFunctions() {
    const { function: names, module, number, flags } = this.frames;
    const index = new Map();
    this.functions = [];
    this.functionOf = names.map((name, i) => {
      const key = `${name} ${module[i]} ${number[i]}`;
      if (!index.has(key)) {
        index.set(key, this.functions.length);
        this.functions.push(this.makeFunction(i));
      }
      const made = this.functions[index.get(key)];
      made.own ||= Boolean(flags[i] & OWN) && baseName(made.module) !== RECORDER;
      return index.get(key);
    });
    this.noStack = this.addPlain('(no stack)');
  }

  /** Adds a record that is shown like a function, and is none. */
  addPlain(name) {
    this.functions.push({ name, short: name, plain: name, module: '', own: false, allocates: false });
    return this.functions.length - 1;
  }

  /** Names the node above the functions of call sites that are not known by themselves. */
  nameOthers(node, number) {
    const name = `(${things(number, 'other call site')})`;
    Object.assign(this.functions[this.functionAt(node)], { name, short: name, plain: name });
  }

  /** The number of the function of a call site: of its node, or of none. */
  functionOfSite(node) {
    return node >= 0 ? this.functionAt(node) : this.noStack;
  }

  makeFunction(frame) {
    const module = this.strings[this.frames.module[frame]];
    const name = this.strings[this.frames.function[frame]] ||
      `${baseName(module) || '?'}+${this.frames.number[frame]}`;
    const short = shortName(name);
    return {
      name, short, plain: plainName(short), module, own: false,
      allocates: Boolean(this.frames.flags[frame] & ALLOCATES),
    };
  }

  /** The number of the function of a node. */
  functionAt(node) {
    return this.functionOf[this.frame[node]];
  }

  file(frame) {
    return this.strings[this.frames.file[frame]];
  }

  /** The source line of a frame, such as "parse.c:17", or "". */
  line(frame, is_whole = false) {
    const file = this.file(frame);
    const line = this.frames.line[frame];
    return file ? (is_whole ? file : baseName(file)) + (line ? `:${line}` : '') : '';
  }

  isInlined(frame) {
    return Boolean(this.frames.flags[frame] & INLINED);
  }

  /** The frames of a stack by its number, innermost first; empty for 0. */
  stack(number) {
    const frames = [];
    for (let node = number - 1; node >= 0; node = this.parent[node]) frames.push(this.frame[node]);
    return frames;
  }
}

/** A tree by function. Node 0 is the root; parents come before their children. */
export class CallTree {
  constructor(calls) {
    this.calls = calls;
    this.parent = [-1];
    this.label = [-1];
    this.children = [[]];
    this.index = new Map();
  }

  child(parent, label) {
    const key = parent * 4194304 + label;
    let node = this.index.get(key);
    if (node === undefined) {
      node = this.parent.length;
      this.index.set(key, node);
      this.parent.push(parent);
      this.label.push(label);
      this.children.push([]);
      this.children[parent].push(node);
    }
    return node;
  }

  /** Adds up values of call sites: the total of each node, and its own part. */
  sum(values) {
    const total = new Float64Array(this.parent.length);
    for (let site = 0; site < values.length; site++) {
      if (values[site]) total[this.leaf[site]] += values[site];
    }
    const self = total.slice();
    for (let i = total.length - 1; i > 0; i--) total[this.parent[i]] += total[i];
    return { total, self };
  }

  function(node) {
    return this.calls.functions[this.label[node]];
  }
}

/** From main() inwards. `sites` are nodes of calls, -1 for none. */
export function inwardTree(calls, sites) {
  const tree = new CallTree(calls);
  const made = new Int32Array(calls.parent.length);
  for (let i = 0; i < made.length; i++) {
    const parent = calls.parent[i];
    made[i] = tree.child(parent < 0 ? 0 : made[parent], calls.functionAt(i));
  }
  tree.leaf = Int32Array.from(sites, (node) => (node < 0
    ? tree.child(0, calls.functionOfSite(node)) : made[node]));
  return tree;
}

/** From the functions that allocate outwards. */
export function outwardTree(calls, sites) {
  const tree = new CallTree(calls);
  tree.leaf = Int32Array.from(sites, (node) => {
    let at = node < 0 ? tree.child(0, calls.functionOfSite(node)) : 0;
    for (let level = 0; node >= 0 && level < OUTWARD_LEVELS; level++) {
      at = tree.child(at, calls.functionAt(node));
      node = calls.parent[node];
    }
    return at;
  });
  return tree;
}
