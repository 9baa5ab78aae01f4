// SPDX-License-Identifier: MIT
// Stacks, positions and other pieces of findings.
import { breakable, button, element, setText } from './dom.js';
import { START, baseName, moment, momentBetween, things } from './format.js';

/** Frames below this many are shown on demand. */
const FRAMES_SHOWN = 12;

export class Pieces {
  constructor(calls, heap, state, scope, { exact = null, functions = null, search = null } = {}) {
    Object.assign(this, { calls, heap, state, scope, exact, functions, search });
  }

  frame(number) {
    const { calls } = this;
    const made = calls.functions[calls.functionOf[number]];
    const kind = made.own ? 'own' : 'foreign';
    const line = calls.line(number);
    const module = baseName(made.module);
    const name = button('', () => this.state.set({ search: made.name, root: '' }), { class: 'name' });
    name.append(element('b', {}, ...breakable(made.short)));
    return element('li', { class: kind, title: `${made.name}\n${calls.line(number, true)}\n` +
        `${made.module}` },
    name, line ? ` ${line}` : '',
    element('span', {}, module ? ` in ${module}` : '', calls.isInlined(number) ? ' (inlined)' : ''));
  }

  /** The function of the program that a stack of the trace belongs to; "" if the page does not have it. */
  functionOf(stack) {
    const site = this.heap.siteOf(stack);
    return site === undefined ? '' : this.calls.functions[this.heap.functionOf[site]].short;
  }

  /** A stack by its number: its frames, innermost first. Those behind main() are folded. */
  stack(number) {
    const frames = this.calls.stack(number);
    if (!frames.length) return element('p', { class: 'dim' }, '(no stack was recorded)');
    const main = frames.findLastIndex((frame) =>
      this.calls.functions[this.calls.functionOf[frame]].name === 'main');
    const shown = Math.min(FRAMES_SHOWN, main < 0 ? frames.length : main + 1);
    const list = element('ol', { class: 'stack' },
      ...frames.slice(0, shown).map((frame) => this.frame(frame)));
    if (shown < frames.length) {
      const more = button(`${things(frames.length - shown, 'more frame')}`, () => {
        more.replaceWith(...frames.slice(shown).map((frame) => this.frame(frame)));
      }, { class: 'more' });
      list.append(more);
    }
    return list;
  }

  /** The time of a position with as many digits as the page knows; empty if it knows too few. */
  knownTime(position) {
    const { heap, scope } = this;
    const whole = heap.time[heap.last];
    if (!position || !scope.has_times || !scope.has(position) || !whole) return '';
    const times = heap.around('time', position);
    const known = [10000, 1000, 100].map((parts) => times.map((time) => moment(time, whole / parts)))
      .find(([from, to]) => from === to);
    return known ? known[0] : '';
  }

  /** The time of a position, or those that the page knows before and after it; "" if it has none. */
  shortTime(position) {
    return this.knownTime(position) || this.timeOf(position).slice(2, -1).replace(`between ${START} and `, '≤ ')
      .replace('between ', '').replace(' and ', ' – ');
  }

  /** A position as such a time. */
  when(position) {
    const node = this.position(position);
    const time = this.shortTime(position);
    if (time) {
      setText(node, time);
      node.title = `Position ${position}. ${node.title}`;
    }
    return node;
  }

  /** A position: going there moves the cursor, if the page has it. */
  position(position) {
    if (!position) return '';
    if (!this.scope.has(position)) {
      return element('span', { title: 'Not in the range of this page' }, position);
    }
    if (this.exact) {
      return button(position, () => this.exact.go('at', { position }),
        { class: 'link', title: 'Move the cursor there' });
    }
    return button(position, () => this.state.set({ at: this.heap.tickAt(position) }),
      { class: 'link', title: 'Move the cursor to the last tick before or there' });
  }

  /** The time of a position: the one that its call has, or the moments of the page around it. A noun says whose it is. */
  timeOf(position, time, noun = '') {
    const { heap, scope } = this;
    if (!position || !heap?.time || !scope.has_times || !scope.has(position)) return '';
    const step = heap.time[heap.last] / 10000;
    return ` (${noun}${time === undefined ? momentBetween(heap.around('time', position), step).replace('at ', '') : moment(time, step)})`;
  }

  /** A call with its stack; null if it is not known. */
  call(title, call) {
    if (!call) return null;
    return element('section', { class: 'call' },
      element('h4', {}, title, ' by ', element('code', {}, `${call.api || call.action}()`), ' at ',
        this.position(call.position), this.timeOf(call.position, call.wall_time === undefined ? undefined : call.time), ` in thread ${call.thread}`,
        call.returned === false ? ', which never returned' : ''),
      this.stack(call.stack));
  }
}
