// SPDX-License-Identifier: MIT
// The search: which chains of calls have a function or a file that is looked for. All views go by it.

/** An address or a position as the commands take it, whole or begun. */
const PLACE = /^(0x[0-9a-f]*|[0-9a-f]+:[0-9a-f]*|\d[\d.]*%?|#\d*|\+[\d.]*[a-z]*)$/i;

export class Search {
  constructor(calls, state) {
    Object.assign(this, { calls, state, text: '' });
  }

  /** Finds anew if the text is another one. A text that is the whole name of a function finds that
   * function; any other one finds all whose name, module or line has it. */
  follow() {
    const text = this.state.get('search').trim();
    if (this.asked === text) return;
    const { calls } = this;
    this.asked = this.text = text;
    this.masks = new WeakMap();
    if (!text) return;
    const wanted = text.toLowerCase();
    const is_name = calls.functions.some(({ name }) => name === text);
    const found = calls.functions.map(({ name, module }) => (is_name ? name === text
      : name.toLowerCase().includes(wanted) ||
        module.slice(module.lastIndexOf('/') + 1).toLowerCase().includes(wanted)));
    const has = calls.functionOf.map((number, frame) => found[number] ||
      (!is_name && calls.line(frame, true).toLowerCase().includes(wanted)));
    this.found = found;
    this.isFound = Uint8Array.from(calls.frame, (frame) => has[frame]);
    this.chains = new Uint8Array(calls.parent.length);
    for (let i = 0; i < this.chains.length; i++) {
      this.chains[i] = this.isFound[i] || (calls.parent[i] >= 0 && this.chains[calls.parent[i]]) ? 1 : 0;
    }
    // Enter goes there; a filter of it would leave nothing.
    if (PLACE.test(text) && !this.chains.includes(1)) this.text = '';
  }

  get is_on() {
    this.follow();
    return Boolean(this.text);
  }

  /** Returns a function that calls `redraw` whenever something else is looked for than last time. */
  watch(redraw) {
    let known = '';
    return () => {
      const now = this.is_on ? this.text : '';
      if (now !== known) redraw();
      known = now;
    };
  }

  /** Whether a chain of calls is found, by its innermost node. */
  has(node) {
    return !this.is_on || Boolean(this.chains[node]);
  }

  /** Which call sites are found; null for all. */
  mask(sites) {
    if (!this.is_on) return null;
    if (!this.masks.has(sites)) {
      this.masks.set(sites, Uint8Array.from(sites, (node) => (node >= 0 ? this.chains[node] : 0)));
    }
    return this.masks.get(sites);
  }

  /** Values by call site, of which those that are not found are 0. */
  filter(values, sites) {
    const mask = this.mask(sites);
    return mask ? values.map((value, i) => (mask[i] ? value : 0)) : values;
  }
}
