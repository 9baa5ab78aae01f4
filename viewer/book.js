// SPDX-License-Identifier: MIT
// The traces that a page has, of which one is shown at a time, or the comparison of two.
import { element } from './dom.js';
import { baseName } from './format.js';
import { firstTrace } from './state.js';

/** Stands in the address for the comparison, and is the name of its element. */
export const COMPARISON = 'comparison';

/** Values of the state that another trace has no use for. */
const OF_ONE = ['at', 'from', 'to', 'zoom', 'root', 'address', 'region'];

/** The name of the element that has something of a trace, by the number of the trace. */
export function elementOf(name, number) {
  return number > 1 ? `${name}-${number}` : name;
}

/** The name of a trace: the last part of its path, if no other one has the same. */
function nameOf(path, paths) {
  const name = baseName(path);
  return paths.filter((other) => baseName(other) === name).length > 1 ? path : name;
}

export class Book {
  /** @param read  reads a trace by its number, or the comparison; resolves to a function that makes
   *               the page */
  constructor(read) {
    this.read = read;
    this.count = document.querySelectorAll('script[id^="data"]').length;
    this.has_comparison = Boolean(document.getElementById(COMPARISON));
    addEventListener('hashchange', () => this.follow());
  }

  get is_several() {
    return this.count > 1;
  }

  /** The trace that the address asks for. */
  get asked() {
    const key = new URLSearchParams(location.hash.slice(1)).get('t') ?? firstTrace();
    if (key === COMPARISON && this.has_comparison) return key;
    return /^[1-9][0-9]?$/.test(key) && Number(key) <= this.count ? key : '1';
  }

  /** Shows the page of the address. Of pages that are asked for while another one is read, only
   * the last is shown. */
  async follow() {
    if (this.asked === this.key) return;
    this.key = this.asked;
    const turn = {};
    this.turn = turn;
    this.page?.close();
    this.page = null;
    delete document.body.dataset.state;
    try {
      const make = await this.read(this.key);
      if (turn !== this.turn) return;
      this.page = make(this);
      document.body.dataset.state = 'ready';
    } catch (error) {
      document.getElementById('page').replaceChildren(element('p',
        { class: 'wait', role: 'alert' }, `The report cannot be shown: ${error}`));
      document.body.dataset.state = 'failed';
      throw error;
    }
  }

  /** The choice among the traces of a page; null if there is but one. */
  chooser(paths) {
    if (!this.is_several) return null;
    const select = element('select', { 'aria-label': 'Trace', on: { change: () => {
      this.page.state.write();
      const values = new URLSearchParams(location.hash.slice(1));
      OF_ONE.forEach((name) => values.delete(name));
      values.set('t', select.value);
      location.hash = values.toString();
    } } }, ...paths.map((path, i) => element('option', { value: i + 1, title: path },
      `${i + 1}: ${nameOf(path, paths)}`)),
    this.has_comparison ? element('option', { value: COMPARISON }, 'Comparison of both') : null);
    select.value = this.key;
    return element('label', { class: 'choice' }, element('span', {}, 'Trace'), select);
  }
}
