// SPDX-License-Identifier: MIT
// One function: everything that the page knows of it, at the cursor, in the range and in the trace.
import { CommandLine, rangeWords } from './commands.js';
import { breakable, button, element, setText } from './dom.js';
import { bytes, count, percent, signed, things } from './format.js';
import { AT } from './heap.js';
import { SOON, SOON_TEXT } from './measures.js';
import { palette } from './surface.js';
import { curveNode } from './verdicts.js';

/** The points of the curve. */
const CURVE_POINTS = 80;

/** In windows that are less high the panel would cover the view: it is one line there, until it is unfolded. */
const HIGH = 900;

const LOST_KINDS = [['definitely', 'Definitely lost'], ['indirectly', 'Indirectly lost'], ['possibly', 'Possibly lost']];

/** The amounts of some call sites: `mask` says which. */
class Amounts {
  constructor(title, mask, heap, timeline) {
    Object.assign(this, { title, mask, heap, sites: [] });
    mask.forEach((is_in, site) => { if (is_in) this.sites.push(site); });
    this.live = { bytes: timeline.maskedTotal('bytes', mask), blocks: timeline.maskedTotal('blocks', mask) };
  }

  /** The sum of values by call site. */
  of(values) {
    return this.sites.reduce((sum, site) => sum + values[site], 0);
  }
}

export class FunctionPanel {
  constructor(page) {
    const { parts, heap, calls, state, scope, search, pieces, functions, commands, timeline, figures, flame } = page;
    Object.assign(this, { parts, heap, calls, state, scope, search, pieces, functions, commands, timeline, figures, flame });
    this.node = element('section', { class: 'panel function-panel', 'aria-label': 'Function', hidden: true });
    this.brief = element('span', { class: 'said brief' });
    this.folder = button('', () => this.fold(!this.is_folded));
    this.fold(innerHeight < HIGH);
  }

  /** Makes the panel one line, or shows all of it. */
  fold(is_folded) {
    this.is_folded = is_folded;
    this.node.classList.toggle('folded', is_folded);
    this.folder.ariaExpanded = String(!is_folded);
    setText(this.folder, is_folded ? 'All sums ▴' : 'Fold ▾');
  }

  /** The name of the function that was chosen: the only one that the search finds, or the one that fills the
   * width of the flame graph; "" for none. */
  get chosen() {
    const { calls, search, state, flame } = this;
    if (search.is_on) {
      if (this.asked !== search.asked) {
        const names = new Set(calls.functions.filter((_, number) => search.found[number]).map(({ name }) => name));
        Object.assign(this, { asked: search.asked, only: names.size === 1 ? [...names][0] : '' });
      }
      return this.only;
    }
    const root = Number(state.get('root'));
    const tree = root ? flame.tree() : null;
    return tree && root < tree.parent.length ? tree.function(root).name : '';
  }

  draw() {
    const { chosen: name, heap } = this;
    if (this.node.hidden === Boolean(name)) this.node.hidden = !name;
    if (!name) return;
    const colors = palette();
    if (this.name !== name || this.ticks !== heap.position || this.colors !== colors) {
      Object.assign(this, { name, ticks: heap.position, colors });
      this.make();
    }
    this.update();
  }

  make() {
    const { name, calls, heap, timeline } = this;
    const is_it = calls.functions.map((made) => made.name === name);
    this.chains = new Uint8Array(calls.parent.length);
    for (let i = 0; i < this.chains.length; i++) {
      this.chains[i] = is_it[calls.functionAt(i)] || (calls.parent[i] >= 0 && this.chains[calls.parent[i]]) ? 1 : 0;
    }
    const masks = [Uint8Array.from(heap.functionOf, (number) => (is_it[number] ? 1 : 0)),
      Uint8Array.from(heap.sites, (node) => (node >= 0 ? this.chains[node] : 0))];
    const callees = heap.others ? 'with its known callees' : 'with its callees';
    const [own, all] = masks.map((mask, i) => new Amounts(i ? callees : 'itself', mask, heap, timeline));
    this.is_it = is_it;
    this.lists = own.sites.length === 0 ? [all] : own.sites.length === all.sites.length ? [own] : [own, all];
    this.lines = this.linesOf(this.lists[0]);
    this.columns = this.columnsOf();
    this.commandLines = this.commandsOf().map(([title]) => new CommandLine('', title));
    this.cells = this.lists.map((list) => this.columns.map(() => element('td', { class: 'number' })));
    this.heaviest = element('p', { class: 'said' });
    this.stack = element('details');
    this.stackOf = -1;
    this.fill();
    this.columns.forEach((column, k) => {
      if (!column.moves) this.lists.forEach((list, i) => this.show(i, k));
    });
  }

  /** The innermost node of the function in the stack of a call site: its line is the one that led there. */
  nodeOf(site) {
    const { heap, calls, is_it } = this;
    let node = is_it[heap.functionOf[site]] ? heap.own[site] : heap.sites[site];
    while (node >= 0 && !is_it[calls.functionAt(node)]) node = calls.parent[node];
    return node;
  }

  /** The lines of the function that lead to the first call sites: the number of each site's, 0 for sites that stand
   * for others and 1 for those without a line; and room for their sums. */
  linesOf({ sites }) {
    const { heap, calls } = this;
    const names = ['', ''];
    const numbers = new Map([['', 1]]);
    const of = Int32Array.from(sites, (site) => {
      if (heap.isOther(site)) return 0;
      const node = this.nodeOf(site);
      const line = node < 0 ? '' : calls.line(calls.frame[node]);
      if (!numbers.has(line)) numbers.set(line, names.push(line) - 1);
      return numbers.get(line);
    });
    return { names, of, sums: new Float64Array(names.length) };
  }

  /** The parts that stay while the cursor moves. */
  fill() {
    const { name, calls, state, functions, lists, search } = this;
    const number = this.is_it.indexOf(true);
    const color = functions.of(number);
    const swatch = element('i');
    swatch.style.background = color < 0 ? palette().own : palette().series[color];
    const { module, plain } = calls.functions[number];
    const is_filter = search.is_on && search.text === name;
    this.node.replaceChildren(element('div', { class: 'bar' }, swatch,
      element('h2', { title: `${name}\n${module}` }, ...breakable(plain)), this.place = element('small'), this.brief,
      curveNode(this.curve(lists[0]), 160, 24, 'Its live bytes over time'),
      element('span', { class: 'tools' }, this.folder, is_filter ? '' : button('Show only its calls', () => state.set({ search: name, root: '' })),
        button('✕', () => state.set({ search: '', root: '' }), { 'aria-label': 'Close the function', title: 'Esc' }))),
    element('div', { class: 'table-box' }, element('table', { 'aria-label': 'Sums of the function' },
      element('thead', {}, element('tr', {}, element('th'), ...this.columns.map(({ title, hint }) =>
        element('th', { scope: 'col', class: 'number', title: hint }, title)))),
      element('tbody', {}, ...lists.map((list, i) => element('tr', {}, element('th', { scope: 'row', title: this.hintOf(list) }, list.title),
        ...this.cells[i]))))),
    element('div', { class: 'bar' }, this.heaviest, ...this.remarks()), this.stack,
    this.same = element('details', { on: { toggle: () => this.showCommands() } },
      element('summary', {}, 'The same in text'), ...this.commandLines.map(({ node }) => node)));
  }

  /** A sentence about the callers that are not known, for a row that may lack call sites because of them; or "". */
  hintOf({ title }) {
    const { others } = this.heap;
    return others && title !== 'itself' ? `The callers of ${things(others.count, 'other call site')} are not known: --exact has all` : '';
  }

  /** The columns: a title, and what `show` says of some call sites; those with `moves` change with cursor and range. */
  columnsOf() {
    const { heap, lists } = this;
    const { usage, lost } = heap;
    const size = (title, hint, value) => ({ title, hint, show: (list) => bytes(value(list)), exact: (list) => `${count(value(list))} bytes` });
    const number = (title, hint, value) => ({ title, hint, show: (list) => count(value(list)) });
    const at = () => this.state.get('at');
    const moving = (column) => ({ ...column, moves: true });
    const has = (values) => lists.some((list) => list.of(values));
    return [
      moving(size('Live at the cursor', '', (list) => list.live.bytes[at()])),
      moving({ title: 'Share', hint: 'Its part of all live bytes', show: (list) => percent(list.live.bytes[at()], heap.all.bytes[at()]) }),
      moving(number('Blocks', '', (list) => list.live.blocks[at()])),
      moving({ title: 'Grew in the range', hint: 'The difference from the beginning of the range to its end',
        show: (list) => signed(this.grown(list), bytes), exact: (list) => `${count(this.grown(list))} bytes` }),
      size('Allocated', 'In the whole trace', (list) => list.of(usage.bytes)),
      number('Allocations', 'In the whole trace', (list) => list.of(usage.allocations)),
      ...(has(usage.soon) ? [number('Temporary', 'Freed by the next call of their thread', (list) => list.of(usage.temporary)),
        number(`≤ ${SOON} calls between`, `Freed with ${SOON_TEXT}, of their thread`, (list) => list.of(usage.soon))] : []),
      ...(lost ? LOST_KINDS.filter(([name]) => has(lost[name].blocks)).map(([name, title]) => ({
        ...size(title, 'By the last snapshot', (list) => list.of(lost[name].bytes)) })) : []),
      size('Left at the end', 'Live at the end of the trace or of the range of this page', (list) => list.live.bytes[heap.last]),
      ...(has(heap.copied) ? [size('Copied', 'By reallocations, if each move copied the whole old block',
        (list) => list.of(heap.copied))] : []),
    ];
  }

  grown({ live }) {
    return live.bytes[this.state.get('to')] - live.bytes[this.state.get('from')];
  }

  /** Whether a stack of the trace belongs to some call sites. */
  hasStack(list, { stack_id: id, stack }) {
    const site = this.heap.siteOf(id);
    if (site !== undefined) return Boolean(list.mask[site]);
    const frames = this.calls.stack(stack);
    const own = frames.find((frame) => this.calls.functions[this.calls.functionOf[frame]].own) ?? frames[0];
    return list === this.lists[0] && this.lists.length > 1 ? own !== undefined && this.is_it[this.calls.functionOf[own]]
      : Boolean(this.chains[stack - 1]);
  }

  show(i, k) {
    const { show, exact } = this.columns[k];
    const cell = this.cells[i][k];
    setText(cell, show(this.lists[i]));
    if (exact) cell.title = exact(this.lists[i]);
  }

  /** The live bytes in the course of time. */
  curve({ live }) {
    const { heap, scope } = this;
    const values = heap[scope.has_times ? 'time' : 'event'];
    const length = values[heap.last] - values[0] || 1;
    let tick = 0;
    return Array.from({ length: CURVE_POINTS }, (_, i) => {
      while (tick < heap.last && values[tick + 1] - values[0] <= length * i / (CURVE_POINTS - 1)) tick++;
      return live.bytes[tick];
    });
  }

  /** When most was live, errors and sparse pages. */
  remarks() {
    const { lists: [list], parts, figures, state, chains } = this;
    const size = list.live.bytes;
    const highest = size.reduce((best, value, tick) => (value > size[best] ? tick : best), 0);
    const errors = parts.errors.findings.filter((finding) => [finding, finding.allocated, finding.released, finding.conflict]
      .some((call) => call && chains[call.stack - 1]));
    const keepers = (parts.sparse?.keepers || []).filter((row) => this.hasStack(list, row));
    const kept = keepers.reduce((sum, row) => sum + Number(row.kept_bytes), 0);
    const said = (text) => element('span', { class: 'said' }, text);
    return [size[highest] ? said(`Most live: ${bytes(size[highest])} at ${figures.timeOf(highest)}`) : '',
      errors.length ? button(`${things(errors.length, 'error')}: ${errors[0].kind.replaceAll('-', ' ')}`,
        () => state.set({ view: 'errors' })) : '',
      kept ? said(`Keeps ${bytes(kept)} of sparse pages at the end`) : ''];
  }

  /** The commands that print these sums. */
  commandsOf() {
    const { heap, state, name, scope, parts } = this;
    const end = scope.to === null ? [] : ['--at', scope.to];
    const by = ['--by', 'function', '--include', name];
    return [['At the cursor', ['state', '--at', heap.position[state.get('at')], ...by]],
      ['In the range', [...rangeWords(heap, scope, [state.get('from'), state.get('to')], true), ...by]],
      ['Allocated', ['hot', ...by]], ['Temporary', ['temporary', ...by]], [`≤ ${SOON} calls between`, ['temporary', '--steps', SOON, ...by]],
      [parts.leaks.snapshot ? 'Lost' : parts.leaks.judged ? 'Never released' : 'Live at the end', ['leaks', ...(parts.leaks.snapshot ? ['--show', 'definite,indirect,possible'] : []), ...end, ...by]], ['Copied', ['moves', ...by]]];
  }

  update() {
    this.columns.forEach((column, k) => {
      if (column.moves) this.lists.forEach((list, i) => this.show(i, k));
    });
    setText(this.brief, `${this.lists.map(({ title, live }) => `${title} ${bytes(live.bytes[this.state.get('at')])}`).join(', ')} live at the cursor`);
    this.showCommands();
    this.showHeaviest();
  }

  showCommands() {
    if (!this.same.open) return;
    this.commandsOf().forEach(([, words], i) => this.commandLines[i].set(this.commands.line(...words)));
  }

  /** The line and the stack that have most: of the live bytes at the cursor, or else of all that were allocated. */
  showHeaviest() {
    const { heap, state, lists: [list] } = this;
    const live = heap.bySite.at(state.get('at'), AT).bytes;
    const is_live = list.live.bytes[state.get('at')] > 0;
    const values = is_live ? live : heap.usage.bytes;
    const whose = is_live ? 'its live bytes' : 'its allocated bytes';
    const { names, of: lineOf, sums } = this.lines;
    let most = -1;
    let total = 0;
    sums.fill(0);
    list.sites.forEach((site, i) => {
      const value = values[site];
      total += value;
      sums[lineOf[i]] += value;
      if (lineOf[i] && value > (most < 0 ? 0 : values[most])) most = site;
    });
    const best = sums.reduce((first, sum, i) => (i > 1 && sum > (sums[first] || 0) ? i : first), -1);
    const [line, size] = [names[best] || '', sums[best]];
    setText(this.place, line);
    setText(this.heaviest, line ? `Heaviest line: ${line}, ${percent(size, total)} of ${whose}` : '');
    if (this.stack.hidden === most >= 0) this.stack.hidden = most < 0;
    if (most < 0) return;
    const said = `Heaviest stack: ${percent(values[most], total)} of ${whose}`;
    if (this.stackOf !== most) {
      this.stackOf = most;
      this.stack.replaceChildren(element('summary'), this.pieces.stack(heap.sites[most] + 1));
    }
    setText(this.stack.firstChild, said);
  }
}
