// SPDX-License-Identifier: MIT
// The row of large numbers: cursor, live bytes and blocks, the peak, the range.
import { element, figure } from './dom.js';
import { bytes, count, duration, moment, signed, things } from './format.js';

const NAMES = ['Cursor', 'Live', 'Blocks', 'Peak', 'Range', 'In the range'];

export class Figures {
  constructor(heap, state, scope) {
    Object.assign(this, { heap, state, scope });
    this.amounts = NAMES.map(figure);
    this.node = element('dl', { class: 'figures', 'aria-live': 'off' },
      ...this.amounts.map(({ node }) => node));
  }

  draw() {
    const [at, from, to] = ['at', 'from', 'to'].map((name) => this.state.get(name));
    const shown = [...this.ofCursor(at), this.ofPeak(), ...this.ofRange(from, to)];
    this.amounts.forEach(({ show }, i) => show(...shown[i]));
  }

  ofCursor(at) {
    const { heap, scope } = this;
    const nested = heap.nestedAt(at);
    return [
      [scope.has_times ? moment(heap.time[at], heap.time[heap.last] / 1000)
        : `event ${count(heap.event[at])}`, `position ${heap.position[at]}`],
      [bytes(heap.bytes[at]), things(heap.bytes[at], 'byte') +
        (nested.blocks ? `, and ${count(nested.bytes)} within them` : '')],
      [count(heap.blocks[at]), 'live' +
        (nested.blocks ? `, and ${count(nested.blocks)} within them` : '')],
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
    const activity = heap.activity(from, to);
    return [
      [scope.has_times ? duration(Math.max(0, heap.time[to] - heap.time[from]))
        : things(heap.event[to] - heap.event[from], 'event'),
      `${heap.position[from]} to ${heap.position[to]}`],
      [signed(heap.bytes[to] - heap.bytes[from], bytes),
        `${things(activity.allocations, 'allocation')} of ${bytes(activity.allocated)}, ` +
        things(activity.releases, 'release')],
    ];
  }
}
