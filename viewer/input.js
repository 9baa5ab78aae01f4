// SPDX-License-Identifier: MIT
// Keys, and the pointer on the timeline.
import { button, element } from './dom.js';
import { placeOf, sizeOf } from './surface.js';

const SHORTCUTS = [['← →', 'one step'], ['Shift ← →', 'the range'], ['Page Up, Page Down', 'ten steps'],
  ['Home, End', 'beginning and end'], ['p', 'the peak'], ['[ ]', 'range begins, ends here'], ['Space', 'play'], ['/', 'search'],
  ['z', 'zoom into the range'], ['Esc', 'whole trace; once more: all functions'], ['t', 'the timeline as a table'],
  ['1 … 9, 0', 'views'], [', .', 'one call, in an exact page'], ['?', 'this help']];

const STEPS = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };

export class Keys {
  /** @param page  whose cursor, range and views they move */
  constructor(page) {
    this.page = page;
    this.help = this.makeHelp();
  }

  makeHelp() {
    const help = element('dialog', { 'aria-label': 'Keys' }, element('h2', {}, 'Keys'),
      element('dl', { class: 'facts' }, ...SHORTCUTS.flatMap(([key, text]) =>
        [element('dt', {}, key), element('dd', {}, text)])),
      element('p', {}, 'Dragging on the timeline with Shift chooses a range.'), button('Close', () => help.close()));
    return help;
  }

  listen(signal) {
    ['keydown', 'pointerdown'].forEach((kind) => addEventListener(kind, (event) => this.closeMenus(event), { signal }));
    addEventListener('keydown', (event) => this.press(event), { signal });
  }

  /** Escape and a click beside a menu close it. */
  closeMenus(event) {
    document.querySelectorAll('.menu[open]').forEach((menu) => {
      if (event.key ? event.key !== 'Escape' : menu.contains(event.target)) return;
      menu.open = false;
      if (event.key) event.stopImmediatePropagation();
    });
  }

  /** The action of each key, except for stepping. */
  acts(at) {
    const { page } = this;
    const { state, heap } = page;
    const values = heap[page.timeline.axis];
    return {
      Home: () => state.set({ at: 0 }), End: () => state.set({ at: heap.last }),
      p: () => page.goToPeak(), ',': () => page.step(-1), '.': () => page.step(1),
'?': () => this.help.showModal(), ' ': () => page.play(), '/': () => page.searchField.focus(), t: () => page.ticks.toggle(),
      '[': () => state.set({ from: Math.min(at, state.get('to')) }),
      ']': () => state.set({ to: Math.max(at, state.get('from')) }),
      z: () => state.set({ zoom: `${values[state.get('from')]}-${values[state.get('to')]}` }),
      Escape: () => state.set(state.get('from') === 0 && state.get('to') === heap.last && !state.get('zoom')
        ? { search: '', root: '' } : { from: 0, to: heap.last, zoom: '' }),
    };
  }

  press(event) {
    if (event.target.closest('input, select, textarea, dialog') || (event.key === ' ' &&
        event.target.closest('button, summary')) || event.ctrlKey || event.altKey ||
        event.metaKey) return;
    const { state, heap, views } = this.page;
    const at = state.get('at');
    const act = this.acts(at)[event.key];
    const view = /^\d$/.test(event.key) && views[(Number(event.key) + 9) % 10];
    if (STEPS[event.key]) {
      const tick = Math.max(0, Math.min(heap.last, at + STEPS[event.key]));
      const range = tick < state.get('from') ? { from: tick } : { to: tick };
      state.set({ at: tick, ...(event.shiftKey ? range : {}) });
    } else if (act) act();
    else if (view) state.set({ view: view.key });
    else return;
    event.preventDefault();
  }
}

/** Dragging moves the cursor, or with Shift chooses a range; the wheel zooms. */
export class TimelinePointer {
  constructor({ timeline, heap, state, exact, ending }) {
    Object.assign(this, { timeline, heap, state, exact });
    const { canvas } = timeline;
    canvas.addEventListener('pointerdown', (event) => this.drag(event));
    canvas.addEventListener('wheel', (event) => this.zoom(event), { passive: false });
    canvas.addEventListener('pointermove', (event) => {
      const [x, y] = placeOf(event);
      timeline.preview(x, event);
      canvas.style.cursor = timeline.isStrip(y) ? 'ew-resize' : '';
    });
    canvas.addEventListener('pointerleave', () => timeline.hidePreview());
    addEventListener('resize', () => timeline.hidePreview(), { signal: ending.signal });
  }

  /** Moves an end of the range, or chooses one from the place on where dragging began. */
  rangeOf(handle, start, tick) {
    const { state } = this;
    if (!handle) return { from: Math.min(start, tick), to: Math.max(start, tick) };
    return handle === 'from' ? { from: Math.min(tick, state.get('to')) } : { to: Math.max(tick, state.get('from')) };
  }

  drag(event) {
    const { timeline, exact } = this;
    const { canvas } = timeline;
    const [x, y] = placeOf(event);
    const start = timeline.tickAt(x);
    const handle = timeline.handleAt(x, y);
    const is_range = event.shiftKey || timeline.isStrip(y);
    const move = (moved) => {
      const [to] = placeOf(moved);
      const tick = timeline.tickAt(to);
      if (is_range) {
        if (moved === event && !event.shiftKey) return;
        this.state.set({ ...this.rangeOf(handle, start, tick), ...(event.shiftKey ? { at: tick } : {}) });
        return;
      }
      if (exact?.is_ready && timeline.isCoarse(to)) {
        exact.go('at', { [timeline.axis]: timeline.valueAt(to) });
        return;
      }
      this.state.set({ at: tick });
    };
    canvas.setPointerCapture(event.pointerId);
    canvas.addEventListener('pointermove', move);
    canvas.addEventListener('pointerup', () => canvas.removeEventListener('pointermove', move),
      { once: true });
    canvas.focus();
    move(event);
    event.preventDefault();
  }

  zoom(event) {
    // With the whole axis on the screen, scrolling down is the page's.
    if (event.deltaY > 0 && !this.state.get('zoom')) return;
    event.preventDefault();
    const { timeline, heap } = this;
    const scale = timeline.scale(sizeOf(timeline.canvas).width);
    const middle = scale.value(placeOf(event)[0]);
    const factor = event.deltaY < 0 ? 0.8 : 1.25;
    const values = heap[timeline.axis];
    const from = Math.max(values[0], middle - (middle - scale.from) * factor);
    const to = Math.min(values[heap.last], middle + (scale.to - middle) * factor);
    const is_whole = from <= values[0] && to >= values[heap.last];
    this.state.set({ zoom: is_whole || to - from < 2 ? '' : `${Math.floor(from)}-${Math.ceil(to)}` });
  }
}
