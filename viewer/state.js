// SPDX-License-Identifier: MIT
// The state of the page: its view, and the moment. It is the fragment of the address.

/** The names in the fragment, with the values that hold where it is silent. Ticks are numbers. */
export const DEFAULTS = {
  t: '1', at: null, from: null, to: null, axis: 'auto', plot: 'bytes-sites', zoom: '', view: 'heap',
  measure: 'live', unit: 'bytes', tree: 'icicle', direction: 'inward', scale: 'fill',
  color: 'function', root: '', search: '', by: 'function', address: '', region: '',
  change: 'new', table: '', sort: '',
};

/** The view of a page that is opened without a wish: of two traces their comparison. */
export function firstTrace() {
  return document.getElementById('comparison') ? 'comparison' : DEFAULTS.t;
}

/** Ticks are written as their positions. */
const TICKS = ['at', 'from', 'to'];

export class State {
  /** @param heap   has the ticks
   * @param signal  ends the state: it neither draws nor writes any more */
  constructor(heap, signal) {
    Object.assign(this, { heap, signal });
    this.listeners = [];
    this.values = { ...DEFAULTS };
    this.read();
    addEventListener('hashchange', () => {
      if (location.hash !== this.known) this.read();
      this.tell();
    }, { signal });
  }

  read() {
    this.known = location.hash;
    const given = new URLSearchParams(location.hash.slice(1));
    this.asked = {};
    this.values = { ...DEFAULTS, t: firstTrace(), at: this.heap.peakTick(), from: 0, to: this.heap.last };
    for (const [name, value] of given) {
      if (!Object.hasOwn(DEFAULTS, name)) continue;
      if (!TICKS.includes(name)) this.values[name] = value;
      else if (/^[0-9A-F]{1,16}:[0-9A-F]{1,16}$/.test(value)) {
        this.values[name] = this.heap.tickAt(value);
        this.asked[name] = value;
      }
    }
    if (this.values.from > this.values.to) this.values.from = 0;
  }

  get(name) {
    return this.values[name];
  }

  /** Sets some values, calls the listeners and writes the fragment. */
  set(changes) {
    const { last } = this.heap;
    for (const [name, value] of Object.entries(changes)) {
      this.values[name] = TICKS.includes(name)
        ? Math.max(0, Math.min(last, Math.round(value))) : value;
    }
    this.tell();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), 150);
  }

  /** The fragment that shows the same. */
  fragment() {
    const pairs = new URLSearchParams();
    for (const [name, value] of Object.entries(this.values)) {
      const is_tick = TICKS.includes(name);
      const usual = { from: 0, to: this.heap.last, t: firstTrace() }[name] ?? DEFAULTS[name];
      if (value !== usual) pairs.set(name, is_tick ? this.heap.position[value] : value);
    }
    return `#${pairs.toString().replaceAll('%3A', ':')}`;
  }

  /** Writes the fragment, unless somebody has just changed it and the event is on its way: writing
   * would undo that. */
  write() {
    if (location.hash !== this.known || this.signal.aborted) return;
    history.replaceState(null, '', this.fragment());
    this.known = location.hash;
  }

  listen(listener) {
    this.listeners.push(listener);
  }

  /** Draws once for all that changed since the last picture. */
  tell() {
    if (this.is_told) return;
    this.is_told = true;
    requestAnimationFrame(() => {
      this.is_told = false;
      if (this.signal.aborted) return;
      this.listeners.forEach((listener) => listener());
    });
  }
}
