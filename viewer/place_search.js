// SPDX-License-Identifier: MIT
// The search field, and the places that a text in it names instead of functions: a moment, a position, an address,
// a mark. Enter goes there; a hint says so before.
import { element, setText, textField } from './dom.js';
import { count, momentBetween, momentNamed, things } from './format.js';

const ADDRESS = /^0x[0-9a-f]{1,16}$/i;
const POSITION = /^[0-9a-f]{1,16}:[0-9a-f]{1,16}$/i;

/** The hint for a text that is the beginning of a place. */
const FORMS = 'Moments are 40% of the events, #1234 the event of that number, +1.5s a time, 6:1A2B a position; 0x1f00 is an address.';

export class PlaceSearch {
  /** @param page  whose cursor and views it moves */
  constructor(page) {
    this.page = page;
    this.field = textField(page.state, 'search', 'Function, file, address…  /', { root: '' });
    this.field.addEventListener('keydown', (event) => this.press(event));
    ['focus', 'blur'].forEach((kind) => this.field.addEventListener(kind, () => page.state.tell()));
    this.hint = element('div', { class: 'tip', role: 'status', 'aria-label': 'What Enter does', hidden: true });
    this.node = element('span', { class: 'search' }, this.field, this.hint);
  }

  press({ key }) {
    if (key === 'Escape') {
      this.page.state.set({ search: '' });
      this.field.blur();
    }
    if (key !== 'Enter') return;
    const place = this.named(this.field.value.trim());
    if (!place) return;
    place.go();
    // Keys are the page's again once there is nothing more to type.
    this.field.blur();
  }

  /** The place that a text names: `says` what it is, `go` goes there, and `tick` is the one that the cursor goes to,
   * if that moves; null if it names none. */
  named(text) {
    const { page, page: { heap } } = this;
    const moment = momentNamed(text, this.events);
    if (POSITION.test(text)) {
      const position = text.toUpperCase();
      return { says: 'a position', tick: heap.tickAt(position), go: () => page.goTo(position) };
    }
    if (moment) return { says: this.textOf(text, moment), tick: page.tickOfMoment(moment), go: () => page.goToMoment(moment) };
    if (ADDRESS.test(text)) return { says: 'an address. Enter shows its biography.', go: () => page.goToAddress(text.toLowerCase()) };
    const mark = page.notes.find((note) => text && note.text.toLowerCase().includes(text.toLowerCase()));
    if (!mark || page.search.chains?.some((is_found) => is_found)) return null;
    return { says: mark.text, tick: heap.tickAt(mark.position), go: () => page.goTo(mark.position) };
  }

  get events() {
    return Number(this.page.parts.info.events);
  }

  textOf(text, { event, time }) {
    if (time !== undefined) return 'so long after the start';
    return text.endsWith('%') ? `so many of the ${things(this.events, 'event')}${this.page.scope.has_times ? ', not of the time' : ''}`
      : `event ${count(event)}, counted from 0`;
  }

  /** The sentence about a text before Enter; "" for a text that filters. */
  hintOf(text) {
    const { search, exact, figures, known } = this.page;
    search.follow();
    const place = this.named(text);
    if (!place) return text && !search.text ? FORMS : '';
    if (place.tick === undefined) return exact ? `${text}: ${place.says}` : known.sentence(text);
    return `${text}: ${place.says}. Enter moves the cursor ${exact ? `there, ${this.timeAround(place.tick)}`
      : `to ${figures.timeOf(place.tick)}, the last moment of this page up to there`}.`;
  }

  /** When something was that is not before a tick, but before the next. */
  timeAround(tick) {
    const { heap, scope, figures } = this.page;
    if (!scope.has_times) return figures.timeOf(tick);
    return momentBetween([heap.time[tick], heap.time[Math.min(heap.last, tick + 1)]], heap.time[heap.last] / 1000);
  }

  /** The address that is looked for, if the page cannot know it; empty if there is none. */
  get address() {
    const { state, exact, search } = this.page;
    const text = state.get('search').trim();
    return !exact && ADDRESS.test(text) && !search.is_on ? text : '';
  }

  /** Shows the hint while the field is typed in. */
  draw() {
    const text = document.activeElement === this.field && this.hintOf(this.page.state.get('search').trim());
    if (this.hint.hidden === Boolean(text)) this.hint.hidden = !text;
    setText(this.hint, text || '');
  }
}
