// SPDX-License-Identifier: MIT
// The page: its parts, and their updates when the cursor moves.
import { LifetimesView, movesView, retainedView } from './activity.js';
import { aboutView, metadataOf, notesOf } from './about.js';
import { BlocksView } from './blocks_view.js';
import { Calls } from './calls.js';
import { Book, COMPARISON, elementOf } from './book.js';
import { ClassTable } from './class_table.js';
import { CommandLine, Commands } from './commands.js';
import { ComparePage } from './compare.js';
import { readParts } from './data.js';
import { button, choice, copyText, doubts, element, menu, segments, setText } from './dom.js';
import { EventsView } from './events_view.js';
import { Exact } from './exact.js';
import { errorsView, leaksView } from './findings.js';
import { FlameView } from './flame_view.js';
import { Figures } from './figures.js';
import { baseName, briefName, count, duration, things } from './format.js';
import { Heap } from './heap.js';
import { Keys, TimelinePointer } from './input.js';
import { KnownBlocks } from './known_blocks.js';
import { MemoryView } from './memory_view.js';
import { PlaceSearch } from './place_search.js';
import { HeapSource, MEASURES, measureName, measureOf, measuresOf } from './measures.js';
import { RangeView } from './range.js';
import { runtimesOf } from './runtimes.js';
import { SitesView } from './sites_view.js';
import { Scope } from './scope.js';
import { Search } from './search.js';
import { Pieces } from './stacks.js';
import { State } from './state.js';
import { inkOn } from './surface.js';
import { followOrders } from './table.js';
import { FunctionPanel } from './function_panel.js';
import { FunctionColors } from './top_functions.js';
import { Timeline } from './timeline.js';
import { TimelineTable } from './timeline_table.js';
import { Verdicts, namedFunctions } from './verdicts.js';

/** The measures that are buttons. */
const SEGMENTS = [['live', 'At the cursor'], ['grown', 'Grew in the range'], ['allocated', 'Allocated'],
  ['temporary', 'Temporary'], ['lost', 'Lost']];

/** Milliseconds in which the cursor runs through a range. */
const PLAY_TIME = 10000;

/** The views whose commands find the same with --include; and those that show the same whatever is
 * searched. */
const SEARCHED = ['heap', 'leaks', 'errors', 'moves', 'lifetimes', 'range'];
const UNSEARCHED = ['lifetimes', 'retained', 'memory', 'calls', 'about'];
/** Those whose sums are of all functions, whatever is searched. */
const SUMMED = ['leaks', 'moves'];

class Page {
  /** @param book  the traces of the page, of which this one is shown */
  constructor(parts, book) {
    Object.assign(this, { parts, book, inkOn, ending: new AbortController() });
    this.calls = new Calls(parts.calls);
    this.heap = new Heap(parts.heap, this.calls);
    this.state = new State(this.heap, this.ending.signal);
    this.scope = new Scope(parts.facts);
    this.search = new Search(this.calls, this.state);
    this.functions = new FunctionColors(this.heap, namedFunctions(parts.summary, this.calls));
    this.commands = new Commands(parts.facts);
    this.makeExact();
    this.pieces = new Pieces(this.calls, this.heap, this.state, this.scope, this);
    this.notes = notesOf(parts);
    this.timeline = new Timeline(this.heap, this.state, this.notes, this.scope, this);
    this.known = new KnownBlocks(parts, this.heap);
    this.verdicts = new Verdicts(this);
    this.ticks = new TimelineTable(this.heap, this.state, this.timeline, this.commands);
    this.figures = new Figures(this.heap, this.state, this.scope, this.timeline);
    this.keys = new Keys(this);
    this.places = new PlaceSearch(this);
    this.searchField = this.places.field;
    this.flame = new FlameView(this.makeSource(), this.state);
    this.sites = new SitesView(this.heap, this.state, this.pieces, this.makeClasses());
    this.command = new CommandLine();
    this.panel = new FunctionPanel(this);
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
    this.lifetimes = () => new LifetimesView(parts.lifetimes, this.heap, this.state, this.commands);
    this.views = [
      ['heap', 'Heap', () => this.makeHeap(), null, null, true],
      ['leaks', 'Leaks', () => leaksView(parts.leaks, pieces), ['leaks', ...at], 'end', true],
      ['errors', 'Errors', () => errorsView(parts.errors, pieces), ['errors'], 'trace', true],
      ['moves', 'Moves', () => movesView(parts.moves, pieces), ['moves'], 'trace', true],
      ['lifetimes', 'Lifetimes and sizes', this.lifetimes, ['lifetimes'], 'trace', true],
      ...(parts.retained ? [['retained', 'Held memory',
        () => made(retainedView(parts.retained, parts.roots, pieces,
          this.commands.line('retained', ...at))), ['roots', ...at], 'end',
        false]] : []),
      ['range', 'Range', () => new RangeView(this), null, null, true],
      ...(this.exact ? this.exactViews() : [['memory', 'Memory', () => new BlocksView(this, at), null, 'end', false]]),
      ['about', 'Trace', () => made(aboutView(parts, pieces, this.notes)), ['info'], 'trace', false],
    ].map(([key, title, make, words, reach, is_filtered]) =>
      ({ key, title, make, words, reach, is_filtered }));
  }

  /** The table of classes, if a snapshot has any. */
  makeClasses() {
    const { classes, facts } = this.parts;
    const words = ['retained', '--by', 'class', '--limit', '200', ...(facts.to ? ['--at', facts.to] : [])];
    return classes ? new ClassTable(classes, this.commands.line(...words), this.scope.is_filtered) : null;
  }

  /** The engine, if the page has its trace. */
  makeExact() {
    if (!document.getElementById('engine')) return;
    this.exactNote = element('span', { class: 'exact-note', role: 'status', 'aria-label': 'Engine' });
    this.exact = new Exact(this.heap, this.state, {
      stacks: this.parts.stacks, is_filtered: this.scope.is_filtered,
      trace: elementOf('trace', this.parts.facts.number), is_kept: this.book.is_several,
      tell: (text) => {
        this.exactNote.textContent = this.exactNote.title = text;
        this.state.tell();
      },
    });
  }

  exactViews() {
    const { pieces, exact } = this;
    const memory = () => (this.memory ||= new MemoryView(exact, pieces, this.parts.leaks));
    const events = () => (this.events ||= new EventsView(exact, pieces));
    return [['memory', 'Memory', memory, () => memory().words(), null, false],
      ['calls', 'Calls', events, () => events().words(), null, false]];
  }

  makeHeap() {
    return {
      node: element('div', {}, this.flame.node, this.sites.node),
      draw: () => {
        this.flame.draw();
        this.sites.draw();
      },
    };
  }

  build() {
    const { state, parts } = this;
    const command = metadataOf(parts.info, 'command');
    const named = (text) => parts.facts.title || `Heap of ${text}`;
    const title = named(command || parts.facts.path);
    document.title = title;
    // Words that are paths are long, and mostly known by their last parts.
    const brief = named((command || parts.facts.path).split(' ').map((word) => (word.startsWith('/') ? baseName(word) : word)).join(' '));
    this.tabs = element('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Views' });
    this.note = element('p', { class: 'scope' });
    this.place = element('div', { class: 'view', role: 'tabpanel' });
    this.only = element('b');
    this.onlyChip = element('span', { class: 'only', hidden: true }, 'Only: ', this.only,
      button('✕', () => state.set({ search: '', root: '' }), { 'aria-label': 'Show all functions', title: 'Esc' }));
    const link = button('Copy link', () => {
      state.write();
      copyText(location.href, link);
    }, { title: 'The link shows the same view' });
    const facts = [this.scope.has_times ? duration(Number(parts.info.last_wall_time_ns)) : '',
      `${things(Number(parts.info.events), 'event')}${this.scope.is_part ? ' in the whole trace' : ''}`,
      parts.info.trace?.start_time].filter((text) => text).join(' · ');
    document.getElementById('page').replaceChildren(
      element('header', {}, element('h1', { title }, brief), this.book.chooser(parts.facts.paths) || '', element('p', { class: 'dim', title: facts }, this.exactNote || '', facts),
      element('span', { class: 'tools' }, this.places.node, link, button('Keys', () => this.keys.help.showModal(),
        { 'aria-label': 'Help on keys' }))),
      doubts(parts.heap) || '', this.makeNotes(), this.verdicts.node,
      element('section', { class: 'panel', 'aria-label': 'Timeline' }, this.makeTimelineBar(),
        this.timeline.node, this.figures.node), this.ticks.node,
      element('div', { class: 'tab-row' }, this.tabs, this.onlyChip), this.note, this.place,
      this.command.node, this.panel.node, this.keys.help);
  }

  /** The sentences that hold for all that the page shows. */
  makeNotes() {
    const { heap, parts } = this;
    const lines = this.scope.ofPage();
    lines.push(...runtimesOf(this.calls, heap));
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
    this.heading = element('h2');
    this.playButton = button('▶', () => this.play(), { 'aria-label': 'Play', title: 'Space' });
    return element('div', { class: 'bar one-line' }, this.heading,
      element('span', { class: 'dim hint' }, 'drag to move, at the lower edge for a range · wheel to zoom · click a name to follow it'),
      this.playButton, button('Peak', () => this.goToPeak()),
      ...(this.exact ? [button('‹', () => this.step(-1), { 'aria-label': 'One call back' }),
        button('›', () => this.step(1), { 'aria-label': 'One call forward' })] : []),
      button('Whole trace', () => state.set({ from: 0, to: this.heap.last, zoom: '' })),
      menu('Timeline', choice(state, 'plot', 'Show', [['bytes-sites', 'live bytes by function'],
        ['bytes', 'live bytes'],
        ...(this.heap.memory.time.length ? [['memory', 'resident, mapped memory']] : []), ['blocks-sites', 'live blocks by function'], ['blocks', 'live blocks']]),
      ...(this.scope.has_times ? [segments(state, 'axis', 'Over', [['time', 'over time'], ['events', 'over events']],
        { zoom: '' }, () => (this.timeline.axis === 'time' ? 'time' : 'events'))] : []),
      this.ticks.button, this.timeline.tools));
  }

  makeSource() {
    const { state } = this;
    const source = new HeapSource(this.heap, state, this.functions, this.search);
    const few = SEGMENTS.filter(([name]) => !MEASURES[name].is_there || MEASURES[name].is_there(this.heap));
    source.controls = () => [segments(state, 'measure', 'Measure', few, {}, () => measureName(state)),
      choice(state, 'measure', '', [['', 'more…'], ...measuresOf(this.heap)
        .filter(([name]) => !few.some(([other]) => other === name)).map(([name, { title }]) => [name, title])]),
      segments(state, 'unit', 'Weigh by', [['bytes', 'bytes'], ['blocks', 'number']])];
    return source;
  }

  /** Shows the biography of an address: it stands below other panels, so scrolls to it once these and itself are drawn. */
  async goToAddress(address) {
    this.state.set({ view: 'memory', address, search: '' });
    await this.exact?.done;
    await new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))); });
    await Promise.all([this.memory?.run, this.memory?.telling]);
    if (this.state.get('address') !== address || this.view().key !== 'memory') return;
    document.querySelector('.view [aria-label^=Biography]').scrollIntoView({ block: 'start' });
  }

  goTo(position) {
    this.state.set({ search: '' });
    if (this.exact) this.exact.go('at', { position });
    else this.state.set({ at: this.heap.tickAt(position) });
  }

  /** Goes to an event or a time: in a page that is not exact, to the last tick before. */
  goToMoment(moment) {
    this.state.set({ search: '' });
    if (this.exact) {
      this.exact.go('at', moment.event < 0 ? { position: '0:0' } : moment);
      return;
    }
    this.state.set({ at: this.tickOfMoment(moment) });
  }

  /** The tick at an event or a time, or the last one before. */
  tickOfMoment(moment) {
    const [[axis, value]] = Object.entries(moment);
    return Math.max(0, this.heap[axis].findLastIndex((known) => known <= value));
  }

  /** Lets the cursor run through the range, or stops it. */
  play() {
    const { heap, state } = this;
    this.playing = this.playing ? null : {};
    const turn = this.playing;
    setText(this.playButton, turn ? '❚❚' : '▶');
    if (!turn) return;
    const values = heap[this.timeline.axis];
    const [from, to] = ['from', 'to'].map((name) => values[state.get(name)]);
    let at = values[state.get('at')];
    if (at < from || at >= to) at = from;
    let before = null;
    const step = (now) => {
      if (this.playing !== turn || this.ending.signal.aborted) return;
      at = Math.min(to, at + (to - from) * (before === null ? 0 : now - before) / PLAY_TIME);
      before = now;
      let tick = state.get('from');
      while (tick < state.get('to') && values[tick + 1] <= at) tick++;
      if (tick !== state.get('at')) state.set({ at: tick });
      if (at < to) requestAnimationFrame(step);
      else this.play();
    };
    requestAnimationFrame(step);
  }

  showTabs() {
    const current = this.view().key;
    if (this.current === current) return;
    this.current = current;
    this.tabs.replaceChildren(...this.views.map((view, i) => element('button', {
      type: 'button', role: 'tab', 'aria-selected': view.key === current, title: `Key ${(i + 1) % 10}`,
      on: { click: () => this.state.set({ view: view.key }) },
    }, view.title, this.badge(view.key))));
  }

  badge(key) {
    const { errors, leaks } = this.parts;
    const number = key === 'errors' ? Number(errors.total_findings) + (errors.fatal_signal ? 1 : 0)
      : key === 'leaks' ? leaks.groups.filter((group) => group.class === 'definitely_lost').length : 0;
    return number ? element('span', { class: 'badge' }, count(number)) : null;
  }

  view() {
    return this.views.find((view) => view.key === this.state.get('view')) || this.views[0];
  }

  draw() {
    this.timeline.draw();
    this.drawViews();
  }

  /** Draws the cursor, and the rest when that is on the screen. */
  drawCursorFirst() {
    this.timeline.draw();
    this.rest ||= setTimeout(() => {
      this.rest = 0;
      if (!this.ending.signal.aborted) this.drawViews();
    });
  }

  drawViews() {
    const view = this.view();
    view.made ||= view.make();
    this.showTabs();
    this.verdicts.draw();
    this.figures.draw();
    this.places.draw();
    setText(this.heading, `Live ${this.timeline.unit() === 'blocks' ? 'blocks' : 'memory'}` +
      `${this.state.get('plot').endsWith('sites') ? ' by function' : ''}` +
      `${this.search.is_on ? `: “${briefName(this.search.text)}”` : ''}`);
    if (this.heading.title !== this.search.text) this.heading.title = this.search.text;
    if (this.onlyChip.hidden === this.search.is_on) this.onlyChip.hidden = !this.search.is_on;
    if (this.search.is_on) setText(this.only, briefName(this.search.text));
    if (this.place.firstChild !== view.made.node) this.place.replaceChildren(view.made.node);
    if (this.place.ariaLabel !== view.title) this.place.ariaLabel = view.title;
    const { address } = this.places;
    setText(this.note, [...this.scope.ofView(view),
      this.search.is_on && UNSEARCHED.includes(view.key) ? `The search does not filter this view${
        SEARCHED.includes(view.key) ? ', but the command below' : ''}.` : '',
      this.search.is_on && SUMMED.includes(view.key) ? 'The search filters the lists; sums are of all functions.' : '',
      address ? this.known.sentence(address) : '']
      .filter((text) => text).join(' '));
    this.ticks.draw();
    view.made.draw?.();
    followOrders(this.state);
    this.panel.draw();
    const words = typeof view.words === 'function' ? view.words() : view.words;
    const line = address ? ['history', '--address', address] : words || view.made.words?.() ||
      measureOf(this.state).words(this.heap, this.state, this.scope);
    const only = this.search.is_on && SEARCHED.includes(view.key) ? ['--include', this.search.text] : [];
    this.command.set(this.commands.line(...line, ...only));
  }

  listen() {
    const { signal } = this.ending;
    this.state.listen(() => this.drawCursorFirst());
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

  /** The position of the peak is known; of filtered blocks only its tick. */
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
