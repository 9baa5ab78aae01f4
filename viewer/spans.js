// SPDX-License-Identifier: MIT
// The quadrants of any range. The live blocks at its ends are known, and the allocations in it; the
// releases of blocks from before follow from the spans from allocation to release.
import { numbers, sums } from './data.js';

export class Spans {
  /** @param heap  has the ticks of the page */
  constructor(part, heap) {
    this.heap = heap;
    this.width = part.width;
    this.begin = sums(part.begin);
    this.blocks = numbers(part.blocks);
    this.bytes = numbers(part.bytes);
    this.end = sums(part.counts);
  }

  /** The number that a tick has without the peak's, which spans do not know. */
  numberOf(tick) {
    return tick > (this.heap.peakInserted ?? Infinity) ? tick - 1 : tick;
  }

  /** The range of whole spans' ticks that includes the range between two ticks. */
  round(from, to) {
    const { width, heap } = this;
    const peak = heap.peakInserted ?? Infinity;
    const tickOf = (number) => (number >= peak ? number + 1 : number);
    const [low, high] = [from === peak ? from - 1 : this.numberOf(from), this.numberOf(to)];
    return [tickOf(Math.floor(low / width) * width),
      Math.min(heap.last, tickOf(Math.ceil(high / width) * width))];
  }

  /** The releases after tick `from`, up to tick `to`, of the blocks that were live at `from`. */
  released(from, to) {
    const sum = { blocks: 0, bytes: 0 };
    const [first, last] = [from, to].map((tick) => Math.ceil(this.numberOf(tick) / this.width));
    for (let i = this.end[first]; i < this.end[last]; i++) {
      if (this.begin[i] > first) continue;
      sum.blocks += this.blocks[i];
      sum.bytes += this.bytes[i];
    }
    return sum;
  }

  /** The blocks and bytes of each quadrant of a range that round() leaves as it is. */
  quadrants(from, to) {
    const { all } = this.heap;
    const { allocations, allocated } = this.heap.activity(from, to);
    const kept = this.heap.kept.between(this.heap.position[from], this.heap.position[to]);
    const added = { blocks: allocations - kept.length, bytes: allocated - kept.reduce((sum, { bytes }) => sum + bytes, 0) };
    const aofi = this.released(from, to);
    const found = { aifi: {}, aifo: {}, aofi, aofo: {} };
    for (const unit of ['blocks', 'bytes']) {
      found.aofo[unit] = all[unit][from] - aofi[unit];
      found.aifo[unit] = all[unit][to] - found.aofo[unit];
      found.aifi[unit] = added[unit] - found.aifo[unit];
    }
    return found;
  }
}
