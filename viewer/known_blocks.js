// SPDX-License-Identifier: MIT
// Blocks that a page without its trace knows by their addresses: the blocks of its findings.
import { CLASSES } from './findings.js';
import { bytes, count, things } from './format.js';

/** Records of known blocks: address and size, 0 for a single address; a title, a sentence, and calls as
 * [title, call]. */
function leakRecords(leaks) {
  return leaks.groups.filter(({ address }) => address).map((group) => {
    const blocks = Number(group.blocks);
    const [name] = CLASSES[group.class] || ['never released'];
    const others = blocks > 1 ? `, like ${things(blocks - 1, 'other block')} of its stack, ${bytes(Number(group.bytes))} in all` : '';
    return { address: group.address, size: blocks > 1 ? 0 : Number(group.bytes), title: name,
      text: `At the end ${name}${others}.`, calls: [['Allocated', { position: group.first_position, stack: group.stack }]] };
  });
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
  constructor({ leaks, errors, retained, moves }) {
    this.list = () => [...leakRecords(leaks), ...errorRecords(errors), ...heldRecords(retained), ...movedRecords(moves)];
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
    return found.length ? `Address ${address}: ${[...new Set(found.flatMap(({ records }) => records.map(({ title }) => title)))].join(', ')}; Enter shows its block.`
      : `This page knows single blocks of its findings only, and ${address} is in none of these; whether it is ` +
        'lost, and its whole life, is in the command below, and in a page made with report --exact.';
  }
}
