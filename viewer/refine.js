// SPDX-License-Identifier: MIT
// Ticks between the ticks that a page was made with.

/** Properties of ticks that are states, and those that are sums of the stretch before. */
const STATES = ['event', 'time', 'bytes', 'blocks'];
const SUMS = ['allocations', 'allocated', 'releases'];

/** The ticks of a page, with others between them. */
export class RefinedTicks {
  constructor(heap) {
    this.base = { position: heap.position };
    for (const name of [...STATES, 'peak', ...SUMS]) this.base[name] = heap[name];
    this.base.all = heap.all;
    this.series = Object.values(heap.series).map((series) => ({
      series, first: series.first, end: series.end, size: series.bytes.length,
    }));
    this.ticks = Array.from(heap.position, (_, base) => ({ base }));
  }

  /** The list of ticks: each is one of the page, or a stretch; one of the page may have a stretch of
   * its own, which is the rest of it behind the ticks before. */
  list(stretches) {
    const of = new Map();
    for (const stretch of stretches) {
      if (!of.has(stretch.base)) of.set(stretch.base, []);
      of.get(stretch.base).push(stretch);
    }
    const ticks = [];
    for (let base = 0; base < this.base.position.length; base++) {
      const rest = of.get(base - 1)?.find(({ is_last }) => is_last);
      ticks.push({ base, rest });
      for (const stretch of of.get(base) || []) if (!stretch.is_last) ticks.push({ base, stretch });
    }
    return ticks;
  }

  /** Takes the blocks that the runtimes keep out of stretches. */
  dropKept({ kept }, stretches) {
    if (kept.is_empty) return;
    stretches.forEach((stretch, i) => {
      const before = stretches[i - 1];
      kept.takeFromStretch(stretch, before?.base === stretch.base ? before.position : this.base.position[stretch.base]);
    });
  }

  values(name, ticks, pick) {
    const values = new Float64Array(ticks.length);
    ticks.forEach((tick, i) => { values[i] = pick(tick, this.base[name][tick.base], values[i - 1]); });
    return values;
  }

  apply(heap, moments, stretches) {
    this.series.forEach(({ series }) => series.toBase(this.ticks));
    this.dropKept(heap, stretches);
    const ticks = this.list(stretches);
    heap.position = ticks.map(({ base, stretch }) => (stretch || {
      position: this.base.position[base],
    }).position);
    this.moments = ticks.map(({ base, stretch }) => (stretch ? stretch.to : moments[base]));
    heap.event = this.values('event', ticks, ({ stretch }, value, last) =>
      (stretch ? Math.max(stretch.event, last) : value));
    heap.time = this.values('time', ticks, ({ stretch }, value) => (stretch ? stretch.time : value));
    for (const name of ['bytes', 'blocks']) {
      heap[name] = this.values(name, ticks, ({ stretch }, value, last) =>
        (stretch ? last + stretch[name] : value));
    }
    const before = (i) => heap.bytes[i - 1] ?? 0;
    heap.peak = this.values('peak', ticks, () => 0);
    ticks.forEach(({ base, stretch, rest }, i) => {
      const own = stretch || rest;
      heap.peak[i] = own ? before(i) + own.peak : this.base.peak[base];
    });
    for (const name of SUMS) {
      heap[name] = this.values(name, ticks, ({ stretch, rest }, value) =>
        (stretch || rest ? (stretch || rest)[name] : value));
    }
    heap.count = ticks.length;
    heap.last = ticks.length - 1;
    this.ticks = ticks;
    this.series.forEach((part, k) => this.applySeries(part, k));
    this.sumAll(heap);
  }

  /** Sums of all blocks, those in others included. */
  sumAll(heap) {
    const all = {};
    for (const unit of ['bytes', 'blocks']) {
      all[unit] = new Float64Array(this.ticks.length);
      this.ticks.forEach(({ base, stretch }, i) => {
        all[unit][i] = stretch ? stretch.series[0][unit].reduce((sum, value) => sum + value,
          all[unit][i - 1]) : this.base.all[unit][base];
      });
    }
    heap.all = all;
  }

  /** The changes of added stretches lie behind the page's. */
  applySeries({ series, first, end, size }, k) {
    const added = this.ticks.map(({ stretch, rest }) => (stretch || rest)?.series[k]);
    const room = added.reduce((sum, changes) => sum + (changes ? changes.record.length : 0), 0);
    series.reserve(size + room);
    series.first = new Uint32Array(this.ticks.length);
    series.end = new Uint32Array(this.ticks.length);
    let place = size;
    this.ticks.forEach(({ base }, i) => {
      const changes = added[i];
      series.first[i] = changes ? place : first[base];
      if (changes) {
        for (const name of ['record', 'bytes', 'blocks']) series[name].set(changes[name], place);
        place += changes.record.length;
      }
      series.end[i] = changes ? place : end[base];
    });
    series.fromBase(this.ticks);
  }

  /** Keeps the values that belong to ticks of the page. */
  ofPage(values) {
    return values.filter((_, i) => !this.ticks[i].stretch);
  }

  /** Values by tick of the page, for all ticks: added ones have the value of the one before. */
  spread(values) {
    return Float64Array.from(this.ticks, ({ base }) => values[base]);
  }
}
