// SPDX-License-Identifier: MIT
// The memory of a page without its trace: the call sites that keep sparse pages, and the blocks that it
// knows.
import { element, setText, textField } from './dom.js';
import { CommandLine } from './commands.js';
import { cutNote, numberColumn, panel, stackColumn } from './findings.js';
import { bytes, count, things } from './format.js';
import { Table } from './table.js';

/** The sentence about sparse pages, at a moment. */
export function sparseText(pages, sparse, kept, used, moment) {
  return `${count(sparse)} of ${things(pages, 'page')} have less than a quarter in blocks at ${moment}: ` +
    `${bytes(kept)} are kept by ${bytes(used)}.`;
}

export class BlocksView {
  /** @param end  the words of a command for the end of the page's range */
  constructor({ parts, pieces, heap, state, commands, known, figures }, end) {
    Object.assign(this, { sparse: parts.sparse, pieces, heap, state, commands, known, figures, end });
    this.now = new CommandLine('', 'At the cursor');
    this.elsewhere = element('p', { class: 'said' });
    this.story = element('div');
    this.node = element('div', {}, this.makeSparse(), panel('Biography of an address', element('div', { class: 'bar' },
      textField(state, 'address', 'Address, such as 0x1f00')), this.story));
  }

  makeSparse() {
    const { pieces, sparse } = this;
    const table = new Table('sparse', [stackColumn(pieces, (row) => row.stack_id), numberColumn('Kept', 'kept_bytes', bytes),
      numberColumn('Blocks', 'blocks'), numberColumn('Bytes', 'bytes', bytes)],
    { sort: 1, detail: (row) => pieces.stack(row.stack) });
    table.setRows(sparse.keepers);
    return panel(`Functions that keep sparse pages, at ${pieces.scope.end}`, element('p', { class: 'said' },
      sparseText(Number(sparse.pages), Number(sparse.sparse_pages), Number(sparse.kept_bytes), Number(sparse.bytes), pieces.scope.end)),
    this.elsewhere, this.now.node,
    cutNote(sparse.keepers.length, Number(sparse.total_keepers), 'call sites') || '', table.tools, table.node);
  }

  words() {
    const address = this.state.get('address');
    return /^0x[0-9a-f]{1,16}$/i.test(address) ? ['history', '--address', address] : ['fragmentation', ...this.end];
  }

  /** Says that the sparse pages are of one moment, and which command has those at the cursor. */
  drawElsewhere() {
    const { heap, figures } = this;
    const at = this.state.get('at');
    const is_elsewhere = at < heap.last;
    if (this.now.node.hidden === is_elsewhere) this.now.node.hidden = !is_elsewhere;
    setText(this.elsewhere, is_elsewhere ? `The cursor stands at ${figures.timeOf(at)}, where other pages may be sparse: the list does not ` +
      'follow it. The command here has that moment, and so has a page made with report --exact.' : 'The cursor stands there.');
    this.now.set(this.commands.line('fragmentation', '--at', heap.position[at]));
  }

  draw() {
    this.drawElsewhere();
    const address = this.state.get('address').trim();
    if (this.told === address) return;
    this.told = address;
    const is_address = /^0x[0-9a-f]{1,16}$/i.test(address);
    const found = is_address ? this.known.find(address) : [];
    this.story.replaceChildren(...found.map((record) => this.tell(record)),
      !is_address ? '' : element('p', { class: 'said' }, found.length
        ? 'These are the findings of this page; the whole life of the address is in the command below, and in a page made with report --exact.'
        : this.known.sentence(address)), !is_address ? ''
      : new CommandLine(this.commands.line('history', '--address', address), 'Its whole life').node);
  }

  /** When a call was: at a position, or after one and before another. */
  whenOf({ position, last = position }) {
    const { pieces } = this;
    if (!position) return '';
    return position === last ? [' at ', pieces.position(position), pieces.timeOf(position)]
      : [' between ', pieces.position(position), pieces.timeOf(position), ' and ', pieces.position(last), pieces.timeOf(last)];
  }

  tell({ address, size, records }) {
    const { pieces } = this;
    const call = ([title, made]) => (made.api || made.action ? pieces.call(title, made)
      : element('section', { class: 'call' }, element('h4', {}, title, ...this.whenOf(made)), made.stack === undefined ? '' : pieces.stack(made.stack)));
    return element('article', { class: 'finding owner' },
      element('h3', { class: 'own' }, `${size ? things(size, 'byte') : 'A block'} at ${address}`),
      ...records.flatMap(({ text, calls }) => [element('p', {}, text), element('div', { class: 'calls' },
        ...calls.filter(([, made]) => made).map(call))]));
  }
}
