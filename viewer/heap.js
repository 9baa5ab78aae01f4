// SPDX-License-Identifier: MIT
// The heap at each tick, by call site, thread, heap and size.
import { numbers, sums } from './data.js';
import { comparePositions } from './format.js';
import { Kept } from './kept.js';
import { RefinedTicks } from './refine.js';

/** The places of which the state is held: the cursor and the ends of the range. Each moves
 * by itself, since going from one to another may take all that a trace has. */
export const AT = 0;
export const FROM = 1;
export const TO = 2;

/** Live bytes and blocks by record of a series; moves from tick to tick. */
class SeriesCursor {
  constructor(series) {
    this.series = series;
    this.bytes = new Float64Array(series.size);
    this.blocks = new Float64Array(series.size);
    this.tick = -1;
  }

  apply(tick, sign) {
    const { first, end, record, bytes, blocks } = this.series;
    for (let i = first[tick]; i < end[tick]; i++) {
      this.bytes[record[i]] += sign * bytes[i];
      this.blocks[record[i]] += sign * blocks[i];
    }
  }

  move(tick) {
    while (this.tick < tick) this.apply(++this.tick, 1);
    while (this.tick > tick) this.apply(this.tick--, -1);
    return this;
  }
}

export class Series {
  constructor(part, size) {
    this.keys = sums(part.keys);
    this.end = Uint32Array.from(sums(part.counts));
    this.first = Uint32Array.of(0, ...this.end.subarray(0, -1));
    this.record = sums(part.record);
    this.bytes = numbers(part.bytes);
    this.blocks = numbers(part.blocks);
    this.size = size ?? this.keys.length;
    this.makeCursors();
  }

  /** Divides the stretch that ends with a tick: `changes` are what records have more where it is
   * divided than at the tick. */
  split(tick, changes) {
    const record = Array.from(sums(changes.record));
    const [first, end] = ['first', 'end'].map((name) => Array.from(this[name]));
    const size = this.record.length;
    const own = [first[tick], end[tick]];
    const length = own[1] - own[0] + record.length;
    const join = (values, more, sign) => [...values, ...values.slice(...own), ...more, ...more.map((value) => sign * value)];
    this.record = Float64Array.from(join(this.record, record, 1));
    for (const name of ['bytes', 'blocks']) {
      this[name] = Float64Array.from(join(this[name], changes[name].map(Number), -1));
    }
    first.splice(tick, 1, size, size + length);
    end.splice(tick, 1, size + length, size + length + record.length);
    Object.assign(this, { first: Uint32Array.from(first), end: Uint32Array.from(end) });
    this.makeCursors();
  }

  /** Replaces the changes of each tick. */
  change(visit) {
    const lists = { record: [], bytes: [], blocks: [] };
    const [first, end] = [this.first.slice(), this.end.slice()];
    first.forEach((from, tick) => {
      const old = Object.fromEntries(Object.keys(lists).map((name) => [name, this[name].subarray(from, end[tick])]));
      first[tick] = lists.record.length;
      const made = visit(old, tick);
      for (const [name, list] of Object.entries(lists)) made[name].forEach((value) => list.push(value));
      end[tick] = lists.record.length;
    });
    Object.assign(this, { first, end });
    for (const [name, list] of Object.entries(lists)) this[name] = Float64Array.from(list);
    this.makeCursors();
  }

  makeCursors() {
    this.cursors = [AT, FROM, TO].map(() => new SeriesCursor(this));
  }

  /** Makes room for `size` changes. */
  reserve(size) {
    if (this.record.length >= size) return;
    for (const name of ['record', 'bytes', 'blocks']) {
      const grown = new Float64Array(2 * size);
      grown.set(this[name]);
      this[name] = grown;
    }
  }

  /** Moves the cursors back to ticks of the page, before the ticks between are changed; and gives
   * them the new numbers of these. */
  toBase(ticks) {
    this.cursors.forEach((cursor) => {
      while (cursor.tick >= 0 && (ticks[cursor.tick].stretch)) cursor.apply(cursor.tick--, -1);
      cursor.base = cursor.tick < 0 ? -1 : ticks[cursor.tick].base;
    });
  }

  fromBase(ticks) {
    this.cursors.forEach((cursor) => {
      cursor.tick = cursor.base < 0 ? -1
        : ticks.findIndex(({ base, stretch }) => base === cursor.base && !stretch);
    });
  }

  /** The state at a tick. One can be held for each place: AT, FROM and TO. */
  at(tick, slot = AT) {
    return this.cursors[slot].move(tick);
  }
}

export class Heap {
  constructor(part, calls) {
    this.part = part;
    this.calls = calls;
    this.readTicks(part.ticks);
    this.readSites(part);
    this.memory = Object.fromEntries(Object.entries(part.memory).map(([name, values]) => [name, numbers(values)]));
    const ticks = this.count;
    this.series = {};
    for (const [name, series] of Object.entries(part.series)) {
      this.series[name] = new Series(series);
      if (series.counts.length < ticks) {
        this.series[name].first = this.series[name].end = new Uint32Array(ticks);
      }
    }
    this.bySite = this.series.stack;
    // Records of the series by stack become call sites.
    const { keys } = this.bySite;
    this.bySite.record = this.bySite.record.map((record) => keys[record]);
    this.bySite.size = this.sites.length;
    this.bySite.makeCursors();
    this.atPeak = this.readPeak(part.at_peak);
    this.sumAll();
    if (part.at_peak.event !== undefined && !this.has_nested) this.insertPeak(part.at_peak, part.peak);
    const highest = this.peakTick();
    if (this.position[highest] === part.peak.position) this.peakPosition = part.peak.position;
    this.kept = new Kept(part.kept);
    if (!this.kept.is_empty) this.dropKept();
  }

  /** Takes the blocks that the runtimes keep out of all sums. */
  dropKept() {
    const { kept, position, all } = this;
    const blocks = position.map((to, tick) => kept.between(tick ? position[tick - 1] : null, to));
    Object.values(this.series).forEach((series, k) => {
      series.change((changes, tick) => kept.without(changes, k, blocks[tick]));
    });
    kept.takeFrom(this.atPeak, this.part.peak.position);
    this.sumAll();
    kept.positions = position;
    kept.sums = {};
    for (const unit of ['bytes', 'blocks']) {
      kept.sums[unit] = all[unit].map((value, tick) => value - this.all[unit][tick]);
      this[unit] = this[unit].map((value, tick) => value - kept.sums[unit][tick]);
    }
    this.peak = this.peak.map((value, tick) => Math.max(this.bytes[tick], value - kept.sums.bytes[tick]));
  }

  /** Makes the peak a tick of its own, in front of the one in whose stretch it is. Where blocks lie
   * within others, the series do not distinguish these, and the tick stays as it is. */
  insertPeak({ tick, site, bytes, blocks, event, time, series, ...sumsBefore }, peak) {
    const put = (name, value) => {
      const list = Array.from(this[name]);
      list.splice(tick, 0, value);
      this[name] = name === 'position' ? list : Float64Array.from(list);
    };
    for (const [name, value] of Object.entries(sumsBefore)) {
      this[name][tick] -= Number(value);
      put(name, Number(value));
    }
    this.peak[tick] = Number(peak.bytes);
    Object.entries({ position: peak.position, event: Number(event), time: Number(time),
      bytes: Number(peak.bytes), blocks: Number(peak.blocks), peak: Number(peak.bytes) })
      .forEach(([name, value]) => put(name, value));
    const all = { ...series, stack: { record: site, bytes, blocks } };
    Object.entries(this.series).forEach(([name, one]) => one.split(tick, all[name]));
    this.count++;
    this.last++;
    this.peakInserted = tick;
    this.sumAll();
  }

  readTicks(part) {
    this.position = part.position;
    this.count = part.position.length;
    for (const name of ['event', 'time', 'bytes', 'blocks']) this[name] = sums(part[name]);
    this.peak = numbers(part.peak).map((above, i) => this.bytes[i] + above);
    for (const name of ['allocations', 'allocated', 'releases']) this[name] = numbers(part[name]);
    this.last = this.count - 1;
  }

  readSites(part) {
    this.stacks = sums(part.sites.stack);
    this.threadOf = part.sites.thread;
    this.sites = sums(part.sites.node).map((number) => number - 1);
    this.others = part.others;
    if (this.others) this.calls.nameOthers(this.sites[this.others.site], this.others.count);
    const { parent } = this.calls;
    this.own = this.sites.map((node, i) => {
      for (let up = part.sites.up[i]; up > 0 && node >= 0; up--) node = parent[node];
      return node;
    });
    this.functionOf = this.own.map((node) => this.calls.functionOfSite(node));
    this.usage = {};
    for (const [name, values] of Object.entries(part.usage)) {
      this.usage[name] = new Float64Array(this.sites.length);
      this.usage[name].set(numbers(values));
    }
    this.copied = new Float64Array(this.sites.length);
    this.copied.set(numbers(part.copied));
    const { usage } = this;
    usage.soon = usage.temporary.map((value, site) => value + usage.later[site]);
    usage.soon_bytes = usage.temporary_bytes.map((value, site) => value + usage.later_bytes[site]);
    this.lost = part.lost && Object.fromEntries(Object.entries(part.lost).map(([kind, groups]) =>
      [kind, this.readGroups(groups)]));
  }

  /** The call site of a stack of the trace; undefined if it has none. */
  siteOf(stack) {
    this.siteByStack ||= new Map(Array.from(this.stacks, (number, site) => [number, site]));
    return this.siteByStack.get(stack);
  }

  /** Whether a call site stands for all of its function that are not known by themselves. */
  isOther(site) {
    return Boolean(this.others) && site >= this.others.site && site < this.others.site + this.others.sites;
  }

  /** The live blocks at the peak: the difference from the end of its tick. */
  readPeak({ tick, site, bytes, blocks }) {
    const end = this.bySite.at(tick);
    const read = { bytes: end.bytes.slice(), blocks: end.blocks.slice() };
    sums(site).forEach((number, i) => {
      read.bytes[number] += Number(bytes[i]);
      read.blocks[number] += Number(blocks[i]);
    });
    return read;
  }

  /** Bytes and blocks by call site. */
  readGroups(groups) {
    const read = {
      bytes: new Float64Array(this.sites.length), blocks: new Float64Array(this.sites.length),
    };
    sums(groups.site).forEach((site, i) => {
      read.bytes[site] = Number(groups.bytes[i]);
      read.blocks[site] = Number(groups.blocks[i]);
    });
    return read;
  }

  /** The growth of call sites from an earlier tick to a later one: by unit, kept until others are
   * asked for. */
  growth(from, to) {
    const known = this.grown;
    if (known?.from === from && known.to === to && known.ticks === this.position) return known;
    const [before, after] = [this.bySite.at(from, FROM), this.bySite.at(to, TO)];
    this.grown = { from, to, ticks: this.position };
    for (const unit of ['bytes', 'blocks']) {
      this.grown[unit] = after[unit].map((value, i) => value - before[unit][i]);
    }
    return this.grown;
  }

  /** The name of a record of the series by thread or heap. */
  nameOf(by, record) {
    const name = this.part[`${by}s`][record];
    const key = this.series[by].keys[record];
    return name ? `${name} (${by} ${key})` : `${by} ${key}`;
  }

  /** Puts ticks between the page's: see RefinedTicks. */
  refine(moments, stretches) {
    this.refined ||= new RefinedTicks(this);
    this.refined.apply(this, moments, stretches);
  }

  /** The tick at a position, or the last one before. */
  tickAt(position) {
    let low = 0;
    let high = this.count;
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (comparePositions(this.position[middle], position) <= 0) low = middle;
      else high = middle;
    }
    return low;
  }

  /** The tick in whose stretch a position is: its end is the first that comes not before. */
  tickOf(position) {
    const tick = this.tickAt(position);
    return tick < this.last && comparePositions(this.position[tick], position) < 0 ? tick + 1 : tick;
  }

  /** The values of an axis between which a position is: the same twice where a tick is at it. */
  around(axis, position) {
    const after = this.tickOf(position);
    const is_between = comparePositions(this.position[after], position) > 0;
    return [this[axis][is_between ? Math.max(0, after - 1) : after], this[axis][after]];
  }

  /** The number of the sample of the process's memory that is nearest to a tick; -1 for none. */
  sampleAt(tick) {
    // The heap stays as it is at the last tick until the program ends.
    const distance = (i) => (tick === this.last && this.memory.time[i] > this.time[tick] ? 0
      : Math.abs(this.memory.time[i] - this.time[tick]));
    return this.memory.time.reduce((best, _, i) => (best < 0 || distance(i) <= distance(best) ? i : best), -1);
  }

  /** The tick in which most was live: like the command, of all blocks, even of the runtimes. */
  peakTick() {
    if (this.peakPosition) return this.tickAt(this.peakPosition);
    let best = 0;
    for (let i = 1; i < this.count; i++) if (this.peak[i] > this.peak[best]) best = i;
    return best;
  }

  /** Sums of all blocks at each tick. They exceed the sums of the heap where a program reported heaps
   * of its own, whose blocks lie within other blocks. */
  sumAll() {
    const { first, end, bytes, blocks } = this.bySite;
    this.all = { bytes: new Float64Array(this.count), blocks: new Float64Array(this.count) };
    let bytesOfAll = 0;
    let blocksOfAll = 0;
    for (let tick = 0; tick < this.count; tick++) {
      for (let i = first[tick]; i < end[tick]; i++) {
        bytesOfAll += bytes[i];
        blocksOfAll += blocks[i];
      }
      this.all.bytes[tick] = bytesOfAll;
      this.all.blocks[tick] = blocksOfAll;
    }
    this.has_nested = this.all.blocks.some((number, i) => number > this.blocks[i]);
  }

  /** The live blocks at a tick that lie within others. */
  nestedAt(tick) {
    return {
      bytes: this.all.bytes[tick] - this.bytes[tick],
      blocks: this.all.blocks[tick] - this.blocks[tick],
    };
  }

  /** Sums of allocations and releases after tick `from`, up to tick `to`. */
  activity(from, to) {
    const result = { allocations: 0, allocated: 0, releases: 0, peak: this.bytes[from] };
    for (let i = from + 1; i <= to; i++) {
      result.allocations += this.allocations[i];
      result.allocated += this.allocated[i];
      result.releases += this.releases[i];
      result.peak = Math.max(result.peak, this.peak[i]);
    }
    return result;
  }
}
