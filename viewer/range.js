// SPDX-License-Identifier: MIT
// The range: its blocks, by whether they were allocated and released in it.
import { rangeWords } from './commands.js';
import { button, doubts, element, fixedFigure, setText } from './dom.js';
import { panel, blocksAndBytes, functionKey, numberColumn, stackColumn, positionColumn, wantsOf } from './findings.js';
import { briefName, bytes, comparePositions, count, percent, signed, things } from './format.js';
import { Spans } from './spans.js';
import { Table, shareOf } from './table.js';

const QUADRANTS = [
  ['aifi', 'AIFI', 'Came and went: allocated in the range, and freed in it'],
  ['aifo', 'AIFO', 'Came and stayed: allocated in the range, and not freed in it'],
  ['aofi', 'AOFI', 'Went: allocated before the range, and freed in it'],
  ['aofo', 'AOFO', 'Stayed: allocated before the range, and not freed in it'],
];

const LOST = [['definitely_lost', 'definitely lost'], ['indirectly_lost', 'indirectly lost'],
  ['possibly_lost', 'possibly lost']];

/** Stacks of a function that are listed when its row is opened, those with most bytes. */
const STACKS_SHOWN = 5;

/** A quadrant: its sums and its functions. */
class Quadrant {
  constructor(pieces, [name, short, text], has_positions) {
    this.sums = element('p', { class: 'sums' });
    this.cut = element('p', { class: 'dim' });
    const { calls } = pieces;
    this.nameOf = stackColumn(pieces).value;
    this.table = new Table(name, [
      // The line is part of the key: the row of a function gets another one with the stack that has most.
      { ...stackColumn(pieces, (row) => `${name} ${row.key} ${this.nameOf(row)}`), is_fixed: true },
      numberColumn('Bytes', 'bytes', bytes),
      { title: 'Share', value: (row) => row.bytes, csv: [shareOf((row) => row.bytes, () => this.whole)], show: (row) => percent(row.bytes, this.whole) },
      numberColumn('Blocks', 'blocks'),
      ...(has_positions ? [positionColumn(pieces, 'First allocated', 'first_position')] : []),
    ], { sort: 1, detail: (row) => this.stacksOf(row) });
    Object.assign(this, { pieces, calls, wants: wantsOf(pieces), search: pieces.search, draw: pieces.search.watch(() => this.choose()) });
    this.node = panel(`${text} (${short})`, this.sums, this.cut, this.table.tools, this.table.node);
    this.node.dataset.quadrant = name;
    this.node.querySelector('h2').title = `${short}: A and F are allocated and freed, I and O in and out of the range`;
  }

  show(found) {
    const { groups, total_groups: total } = found;
    this.found = found;
    setText(this.cut, groups.length < Number(total) ? `The first ${groups.length} of ` +
      `${count(Number(total))} call sites. Sums count all.` : '');
    this.choose();
  }

  /** Rows of functions: of each the sums of the groups that the search finds, and the stack that has most. */
  rowsOf(groups) {
    const rows = new Map();
    for (const group of groups.filter(this.wants)) {
      const key = functionKey(this.calls, group.stack);
      const row = rows.get(key) || { key, bytes: 0, blocks: 0, groups: [], first_position: group.first_position };
      row.groups.push(group);
      row.bytes += Number(group.bytes);
      row.blocks += Number(group.blocks);
      if (group.first_position && comparePositions(group.first_position, row.first_position) < 0) row.first_position = group.first_position;
      rows.set(key, row);
    }
    return Array.from(rows.values(), (row) => {
      row.groups.sort((a, b) => Number(b.bytes) - Number(a.bytes));
      return { ...row, stack: row.groups[0].stack };
    });
  }

  /** The stacks of a function that have most, each with its sums if it is not the only one. */
  stacksOf({ groups }) {
    const left = groups.length - STACKS_SHOWN;
    return element('div', {}, ...groups.slice(0, STACKS_SHOWN).flatMap((group) => [
      groups.length > 1 ? element('p', {}, blocksAndBytes(group.blocks, group.bytes)) : '', this.pieces.stack(group.stack)]),
    left > 0 ? element('p', { class: 'dim' }, `and ${things(left, 'more stack')}`) : '');
  }

  /** The sums: of the functions that the search finds, if all call sites are listed. */
  showSums() {
    const { found, search, table: { rows } } = this;
    const is_of_some = search.is_on && found.groups.length === Number(found.total_groups);
    const sum = (name) => rows.reduce((all, row) => all + Number(row[name]), 0);
    setText(this.sums, is_of_some ? `${blocksAndBytes(sum('blocks'), sum('bytes'))} of “${briefName(search.text)}”`
      : blocksAndBytes(found.blocks, found.bytes) + (search.is_on ? ' of all functions' : ''));
  }

  choose() {
    if (!this.found) return;
    const { groups, bytes: size } = this.found;
    this.whole = Number(size);
    this.table.setRows(this.rowsOf(groups));
    this.showSums();
  }
}

/** The sums of all quadrants. */
class Sums {
  constructor(name) {
    this.table = new Table(name, [
      { title: 'Allocated and freed', is_number: false, class: 'name',
        value: (row) => `${row.text} (${row.short})`, rank: (row) => row.name, key: (row) => row.name },
      numberColumn('Blocks', 'blocks'), { ...numberColumn('Size', 'bytes', bytes), csv: [] },
      numberColumn('Bytes', 'bytes')],
    { is_down: false });
    this.node = panel('Blocks of the range, by allocation and release',
      this.table.tools, this.table.node);
  }

  show(found) {
    this.table.setRows(QUADRANTS.map(([name, short, text]) => ({ name, short, text, ...found[name] })));
  }
}

/** The remark on quadrants that the page counts itself, if the runtimes keep all blocks of a call site. */
const COUNTED = 'Blocks that the C and C++ runtimes keep until the end count here; the command lists them ' +
  'apart.';

export class RangeView {
  constructor({ parts, pieces, heap, state, scope, exact, timeline }) {
    Object.assign(this, { diff: parts.diff, pieces, heap, state, scope, exact, timeline });
    this.spans = new Spans(parts.heap.spans, heap);
    this.figures = element('dl', { class: 'figures', 'aria-live': 'polite' });
    this.note = element('p', { class: 'dim' });
    this.ofPage = this.diff ? QUADRANTS.map((quadrant) => new Quadrant(pieces, quadrant, true)) : [];
    this.ofPage.forEach((quadrant, i) => quadrant.show(this.diff[QUADRANTS[i][0]]));
    this.chosen = exact ? QUADRANTS.map((quadrant) => new Quadrant(pieces, quadrant, false)) : [];
    this.counted = [new Sums('quadrants')];
    this.quadrants = element('div', { class: 'columns' });
    this.node = element('div', {}, panel('The chosen range', this.figures, this.note,
      button('Show which functions grew', () => state.set({ view: 'heap', measure: 'grown' }))),
      this.diff ? panel('The range of this page', doubts(this.diff), this.lost()) : null,
      this.quadrants);
  }

  /** The lost blocks of the range, if there is a snapshot. */
  lost() {
    const { classes, snapshot } = this.diff;
    if (!classes || !snapshot) return null;
    const lines = LOST.filter(([name]) => classes[name]).map(([name, title]) =>
      element('li', {}, `${blocksAndBytes(classes[name].blocks, classes[name].bytes)} ${title}`));
    return element('div', {}, element('p', {}, 'Of the blocks that the range added, by snapshot ' +
      `${snapshot.number}:`), element('ul', { class: 'remarks lost' }, ...lines));
  }

  /** Which quadrants are shown: of the page's range, as the engine counts them, or the sums
   * of spans. */
  get shown() {
    const { heap, state, exact } = this;
    if (state.get('from') === 0 && state.get('to') === heap.last && this.diff) return this.ofPage;
    return exact?.is_ready ? this.chosen : this.counted;
  }

  /** The ticks of the range that is shown. */
  ticks() {
    const ends = ['from', 'to'].map((name) => this.state.get(name));
    return this.shown === this.counted ? this.spans.round(...ends) : ends;
  }

  words() {
    return rangeWords(this.heap, this.scope, this.ticks(), false);
  }

  draw() {
    const { shown } = this;
    const [from, to] = this.ticks();
    this.figures.replaceChildren(...this.figuresOf(from, to));
    if (shown === this.chosen) this.ask();
    shown.forEach((each) => each.draw?.());
    if (shown === this.counted) this.counted[0].show(this.spans.quadrants(from, to));
    setText(this.note, this.remarks(from, to).filter((text) => text).join(' '));
    if (this.placed === shown) return;
    this.placed = shown;
    this.quadrants.replaceChildren(...shown.map(({ node }) => node));
  }

  /** What was live before and after; of all functions also the calls between. */
  figuresOf(from, to) {
    const { heap, timeline: { followed } } = this;
    const whose = followed === heap ? '' : ` of “${briefName(followed.text)}”`;
    const of = (title, tick) => fixedFigure(title, bytes(followed.bytes[tick]), things(followed.blocks[tick], 'block') + whose);
    const { allocations, allocated, releases } = heap.activity(from, to);
    const kept = heap.kept.blocksAt(heap.position[to]) - heap.kept.blocksAt(heap.position[from]);
    return [of('Live before', from), ...(whose ? [] : [
      fixedFigure('Allocated in it', bytes(allocated), things(allocations, 'block') +
        (kept > 0 ? `, ${count(kept)} of them kept by the C/C++ runtime and not counted as live` : '')),
      fixedFigure('Released in it', count(releases), Number(releases) === 1 ? 'block' : 'blocks')]),
    of('Live after', to), fixedFigure('Change', signed(followed.bytes[to] - followed.bytes[from], bytes),
      signed(followed.blocks[to] - followed.blocks[from], (number) => things(number, 'block')) + whose)];
  }

  /** The sentences about the range between two ticks. */
  remarks(from, to) {
    const { heap, state, shown, counted } = this;
    const is_rounded = from !== state.get('from') || to !== state.get('to');
    return [
      from > 0 || to < heap.last ? `Begins after the call at ${heap.position[from]}, and ends with the call at ` +
        `${heap.position[to]}; positions in the command are the next ones after these.` : '',
      is_rounded ? `Rounded outwards to the range from ${heap.position[from]} to ` +
        `${heap.position[to]}: this page knows the blocks of ${count(heap.count)} moments at every ` +
        `${count(this.spans.width)}th of them.` : '',
      shown === counted && heap.kept.sites.size ? COUNTED : '',
      shown === this.chosen && heap.kept.sites.size ? 'Functions whose blocks the C and C++ runtimes keep do not count.' : '',
      shown !== counted ? '' : this.exact ? 'Call sites follow as soon as the trace is read.'
        : `${this.pieces.search.is_on ? 'The table is of all functions. ' : ''}The command below lists these blocks by function; so does ` +
          'a page made with --exact, or with the same --from and --to.',
    ];
  }

  /** Asks for the quadrants of the range, unless they are known. While an answer is on its way, only
   * the newest wish counts. */
  async ask() {
    const { state, exact } = this;
    const key = () => ['from', 'to'].map((name) => exact.momentOf(state.get(name))).join(' ');
    if (this.run || this.known === key()) return;
    this.run = (async () => {
      while (this.known !== key()) {
        const known = key();
        const found = await exact.quadrants(state.get('from'), state.get('to'));
        found.forEach(([, quadrant], i) => this.chosen[i].show(quadrant));
        this.known = known;
      }
    })().finally(() => { this.run = null; });
    await this.run;
  }
}
