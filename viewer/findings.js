// SPDX-License-Identifier: MIT
// Leaks and errors.
import { breakable, button, doubts, element } from './dom.js';
import { csvButtons } from './export.js';
import { bytes, comparePositions, count, positionRank, things } from './format.js';
import { Table } from './table.js';

export const CLASSES = {
  definitely_lost: ['definitely lost', 'nothing points at them'],
  indirectly_lost: ['indirectly lost', 'only lost blocks point at them'],
  possibly_lost: ['possibly lost', 'only pointers into their middle are left'],
  still_reachable: ['still reachable', 'a pointer leads to them'],
  held_by_stale: ['held by stale words', 'only words that may be leftovers point at them'],
  held_by_stack: ['held by a stack', 'only a stack that ends or a register points at them'],
  live_at_end: ['live at the end', 'the recording ended before the program, or the program was killed'],
  not_seen: ['not seen', 'newer than the snapshot, or not recorded in it'],
};

/** A panel: the buttons of its table stand beside its title. */
export function panel(title, ...children) {
  const tools = children.filter((child) => child?.className === 'tools');
  return element('section', { class: 'panel', 'aria-label': title },
    element('div', { class: 'bar head' }, element('h2', {}, title), ...tools),
    ...children.filter((child) => !tools.includes(child)));
}

/** Sums as "3 blocks, 96 bytes". */
export function blocksAndBytes(blocks, size) {
  return `${things(Number(blocks), 'block')}, ${things(Number(size), 'byte')}`;
}

/** A column of numbers that are a member of the row. */
export function numberColumn(title, name, format = count) {
  return {
    title, value: (row) => Number(row[name] ?? 0),
    show: (row) => (row[name] === null || row[name] === undefined ? '' : format(Number(row[name]))),
    title_of: (row) => (format === bytes ? `${count(Number(row[name] ?? 0))} bytes` : null),
  };
}

/** A column of positions that are a member of the row: it shows their times. */
export function positionColumn(pieces, title, name) {
  return {
    title, is_number: false, value: (row) => row[name] || '',
    rank: (row) => positionRank(row[name]), show: (row) => pieces.when(row[name]),
  };
}

/** The last own call of a stack, or else its innermost one, as a frame; undefined for no stack. */
function ownFrame(calls, stack) {
  const frames = calls.stack(stack);
  return frames.find((frame) => calls.functions[calls.functionOf[frame]].own) ?? frames[0];
}

/** The number of the function that names a stack; -1 for no stack. */
export function functionKey(calls, stack) {
  const frame = ownFrame(calls, stack);
  return frame === undefined ? -1 : calls.functionOf[frame];
}

/** The column that names a stack by its last own call; the whole stack unfolds. */
export function stackColumn(pieces, key = undefined) {
  const { calls } = pieces;
  const find = (row) => ownFrame(calls, row.stack);
  const name = (row, kind = 'short') => {
    const frame = find(row);
    return frame === undefined ? ['(no stack)', '']
      : [calls.functions[calls.functionOf[frame]][kind], calls.line(frame)];
  };
  const swatch = (row) => {
    const frame = find(row);
    const color = frame === undefined ? -1 : pieces.functions?.of?.(calls.functionOf[frame]) ?? -1;
    const node = element('i');
    node.style.background = `var(--${color < 0 ? 'own' : `s${color}`})`;
    return node;
  };
  return {
    title: 'Function', is_number: false, class: 'name', value: (row) => name(row).join(' ').trim(), key,
    csv: [['Function', (row) => name(row)[0]], ['File', (row) => find(row) !== undefined && calls.file(find(row)) || ''],
      ['Line', (row) => find(row) !== undefined && calls.frames.line[find(row)] || '']],
    title_of: (row) => name(row, 'name')[0],
    show: (row) => element('span', {}, swatch(row), ' ', element('b', {}, ...breakable(name(row, 'plain')[0])),
      element('small', {}, ` ${name(row)[1]}`)),
  };
}

/** Whether the search finds the stack of a row. */
export function wantsOf(pieces) {
  return (row) => !pieces.search || pieces.search.has(row.stack - 1);
}

/** A note where a list has fewer groups than there are. */
export function cutNote(shown, total, what) {
  return total > shown
    ? element('p', { class: 'dim' }, `The first ${count(shown)} of ${count(total)} ${what}. ` +
      'Sums count all.') : null;
}

function leakClasses(leaks) {
  if (!leaks.classes) return null;
  // Those that are held doubtfully are reachable, too: each block counts once.
  const { still_reachable: reachable, held_by_stale: stale, held_by_stack: stack } = leaks.classes;
  const [blocks, size] = ['blocks', 'bytes'].map((unit) =>
    [stale, stack].reduce((left, sums) => left - Number(sums?.[unit] ?? 0), Number(reachable?.[unit] ?? 0)));
  const classes = { ...leaks.classes, ...(reachable && { still_reachable: { blocks, bytes: size } }) };
  // The classes that have no block are not worth a look.
  const shown = Object.entries(classes).filter(([name, sums]) => name === 'definitely_lost' || Number(sums.blocks));
  return element('dl', { class: 'figures' }, ...shown.map(([name, sums]) =>
    element('div', { class: Number(sums.blocks) ? '' : 'dim', title: CLASSES[name]?.[1] },
      element('dt', {}, CLASSES[name]?.[0] || name),
      element('dd', {}, bytes(Number(sums.bytes)), element('small', {},
        ` ${blocksAndBytes(sums.blocks, sums.bytes)}`)))));
}

/** A line for each count that is not 0: the count, one of them, several of them. */
function remarks(list) {
  const lines = list.filter(([number]) => Number(number)).map(([number, one, several, rest]) =>
    element('li', {}, `${count(Number(number))} ${Number(number) === 1 ? one : several} ${rest}`));
  return lines.length ? element('ul', { class: 'remarks' }, ...lines) : null;
}

function leakRemarks(leaks) {
  return remarks([
    [leaks.unknown_blocks, 'block', 'blocks', `more, of ${things(Number(leaks.unknown_bytes), 'byte')} in all, ` +
      'unknown: perhaps released while recording was off'],
    [leaks.nested_blocks, 'block', 'blocks', `of these, of ${things(Number(leaks.nested_bytes), 'byte')} in ` +
      'all, in heaps of the program and so within other blocks'],
    [leaks.unknown_releases, 'release', 'releases', 'of an address without a live block'],
    [leaks.reallocs_in_flight, 'reallocation', 'reallocations', 'in flight, not counted'],
  ]);
}

function errorRemarks(errors) {
  return remarks([
    [errors.early_releases, 'release', 'releases', 'of blocks from before the recording, no errors ' +
      'as far as is known'],
    [errors.gap_releases, 'release', 'releases', 'of blocks that are unknown since recording was ' +
      'off, no errors as far as is known'],
    [errors.omitted_calls, 'call', 'calls', 'more with other stacks, too many to keep'],
    [errors.forgotten_releases, 'released block', 'released blocks', 'forgotten: a second release ' +
      'would not have been known (--remember N for more)'],
    [errors.unexamined_addresses, 'unknown address', 'unknown addresses', 'not looked for inside ' +
      'blocks: too many'],
  ]);
}

function lostWhen(row, pieces) {
  if (!row.lost_after) return '';
  return element('p', {}, 'Lost after position ', pieces.position(row.lost_after), ', at position ',
    pieces.position(row.lost_before), ' at the latest.');
}

/** The address of a block of the group, which leads to the view of its memory. */
function firstBlock({ address, blocks }, { state }) {
  if (!address) return '';
  return element('p', { class: 'first-block' }, Number(blocks) === 1 ? 'It is block ' : 'The first is block ',
    button(address, () => state.set({ view: 'memory', address }), { class: 'name' }), '.');
}

export function leaksView(leaks, pieces) {
  const table = new Table('leaks', [
    stackColumn(pieces, (row) => `${row.class} ${row.stack_id}`), numberColumn('Bytes', 'bytes', bytes),
    numberColumn('Blocks', 'blocks'),
    { title: 'Class', is_number: false, value: (row) => row.class || 'never released',
      show: (row) => CLASSES[row.class]?.[0] || row.class || 'never released' },
    positionColumn(pieces, 'First allocated', 'first_position'),
    positionColumn(pieces, 'Last allocated', 'last_position'),
  ], { sort: 1, wants: wantsOf(pieces), detail: (row) => element('div', {}, firstBlock(row, pieces),
    lostWhen(row, pieces), pieces.stack(row.stack)) });
  table.setRows(leaks.groups);
  const title = leaks.snapshot
    ? `Live blocks, by the pointers to them (snapshot ${leaks.snapshot.number}${leaks.snapshot.reason === 'exit' ? ', at exit' : ''})`
    : leaks.judged ? 'Blocks that were never released (no snapshot shows which of them are lost)'
      : 'Blocks that were live when the recording ended, or the program was killed';
  const node = panel(title, doubts(leaks), leakClasses(leaks),
    element('p', {}, `${blocksAndBytes(leaks.total_blocks, leaks.total_bytes)} ` +
      `${leaks.snapshot ? `live at ${leaks.position}` : leaks.judged ? 'never released' : 'live at the end'}; the C and C++ runtimes keep ` +
      `${blocksAndBytes(leaks.runtime_blocks, leaks.runtime_bytes)}` +
      `${leaks.runtime_counted ? ', as far as they are known' : ' more'}.`), leakRemarks(leaks),
    cutNote(leaks.groups.length, leaks.total_groups, 'groups'), table.tools, table.node);
  return { node, draw: pieces.search.watch(() => table.choose()) };
}

/** Facts about a block, except for its calls. */
function blockText(finding) {
  const { block } = finding;
  if (!block) return finding.address ? `address ${finding.address}` : '';
  const size = block.size === null ? '' : ` of ${things(Number(block.size), 'byte')}`;
  return Number(block.offset) && !finding.damage
    ? `address ${finding.address}, ${things(Number(block.offset), 'byte')} inside the block ` +
      `${block.address}${size}` : `block ${block.address}${size}`;
}

/** Facts about the header of a block that was overwritten. */
function damageText({ address, damage, block }) {
  if (!damage) return '';
  const header = `The header at ${address} is ${damage.header} in snapshot ${damage.snapshot}.`;
  if (damage.adjacent) {
    return `${header} The program wrote ${things(Number(damage.bytes_beyond), 'byte')} or more beyond the ` +
      'end of the block, or of an earlier one there; or in front of the next block.';
  }
  return `${header} ${block ? 'Memory of the allocator behind the block is damaged.'
    : 'The header belongs to this block.'}`;
}

function errorNode(finding, pieces) {
  return element('article', { class: 'finding' },
    element('h3', {}, finding.kind.replaceAll('-', ' '),
      Number(finding.count) > 1 ? `, ${count(Number(finding.count))} times` : '',
      finding.certain ? '' : element('span', { class: 'badge' }, 'uncertain')),
    element('p', {}, blockText(finding)),
    finding.damage ? element('p', {}, damageText(finding)) : null,
    timeLine(pieces, [['Allocated', finding.allocated], ['Released', finding.released],
      ['Conflicts with a call', finding.conflict],
      ...(finding.damage ? [['Next block allocated', finding.after?.allocated]] : []),
      [finding.kind.replaceAll('-', ' '), finding]]));
}

/** Calls with their stacks in the order in which they happened. */
function timeLine(pieces, calls) {
  return element('div', { class: 'calls time-line' }, ...calls.filter(([, call]) => call)
    .sort(([, a], [, b]) => (a.position && b.position ? comparePositions(a.position, b.position) : 0))
    .map(([title, call]) => pieces.call(title, call)));
}

function signalNode(signal, pieces) {
  if (!signal) return null;
  const place = (title, at) => at && element('div', {},
    element('h4', {}, title, ` ${at.address}: ${at.where}`),
    element('div', { class: 'calls' }, pieces.call('Allocated', at.allocated),
      pieces.call('Released', at.released)));
  return element('article', { class: 'finding' },
    element('h3', {}, 'The program died of ', signal.name || `signal ${signal.signal ?? ''}`),
    element('p', {}, 'At ', pieces.position(signal.position), ` in thread ${signal.thread ?? ''}`),
    element('div', { class: 'calls' }, element('section', { class: 'call' },
      element('h4', {}, 'The stack'), pieces.stack(signal.stack))),
    place('Fault address', signal.fault),
    signal.registers?.length ? element('details', { class: 'registers' },
      element('summary', {}, things(signal.registers.length, 'register')),
      ...signal.registers.map((at) => place(`Register ${at.name ?? at.number}`, at))) : null);
}

/** The findings as lines of CSV. */
function errorRows(errors, pieces) {
  const { csv } = stackColumn(pieces);
  return [['Kind', 'Times', 'Certain', 'Address', 'Called', 'Position', 'Thread', ...csv.map(([title]) => title)],
    ...errors.findings.map((finding) => [finding.kind, finding.count, finding.certain,
      finding.address, finding.api, finding.position, finding.thread, ...csv.map(([, value]) => value(finding))])];
}

export function errorsView(errors, pieces) {
  const none = !errors.findings.length && !errors.fatal_signal;
  const of = (list) => list.map((finding) => {
    const node = errorNode(finding, pieces);
    nodes.push([node, finding]);
    return node;
  });
  const nodes = [];
  const node = panel('Calls that the program should not have made', doubts(errors),
    none ? element('p', { class: 'good' }, 'None. Reads and writes are not watched.') : null,
    ...[true, false].flatMap((is_damage) => of(errors.findings.filter(({ damage }) => Boolean(damage) === is_damage))),
    cutNote(errors.findings.length, Number(errors.total_findings), 'findings'),
    signalNode(errors.fatal_signal, pieces), errorRemarks(errors),
    errors.findings.length ? csvButtons('errors', () => errorRows(errors, pieces)) : null);
  const isFound = (call) => call && pieces.search.has(call.stack - 1);
  return { node, draw: pieces.search.watch(() => nodes.forEach(([article, finding]) => {
    article.hidden = ![finding, finding.allocated, finding.released, finding.conflict].some(isFound);
  })) };
}
