// SPDX-License-Identifier: MIT
// Blocks that a page without its trace knows by their addresses: the blocks of its findings.
import { sums } from './data.js';
import { CLASSES } from './findings.js';
import { bytes, count, things } from './format.js';

/** Lost blocks by class, as the page has them: the first ones of each class. */
function readLost(part) {
  return Object.entries(part || {}).flatMap(([name, { address, size, stack_id: stack }]) => {
    let begin = 0n;
    const [sizes, stacks] = [sums(size), sums(stack)];
    return address.map((difference, i) => ({ class: name, address: `0x${(begin += BigInt(difference)).toString(16)}`,
      size: sizes[i], stack_id: stacks[i] }));
  });
}

/** The sizes of a group's blocks: of each if all are known, else on average. */
function sizesText(group, members) {
  const [blocks, size] = [Number(group.blocks), Number(group.bytes)];
  const sizes = members.map((block) => block.size);
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  const all = `${things(size, 'byte')} in all`;
  if (sizes.length < blocks) return `${all}, ${bytes(size / blocks)} each on average`;
  return least === most ? `${things(least, 'byte')} each, ${all}` : `from ${count(least)} to ${things(most, 'byte')} each, ${all}`;
}

/** Records of known blocks: address and size, 0 for a single address; a title, a sentence, and calls as
 * [title, call]. */
function leakRecords(leaks, lost, heap) {
  const keyOf = (block) => `${block.class} ${block.stack_id}`;
  const groups = new Map(leaks.groups.map((group) => [keyOf(group), { ...group, members: [] }]));
  lost.forEach((block) => groups.get(keyOf(block))?.members.push(block));
  const record = ({ address, class: name, size, stack_id: stack }, group) => {
    const [title] = CLASSES[name] || ['not released'];
    const blocks = Number(group?.blocks);
    const site = heap.siteOf(stack);
    const call = address === group?.address || blocks === 1 ? { position: group.first_position }
      : { position: group?.first_position, last: group?.last_position };
    return { address, size, title, text: `${name === 'live_at_end' ? 'Live at the end' : `At the end ${title}`}${blocks > 1
      ? `: one of ${things(blocks, 'block')} of its stack, ${sizesText(group, group.members)}` : ''}.`,
    calls: [['Allocated', { ...call, stack: group?.stack ?? (site === undefined ? 0 : heap.sites[site] + 1) }]] };
  };
  const firsts = [...groups.values()].filter(({ address, members }) => address && !members.some((block) => block.address === address));
  return [...firsts.map((group) => record({ ...group, size: Number(group.blocks) > 1 ? 0 : Number(group.bytes) }, group)),
    ...lost.map((block) => record(block, groups.get(keyOf(block))))];
}

function errorRecords({ findings, fatal_signal: fatal }) {
  const places = fatal ? [['the fault address', fatal.fault], ...(fatal.registers || []).map((at) =>
    [`register ${at.name ?? at.number}`, at])] : [];
  return [...findings.filter(({ address, block }) => address || block).map((finding) => {
    const kind = finding.kind.replaceAll('-', ' ');
    return { address: finding.block?.address || finding.address, size: Number(finding.block?.size ?? 0), title: kind,
      text: `Error: ${kind}.`, calls: [['Allocated', finding.allocated],
        ['Released', finding.released], ['Conflicts with a call', finding.conflict], [kind, finding]] };
  }), ...places.filter(([, at]) => at?.address).map(([title, at]) => ({ address: at.address, size: 0, title,
    text: `The program died with it in ${title}: ${at.where}.`,
    calls: [['Allocated', at.allocated], ['Released', at.released]] }))];
}

function heldRecords(retained) {
  return (retained?.retainers || []).filter(({ block }) => block).map(({ block, retained_bytes: held, retained_blocks: number }) => ({
    address: block.address, size: Number(block.size), title: 'live',
    text: `Live in snapshot ${retained.snapshot?.number}; without it, ${things(Number(number), 'block')} of ` +
      `${bytes(Number(held))} would become free.`, calls: [['Allocated', block.allocated]] }));
}

function movedRecords(moves) {
  return (moves.chains || []).filter(({ address }) => address).map((chain) => ({
    address: chain.address, size: Number(chain.final_size), title: 'reallocated',
    text: `Reallocated ${things(Number(chain.reallocs), 'time')}, from ${count(Number(chain.start_size))} to ` +
      `${things(Number(chain.final_size), 'byte')}, last at this address.`,
    calls: [['First allocated', { position: chain.first_position }], ['Last reallocated', { position: chain.last_position }]] }));
}

export class KnownBlocks {
  constructor({ leaks, errors, retained, moves, heap: { lost_blocks: lost } }, heap) {
    this.lost = readLost(lost);
    this.unlisted = Object.values(lost || {}).reduce((sum, { total }) => sum + Number(total), -this.lost.length);
    this.has_all_lost = Boolean(leaks.snapshot) && leaks.certain && !this.unlisted;
    this.list = () => [...leakRecords(leaks, this.lost, heap), ...errorRecords(errors), ...heldRecords(retained), ...movedRecords(moves)];
  }

  /** The blocks that an address, a text, lies in: each an address, the largest size of it, and its records. */
  find(address) {
    this.records ||= this.list().map((record) => ({ ...record, begin: BigInt(record.address) }));
    const wanted = BigInt(address);
    const found = new Map();
    for (const record of this.records) {
      const { begin, size, address: text } = record;
      if (wanted !== begin && !(wanted > begin && wanted < begin + BigInt(size))) continue;
      const block = found.get(text) || { address: text, size: 0, records: [] };
      block.size = Math.max(block.size, size);
      block.records.push(record);
      found.set(text, block);
    }
    return [...found.values()];
  }

  /** One sentence about an address, for which `history` has the rest. */
  sentence(address) {
    const found = this.find(address);
    if (found.length) {
      const titles = new Set(found.flatMap(({ records }) => records.map(({ title }) => title)));
      return `Address ${address}: ${[...titles].join(', ')}; Enter shows its block.`;
    }
    const lost = this.unlisted ? `, nor in the ${things(this.lost.length, 'lost block')} that it lists (${count(this.unlisted)} more are lost)`
      : this.has_all_lost ? ', nor in a lost block' : '';
    return `This page knows single blocks of its findings only, and ${address} is in none of these${lost}; ` +
      'its whole life is in the command below, and in a page made with report --exact.';
  }
}
