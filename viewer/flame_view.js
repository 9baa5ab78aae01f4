// SPDX-License-Identifier: MIT
// The flame graph as a view: what it shows, the pointer, the keyboard.
import { OUTWARD_LEVELS, inwardTree, outwardTree } from './calls.js';
import { button, choice, element, textField } from './dom.js';
import { bytes, count, percent } from './format.js';
import { LEVELS_MAX, boxAt, boxLines, depthOf, drawBoxes, flameHeight, layOut } from './flame.js';
import { graphButtons } from './export.js';
import { measureOf, nestedText, valuesOf } from './measures.js';
import { CanvasSurface, palette } from './surface.js';

export class FlameView {
  constructor(heap, state) {
    Object.assign(this, { heap, state, trees: {}, boxes: [], selected: -1 });
    this.modules = this.rankModules();
    this.canvas = element('canvas', {
      class: 'flame', tabindex: 0, role: 'application', 'aria-label': 'Flame graph',
      'aria-describedby': 'flame-said',
    });
    this.said = element('p', { id: 'flame-said', class: 'said', role: 'status' });
    this.tip = element('div', { class: 'tip', hidden: true });
    this.scroll = element('div', { class: 'flame-scroll' }, this.canvas);
    this.bar = element('div', { class: 'bar' });
    this.node = element('section', { class: 'panel flame-panel', 'aria-label': 'Flame graph' },
      this.bar, this.scroll, this.said, this.tip);
    this.tools = graphButtons('flame-graph', this.canvas, (surface, colors) => {
      drawBoxes(surface, this.boxes, { ...this.picture, colors });
    });
    this.listen();
    this.makeBar();
  }

  /** Colours go to modules by the number of their functions, the program's own first. */
  rankModules() {
    const sums = new Map();
    for (const made of this.heap.calls.functions) {
      sums.set(made.module, (sums.get(made.module) || 0) + (made.own ? 1 : 0.001));
    }
    return new Map([...sums].sort((a, b) => b[1] - a[1]).map(([name], i) => [name, i]));
  }

  makeBar() {
    const { state } = this;
    this.out = button('Zoom out', () => state.set({ root: '' }));
    this.bar.replaceChildren(
      choice(state, 'direction', 'Order', [['inward', 'from main() inwards'],
        ['outward', 'from allocations outwards']], { root: '' }),
      choice(state, 'tree', 'Shape', [['flame', 'flame'], ['icicle', 'icicle']]),
      choice(state, 'scale', 'Scale', [['fill', 'fill the width'], ['peak', 'to the peak']]),
      choice(state, 'color', 'Colour', [['module', 'by module'], ['function', 'by function']]),
      textField(state, 'search', 'Search functions'), this.out, this.tools);
  }

  tree() {
    const direction = this.state.get('direction') === 'outward' ? 'outward' : 'inward';
    this.trees[direction] ||= (direction === 'outward' ? outwardTree : inwardTree)(
      this.heap.calls, this.heap.sites);
    return this.trees[direction];
  }

  /** The amount that takes the whole width. */
  whole(sums, root) {
    const { heap, state } = this;
    if (state.get('scale') !== 'peak' || root) return sums.total[root];
    const most = (state.get('unit') === 'bytes' ? heap.peak : heap.blocks)
      .reduce((a, b) => Math.max(a, b), 0);
    return Math.max(sums.total[0], most);
  }

  format(value) {
    return this.state.get('unit') === 'bytes' ? `${bytes(value)} (${count(value)} bytes)`
      : `${count(value)} ${['allocated', 'temporary'].includes(this.state.get('measure'))
        ? 'allocations' : 'blocks'}`;
  }

  draw() {
    const { state } = this;
    const tree = this.tree();
    const sums = tree.sum(valuesOf(this.heap, state));
    const root = Number(state.get('root')) < tree.parent.length ? Number(state.get('root')) : 0;
    const whole = this.whole(sums, root);
    const colors = palette();
    this.boxes = layOut(tree, sums.total, root, whole, this.canvas.clientWidth || 600);
    const height = flameHeight(this.boxes);
    this.canvas.style.height = `${height}px`;
    this.picture = {
      tree, sums, whole, root, colors, height, selected: this.selected,
      width: this.canvas.clientWidth, is_icicle: state.get('tree') === 'icicle',
      search: state.get('search').toLowerCase(), colorOf: this.colorBy(colors),
    };
    drawBoxes(new CanvasSurface(this.canvas, colors), this.boxes, this.picture);
    if (!this.picture.is_icicle && this.drawn !== height) this.scroll.scrollTop = height;
    this.drawn = height;
    this.out.disabled = !root;
    this.describe();
  }

  colorBy(colors) {
    if (this.state.get('color') === 'function') {
      return (box) => colors.series[this.picture.tree.label[box.last] % colors.series.length];
    }
    return (box, made) => {
      const rank = this.modules.get(made.module);
      return rank < colors.series.length ? colors.series[rank] : colors.other;
    };
  }

  /** The sum of all that the search finds, each call once. */
  foundSum() {
    const { tree, sums, search } = this.picture;
    const has = new Uint8Array(tree.parent.length);
    let sum = 0;
    for (let node = 1; node < has.length; node++) {
      const above = has[tree.parent[node]];
      has[node] = above || tree.function(node).name.toLowerCase().includes(search) ? 1 : 0;
      if (has[node] && !above) sum += sums.total[node];
    }
    return sum;
  }

  describe() {
    const { sums, whole, search, root, tree } = this.picture;
    const box = this.boxes.find((other) => other.node >= 0 && other.node === this.selected);
    let said = `${measureOf(this.state).title}: ${this.format(sums.total[root])}`;
    said += nestedText(this.heap, this.state);
    if (root) said += `, in ${tree.function(root).short}`;
    if (this.state.get('direction') === 'outward') said += `, at most ${OUTWARD_LEVELS} levels`;
    if (depthOf(this.boxes) >= LEVELS_MAX) said += ', deeper calls are not drawn';
    if (search) {
      const sum = this.foundSum();
      said += `. Found: ${this.format(sum)} (${percent(sum, sums.total[0])})`;
    }
    if (box) said = boxLines(tree, box, sums, whole, (value) => this.format(value)).join(' · ');
    this.said.textContent = said;
  }

  boxOf(event) {
    return boxAt(this.boxes, event.offsetX, event.offsetY, {
      ...this.picture, width: this.canvas.clientWidth, height: this.canvas.clientHeight,
    });
  }

  listen() {
    this.canvas.addEventListener('pointermove', (event) => this.showTip(event));
    this.canvas.addEventListener('pointerleave', () => { this.tip.hidden = true; });
    this.canvas.addEventListener('click', (event) => {
      const box = this.boxOf(event);
      if (!box || box.node < 0) return;
      this.selected = box.node;
      this.state.set({ root: box.node === this.picture.root ? '' : String(box.node) });
    });
    this.canvas.addEventListener('keydown', (event) => this.key(event));
  }

  showTip(event) {
    const box = this.boxOf(event);
    this.tip.hidden = !box;
    if (!box) return;
    const { tree, sums, whole } = this.picture;
    this.tip.replaceChildren(...boxLines(tree, box, sums, whole, (value) => this.format(value))
      .map((line, i) => element(i ? 'div' : 'strong', {}, line)));
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
