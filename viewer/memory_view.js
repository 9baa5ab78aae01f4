// SPDX-License-Identifier: MIT
// The memory of an exact page: where the live blocks lie at the cursor, and the biographies of
// addresses.
import { sparseText } from './blocks_view.js';
import { sums } from './data.js';
import { button, element } from './dom.js';
import { CallReader, addressLink, hex } from './events_view.js';
import { graphButtons } from './export.js';
import { positionText } from './exact.js';
import { CLASSES } from './findings.js';
import { bytes, comparePositions, count, cutMiddle, percent, things } from './format.js';
import { CanvasSurface, palette, placeOf, scaleOf, sizeOf } from './surface.js';
import { Table, nameColumn } from './table.js';

/** Gaps of so many bytes separate regions, as `fragmentation` has it. */
const GAP = 1n << 20n;
/** Regions that are drawn, the largest ones. */
const DRAWN = 12;
const CELL = 6;
const HEIGHT_MAX = 380;
/** Characters of a function in the legend. */
const LABEL_LONG = 36;
const LABEL = 14;
/** Blocks of a cell, and owners of an address, that are listed. */
const LISTED = 100;
const REGION = ['first', 'last', 'blocks', 'used', 'unused', 'gaps', 'largest'];
const CELL_VALUES = 4;
const SPARSE = ['stack', 'kept', 'blocks', 'bytes'];

function readRegions(values) {
  const list = [];
  for (let i = 0; i < values.length; i += REGION.length) {
    const region = Object.fromEntries(REGION.map((name, k) => [name, values[i + k]]));
    for (const name of REGION.slice(2)) region[name] = Number(region[name]);
    list.push({ ...region, size: region.last - region.first + 1n });
  }
  return list;
}

function readBlock(number, values) {
  const [address, size, stack, thread, heap, sequence, steps, event, has_ended, endSequence, endSteps,
    endEvent, overlapped] = values;
  return {
    number, address, size: Number(size), stack: Number(stack), thread: Number(thread),
    heap: Number(heap), begin: positionText(sequence, steps), event: Number(event),
    end: has_ended ? positionText(endSequence, endSteps) : null, endEvent: Number(endEvent),
    is_overlapped: Boolean(overlapped),
  };
}

/** The rows of cells of some regions, and their height: the smallest cells, a power of two, with which they fit. */
export function layOutRegions(regions, columns, height) {
  const rows = (region, size) => Number((region.size + size * BigInt(columns) - 1n) /
    (size * BigInt(columns)));
  let size = 16n;
  const needed = () => regions.reduce((sum, region) => sum + LABEL + CELL * rows(region, size), 0);
  while (needed() > height && size < 1n << 60n) size *= 2n;
  let top = 0;
  const places = regions.map((region) => {
    const place = { region, top: top + LABEL, rows: rows(region, size) };
    top += LABEL + CELL * place.rows;
    return place;
  });
  return { size, columns, places, height: top };
}

export class MemoryView {
  constructor(exact, pieces, leaks) {
    Object.assign(this, { exact, pieces, leaks, reader: new CallReader(exact.engine) });
    const { state, heap, calls } = pieces;
    Object.assign(this, { state, heap, calls });
    this.canvas = element('canvas', {
      class: 'memory', role: 'img', tabindex: 0, 'aria-label': 'Map of the memory that blocks lie in',
    });
    this.canvas.addEventListener('click', (event) => this.pick(...placeOf(event)));
    this.canvas.addEventListener('pointermove', (event) => {
      const cell = this.cellAt(...placeOf(event));
      this.canvas.title = cell ? `${hex(cell.first)} to ${hex(cell.last)}` : '';
    });
    this.legend = element('ul', { class: 'legend', 'aria-label': 'Colours of the functions' });
    this.note = element('p', { class: 'said' });
    this.unknown = element('p', { class: 'doubt' });
    this.tools = graphButtons('memory', this.canvas, (surface, colors) => this.paint(surface, colors));
    this.makeTables();
    this.input = element('input', {
      type: 'search', placeholder: '0x1f00', 'aria-label': 'Address',
      on: { change: () => this.setAddress(this.input.value.trim()) },
    });
    this.story = element('div');
    this.progress = element('progress', { max: heap.event[heap.last] || 1, value: 0, 'aria-label': 'Reading the trace' });
    this.wait = element('p', { class: 'reading', role: 'status' }, this.progress, ' ', this.waitText = element('span'));
    this.node = element('div', {}, this.wait, this.unknown,
      element('section', { class: 'panel', 'aria-label': 'Map' },
        element('div', { class: 'bar' }, element('h3', {}, 'Where the live blocks lie'), this.tools), this.canvas, this.legend, this.note),
      element('section', { class: 'panel regions-panel', 'aria-label': 'Regions' },
        element('div', { class: 'bar' }, element('h3', {}, 'Regions'), this.regions.tools), this.regions.node),
      element('section', { class: 'panel sparse-panel', 'aria-label': 'Sparse pages' },
        element('div', { class: 'bar' }, element('h3', {}, 'Functions that keep sparse pages'), this.sparse.tools),
        this.sparseNote = element('p', { class: 'said' }), this.sparse.node),
      element('section', { class: 'panel blocks-panel', 'aria-label': 'Blocks' },
        element('div', { class: 'bar' }, element('h3', {}, 'Blocks'), this.blocks.tools),
        element('p', { class: 'dim' }, 'Click on the map to list the blocks there, and on a block ' +
          'for its biography.'), this.blocks.node),
      element('section', { class: 'panel story-panel', 'aria-label': 'Biography' },
        element('h3', {}, 'Biography of an address'),
        element('div', { class: 'bar' }, this.input,
          button('Show', () => this.setAddress(this.input.value.trim()))), this.story));
  }

  makeTables() {
    const amount = (title, name) => ({
      title, value: (row) => row[name], show: (row) => bytes(row[name]),
      title_of: (row) => `${count(row[name])} bytes`,
    });
    this.regions = new Table('regions', [
      { title: 'Begins', value: (row) => hex(row.first), is_number: false,
        key: (row) => hex(row.first) },
      { title: 'Ends', value: (row) => hex(row.last), is_number: false },
      { title: 'Blocks', value: (row) => row.blocks, show: (row) => count(row.blocks) },
      amount('Used', 'used'), amount('In gaps', 'unused'),
      { title: 'Used share', value: (row) => row.used / (row.used + row.unused || 1),
        show: (row) => percent(row.used, row.used + row.unused) },
      { title: 'Gaps', value: (row) => row.gaps, show: (row) => count(row.gaps) },
      amount('Largest gap', 'largest'),
    ], { sort: 3, open: (row) => this.state.set({ region: hex(row.first) }) });
    this.sparse = new Table('sparse', [
      { ...nameColumn('Function', (row) => this.calls.functions[row.function].short), key: (row) => row.function },
      amount('Kept', 'kept'),
      { title: 'Blocks', value: (row) => row.blocks, show: (row) => count(row.blocks) }, amount('Bytes', 'bytes'),
    ], { sort: 1 });
    this.blocks = new Table('blocks', [
      { title: 'Address', value: (row) => hex(row.address), is_number: false,
        key: (row) => row.number },
      { title: 'Size', value: (row) => row.size, show: (row) => count(row.size) },
      { title: 'Allocated', value: (row) => row.event, show: (row) => this.pieces.position(row.begin) },
      nameColumn('By', (row) => this.name(row.stack)),
    ], { open: (row) => this.setAddress(hex(row.address)), is_down: false });
    this.blocks.setRows([]);
  }

  /** Shows the pages that blocks cover little of, and whose blocks keep them. */
  showSparse([pages, sparse, kept, used, ...values]) {
    const rows = new Map();
    for (let i = 0; i < values.length; i += SPARSE.length) {
      const key = this.functionOf(Number(values[i]));
      const row = rows.get(key) || { function: key, kept: 0, blocks: 0, bytes: 0 };
      SPARSE.slice(1).forEach((name, k) => { row[name] += Number(values[i + 1 + k]); });
      rows.set(key, row);
    }
    this.sparseNote.textContent = sparseText(...[pages, sparse, kept, used].map(Number), 'the cursor');
    this.sparse.setRows([...rows.values()]);
  }

  setAddress(text) {
    this.state.set({ address: /^(0x)?[0-9a-f]{1,16}$/i.test(text)
      ? `0x${text.replace(/^0x/i, '').toLowerCase()}` : '' });
  }

  words() {
    const at = this.heap.position[this.state.get('at')];
    const address = this.state.get('address');
    return address ? ['history', '--address', address] : ['fragmentation', '--at', at];
  }

  /** The function of the program that allocated by a stack. */
  functionOf(stack) {
    const site = this.heap.siteOf(stack);
    const node = site === undefined ? -1 : this.heap.own[site];
    return this.calls.functionOfSite(node);
  }

  name(stack) {
    return this.calls.functions[this.functionOf(stack)].short;
  }

  draw() {
    this.wait.hidden = this.exact.is_ready && this.layout;
    if (!this.exact.is_ready) {
      this.progress.value = this.exact.events;
      this.waitText.textContent = this.exact.failed || 'Reading the trace: the map follows.';
      return;
    }
    this.progress.removeAttribute('value');
    this.waitText.textContent = 'Drawing the map…';
    this.telling = this.drawStory();
    this.wish = `${this.exact.moment} ${this.state.get('region')} ${this.canvas.clientWidth}` +
      ` ${getComputedStyle(document.documentElement).getPropertyValue('--panel')}`;
    this.run ||= this.follow().finally(() => { this.run = null; });
  }

  /** Draws until the picture shows the newest wish. */
  async follow() {
    while (this.shown !== this.wish) {
      const wish = this.wish;
      await this.drawMap();
      this.shown = wish;
    }
  }

  async drawMap() {
    const { engine, moment } = this.exact;
    const [values, unknown, sparse] = await engine.ask(['regions', moment, GAP], ['unknown', moment],
      ['sparse', moment]);
    this.showSparse(sparse);
    const [total, ...regions] = readRegions(values);
    this.unknown.hidden = !Number(unknown[0]);
    this.unknown.textContent = `Uncertain: ${count(Number(unknown[0]))} of the blocks are unknown: they ` +
      'may have been released while recording was off.';
    const chosen = regions.filter((region) => hex(region.first) === this.state.get('region'));
    const largest = [...regions].sort((a, b) => b.used - a.used).slice(0, DRAWN)
      .sort((a, b) => (a.first < b.first ? -1 : 1));
    const { width } = sizeOf(this.canvas);
    const columns = Math.max(1, Math.floor(width / CELL));
    const layout = layOutRegions(chosen.length ? chosen : largest, columns, HEIGHT_MAX);
    this.canvas.style.height = `${layout.height * scaleOf()}px`;
    const { size, places } = layout;
    const cells = places.length ? await engine.ask(...places.map(({ region }) =>
      ['cells', moment, region.first, region.last, size])) : [];
    Object.assign(this, { layout, cells });
    this.wait.hidden = true;
    const colors = palette();
    this.showLegend(this.paint(new CanvasSurface(this.canvas, colors, { width, height: layout.height }), colors), colors);
    this.regions.setRows(regions);
    this.note.replaceChildren(`${things(total.blocks, 'block')} in ${things(regions.length, 'region')}: ` +
      `${things(total.used, 'byte')} used, ${things(total.unused, 'byte')} in ${things(total.gaps, 'gap')}, the ` +
      `largest of ${things(total.largest, 'byte')}; a cell is ${things(Number(size), 'byte')}` +
      `${places.length < regions.length && !chosen.length ? `; the ${DRAWN} fullest regions are drawn` : ''}. `,
    chosen.length ? button('All regions', () => this.state.set({ region: '' })) : '');
  }

  /** The functions of the cells, most cells first. */
  functionsOf(cells) {
    const numbers = new Map();
    for (const values of cells) {
      for (let i = 0; i < values.length; i += CELL_VALUES) {
        if (!values[i + 2]) continue;
        const key = this.functionOf(Number(values[i + 3]));
        numbers.set(key, (numbers.get(key) || 0) + 1);
      }
    }
    return [...numbers].sort((a, b) => b[1] - a[1]).map(([key]) => key);
  }

  /** Draws the map, and returns the functions that have colours of their own. */
  paint(surface, colors) {
    if (!this.layout) return [];
    const { cells, layout: { size, columns, places } } = this;
    const { functions } = this.pieces;
    const shown = this.functionsOf(cells).filter((key) => functions.of(key) >= 0);
    const colorOf = new Map(shown.map((key) => [key, colors.series[functions.of(key)]]));
    places.forEach(({ region, top, rows }, k) => {
      surface.text(`${hex(region.first)}  ${bytes(Number(region.size))}`, 0, top - LABEL / 2, colors.dim);
      surface.rect(0, top, columns * CELL, rows * CELL, colors.line, 0.25);
      const values = cells[k];
      for (let i = 0; i < values.length / CELL_VALUES; i++) {
        const used = values[i * CELL_VALUES];
        if (!values[i * CELL_VALUES + 2]) continue;
        const color = colorOf.get(this.functionOf(Number(values[i * CELL_VALUES + 3]))) || colors.other;
        surface.rect((i % columns) * CELL, top + Math.floor(i / columns) * CELL, CELL - 1, CELL - 1,
          color, 0.45 + 0.55 * Number(used * 100n / size) / 100);
      }
    });
    return shown;
  }

  showLegend(shown, colors) {
    this.legend.hidden = !shown.length;
    this.legend.replaceChildren(...shown.map((key) => {
      const swatch = element('i');
      swatch.style.background = colors.series[this.pieces.functions.of(key)];
      return element('li', { title: this.calls.functions[key].name }, swatch,
        cutMiddle(this.calls.functions[key].plain, LABEL_LONG));
    }));
  }

  /** The addresses of a cell; null beside the regions. */
  cellAt(x, y) {
    if (!this.layout) return null;
    const { size, columns, places } = this.layout;
    const place = places.find(({ top, rows }) => y >= top && y < top + rows * CELL);
    const column = Math.floor(x / CELL);
    if (!place || column >= columns) return null;
    const first = place.region.first +
      BigInt(Math.floor((y - place.top) / CELL) * columns + column) * size;
    if (first > place.region.last) return null;
    const last = first + size - 1n;
    return { first, last: last < place.region.last ? last : place.region.last };
  }

  async pick(x, y) {
    const cell = this.cellAt(x, y);
    if (!cell) return;
    const [numbers] = await this.exact.engine.ask(
      ['blocks', this.exact.moment, cell.first, cell.last, LISTED]);
    const list = await this.readBlocks(numbers);
    this.blocks.setRows(list);
    // The biography is of a block that is listed, or of none.
    if (list.length === 1) this.setAddress(hex(list[0].address));
    else this.state.set({ address: '' });
  }

  async readBlocks(numbers) {
    const list = Array.from(numbers, Number);
    const answers = list.length ? await this.exact.engine.ask(...list.map((number) =>
      ['block', number])) : [];
    return list.map((number, i) => readBlock(number, answers[i]));
  }

  /** The biography of the address that was asked for. */
  async drawStory() {
    const address = this.state.get('address');
    if (this.told === address) return this.telling;
    this.told = address;
    this.input.value = address;
    if (!/^0x[0-9a-f]{1,16}$/.test(address)) {
      this.story.replaceChildren();
      return null;
    }
    const [[total, ...numbers]] = await this.exact.engine.ask(['history', BigInt(address), LISTED]);
    const owners = await this.readBlocks(numbers);
    const told = await Promise.all(owners.map((owner) => this.tell(owner)));
    if (this.told !== address) return null;
    const left = Number(total) - owners.length;
    this.story.replaceChildren(
      element('p', { class: 'said' }, `${things(Number(total), 'block')} ever had the address ${address}` +
        `${left ? `; the last ${owners.length} are shown` : ''}.`),
      ...told.reverse());
    return null;
  }

  /** The end of a block that was not released by the end: whether it is lost, by the snapshot of the leaks. */
  endOf({ stack, begin, event }) {
    const { pieces, heap: { part: { doubtful } }, leaks: { snapshot, groups } } = this;
    this.classOf ||= new Map(Object.entries(doubtful).flatMap(([name, events]) =>
      Array.from(sums(events), (number) => [number, name])));
    const name = this.classOf.get(event);
    if (!name) return ['Not released by the end.'];
    const [title] = CLASSES[name];
    if (!/^(in|definite)/.test(name)) {
      return [`Not released by the end; ${title}, by snapshot ${snapshot.number} at `, pieces.position(snapshot.position), '.'];
    }
    // The bounds of its group are those of all blocks of it.
    const known = groups.find((group) => group.class === name && group.stack_id === stack) || {};
    const after = known.lost_after && comparePositions(known.lost_after, begin) > 0 ? known.lost_after : begin;
    return [`Not released by the end; ${title} after position `, pieces.position(after), pieces.timeOf(after, undefined, 'its time: '),
      ', at position ', pieces.position(known.lost_before || snapshot.position), ' at the latest.'];
  }

  async tell(owner) {
    const { pieces } = this;
    const [begun] = await this.reader.read(owner.event, 1);
    const [ended] = owner.end ? await this.reader.read(owner.endEvent, 1) : [];
    const call = (made, position) => ({ ...made, position, stack: this.exact.stackNumber(made.stack) });
    return element('article', { class: 'finding owner' },
      element('h3', { class: 'own' }, `${things(owner.size, 'byte')} at ${hex(owner.address)}`,
        ...(begun.base ? [', reallocated from ', addressLink(this.state, hex(begun.base))] : []),
        ...(ended?.action === 'ReAlloc' && ended.address && ended.address !== owner.address
          ? [', reallocated to ', addressLink(this.state, hex(ended.address))] : [])),
      element('div', { class: 'calls' },
        pieces.call('Allocated', call(begun, owner.begin)),
        ended ? pieces.call(owner.is_overlapped ? 'Its release is missing; ended' : 'Ended', call(ended, owner.end))
          : element('p', {}, ...this.endOf(owner))));
  }
}
