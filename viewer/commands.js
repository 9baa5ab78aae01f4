// SPDX-License-Identifier: MIT
// The commands that print the figures of the page.
import { button, copyText, element } from './dom.js';
import { followingPosition } from './format.js';

/** Commands that have no filters. */
const UNFILTERED = ['info', 'retained', 'roots', 'history', 'fragmentation'];

/** The words of `diff` for the range between two ticks: with `is_of_states` the heap at its end beside that at its
 * beginning; else the calls after the first tick, up to the second, of which the command takes the first position and
 * the first one behind. */
export function rangeWords({ position, last }, scope, [from, to], is_of_states) {
  if (is_of_states) return ['diff', '--changes', '--from', position[from], '--to', position[to]];
  const end = to < last ? position[to] : scope.to;
  return ['diff', '--from', from ? followingPosition(position[from]) : scope.from,
    ...(end === null ? [] : ['--to', followingPosition(end)])];
}

/** Quotes a word for a shell. */
export function quote(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

export class Commands {
  constructor(facts) {
    this.facts = facts;
  }

  /** The command line of ttdanalyze with these words, the page's filters and the trace, or the
   * traces that are its operands. */
  line(...words) {
    const { include, exclude, client, activity, path, operands = [path] } = this.facts;
    const filters = UNFILTERED.includes(words[0]) ? [] : [...include.flatMap((name) => ['--include', name]),
      ...exclude.flatMap((name) => ['--exclude', name]), ...client === null ? [] : ['--client', client],
      ...activity === null ? [] : ['--activity', activity]];
    return ['ttdanalyze', ...words, ...filters, ...operands].map((word) => quote(String(word))).join(' ');
  }
}

/** A line with a command, which can be copied. */
export class CommandLine {
  constructor(text = '', says = 'The same in text') {
    this.code = element('code', { tabindex: 0 }, text);
    this.node = element('p', { class: 'command' }, element('span', {}, `${says}: `),
      this.code, ' ', button('Copy', (event) => copyText(this.code.textContent,
        event.currentTarget), { 'aria-label': 'Copy the command' }));
  }

  set(text) {
    if (this.code.textContent !== text) this.code.textContent = text;
  }
}
