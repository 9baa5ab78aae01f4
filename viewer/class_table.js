// SPDX-License-Identifier: MIT
// The table of classes: the live blocks of each at a snapshot, and the memory that they hold.
import { CommandLine } from './commands.js';
import { cutNote, numberColumn } from './findings.js';
import { doubts, element } from './dom.js';
import { bytes, percent, things } from './format.js';
import { Table, shareOf } from './table.js';

/** The name of a class; those without one are known by the address of their table of functions. */
function classNameOf(row) {
  return row.class || (row.class_address ? `class of the functions at ${row.class_address}`
    : '(no class)');
}

export class ClassTable {
  /** @param part  the output of `retained --by class`
   * @param line  that command */
  constructor(part, line, is_filtered) {
    this.part = part;
    const total = Number(part.total_bytes);
    this.table = new Table('classes', [
      { ...numberColumn('Bytes', 'bytes', bytes), key: classNameOf },
      { title: 'Share', value: (row) => Number(row.bytes), csv: [shareOf((row) => Number(row.bytes), () => total)],
        show: (row) => percent(Number(row.bytes), total) },
      numberColumn('Blocks', 'blocks'),
      { ...numberColumn('Holds', 'retained_bytes', bytes),
        hint: 'Bytes that would become free without all blocks of the class' },
      { title: 'Class', is_number: false, class: 'name', value: classNameOf,
        show: (row) => element('span', { class: row.class ? 'own' : 'foreign' }, classNameOf(row)) }]);
    this.node = element('div', {}, doubts(part), cutNote(part.retainers.length,
      Number(part.total_retainers), 'classes'), this.table.node, new CommandLine(line).node);
    this.note = `Live at snapshot ${part.snapshot?.number}: ${things(total, 'byte')} by class, ` +
      'wherever the cursor is' + (Number(part.unheld_bytes)
      ? `; ${things(Number(part.unheld_bytes), 'byte')} that nothing holds are not in the table` : '') +
      `${is_filtered ? '; the filters of this page do not apply' : ''}`;
  }

  draw(wanted) {
    this.table.setRows(this.part.retainers.filter((row) =>
      classNameOf(row).toLowerCase().includes(wanted)));
  }
}
