// SPDX-License-Identifier: MIT
// The page: its parts, and what follows when the cursor moves.
import { LifetimesView, movesView, retainedView } from './activity.js';
import { aboutView, metadataOf, notesOf } from './about.js';
import { Calls } from './calls.js';
import { Book, COMPARISON, elementOf } from './book.js';
import { ClassTable } from './class_table.js';
import { CommandLine, Commands } from './commands.js';
import { ComparePage } from './compare.js';
import { readParts } from './data.js';
import { button, choice, doubts, element, setText } from './dom.js';
import { EventsView } from './events_view.js';
import { Exact } from './exact.js';
import { errorsView, leaksView } from './findings.js';
import { FlameView } from './flame_view.js';
import { Figures } from './figures.js';
import { count, duration, things } from './format.js';
import { Heap } from './heap.js';
import { Keys, TimelinePointer } from './input.js';
import { MemoryView } from './memory_view.js';
import { HeapSource, measureOf, measuresOf } from './measures.js';
import { RangeView } from './range.js';
import { SitesView } from './sites_view.js';
import { Scope } from './scope.js';
import { Pieces } from './stacks.js';
import { State } from './state.js';
import { Timeline } from './timeline.js';
import { TimelineTable } from './timeline_table.js';

class Page {
  /** @param book  the traces of the page, of which this one is shown */
  constructor(parts, book) {
    Object.assign(this, { parts, book, ending: new AbortController() });
    this.calls = new Calls(parts.calls);
    this.heap = new Heap(parts.heap, this.calls);
    this.state = new State(this.heap, this.ending.signal);
    this.scope = new Scope(parts.facts);
    this.commands = new Commands(parts.facts);
    this.makeExact();
    this.pieces = new Pieces(this.calls, this.heap, this.state, this.scope, this.exact);
    this.notes = notesOf(parts);
    this.timeline = new Timeline(this.heap, this.state, this.notes, this.scope);
    this.ticks = new TimelineTable(this.heap, this.state, this.timeline, this.commands);
    this.figures = new Figures(this.heap, this.state, this.scope);
    this.keys = new Keys(this);
    this.flame = new FlameView(new HeapSource(this.heap, this.state), this.state);
    this.sites = new SitesView(this.heap, this.state, this.pieces, this.makeClasses());
    this.command = new CommandLine();
    this.makeViews();
    this.build();
    this.listen();
    this.draw();
  }

  makeViews() {
    const { parts, pieces } = this;
    const end = parts.facts.to;
    const at = end ? ['--at', end] : [];
    const made = (node) => ({ node });
    this.lifetimes = () => new LifetimesView(parts.lifetimes, this.heap, this.state);
    this.views = [
      ['heap', 'Heap', () => this.makeHeap(), null, null, true],
      ['leaks', 'Leaks', () => made(leaksView(parts.leaks, pieces)), ['leaks', ...at], 'end', true],
      ['errors', 'Errors', () => made(errorsView(parts.errors, pieces)), ['errors'], 'trace', true],
      ['moves', 'Moves', () => made(movesView(parts.moves, pieces)), ['moves'], 'trace', true],
      ['lifetimes', 'Lifetimes and sizes', this.lifetimes, ['lifetimes'], 'trace', true],
      ...(parts.retained ? [['retained', 'Held memory',
        () => made(retainedView(parts.retained, parts.roots, pieces,
          this.commands.line('retained', ...at))), ['roots', ...at], 'end',
        false]] : []),
      ['range', 'Range', () => new RangeView(this), null, null, true],
      ...(this.exact ? this.exactViews() : []),
      ['about', 'Trace', () => made(aboutView(parts, pieces, this.notes)), ['info'], 'trace', false],
    ].map(([key, title, make, words, reach, is_filtered]) =>
      ({ key, title, make, words, reach, is_filtered }));
  }

  /** The table of classes, if a snapshot tells any. */
  makeClasses() {
    const { classes, facts } = this.parts;
    const words = ['retained', '--by', 'class', '--limit', '200', ...(facts.to ? ['--at', facts.to] : [])];
    return classes ? new ClassTable(classes, this.commands.line(...words), this.scope.is_filtered) : null;
  }

  /** The engine, if the page has its trace. */
  makeExact() {
    if (!document.getElementById('engine')) return;
    this.exactNote = element('p', { class: 'exact-note', role: 'status', 'aria-label': 'Engine' });
    this.exact = new Exact(this.heap, this.state, {
      stacks: this.parts.stacks, is_filtered: this.scope.is_filtered,
      trace: elementOf('trace', this.parts.facts.number), is_kept: this.book.is_several,
      tell: (text) => {
        this.exactNote.textContent = text;
        this.state.tell();
      },
    });
  }

  exactViews() {
    const { pieces, exact } = this;
    const memory = () => (this.memory ||= new MemoryView(exact, pieces));
    const events = () => (this.events ||= new EventsView(exact, pieces));
    return [['memory', 'Memory', memory, () => memory().words(), null, false],
      ['calls', 'Calls', events, () => events().words(), null, false]];
  }

  makeHeap() {
    return {
      node: element('div', { class: 'halves' }, this.flame.node, this.sites.node),
      draw: () => {
        this.flame.draw();
        this.sites.draw();
      },
    };
  }

  build() {
    const { state, parts } = this;
    const command = metadataOf(parts.info, 'command');
    const title = parts.facts.title || `Heap of ${command || parts.facts.path}`;
    document.title = title;
    this.tabs = element('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Views' });
    this.note = element('p', { class: 'scope' });
    this.place = element('div', { class: 'view', role: 'tabpanel' });
    this.controls = element('div', { class: 'bar' },
      choice(state, 'measure', 'Measure',
        measuresOf(this.heap).map(([name, { title: text }]) => [name, text])),
      choice(state, 'unit', 'Weigh by', [['bytes', 'bytes'], ['blocks', 'number']]));
    const link = button('Copy link', () => {
      state.write();
      navigator.clipboard?.writeText(location.href);
    }, { title: 'The address of this page has what is shown' });
    document.getElementById('page').replaceChildren(
      element('header', {}, element('h1', {}, title), this.book.chooser(parts.facts.paths) || '', element('p', { class: 'dim' },
        [parts.info.trace?.start_time, this.scope.has_times
          ? duration(Number(parts.info.last_wall_time_ns)) : '',
        `${things(Number(parts.info.events), 'event')}${this.scope.is_part ? ' in the whole trace' : ''}`]
          .filter((text) => text).join(' · ')),
      element('span', { class: 'tools' }, link, button('Keys', () => this.keys.help.showModal(),
        { 'aria-label': 'Help on keys' }))),
      doubts(parts.heap) || '', this.makeNotes(), this.exactNote || '', this.makeTimelineBar(), this.timeline.node, this.ticks.node,
      this.figures.node,
      element('div', { class: 'tab-row' }, this.tabs, this.controls), this.note, this.place,
      this.command.node, this.keys.help);
  }

  /** The sentences that hold for all that the page shows. */
  makeNotes() {
    const { heap, parts } = this;
    const lines = this.scope.ofPage();
    const unknown = Number(parts.leaks.unknown_blocks);
    if (unknown) {
      lines.push(`${count(unknown)} of the blocks that are live at the end are unknown: they may ` +
        'have been released while recording was off, and count as live.');
    }
    if (heap.all.bytes.some((sum) => sum < 0) || heap.peak.some((sum) => sum >= 2 ** 63)) {
      lines.push('Sums of 2^63 bytes and more are not exact.');
    }
    return lines.length ? element('p', { class: 'scope' }, lines.join(' ')) : '';
  }

  makeTimelineBar() {
    const { state } = this;
    return element('div', { class: 'bar' },
      choice(state, 'plot', 'Show', [['bytes', 'live bytes'],
        ['bytes-sites', 'live bytes by function'], ['blocks', 'live blocks'],
        ['blocks-sites', 'live blocks by function']]),
      choice(state, 'axis', 'Over', [['time', 'time'], ['events', 'events']], { zoom: '' }),
      button('Peak', () => this.goToPeak()),
      ...(this.exact ? [button('‹', () => this.step(-1), { 'aria-label': 'One call back' }),
        button('›', () => this.step(1), { 'aria-label': 'One call forward' })] : []),
      button('Whole trace', () => state.set({ from: 0, to: this.heap.last, zoom: '' })),
      this.ticks.button, this.timeline.tools);
  }

  showTabs() {
    const current = this.view().key;
    if (this.current === current) return;
    this.current = current;
    this.tabs.replaceChildren(...this.views.map((view, i) => element('button', {
      type: 'button', role: 'tab', 'aria-selected': view.key === current, title: `Key ${i + 1}`,
      on: { click: () => this.state.set({ view: view.key }) },
    }, view.title, this.badge(view.key))));
  }

  badge(key) {
    const { errors, leaks } = this.parts;
    const number = key === 'errors' ? Number(errors.total_findings) + (errors.fatal_signal ? 1 : 0)
      : key === 'leaks' ? Number(leaks.total_groups) : 0;
    return number ? element('span', { class: 'badge' }, count(number)) : null;
  }

  view() {
    return this.views.find((view) => view.key === this.state.get('view')) || this.views[0];
  }

  draw() {
    const view = this.view();
    view.made ||= view.make();
    this.showTabs();
    this.controls.hidden = view.key !== 'heap';
    this.figures.draw();
    if (this.place.firstChild !== view.made.node) this.place.replaceChildren(view.made.node);
    if (this.place.ariaLabel !== view.title) this.place.ariaLabel = view.title;
    setText(this.note, this.scope.ofView(view).join(' '));
    this.timeline.draw();
    this.ticks.draw();
    view.made.draw?.();
    const words = typeof view.words === 'function' ? view.words() : view.words;
    this.command.set(this.commands.line(...(words || view.made.words?.() ||
      measureOf(this.state).words(this.heap, this.state, this.scope))));
  }

  listen() {
    const { signal } = this.ending;
    this.state.listen(() => this.draw());
    addEventListener('hashchange', () => this.exact?.follow(), { signal });
    this.observer = new ResizeObserver(() => this.state.tell());
    this.observer.observe(this.place);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.state.tell(),
      { signal });
    this.keys.listen(signal);
    this.pointer = new TimelinePointer(this);
  }

  /** Makes room for the page of another trace. */
  close() {
    this.ending.abort();
    this.observer.disconnect();
    this.exact?.close();
  }

  /** One call back or forward. */
  step(step) {
    if (this.exact?.is_ready) this.exact.go('at', { step });
  }

  /** The position of the peak is known; that of filtered blocks by its tick only. */
  goToPeak() {
    const { position } = this.parts.heap.peak;
    if (this.exact?.is_ready && !this.scope.is_filtered && this.scope.has(position)) {
      this.exact.go('at', { position });
    } else this.state.set({ at: this.heap.peakTick() });
  }
}

new Book(async (key) => {
  const is_comparison = key === COMPARISON;
  const parts = await readParts(is_comparison ? COMPARISON : elementOf('data', Number(key)));
  return (book) => {
    window.heapPage = is_comparison ? new ComparePage(parts, book) : new Page(parts, book);
    return window.heapPage;
  };
}).follow();
