// SPDX-License-Identifier: MIT
// The blocks that the C and C++ runtimes keep until the end: the page's data count them, and what the
// page shows does not, like the commands.
import { comparePositions, things } from './format.js';

/** The series, in the order of the engine's answers. */
const KEPT_SERIES = ['stack', 'thread', 'heap', 'size'];

/** How many of a sorted list come not after a position. */
function lastTo(list, position, positionOf = (one) => one) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (comparePositions(positionOf(list[middle]), position) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class Kept {
  /** @param part   the blocks: for each its position, bytes and records of series; and the call sites
   * of which all blocks are kept */
  constructor(part) {
    this.sites = new Set(part.sites);
    this.blocks = part.position.map((position, i) => ({ position, bytes: Number(part.bytes[i]),
      records: KEPT_SERIES.map((name) => part[name][i]) })).sort((a, b) => comparePositions(a.position, b.position));
    this.positions = [];
  }

  get is_empty() {
    return !this.blocks.length && !this.sites.size;
  }

  /** The number of blocks that were allocated up to a position. */
  countTo(position) {
    return lastTo(this.blocks, position, (block) => block.position);
  }

  /** The blocks that were allocated after one position, up to another. */
  between(after, to) {
    return this.blocks.slice(after === null ? 0 : this.countTo(after), this.countTo(to));
  }

  /** The live ones at a position. */
  blocksAt(position) {
    const tick = lastTo(this.positions, position) - 1;
    const later = this.between(this.positions[tick] ?? null, position);
    return (this.sums?.blocks[tick] ?? 0) + later.filter(({ records }) => !this.sites.has(records[0])).length;
  }

  /** Takes blocks out of groups by call site. Returns the groups that are left. */
  withoutGroups(groups, siteOf, blocks) {
    const left = groups.filter((group) => !this.sites.has(siteOf(group)));
    const bySite = new Map(left.map((group) => [siteOf(group), group]));
    blocks.forEach(({ records, bytes }) => {
      const group = bySite.get(records[0]);
      if (!group) return;
      group.blocks--;
      group.bytes -= bytes;
    });
    return left.filter((group) => group.blocks);
  }

  /** The sentence of the commands about kept blocks at a tick of the page or after it; empty if nothing
   * is. */
  text(position) {
    const tick = lastTo(this.positions, position) - 1;
    const number = this.sums?.blocks[tick];
    return number ? `; ${things(number, 'block')}, ${things(this.sums.bytes[tick], 'byte')} ` +
      'kept by the C/C++ runtime, not counted' : '';
  }

  /** Takes the blocks of a stretch out of the changes in it by a series. Returns the rest. */
  without(changes, k, blocks) {
    const kept = k === 0 ? blocks.filter(({ records }) => !this.sites.has(records[0])) : blocks;
    const left = { record: [], bytes: [], blocks: [] };
    const add = (record, bytes, number) => {
      left.record.push(record);
      left.bytes.push(bytes);
      left.blocks.push(number);
    };
    for (let i = 0; i < changes.record.length; i++) {
      if (k > 0 || !this.sites.has(changes.record[i])) add(changes.record[i], changes.bytes[i], changes.blocks[i]);
    }
    kept.forEach(({ records, bytes }) => add(records[k], -bytes, -1));
    return left;
  }

  /** Takes the blocks out of sums by call site at a position. */
  takeFrom(sums, position) {
    this.sites.forEach((site) => { sums.bytes[site] = sums.blocks[site] = 0; });
    this.between(null, position).filter(({ records }) => !this.sites.has(records[0])).forEach(({ records, bytes }) => {
      sums.bytes[records[0]] -= bytes;
      sums.blocks[records[0]]--;
    });
  }

  /** Takes the blocks out of a stretch between ticks. */
  takeFromStretch(stretch, after) {
    const blocks = this.between(after, stretch.position);
    const sum = ({ bytes, blocks: number }, unit) => (unit === 'bytes' ? bytes : number)
      .reduce((all, value) => all + value, 0);
    const series = stretch.series.map((changes, k) => this.without(changes, k, blocks));
    for (const unit of ['bytes', 'blocks']) stretch[unit] += sum(series[0], unit) - sum(stretch.series[0], unit);
    stretch.series = series;
  }
}
