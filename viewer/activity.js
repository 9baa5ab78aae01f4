// SPDX-License-Identifier: MIT
// Moves, lifetimes and sizes, retained sizes.
import { CommandLine } from './commands.js';
import { doubts, element } from './dom.js';
import { bytes, count, duration, percent, positionRank, things } from './format.js';
import { blocksAndBytes, cutNote, numberColumn, panel, stackColumn, positionColumn, wantsOf } from './findings.js';
import { SOON, SOON_TEXT } from './measures.js';
import { Table, nameColumn, shareOf } from './table.js';

function growthText(row) {
  if (row.growth === 'linear') return `linear, ${bytes(Number(row.growth_bytes))} each time`;
  return row.growth === 'geometric' ? `by a factor of ${Number(row.growth_factor).toPrecision(3)}` : row.growth;
}

const growthColumn = {
  title: 'Growth', is_number: false, value: growthText, show: growthText,
};

/** Whether it is known of all moves if they copied. */
function isCopiedKnown({ bytes_copied: copied, bytes_copied_at_most: most }) {
  return Number(copied) === Number(most);
}

/** The bytes copied, for certain or at most. */
function copiedText(moves) {
  const { bytes_copied_at_most: most, remapped } = moves;
  const limit = isCopiedKnown(moves) ? '' : 'at most ';
  const mapped = Number(remapped) ? `, ${things(Number(remapped), 'move')} without a copy` : '';
  return `${limit}${things(Number(most), 'byte')} copied${mapped}`;
}

export function movesView(moves, pieces) {
  const detail = (row) => pieces.stack(row.stack);
  const key = (row) => row.stack_id;
  const wants = wantsOf(pieces);
  const copied = numberColumn(isCopiedKnown(moves) ? 'Copied' : 'Copied at most', 'bytes_copied_at_most', bytes);
  const table = new Table('moves', [
    stackColumn(pieces, key), copied,
    numberColumn('Calls', 'reallocs'), numberColumn('Moved', 'moved'),
    numberColumn('Remapped', 'remapped'), numberColumn('Avoidable', 'bytes_avoidable', bytes),
    numberColumn('In place', 'in_place'), numberColumn('Largest', 'largest_size', bytes),
    growthColumn], { detail, wants, sort: 1 });
  const chains = new Table('chains', [
    { ...nameColumn('Function', (row) => pieces.functionOf(row.stack_id)), key: (row) => row.first_position },
    copied, numberColumn('Calls', 'reallocs'), numberColumn('Moved', 'moved'),
    numberColumn('Remapped', 'remapped'), numberColumn('Avoidable', 'bytes_avoidable', bytes),
    numberColumn('From', 'start_size', bytes), numberColumn('To', 'final_size', bytes),
    positionColumn(pieces, 'Allocated', 'first_position'),
    positionColumn(pieces, 'Last reallocated', 'last_position')], { sort: 1 });
  const inferred = new Table('replaced', [
    stackColumn(pieces, key), numberColumn('At most', 'bytes_copied_at_most', bytes),
    numberColumn('Times', 'replaced'), numberColumn('Largest', 'largest_size', bytes),
    growthColumn], { detail, wants, sort: 1 });
  table.setRows(moves.groups);
  chains.setRows(moves.chains || []);
  inferred.setRows(moves.inferred?.groups || []);
  const node = element('div', {},
    panel('Reallocations', doubts(moves), element('p', {}, `${things(Number(moves.reallocs), 'call')}: ` +
      `${count(Number(moves.moved))} moved, ${count(Number(moves.in_place))} in place, ` +
      `${count(Number(moves.from_null))} new (from NULL), ${count(Number(moves.failed))} ` +
      `failed; ${copiedText(moves)}.`),
    cutNote(moves.groups.length, moves.total_groups, 'call sites'), table.tools, table.node),
    panel('Blocks that were moved most', chains.tools, chains.node),
    moves.inferred ? panel('Replaced by larger blocks, inferred', element('p', {},
      'Containers that allocate a larger block, copy and release the old one: ' +
      `${things(Number(moves.inferred.replaced), 'time')}.`),
    cutNote(moves.inferred.groups.length, moves.inferred.total_groups, 'call sites'),
    inferred.tools, inferred.node) : null);
  return { node, draw: pieces.search.watch(() => [table, inferred].forEach((each) => each.choose())) };
}

/** A histogram as a table with bars. `unit` is that of the bounds of a row. */
function histogram(name, title, unit, rows) {
  const most = rows.reduce((sum, row) => Math.max(sum, row.blocks), 0);
  const total = rows.reduce((sum, row) => sum + row.blocks, 0);
  const table = new Table(name, [
    { title, value: (row) => row.from, show: (row) => row.label, key: (row) => row.from,
      csv: [[`${title}, at least${unit}`, (row) => row.from], [`${title}, at most${unit}`, (row) => row.to]] },
    { title: 'Blocks', value: (row) => row.blocks, show: (row) => count(row.blocks) },
    { title: 'Share', value: (row) => row.blocks, csv: [shareOf((row) => row.blocks, () => total)], show: (row) => percent(row.blocks, total) },
    { title: 'Bytes', value: (row) => row.bytes, show: (row) => bytes(row.bytes) },
    { title: 'Graph', is_number: false, class: 'bars', value: (row) => row.blocks, csv: [],
      show: (row) => {
        const bar = element('i', { class: 'bar-of' });
        bar.style.width = `${most ? 100 * row.blocks / most : 0}%`;
        return bar;
      } }], { is_down: false });
  table.setRows(rows);
  return table;
}

/** The longest time that counts as none where blocks have none: the recorder's clock advances about once a
 * millisecond, so that a shorter time may be one advance or none. `lifetimes` has the same. */
const UNMEASURED = 2 ** 21 - 1;

/** The classes of times, of which those that no clock tells apart are one. */
function timeRows(list) {
  const rows = lifetimeRows(list, duration);
  if (rows[0]?.from !== 0) return rows;
  const joined = rows.filter(({ to }) => Number(to) <= UNMEASURED);
  const sum = (name) => joined.reduce((all, row) => all + row[name], 0);
  return [{ from: 0, to: UNMEASURED, blocks: sum('blocks'), bytes: sum('bytes'),
    label: `under ${duration(UNMEASURED)}: too short to measure` }, ...rows.slice(joined.length)];
}

function lifetimeRows(list, format) {
  return list.map((row) => ({
    from: Number(row.shortest), to: row.longest, blocks: Number(row.blocks), bytes: Number(row.bytes),
    label: row.shortest === row.longest ? format(Number(row.shortest))
      : `${format(Number(row.shortest))} – ${format(Number(row.longest))}`,
  }));
}

export class LifetimesView {
  constructor(lifetimes, heap, state, commands) {
    Object.assign(this, { heap, state, commands });
    this.gaps = new CommandLine('', 'Gaps between them');
    this.sizes = element('div');
    const by_time = histogram('lifetimes-by-time', 'Lived for', ' (ns)',
      timeRows(lifetimes.by_time));
    const by_calls = histogram('lifetimes-by-calls', 'Released after calls', '',
      lifetimeRows(lifetimes.by_calls, count));
    this.node = element('div', { class: 'columns' },
      panel('How long blocks lived', doubts(lifetimes), element('p', {},
        `${things(Number(lifetimes.total_blocks), 'block')} in the whole trace; not released by its end: ` +
        `${count(Number(lifetimes.never_released))}` +
        `${Number(lifetimes.destroyed) ? `; ended with their heap: ${count(Number(lifetimes.destroyed))}` : ''}. ` +
        'Shares are of the blocks that were released.'),
      by_time.tools, by_time.node),
      panel('By the number of heap calls', element('p', {}, `From allocation to release, of all threads: 1 is the next call. “${SOON_TEXT}” ` +
        `elsewhere on this page is up to ${SOON + 1} calls, of the thread only, and its share is of all allocations.`),
      by_calls.tools, by_calls.node), this.sizes);
  }

  draw() {
    const series = this.heap.series.size;
    const live = series.at(this.state.get('at'));
    const rows = Array.from(series.keys, (key, i) => ({
      from: key ? 2 ** (key - 1) : 0, to: key ? 2 ** key - 1 : 0, blocks: live.blocks[i], bytes: live.bytes[i],
      label: key > 1 ? `${count(2 ** (key - 1))} to ${count(2 ** key - 1)} B` : bytes(key),
    })).filter((row) => row.blocks);
    const table = histogram('sizes', 'Size', ' (bytes)', rows);
    this.gaps.set(this.commands.line('fragmentation', '--at', this.heap.position[this.state.get('at')]));
    this.sizes.replaceChildren(panel('Sizes of the live blocks at the cursor', table.tools,
      table.node, this.gaps.node));
  }
}

/** @param line  the command that prints the blocks */
export function retainedView(retained, roots, pieces, line) {
  const name = (row) => row.root?.label || (row.block
    ? `${row.class ? `${row.class} ` : ''}${row.block.address}, ${things(row.block.size, 'byte')}`
    : row.class || '');
  const columns = (title) => [
    { ...numberColumn('Retained', 'retained_bytes', bytes), key: name },
    numberColumn('Blocks', 'retained_blocks'), numberColumn('Itself', 'bytes', bytes),
    { title, is_number: false, class: 'name', value: name }];
  const held = new Table('roots', [...columns('Variable, stack or mapping'),
    numberColumn('Reaches', 'reachable_bytes', bytes)]);
  const blocks = new Table('retained', [...columns('Block'),
    { title: 'Allocated', is_number: false, value: (row) => row.block?.allocated?.position || '',
      rank: (row) => positionRank(row.block?.allocated?.position), show: (row) => pieces.when(row.block?.allocated?.position) }],
  { detail: (row) => (row.block?.allocated ? pieces.stack(row.block.allocated.stack)
    : element('p', {}, 'Its allocation is not known.')) });
  held.setRows(roots.retainers);
  blocks.setRows(retained.retainers);
  return element('div', {},
    panel('Roots that hold memory', doubts(roots), element('p', {},
      `Bytes that would become free without each root, of ${blocksAndBytes(roots.total_blocks, roots.total_bytes)} in ` +
      `snapshot ${roots.snapshot?.number}.`),
    cutNote(roots.retainers.length, roots.total_retainers, 'roots'), held.tools, held.node),
    panel('Blocks that hold most', doubts(retained), cutNote(retained.retainers.length,
      retained.total_retainers, 'blocks'), blocks.tools, blocks.node, new CommandLine(line).node));
}
