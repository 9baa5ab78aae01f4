// SPDX-License-Identifier: MIT
// The range: what its blocks were, by whether they were allocated and released in it.
import { doubts, element, fixedFigure } from './dom.js';
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

export class RangeView {
  constructor({ parts, pieces, heap, state, scope }) {
    Object.assign(this, { diff: parts.diff, pieces, heap, state, scope });
    this.figures = element('dl', { class: 'figures', 'aria-live': 'polite' });
    this.note = element('p', { class: 'dim' });
    this.quadrants = element('div', { class: 'columns' }, ...(this.diff
      ? QUADRANTS.map((quadrant) => this.quadrant(...quadrant)) : []));
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

  quadrant(name, short, text) {
    const { blocks, bytes: size, groups, total_groups: total } = this.diff[name];
    const table = new Table(name, [
      { ...numberColumn('Bytes', 'bytes', bytes), key: (row) => `${name} ${row.stack_id}` },
      numberColumn('Blocks', 'blocks'), stackColumn(this.pieces),
      positionColumn(this.pieces, 'First', 'first_position'),
    ], { detail: (row) => this.pieces.stack(row.stack) });
    table.setRows(groups);
    const made = panel(`${short}: ${text}`,
      element('p', { class: 'sums' }, blocksAndBytes(blocks, size)),
      groups.length < Number(total) ? element('p', { class: 'dim' }, `The first ${groups.length} ` +
        `of ${count(Number(total))} call sites. Sums count all.`) : null, table.tools, table.node);
    made.dataset.quadrant = name;
    return made;
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
    const is_page = from === 0 && to === heap.last;
    this.note.textContent = is_page && this.diff
      ? 'Below: its blocks, by whether they were allocated and freed in it.'
      : 'The command below tells which of its blocks were allocated and freed in it; a page made ' +
        'with the same --from and --to shows them.';
    this.quadrants.hidden = !is_page;
  }
}
