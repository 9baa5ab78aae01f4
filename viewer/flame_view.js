// SPDX-License-Identifier: MIT
// The flame graph as a view: its contents, the pointer, the keyboard.
import { OUTWARD_LEVELS, inwardTree, outwardTree } from './calls.js';
import { button, choice, element, menu, segments, setText } from './dom.js';
import { baseName, bytes, briefName, percent, things } from './format.js';
import { BoxColors, ModuleColors } from './flame_colors.js';
import { LEVELS_MAX, boxAt, boxLines, depthOf, drawBoxes, flameHeight, foldedOf, layOut } from './flame.js';
import { graphButtons } from './export.js';
import { CanvasSurface, palette, placeOf, scaleOf, sizeOf } from './surface.js';
import { Search } from './search.js';

/** A flame graph of a source, which has: `calls`, `sites`, and functions that return the title of
 * what is shown, the amounts by call site, a remark on them, the largest amount at any time, and
 * the name of one of what is counted. One that has `colorsOf` chooses the colours of boxes and what they
 * mean, unless it returns null; with `has_colors` it always does. `linesOf` adds lines to the
 * descriptions of boxes. */
export class FlameView {
  constructor(source, state) {
    Object.assign(this, { source, state, trees: {}, boxes: [], selected: -1, opened: new Set() });
    this.modules = new ModuleColors(source.calls);
    this.functions = source.functions && new BoxColors(source.functions);
    this.search = source.search || new Search(source.calls, state);
    this.canvas = element('canvas', {
      class: 'flame', tabindex: 0, role: 'application', 'aria-label': 'Flame graph',
      'aria-describedby': 'flame-said',
    });
    this.said = element('p', { id: 'flame-said', class: 'said', role: 'status' });
    this.legend = element('ul', { class: 'legend', 'aria-label': 'Colours of the calls' });
    this.tip = element('div', { class: 'tip', hidden: true });
    // The canvas is as large as its visible part: one of hundreds of levels takes long to make.
    this.sheet = element('div', {}, this.canvas);
    this.scroll = element('div', { class: 'flame-scroll' }, this.sheet);
    this.top = 0;
    this.bar = element('div', { class: 'bar' });
    this.node = element('section', { class: 'panel flame-panel', 'aria-label': 'Flame graph' },
      this.bar, this.scroll, this.legend, this.said, this.tip);
    this.tools = graphButtons('flame-graph', this.canvas, (surface, colors) => {
      drawBoxes(surface, this.boxes, { ...this.picture, colors });
    }, () => this.picture);
    this.listen();
    this.makeBar();
  }

  makeBar() {
    const { state } = this;
    this.out = button('Zoom out', () => state.set({ root: '' }));
    this.bar.replaceChildren(...(this.source.controls?.() || []),
      segments(state, 'direction', 'Order', [['inward', 'from main()'],
        ['outward', 'from allocations']], { root: '' }), this.out,
      menu('Graph', choice(state, 'tree', 'Shape', [['icicle', 'main() on top'], ['flame', 'main() at the bottom']]),
        ...(this.source.most ? [choice(state, 'scale', 'Scale',
          [['fill', 'fill the width'], ['peak', 'to the peak']])] : []),
        ...(this.source.has_colors ? [] : [choice(state, 'color', 'Colour',
          [['function', 'by function'], ['module', 'by module'], ['thread', 'by thread']])]),
        this.tools));
  }

  tree() {
    const direction = this.state.get('direction') === 'outward' ? 'outward' : 'inward';
    this.trees[direction] ||= (direction === 'outward' ? outwardTree : inwardTree)(
      this.source.calls, this.source.sites);
    return this.trees[direction];
  }

  /** The amount that takes the whole width. */
  whole(sums, root) {
    const { source, state } = this;
    if (!source.most || state.get('scale') !== 'peak' || root) return sums.total[root];
    return Math.max(sums.total[0], source.most());
  }

  format(value) {
    return this.state.get('unit') === 'bytes' ? `${bytes(value)} (${things(value, 'byte')})`
      : things(value, this.source.counted());
  }

  /** The node that fills the width. A node that was chosen in another measure does so only if it has
   * something of this one. */
  rootOf(tree, sums) {
    const { state } = this;
    const title = this.source.title();
    const root = Number(state.get('root')) < tree.parent.length ? Number(state.get('root')) : 0;
    const is_left = root && this.measured && this.measured !== title && !sums.total[root];
    this.measured = title;
    if (is_left) state.set({ root: '' });
    return is_left ? 0 : root;
  }

  draw() {
    const { state } = this;
    const tree = this.tree();
    const values = this.source.values();
    const sums = tree.sum(this.search.filter(values, this.source.sites));
    this.all = this.search.is_on ? values.reduce((sum, value) => sum + value, 0) : sums.total[0];
    const root = this.rootOf(tree, sums);
    const whole = this.whole(sums, root);
    const colors = palette();
    const made = this.colorBy(tree, colors);
    const width = sizeOf(this.canvas).width || 600;
    this.boxes = layOut(tree, sums.total, root, whole, width, this.opened);
    const height = flameHeight(this.boxes);
    const is_icicle = state.get('tree') !== 'flame';
    if (this.drawn !== height * scaleOf()) this.sheet.style.height = `${height * scaleOf()}px`;
    this.scroll.classList.toggle('from-below', !is_icicle);
    this.drawn = height * scaleOf();
    this.picture = {
      tree, sums, whole, root, colors, height, selected: this.selected,
      width, is_icicle,
      colorOf: made.of, isFound: this.search.is_on && !this.search.found.every((is_found) => is_found)
        ? (box) => this.search.found[tree.label[box.last]] : null,
    };
    this.paint();
    if (this.out.hidden !== !root) this.out.hidden = !root;
    this.showLegend(this.boxes.length ? made.legend : []);
    this.describe();
  }

  /** Draws the visible boxes. */
  paint() {
    const { picture, picture: { width, height, colors } } = this;
    const room = Math.max(340, innerHeight * 0.45) / scaleOf();
    const seen = Math.min(height, room);
    this.top = height <= room ? 0 : this.topOfSeen(height - room);
    if (this.seen !== seen * scaleOf()) this.canvas.style.height = `${seen * scaleOf()}px`;
    this.seen = seen * scaleOf();
    const surface = new CanvasSurface(this.canvas, colors, { width, height: seen });
    surface.moveDown(this.top);
    drawBoxes(surface, this.boxes, picture, [this.top, this.top + seen]);
  }

  /** The top of the part of the picture that can be seen; `hidden` is the height of the rest. */
  topOfSeen(hidden) {
    const top = this.is_scrolled ? this.scroll.scrollTop / scaleOf() : 0;
    return Math.max(0, Math.min(hidden, this.picture.is_icicle ? top : hidden + top));
  }

  /** The colours of boxes, and the names of those that mean something. */
  colorBy(tree, colors) {
    const chosen = this.source.colorsOf?.(tree, colors);
    if (chosen) return chosen;
    if (this.functions && this.state.get('color') !== 'module') {
      return { of: this.functions.of(tree, colors), legend: [] };
    }
    return { of: this.modules.of(colors)(tree), legend: this.modules.legend(colors, baseName) };
  }

  showLegend(list) {
    const key = list.flat().join('\n');
    if (this.listed === key) return;
    this.listed = key;
    this.legend.hidden = !list.length;
    this.legend.replaceChildren(...list.map(([color, name]) => {
      const swatch = element('i');
      swatch.style.background = color;
      return element('li', { title: name }, swatch, name);
    }));
  }

  describe() {
    const { sums, root, tree } = this.picture;
    const box = this.boxes.find((other) => other.node >= 0 && other.node === this.selected);
    let said = `${this.source.title()}: ${this.format(sums.total[root])}`;
    said += this.source.note();
    if (root) said += `, in ${tree.function(root).plain}`;
    if (this.state.get('direction') === 'outward') said += `, at most ${OUTWARD_LEVELS} levels`;
    if (depthOf(this.boxes) >= LEVELS_MAX) said += ', deeper calls are not drawn';
    if (this.search.is_on) said += `, ${percent(sums.total[0], this.all) || 'none'} of all: only stacks with “${briefName(this.search.text)}”`;
    const title = this.search.text || (root ? tree.function(root).name : '');
    if (this.said.title !== title) this.said.title = title;
    if (box) said = this.linesOf(box).join(' · ');
    setText(this.said, said);
  }

  /** The lines that describe a box. */
  linesOf(box) {
    const { tree, sums, whole } = this.picture;
    const format = (value) => this.format(value);
    return [...boxLines(tree, box, sums, whole, format),
      ...(this.source.linesOf && box.node >= 0 ? this.source.linesOf(tree, box, format) : [])];
  }

  boxOf(event) {
    const [x, y] = placeOf(event);
    return boxAt(this.boxes, x, y + this.top, this.picture);
  }

  listen() {
    this.scroll.addEventListener('scroll', () => {
      this.is_scrolled = true;
      this.paint();
    });
    this.canvas.addEventListener('pointermove', (event) => this.showTip(event));
    this.canvas.addEventListener('pointerleave', () => { this.tip.hidden = true; });
    this.canvas.addEventListener('click', (event) => {
      const box = this.boxOf(event);
      if (!box || box.node < 0) return;
      this.selected = box.node;
      if (box.node !== box.last) {
        foldedOf(this.picture.tree, box).forEach((node) => this.opened.add(node));
        this.draw();
        return;
      }
      this.state.set({ root: box.node === this.picture.root ? '' : String(box.node) });
    });
    this.canvas.addEventListener('keydown', (event) => this.key(event));
  }

  showTip(event) {
    const box = this.boxOf(event);
    this.tip.hidden = !box;
    if (!box) return;
    this.tip.replaceChildren(...this.linesOf(box).map((line, i) =>
      element(i ? 'div' : 'strong', {}, line)));
    const left = Math.min(event.clientX + 14, innerWidth - this.tip.offsetWidth - 8);
    const top = event.clientY + 18 + this.tip.offsetHeight > innerHeight
      ? event.clientY - this.tip.offsetHeight - 10 : event.clientY + 18;
    this.tip.style.left = `${Math.max(4, left)}px`;
    this.tip.style.top = `${top}px`;
  }

  /** Arrows go from box to box, Enter makes one fill the width, Escape goes back. */
  key(event) {
    const current = this.boxes.find((box) => box.node === this.selected) || this.boxes[0];
    if (!current || event.ctrlKey || event.altKey) return;
    const up = this.picture.is_icicle ? -1 : 1;
    const step = { ArrowUp: [0, up], ArrowDown: [0, -up], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    if (step[event.key]) {
      this.selected = (this.neighbour(current, ...step[event.key]) || current).node;
      this.draw();
    } else if (event.key === 'Enter') {
      this.state.set({ root: String(current.node) });
    } else if (event.key === 'Escape') {
      this.state.set({ root: '' });
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  neighbour(box, across, along) {
    const row = this.boxes.filter((other) => other.node >= 0 && other.depth === box.depth + along);
    const middle = box.x + box.width / 2;
    if (along) {
      return row.find((other) => other.x <= middle && middle < other.x + other.width) ||
        row.find((other) => other.x >= box.x && other.x < box.x + box.width);
    }
    return row[row.indexOf(box) + across];
  }
}
