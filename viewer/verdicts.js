// SPDX-License-Identifier: MIT
// The verdicts: the findings of `summary`, as cards that name their owners, and lead there.
import { button, element } from './dom.js';
import { START, baseName, bytes, count, duration, moment, briefName, percent, short, things } from './format.js';
import { SOON, SOON_TEXT } from './measures.js';
import { palette } from './surface.js';

const CURVE = 60;
/** A leak is steady if it has so many blocks, and each of so many parts of its time adds so much. */
const STEADY = { blocks: 8, parts: 4, share: 0.08 };

/** The number of an owner's function; -1 if no call site has it. */
function functionOf(calls, owner) {
  return owner ? calls.functions.findIndex(({ name, module }) => module === (owner.module || '') &&
    (name === owner.function || (!owner.function && name.endsWith(`+${owner.offset}`)))) : -1;
}

/** The functions that the verdicts name: of the peak, of leaks, of temporary blocks, of moves. */
export function namedFunctions(summary, calls) {
  return ['peak', 'leaks', 'temporary', 'moves'].map((name) => functionOf(calls, summary[name].owner));
}

/** Points of a curve in a box. */
export function curvePoints(values, width, height) {
  const most = values.reduce((a, b) => Math.max(a, b), 0) || 1;
  return Array.from(values, (value, i) => `${(i / Math.max(1, values.length - 1) * width).toFixed(1)},` +
    `${(height - 1 - Math.max(0, value) / most * (height - 2)).toFixed(1)}`).join(' ');
}

const SVG = 'http://www.w3.org/2000/svg';

export function curveNode(values, width, height, label) {
  const [svg, line] = ['svg', 'polyline'].map((name) => document.createElementNS(SVG, name));
  Object.entries({ width, height, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none',
    role: 'img', 'aria-label': label, class: 'curve' }).forEach(([name, value]) => svg.setAttribute(name, value));
  line.setAttribute('points', curvePoints(values, width, height));
  svg.append(line);
  return svg;
}

export class Verdicts {
  constructor(page) {
    const { parts, heap, state, scope, functions, calls } = page;
    Object.assign(this, { page, parts, heap, state, scope, functions, calls, summary: parts.summary });
    this.node = element('section', { class: 'verdicts', 'aria-label': 'Verdicts' });
    this.draw();
  }

  draw() {
    const colors = palette();
    if (this.colors === colors) return;
    this.colors = colors;
    this.node.replaceChildren(this.peak(), this.leak(), this.temporary(), this.moves(), this.errors());
  }

  /** When a position was, or the first and the last of several: the moments of the page around them,
   * where it has none at them. */
  time(position, last = position) {
    const { heap, scope } = this;
    if (!scope.has(position)) return `at position ${position}`;
    const [from, to] = [position, last].map((one) => heap.around(scope.has_times ? 'time' : 'event', one));
    const all = [from[0], to[1]];
    if (!scope.has_times) {
      return all[0] === all[1] ? `at event ${count(all[0])}` : `between events ${count(all[0])} and ${count(all[1])}`;
    }
    // A hundredth of it leaves three digits.
    const [first, end] = all.map((value) => moment(value, value / 100 || 1e9));
    if (first === end) return `at ${all[1] ? first : START}`;
    const is_exact = position !== last && from[0] === from[1] && to[0] === to[1];
    const start = all[0] ? first : START;
    return is_exact ? `from ${start} to ${end}` : `between ${start} and ${end}`;
  }

  /** Where a function is in the sources. */
  place(owner) {
    return owner?.file ? `${baseName(owner.file)}${owner.line ? `:${owner.line}` : ''}` : '';
  }

  /** A card. `lines` are sentences; `doubt` says why it is uncertain. */
  card({ kind, title, value, owner = null, name = '', lines, doubt = '', action = null, curve = null }) {
    const number = functionOf(this.calls, owner);
    const color = this.functions.of(number);
    const whole = owner ? owner.function || this.calls.functions[number]?.name || '(unknown function)' : name;
    const node = element('article', { class: `verdict${action ? '' : ' calm'}` },
      element('h2', {}, title, doubt ? element('span', { class: 'badge', title: doubt }, 'uncertain') : ''),
      element('div', { class: 'value' }, value, curve || ''),
      whole ? element('code', { title: whole }, number < 0 ? briefName(whole)
        : button(briefName(whole), () => this.state.set({ search: whole, root: '' }), { class: 'name' })) : '',
      element('p', {}, ...lines.filter((line) => line).join('; ').split(/(\(temporary [^)]*\))/)
        .map((part, i) => (i % 2 ? element('span', { class: 'together' }, part) : part)), doubt ? `. Uncertain: ${doubt}` : ''),
      owner && this.place(owner) ? element('p', { class: 'place' }, this.place(owner)) : '',
      action ? button(`${action[0]} →`, () => this.go(action[1], number), { class: 'act' }) : '');
    node.dataset.verdict = kind;
    if (action) {
      const plain = kind === 'errors' ? this.colors.alarm : this.colors.accent;
      node.style.setProperty('--c', color < 0 ? plain : this.colors.series[color]);
      node.style.setProperty('--ink', color < 0 ? plain : this.colors.inks[color]);
    }
    return node;
  }

  /** The uncertain facts of the whole page. */
  get doubt() {
    const { certain, reasons } = this.summary;
    return certain === false ? (reasons[0] || 'the trace is not intact') : '';
  }

  /** Shows a finding: whole range and all functions unless it says otherwise. */
  go(changes, number) {
    const { state, heap } = this;
    const search = changes.follows && number >= 0 ? this.calls.functions[number].name : '';
    const { at_peak: isPeak, follows, ...values } = changes;
    state.set({ view: 'heap', zoom: '', root: '', from: 0, to: heap.last, unit: 'bytes', search, ...values });
    if (isPeak) this.page.goToPeak();
  }

  share(owner, verb) {
    return owner ? `${verb} ${percent(owner.share, 1)} of it` : '';
  }

  peak() {
    const { peak, resident_bytes: resident } = this.summary;
    const is_little = resident !== null && Number(peak.bytes) < Number(resident) / 2;
    return this.card({ kind: 'peak', title: 'Peak', value: bytes(Number(peak.bytes)), owner: peak.owner,
      lines: [peak.position ? `${this.share(peak.owner, 'holds')}, ${this.time(peak.position)}` : 'nothing was live',
        is_little ? `most of the ${bytes(Number(resident))} that were resident is not heap` : ''],
      doubt: this.doubt,
      action: Number(peak.blocks) ? ['Go to the peak', { measure: 'live', at_peak: true }] : null });
  }

  /** The live bytes of the call sites of the lost blocks, and whether they grew all the time. */
  leakCurve(owner, number) {
    const { heap } = this;
    const lost = heap.lost?.definitely.blocks;
    const mask = Uint8Array.from(heap.functionOf, (key, site) => (key === number && (!lost || lost[site]) ? 1 : 0));
    const live = this.page.timeline.maskedTotal('bytes', mask);
    const values = heap.time;
    const at = (part, from, to) => {
      const wanted = values[from] + (values[to] - values[from]) * part;
      let tick = from;
      while (tick < to && values[tick + 1] <= wanted) tick++;
      return live[tick];
    };
    const curve = Array.from({ length: CURVE }, (_, i) => at(i / (CURVE - 1), 0, heap.last));
    const [first, last] = [owner.first, owner.last].map((position) => heap.tickOf(position));
    const steps = Array.from({ length: STEADY.parts + 1 }, (_, i) => at(i / STEADY.parts, Math.max(0, first - 1), last));
    const total = steps.at(-1) - steps[0];
    const grows = steps.slice(1).every((value, i) => value - steps[i] > STEADY.share * total);
    return { curve, is_steady: total > 0 && grows && Number(owner.blocks) >= STEADY.blocks, first, last };
  }

  leak() {
    const { leaks } = this.summary;
    const is_cut = leaks.kind === 'live_at_end';
    const is_lost = leaks.kind === 'definitely_lost';
    const possible = Number(leaks.possibly_lost.blocks)
      ? `${bytes(Number(leaks.possibly_lost.bytes))} possibly lost` : '';
    const below = Number(leaks.indirectly_lost.blocks)
      ? `${bytes(Number(leaks.indirectly_lost.bytes))} more below them` : '';
    const left = Number(leaks.left.blocks)
      ? `${bytes(Number(leaks.left.bytes))} left by programs before, at exec: not searched` : '';
    const unknown = Number(this.parts.leaks.unknown_blocks);
    const doubt = unknown ? `${things(unknown, 'block')} may have been released unseen` : this.doubt;
    if (!Number(leaks.blocks)) {
      return this.card({ kind: 'leak', title: 'Leak', value: leaks.judged ? 'None' : 'Unknown', doubt,
        lines: [is_lost ? 'nothing is definitely lost' : doubt ? 'nothing is known to be lost'
          : left ? 'all released by the last program' : 'all released', possible, left] });
    }
    const owner = leaks.owner && { ...leaks.owner, first: leaks.first_position, last: leaks.last_position };
    const number = functionOf(this.calls, owner);
    const found = owner?.first && number >= 0 && this.scope.has(owner.first) ? this.leakCurve(owner, number) : null;
    const title = is_lost ? `Leak${found?.is_steady ? ', steady' : ''}`
      : is_cut ? 'Live at the end' : 'Never released';
    return this.card({ kind: 'leak', title, value: bytes(Number(leaks.bytes)), owner,
      lines: [...this.lostWhen(owner, found, is_lost), below, possible, left,
        is_lost ? '' : is_cut ? 'no finding: the program may have released them later, or was killed'
          : 'no snapshot shows which of them are lost'],
      doubt,
      curve: found && curveNode(found.curve, 84, 26, 'Live bytes of its call sites'),
      action: [is_lost ? 'See the lost blocks' : 'See the blocks left',
        is_lost ? { measure: 'lost' } : { measure: 'live', at: this.heap.last }] });
  }

  lostWhen(owner, found, is_lost) {
    if (!owner) return [];
    const blocks = Number(owner.blocks);
    const size = bytes(Number(owner.bytes) / blocks);
    const part = owner.share < 0.995 ? `${percent(owner.share, 1)} of it: ` : '';
    const lines = [`${part}${things(blocks, 'block')} of ${size}${blocks > 1 ? ' on average' : ''} ` +
      `${is_lost ? 'lost' : 'left'}`];
    if (!found) return lines;
    const length = this.heap.time[found.last] - this.heap.time[found.first];
    const times = this.time(owner.first, owner.last);
    const rate = found.is_steady && this.scope.has_times && length ? `about one every ${duration(length / (blocks - 1))} ` : '';
    return [...lines, `allocated ${rate}${times}`];
  }

  /** A sentence about the blocks that are freed a few calls later, if they are many more, as `temporary` says it. */
  freedLater(temporary, all) {
    const later = this.heap.usage.later.reduce((sum, number) => sum + number, 0);
    return later && later >= all / 100 ? `${count(later)} ${temporary ? 'more ' : ''}(${percent(later, all)}) with ${SOON_TEXT} ` +
      `(temporary --steps ${SOON})` : '';
  }

  temporary() {
    const { temporary, allocated } = this.summary;
    const [blocks, all] = [Number(temporary.blocks), Number(allocated.blocks)];
    const later = this.freedLater(blocks, all);
    return this.card({ kind: 'temporary', title: 'Temporary', owner: blocks ? temporary.owner : null,
      value: blocks ? `${short(blocks)} of ${short(all)}` : 'None', doubt: blocks ? this.doubt : '',
      lines: blocks ? [`${things(blocks, 'allocation')} (${percent(blocks, all)}) freed by the next call of their thread`,
        temporary.owner && temporary.owner.share < 0.995 ? `${percent(temporary.owner.share, 1)} by it` : '', later]
        : ['no block is freed by the next call of its thread', later],
      action: blocks || later ? ['See the functions', { measure: blocks ? 'temporary' : 'soon', unit: 'blocks' }] : null });
  }

  moves() {
    const { moves } = this.summary;
    const copied = Number(moves.bytes_copied_at_most);
    const at_most = Number(moves.bytes_copied) === copied ? '' : 'at most ';
    const group = this.parts.moves.groups.find((row) => row.stack_id === moves.owner?.stack_id);
    const advice = Number(group?.bytes_avoidable) ? ': double it instead' : '';
    const grows = { linear: group && `grows by ${bytes(Number(group.growth_bytes))} each time${advice}`,
      geometric: group && `grows by a factor of ${Number(group.growth_factor).toPrecision(3)}` }[group?.growth] || '';
    return this.card({ kind: 'moves', title: 'Reallocation', owner: copied ? moves.owner : null,
      value: copied ? `${at_most}${bytes(copied)} copied` : 'None', doubt: copied ? this.doubt : '',
      lines: copied ? [grows, `${count(Number(moves.moved))} of ${things(Number(moves.reallocs), 'reallocation')} moved`]
        : [Number(moves.reallocs) ? `${things(Number(moves.reallocs), 'reallocation')} copied nothing` : 'nothing is reallocated'],
      action: copied ? ['See its growth', { measure: 'live', follows: true, at: this.most(moves.owner) }] : null });
  }

  /** The tick at which a function had most live. */
  most(owner) {
    const number = functionOf(this.calls, owner);
    const live = this.page.timeline.maskedTotal('bytes',
      Uint8Array.from(this.heap.functionOf, (key) => (key === number ? 1 : 0)));
    return live.reduce((best, value, tick) => (value > live[best] ? tick : best), 0);
  }

  errors() {
    const { errors, fatal_signal: fatal } = this.summary;
    const calls = errors.reduce((sum, { calls: number }) => sum + Number(number), 0);
    if (!calls && !fatal) {
      const is_known = this.parts.errors.judged;
      return this.card({ kind: 'errors', title: 'Errors', value: is_known ? 'None' : 'Unknown',
        lines: [is_known ? 'none in the calls of the heap; reads and writes are not watched'
          : Number(this.summary.allocated.blocks) ? 'calls up to the end were not recorded'
            : 'no allocation was recorded'] });
    }
    const [first] = this.parts.errors.findings;
    const { stack, position } = first || this.parts.errors.fatal_signal || {};
    const frames = this.calls.stack(stack || 0);
    const frame = frames.find((one) => this.calls.functions[this.calls.functionOf[one]].own) ?? frames[0];
    const made = frame === undefined ? null : this.calls.functions[this.calls.functionOf[frame]];
    const doubtful = errors.find(({ certain }) => !certain);
    return this.card({ kind: 'errors', title: 'Errors',
      value: [...errors.slice(0, 1).map(({ kind }) => kind.replaceAll('-', ' ')),
        ...(fatal ? [fatal.name || `signal ${fatal.signal}`] : [])].join(', '),
      name: made?.name || '',
      lines: [...errors.map(({ kind, calls: number }) => `${kind.replaceAll('-', ' ')}: ${things(Number(number), 'call')}`),
        made ? this.calls.line(frame) : ''],
      doubt: doubtful ? `${doubtful.kind.replaceAll('-', ' ')} is not certain` : this.doubt,
      action: ['See the errors', { view: 'errors',
        ...(position && this.scope.has(position) ? { at: this.heap.tickAt(position) } : {}) }] });
  }
}
