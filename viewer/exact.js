// SPDX-License-Identifier: MIT
// An exact page: the engine in a worker, and ticks wherever the cursor goes.
import { sums } from './data.js';
import { WORKER } from './worker.js';

/** Live bytes and blocks count from here on, so that no sum is negative. */
const BIAS = 1n << 62n;

const SERIES = ['stack', 'thread', 'heap', 'size'];
const ENDS = ['at', 'from', 'to'];

/** A position as text. */
export function positionText(sequence, steps) {
  return `${sequence.toString(16)}:${steps.toString(16)}`.toUpperCase();
}

/** The two numbers of a position. */
export function positionParts(text) {
  return text.split(':').map((part) => BigInt(`0x${part}`));
}

/** The engine: a worker that answers questions in order. */
class Engine {
  constructor({ program, trace, stacks, progress }) {
    this.waiting = new Map();
    this.number = 0;
    const url = URL.createObjectURL(new Blob([WORKER], { type: 'text/javascript' }));
    this.worker = new Worker(url);
    this.ready = new Promise((done, fail) => {
      this.worker.onmessage = ({ data }) => {
        if (data.ready) done();
        else if (data.progress !== undefined) progress(data.progress);
        else if (this.waiting.has(data.id)) this.answer(data);
        else fail(new Error(data.failed));
      };
      this.worker.onerror = (event) => fail(new Error(event.message || 'no worker can be started'));
    });
    this.worker.postMessage({ program, trace, stacks });
  }

  answer({ id, answers, failed }) {
    const [done, fail] = this.waiting.get(id);
    this.waiting.delete(id);
    if (failed) fail(new Error(failed));
    else done(answers);
  }

  /** Asks some questions at once: each is a function of the engine and its arguments. */
  ask(...calls) {
    return new Promise((done, fail) => {
      this.waiting.set(++this.number, [done, fail]);
      this.worker.postMessage({ id: this.number, calls });
    });
  }
}

/** Decodes the changes between two moments from the values of the engine. */
function readSums(values, maps) {
  let i = 0;
  const next = () => Number(BigInt.asIntN(64, values[i++]));
  const found = { position: positionText(values[0], values[1]) };
  i = 2;
  found.event = next();
  found.time = next();
  for (const name of ['bytes', 'blocks', 'peak']) found[name] = Number(BigInt.asIntN(64, values[i++] - BIAS));
  for (const name of ['allocations', 'allocated', 'releases']) found[name] = next();
  found.series = SERIES.map((name, k) => {
    const changes = { record: [], bytes: [], blocks: [] };
    for (let left = next(); left > 0; left--) {
      const record = maps[k].get(next());
      const [bytes, blocks] = [next(), next()];
      if (record === undefined) continue;
      changes.record.push(record);
      changes.bytes.push(bytes);
      changes.blocks.push(blocks);
    }
    return changes;
  });
  return found;
}

export class Exact {
  /** @param trace    the element with the trace
   * @param is_kept  the page may show this trace once more, after others */
  constructor(heap, state, { stacks, is_filtered, trace, is_kept, tell }) {
    Object.assign(this, { heap, state, tell, is_ready: false, wishes: {}, events: 0, failed: '' });
    this.elements = is_kept ? [] : ['engine', trace];
    const numbers = sums(stacks.number);
    this.stacks = new Map(Array.from(sums(stacks.stack), (stack, i) => [stack, numbers[i]]));
    this.maps = SERIES.map((name) => new Map(Array.from(
      name === 'stack' ? heap.stacks : heap.series[name].keys, (key, i) => [key, i])));
    const text = (id) => document.getElementById(id).textContent;
    this.engine = new Engine({
      program: text('engine'), trace: text(trace),
      stacks: is_filtered ? Uint32Array.from(heap.stacks) : null,
      progress: (events) => tell((this.events = events) && `Reading the trace: ${events.toLocaleString('en-US')} events`),
    });
    this.tell('Reading the trace…');
    this.done = this.start().catch((error) => {
      this.failed = `The trace cannot be read: ${error.message}`;
      this.tell(`Moments between ticks are not known: ${error.message}`);
    });
  }

  async start() {
    await this.engine.ready;
    for (const id of this.elements) document.getElementById(id).remove();
    this.moments = await this.engine.ask(...this.heap.position.map((position) =>
      ['find', ...positionParts(position)]));
    this.is_ready = true;
    this.tell('');
    await this.follow();
  }

  /** The quadrants of the range at ticks: for each its call sites, without the blocks that the runtimes keep. */
  async quadrants(from, to) {
    const { heap, heap: { kept } } = this;
    const ends = [from, to].map((tick) => heap.position[tick]);
    const stay = { aifo: kept.between(...ends), aofo: kept.between(null, ends[0]) };
    const [values] = await this.engine.ask(['quadrants', this.momentOf(from), this.momentOf(to)]);
    let i = 0;
    const next = () => Number(BigInt.asIntN(64, values[i++]));
    return ['aifi', 'aifo', 'aofi', 'aofo'].map((name) => {
      const groups = kept.withoutGroups(Array.from({ length: next() }, () => {
        const stack = next();
        return { stack_id: stack, stack: this.stackNumber(stack), bytes: next(), blocks: next() };
      }), (group) => heap.siteOf(group.stack_id), stay[name] || []);
      const sum = (unit) => groups.reduce((all, group) => all + group[unit], 0);
      return [name, { groups, total_groups: groups.length, bytes: sum('bytes'), blocks: sum('blocks') }];
    });
  }

  close() {
    this.engine.worker.terminate();
  }

  /** Goes where the fragment of the address says, if that is no tick. */
  async follow() {
    if (!this.is_ready) return;
    const { state, heap } = this;
    for (const [name, position] of Object.entries(state.asked)) {
      if (heap.position[state.get(name)] !== position) await this.go(name, { position });
    }
  }

  /** The number of a stack in the tree of calls, from its number in the trace; 0 if it has no
   * frames. */
  stackNumber(stack) {
    return this.stacks.get(stack) || 0;
  }

  /** The moment at the cursor. */
  get moment() {
    return this.momentOf(this.state.get('at'));
  }

  /** The number of effects that have happened at a tick. */
  momentOf(tick) {
    return this.heap.refined ? this.heap.refined.moments[tick] : this.moments[tick];
  }

  /** Goes to a position, a time, an event, or a step back or forward from the cursor. Of wishes that
   * come while another is fulfilled, only the newest counts. */
  go(name, wish) {
    if (!this.is_ready) {
      if (wish.position) this.state.asked[name] = wish.position;
      return Promise.resolve();
    }
    this.wishes[name] = wish;
    this.run ||= this.fulfil().finally(() => { this.run = null; });
    return this.run;
  }

  async fulfil() {
    for (;;) {
      const [name] = Object.keys(this.wishes);
      if (!name) return;
      const wish = this.wishes[name];
      delete this.wishes[name];
      const moment = await this.find(name, wish);
      await this.move({ [name]: moment });
    }
  }

  async find(name, wish) {
    const here = this.momentOf(this.state.get(name));
    const question = wish.position ? ['find', ...positionParts(wish.position)]
      : wish.time !== undefined ? ['find_time', BigInt(Math.max(0, Math.floor(wish.time)))]
        : wish.event !== undefined ? ['find_event', BigInt(Math.max(0, Math.floor(wish.event)))]
          : [wish.step < 0 ? 'before' : 'after', here];
    const [moment] = await this.engine.ask(question);
    const { moments } = this;
    return Math.max(moments[0], Math.min(moments[moments.length - 1], moment));
  }

  /** The moments of the cursor and of the ends of the range. */
  ends(changes) {
    return Object.fromEntries(ENDS.map((name) =>
      [name, changes[name] ?? this.momentOf(this.state.get(name))]));
  }

  /** Makes ticks of them. */
  async move(changes) {
    const ends = this.ends(changes);
    const before = JSON.stringify(ends);
    if (ends.from > ends.to) [ends.from, ends.to] = [ends.to, ends.from];
    const added = [...new Set(Object.values(ends))].sort((a, b) => a - b)
      .filter((moment) => !this.isTick(moment));
    const stretches = this.stretches(added);
    const answers = stretches.length ? await this.engine.ask(...stretches.map(({ from, to }) =>
      ['sum', from, to, 0n, BIAS, BIAS])) : [];
    // The others may have been moved meanwhile.
    if (JSON.stringify(this.ends(changes)) !== before) return this.move(changes);
    this.heap.refine(this.moments, stretches.map((stretch, i) =>
      ({ ...stretch, ...readSums(answers[i], this.maps) })));
    const { moments } = this.heap.refined;
    // Ticks at one moment: the range goes from the first of them to the last.
    return this.state.set({
      at: moments.indexOf(ends.at), from: moments.indexOf(ends.from),
      to: moments.lastIndexOf(ends.to),
    });
  }

  /** The tick at a moment or the last one before. */
  baseOf(moment) {
    const { moments } = this;
    let low = 0;
    let high = moments.length;
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (moments[middle] <= moment) low = middle;
      else high = middle;
    }
    return low;
  }

  isTick(moment) {
    return this.moments[this.baseOf(moment)] === moment;
  }

  /** The parts of ticks between moments: stretches that end with each of them, and
   * those up to the next ticks. `base` is the tick before. */
  stretches(added) {
    const list = [];
    added.forEach((to, i) => {
      const base = this.baseOf(to);
      const before = added[i - 1];
      list.push({ base, from: before > this.moments[base] ? before : this.moments[base], to });
      const next = this.moments[base + 1];
      if (!(added[i + 1] < next)) list.push({ base, from: to, to: next, is_last: true });
    });
    return list;
  }
}

