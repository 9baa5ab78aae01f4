// SPDX-License-Identifier: MIT
// The range: what its blocks were, by whether they were allocated and released in it.
import { doubts, element, fixedFigure, setText } from './dom.js';
import { panel, blocksAndBytes, numberColumn, stackColumn, positionColumn } from './findings.js';
import { bytes, count, followingPosition, signed } from './format.js';
import { Table } from './table.js';

const QUADRANTS = [
  ['aifi', 'AIFI', 'allocated inside the range, freed inside'],
  ['aifo', 'AIFO', 'allocated inside the range, not freed in it'],
  ['aofi', 'AOFI', 'allocated before the range, freed inside'],
  ['aofo', 'AOFO', 'allocated before the range, not freed in it'],
];

const LOST = [['definitely_lost', 'definitely lost'], ['indirectly_lost', 'indirectly lost'],
  ['possibly_lost', 'possibly lost']];

/** A quadrant: its sums and its call sites. */
class Quadrant {
  constructor(pieces, [name, short, text], has_positions) {
    this.sums = element('p', { class: 'sums' });
    this.cut = element('p', { class: 'dim' });
    this.table = new Table(name, [
      { ...numberColumn('Bytes', 'bytes', bytes), key: (row) => `${name} ${row.stack_id}` },
      numberColumn('Blocks', 'blocks'), { ...stackColumn(pieces), is_fixed: true },
      ...(has_positions ? [positionColumn(pieces, 'First', 'first_position')] : []),
    ], { detail: (row) => pieces.stack(row.stack) });
    this.node = panel(`${short}: ${text}`, this.sums, this.cut, this.table.tools, this.table.node);
    this.node.dataset.quadrant = name;
  }

  show({ blocks, bytes: size, groups, total_groups: total }) {
    setText(this.sums, blocksAndBytes(blocks, size));
    setText(this.cut, groups.length < Number(total) ? `The first ${groups.length} of ` +
      `${count(Number(total))} call sites. Sums count all.` : '');
    this.table.setRows(groups);
  }
}

/** What an exact page says of its quadrants. */
const COUNTED = 'Blocks that the C and C++ runtimes keep until the end, which the command tells apart, ' +
  'count here.';

export class RangeView {
  constructor({ parts, pieces, heap, state, scope, exact }) {
    Object.assign(this, { diff: parts.diff, pieces, heap, state, scope, exact });
    this.figures = element('dl', { class: 'figures', 'aria-live': 'polite' });
    this.note = element('p', { class: 'dim' });
    this.ofPage = this.diff ? QUADRANTS.map((quadrant) => new Quadrant(pieces, quadrant, true)) : [];
    this.ofPage.forEach((quadrant, i) => quadrant.show(this.diff[QUADRANTS[i][0]]));
    this.chosen = exact ? QUADRANTS.map((quadrant) => new Quadrant(pieces, quadrant, false)) : [];
    this.quadrants = element('div', { class: 'columns' });
    this.node = element('div', {}, panel('The chosen range', this.figures, this.note),
      this.diff ? panel('The range of this page', doubts(this.diff), this.lost()) : null,
      this.quadrants);
  }

  /** What is lost of the blocks that the range has added, if a snapshot tells. */
  lost() {
    const { classes, snapshot } = this.diff;
    if (!classes || !snapshot) return null;
    const lines = LOST.filter(([name]) => classes[name]).map(([name, title]) =>
      element('li', {}, `${blocksAndBytes(classes[name].blocks, classes[name].bytes)} ${title}`));
    return element('div', {}, element('p', {}, 'Of the blocks that it added, as snapshot ' +
      `${snapshot.number} tells:`), element('ul', { class: 'remarks lost' }, ...lines));
  }

  /** The range as positions of `diff`: the first one of it, and the first one after it. */
  ends() {
    const { heap, state } = this;
    return ['from', 'to'].map((name) => {
      const tick = state.get(name);
      if (name === 'from' && tick === 0) return this.scope.from;
      if (name === 'to' && tick === heap.last) {
        return this.scope.to === null ? null : followingPosition(this.scope.to);
      }
      return followingPosition(heap.position[tick]);
    });
  }

  words() {
    const [from, to] = this.ends();
    return ['diff', '--from', from, ...(to === null ? [] : ['--to', to])];
  }

  draw() {
    const { heap, state } = this;
    const [from, to] = [state.get('from'), state.get('to')];
    const { allocations, allocated, releases } = heap.activity(from, to);
    this.figures.replaceChildren(
      fixedFigure('Live before', bytes(heap.bytes[from]), `${count(heap.blocks[from])} blocks`),
      fixedFigure('Allocated in it', bytes(allocated), `${count(allocations)} blocks`),
      fixedFigure('Released in it', count(releases), 'blocks'),
      fixedFigure('Live behind it', bytes(heap.bytes[to]), `${count(heap.blocks[to])} blocks`),
      fixedFigure('Growth', signed(heap.bytes[to] - heap.bytes[from], bytes),
        `${signed(heap.blocks[to] - heap.blocks[from], count)} blocks`));
    const is_page = from === 0 && to === heap.last && this.diff;
    const shown = is_page ? this.ofPage : this.exact?.is_ready ? this.chosen : [];
    if (shown === this.chosen && shown.length) this.ask();
    const below = 'Below: its blocks, by whether they were allocated and freed in it.';
    setText(this.note, is_page ? below : shown.length ? `${below} ${COUNTED}`
      : this.exact ? 'Its blocks follow as soon as the trace is read.' : 'The command below tells which of its blocks were allocated and freed in it; a page made ' +
        'with --exact, or with the same --from and --to, shows them.');
    if (this.shown === shown) return;
    this.shown = shown;
    this.quadrants.replaceChildren(...shown.map(({ node }) => node));
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
