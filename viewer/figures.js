// SPDX-License-Identifier: MIT
// The row of large numbers: cursor, live bytes and blocks, the peak, the range; of what is followed,
// if the search chooses something.
import { element, figure } from './dom.js';
import { bytes, count, duration, moment, briefName, signed, things } from './format.js';

const NAMES = ['Cursor', 'Live', 'Blocks', 'Peak', 'Range', 'In the range'];

export class Figures {
  constructor(heap, state, scope, timeline) {
    Object.assign(this, { heap, state, scope, timeline });
    this.amounts = NAMES.map(figure);
    this.node = element('dl', { class: 'figures', 'aria-live': 'off' },
      ...this.amounts.map(({ node }) => node));
  }

  draw() {
    const [at, from, to] = ['at', 'from', 'to'].map((name) => this.state.get(name));
    const { followed } = this.timeline;
    const [cursor, range] = [this.ofCursor(at), this.ofRange(from, to)];
    const shown = followed === this.heap
      ? [cursor, ...this.ofHeap(at), this.ofPeak(), range, this.ofActivity(from, to)]
      : [cursor, ...this.ofFollowed(followed, at, from, to, range)];
    this.amounts.forEach(({ show }, i) => show(...shown[i]));
  }

  ofCursor(at) {
    const { heap } = this;
    return [this.timeOf(at), `position ${heap.position[at]}`];
  }

  timeOf(tick) {
    const { heap, scope } = this;
    return scope.has_times ? moment(heap.time[tick], heap.time[heap.last] / 1000) : `event ${count(heap.event[tick])}`;
  }

  ofHeap(at) {
    const { heap } = this;
    const nested = heap.nestedAt(at);
    return [
      [bytes(heap.bytes[at]), things(heap.bytes[at], 'byte') +
        (nested.blocks ? `, and ${count(nested.bytes)} within them` : '')],
      [count(heap.blocks[at]), 'live' +
        (nested.blocks ? `, and ${count(nested.blocks)} within them` : '')],
    ];
  }

  /** Of the records that the search finds: the live bytes, their peak, and their growth. */
  ofFollowed({ bytes: size, blocks, text }, at, from, to, range) {
    const { heap } = this;
    const whose = `of “${briefName(text)}”`;
    const highest = size.reduce((best, value, tick) => (value > size[best] ? tick : best), 0);
    return [
      [bytes(size[at]), `${things(size[at], 'byte')} ${whose}, ${bytes(heap.bytes[at])} in all`],
      [count(blocks[at]), `${whose}, ${count(heap.blocks[at])} in all`],
      [bytes(size[highest]), `${whose}, at ${this.timeOf(highest)}`],
      range,
      [signed(size[to] - size[from], bytes), `${whose}, ${signed(blocks[to] - blocks[from], (number) => things(number, 'block'))}`],
    ];
  }

  /** The peak and its position. That of filtered blocks is known by its tick. */
  ofPeak() {
    const { heap, scope } = this;
    const { position, bytes: size } = heap.part.peak;
    const tick = heap.peakTick();
    return [bytes(heap.peak[tick]), scope.is_filtered
      ? `by position ${heap.position[tick]}; of all blocks ${bytes(Number(size))} at ${position}`
      : `position ${position}${scope.has(position) ? '' : ', before the range'}`];
  }

  ofRange(from, to) {
    const { heap, scope } = this;
    const positions = `${from ? 'after ' : ''}${heap.position[from]} to ${heap.position[to]}`;
    return [scope.has_times ? duration(Math.max(0, heap.time[to] - heap.time[from]))
      : things(heap.event[to] - heap.event[from], 'event'),
    from || to < heap.last ? `${this.timeOf(from)} to ${this.timeOf(to)}, ${positions}` : positions];
  }

  ofActivity(from, to) {
    const { heap } = this;
    const activity = heap.activity(from, to);
    return [signed(heap.bytes[to] - heap.bytes[from], bytes),
      `${things(activity.allocations, 'allocation')} of ${bytes(activity.allocated)}, ` +
      things(activity.releases, 'release')];
  }
}
