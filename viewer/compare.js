// SPDX-License-Identifier: MIT
// The comparison of two traces: the live blocks of each call site at the end of both.
import { Calls } from './calls.js';
import { CommandLine, Commands } from './commands.js';
import { button, choice, copyText, element, fixedFigure, segments, textField } from './dom.js';
import { numberColumn, panel, stackColumn } from './findings.js';
import { changeColor, changeLegend } from './flame_colors.js';
import { FlameView } from './flame_view.js';
import { baseName, bytes, count, signed, things } from './format.js';
import { Scope } from './scope.js';
import { Search } from './search.js';
import { Pieces } from './stacks.js';
import { State } from './state.js';
import { Table, followOrders } from './table.js';

const BOTH = ['old', 'new'];

const WEIGHTS = [['new', 'Second heap'], ['old', 'First heap'], ['grown', 'Grown'], ['shrunk', 'Shrunk']];

/** One tree of calls for both traces. Texts are the same if they are equal, and
 * modules if their files have the same name, wherever these are. */
function joinCalls(sides) {
  const joined = {
    strings: [], nodes: { up: [], frame: [] },
    frames: { function: [], module: [], file: [], line: [], flags: [], number: [] },
  };
  const texts = new Map();
  const add = (text, key) => {
    if (!texts.has(key)) texts.set(key, joined.strings.push(text) - 1);
    return texts.get(key);
  };
  const starts = sides.map(({ strings, frames, nodes }) => {
    const start = joined.nodes.up.length;
    const first = joined.frames.line.length;
    const texts_of = strings.map((text) => add(text, text));
    const modules = strings.map((text) => add(text, `/${baseName(text)}`));
    for (const name of Object.keys(joined.frames)) {
      const of = { function: texts_of, file: texts_of, module: modules }[name];
      for (const value of frames[name]) joined.frames[name].push(of ? of[value] : value);
    }
    for (const up of nodes.up) joined.nodes.up.push(up);
    for (const frame of nodes.frame) joined.nodes.frame.push(first + frame);
    return start;
  });
  return { calls: new Calls(joined), starts };
}

/** The changes as the source of a flame graph. */
class Changes {
  constructor({ diff, old, new: later }, state) {
    const { calls, starts } = joinCalls([old, later]);
    Object.assign(this, { calls, state, diff, search: new Search(calls, state) });
    this.rows = diff.changes.map((change) => {
      const number = change.stack && change.stack + starts[Number(change.new_blocks) ? 1 : 0];
      return { ...change, stack: number };
    });
    this.sites = this.rows.map(({ stack }) => this.siteOf(stack - 1));
    this.amounts = {};
    for (const side of BOTH) {
      for (const unit of ['bytes', 'blocks']) {
        this.amounts[`${side} ${unit}`] =
          Float64Array.from(this.rows, (row) => Number(row[`${side}_${unit}`]));
      }
    }
  }

  /** The last call of a stack that is of no allocation function. */
  siteOf(node) {
    let site = node;
    while (site >= 0 && this.calls.functions[this.calls.functionAt(site)].allocates) {
      site = this.calls.parent[site];
    }
    return site < 0 ? node : site;
  }

  get shown() {
    const shown = this.state.get('change');
    return WEIGHTS.some(([key]) => key === shown) ? shown : 'new';
  }

  get unit() {
    return this.state.get('unit') === 'blocks' ? 'blocks' : 'bytes';
  }

  of(side) {
    return this.amounts[`${side} ${this.unit}`];
  }

  title() {
    return { new: 'Live in the second heap', old: 'Live in the first heap', grown: 'Grown',
      shrunk: 'Shrunk' }[this.shown];
  }

  values() {
    if (BOTH.includes(this.shown)) return this.of(this.shown);
    const sign = this.shown === 'grown' ? 1 : -1;
    const old = this.of('old');
    return this.of('new').map((value, i) => Math.max(0, sign * (value - old[i])));
  }

  note() {
    return '';
  }

  counted() {
    return 'block';
  }

  /** The sums of both sides in a tree. */
  sums(tree) {
    return BOTH.map((side) => tree.sum(this.of(side)).total);
  }

  get has_colors() {
    return true;
  }

  colorsOf(tree, colors) {
    this.totals = this.sums(tree);
    const of = ({ node }) => {
      const [old, later] = this.totals.map((total) => total[node]);
      return changeColor((later - old) / Math.max(old, later, 1), colors);
    };
    return { of, legend: changeLegend(colors) };
  }

  linesOf(tree, { node }, format) {
    const [old, later] = this.totals.map((total) => total[node]);
    return [`first heap: ${format(old)}`, `second heap: ${format(later)}`];
  }
}

/** A page of the comparison, in place of a trace's page. */
export class ComparePage {
  constructor(parts, book) {
    Object.assign(this, { parts, book, ending: new AbortController() });
    const { signal } = this.ending;
    /* The comparison is of one moment. */
    this.state = new State({ last: 0, position: [''], peakTick: () => 0, tickAt: () => 0 }, signal);
    this.scope = new Scope(parts.facts);
    this.changes = new Changes(parts, this.state);
    this.flame = new FlameView(this.changes, this.state);
    this.pieces = new Pieces(this.changes.calls, null, this.state, this.scope, this.changes);
    this.makeTable();
    this.command = new CommandLine();
    this.build();
    this.state.listen(() => this.draw());
    this.observer = new ResizeObserver(() => this.state.tell());
    this.observer.observe(this.flame.node);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.state.tell(),
      { signal });
    this.draw();
  }

  close() {
    this.ending.abort();
    this.observer.disconnect();
  }

  makeTable() {
    const change = (title, name, format) => ({
      ...numberColumn(title, name), show: (row) => signed(Number(row[name]), format),
    });
    this.table = new Table('changes', [
      stackColumn(this.pieces, (row) => row.fingerprint),
      { ...change('Change', 'change_bytes', bytes),
        title_of: (row) => `${count(Number(row.change_bytes))} bytes`,
        rank: (row) => Math.abs(Number(row.change_bytes)) },
      change('Blocks', 'change_blocks', count), numberColumn('First', 'old_bytes', bytes),
      numberColumn('Second', 'new_bytes', bytes),
      { title: 'State', is_number: false, value: (row) => row.change },
    ], { sort: 1, detail: (row) => this.pieces.stack(row.stack) });
    this.rows = this.changes.rows.filter((row) => row.change !== 'same');
  }

  build() {
    const { parts, state } = this;
    const { facts, diff } = parts;
    const title = facts.title || 'Comparison of two heaps';
    document.title = title;
    const side = (name, i) => fixedFigure(`${i ? 'Second' : 'First'}: ${baseName(facts.paths[i])}`,
      bytes(Number(diff[name].live_bytes)), `${things(Number(diff[name].live_bytes), 'byte')} in ` +
      `${things(Number(diff[name].live_blocks), 'block')} at ${diff[name].position}`);
    const link = button('Copy link', () => {
      state.write();
      copyText(location.href, link);
    }, { title: 'The link shows the same view' });
    const kinds = ['new', 'gone', 'grown', 'shrunk', 'same'].map((kind) =>
      `${count(Number(diff[`${kind}_stacks`]))} ${kind}`);
    document.getElementById('page').replaceChildren(
      element('header', {}, element('h1', {}, title), this.book.chooser(facts.paths),
        element('span', { class: 'tools' }, textField(state, 'search', 'Find a function or file…', { root: '' }), link)),
      this.doubts(), element('p', { class: 'scope' }, this.scopeText()),
      element('dl', { class: 'figures' }, ...BOTH.map(side),
        fixedFigure('Change', signed(Number(diff.change_bytes), bytes),
          `${signed(Number(diff.change_bytes), count)} bytes, ` +
          `${signed(Number(diff.change_blocks), count)} blocks`),
        fixedFigure('Call sites', count(this.changes.rows.length), kinds.join(', '))),
      element('div', { class: 'bar' }, segments(state, 'change', 'Show', WEIGHTS),
        segments(state, 'unit', 'Weigh by', [['bytes', 'bytes'], ['blocks', 'number']])),
      element('div', { class: 'compared' }, this.flame.node, panel('Changes',
        element('div', { class: 'bar' }, this.table.tools), element('div', { class: 'table-scroll' }, this.table.node))),
      this.command.node);
  }

  /** The uncertain facts of either heap. */
  doubts() {
    const lines = BOTH.flatMap((name, i) => this.parts.diff[name].reasons.map((reason) =>
      element('li', {}, `Uncertain, of the ${i ? 'second' : 'first'} heap: ${reason}`)));
    return lines.length ? element('ul', { class: 'doubt', 'aria-label': 'Uncertain' }, ...lines) : '';
  }

  scopeText() {
    const { diff, facts } = this.parts;
    const kept = BOTH.map((name) => Number(diff[name].runtime_blocks));
    return [`Live blocks at the end of ${facts.to === null ? 'both traces'
      : 'the chosen range of both traces'}, by call site.`, ...this.scope.ofFilters(),
    kept.some((number) => number) ? `Blocks that the C and C++ runtimes keep, ${kept.map(count)
      .join(' and ')}, do not count.` : ''].join(' ');
  }

  words() {
    const { facts, diff } = this.parts;
    return facts.to === null ? ['diff']
      : ['diff', '--from', diff.old.position, '--to', diff.new.position];
  }

  draw() {
    this.flame.draw();
    this.table.setRows(this.rows.filter((row) => this.changes.search.has(row.stack - 1)));
    followOrders(this.state);
    this.command.set(new Commands({ ...this.parts.facts, operands: this.parts.facts.paths })
      .line(...this.words()));
  }
}
