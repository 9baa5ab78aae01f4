// SPDX-License-Identifier: MIT
// The range and the filters of the page, and which of them a view goes by.
import { comparePositions } from './format.js';

export class Scope {
  constructor(facts) {
    Object.assign(this, facts);
    this.is_part = comparePositions(facts.from, '0:0') > 0 || facts.to !== null;
    this.is_filtered = facts.include.length + facts.exclude.length > 0 ||
      facts.client !== null || facts.activity !== null;
    this.end = facts.to === null ? 'the end of the trace' : facts.to;
  }

  /** Whether a position lies in the range. */
  has(position) {
    return comparePositions(position, this.from) >= 0 &&
      (this.to === null || comparePositions(position, this.to) <= 0);
  }

  /** The sentences about the page as a whole; none if it shows the whole trace. */
  ofPage() {
    return [
      this.is_part ? `This page shows the range from ${this.from} to ${this.end}. The peak is the ` +
        `highest from the start of the trace to ${this.end}.` : '',
      ...this.ofFilters(),
    ].filter((text) => text);
  }

  /** The sentences about the filters. */
  ofFilters() {
    const quoted = (names) => names.map((name) => `“${name}”`).join(', ');
    return [
      this.include.length ? `Only stacks with ${quoted(this.include)} count.` : '',
      this.exclude.length ? `Stacks with ${quoted(this.exclude)} do not count.` : '',
      this.client === null ? '' : `Only islands of client ${this.client} count.`,
      this.activity === null ? '' : `Only islands of activity ${this.activity} count.`,
    ].filter((text) => text);
  }

  /** The sentences about a view whose data are of another range than the page's: 'trace' for the
   * whole trace, 'end' for the end of the range. */
  ofView({ reach, is_filtered }) {
    const of_range = {
      trace: 'This view is of the whole trace, not only of the range of this page.',
      end: `This view is of all blocks that are live at ${this.end}, whenever they were allocated.`,
    };
    return [
      this.is_part && reach ? of_range[reach] : '',
      this.is_filtered && !is_filtered ? 'The filters of this page do not apply to this view.' : '',
    ].filter((text) => text);
  }
}
