// SPDX-License-Identifier: MIT
// Numbers, sizes, times and names for people.

const grouped = new Intl.NumberFormat('en-US');

/** Numbers from 2^53 on are rounded, which a '~' says. */
export function count(value) {
  const whole = Math.round(value);
  return (Math.abs(whole) > Number.MAX_SAFE_INTEGER ? '~' : '') + grouped.format(whole).replace('-', '−');
}

/** A number of things: "1 block", "2 blocks". */
export function things(value, one) {
  return `${count(value)} ${one}${Math.round(value) === 1 ? '' : 's'}`;
}

function scaled(value, steps) {
  let i = 0;
  let size = Math.abs(value);
  while (i + 1 < steps.length && size >= 999.5) {
    size /= 1000;
    i++;
  }
  const digits = i === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return `${value < 0 ? '−' : ''}${size.toFixed(digits)} ${steps[i]}`;
}

export function bytes(value) {
  return scaled(value, ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB']);
}

export function short(value) {
  return scaled(value, ['', 'k', 'M', 'G', 'T', 'P', 'E']).trim();
}

export function signed(value, format) {
  return (value > 0 ? '+' : '') + format(value);
}

/** A duration in nanoseconds. */
export function duration(value) {
  if (value >= 60e9) {
    const minutes = Math.floor(value / 60e9);
    return `${grouped.format(minutes)} min ${((value - minutes * 60e9) / 1e9).toFixed(1)} s`;
  }
  return scaled(value, ['ns', 'µs', 'ms', 's']);
}

/** A moment, in nanoseconds since the start, with digits enough to distinguish a `step`; with three at least, unless
 * it is a multiple of the step. */
export function moment(value, step = 1e6, is_multiple = false) {
  const finest = value && !is_multiple ? Math.min(step, Math.abs(value) / 100) : step;
  const digits = Math.max(0, Math.min(9, Math.ceil(9 - Math.log10(Math.max(finest, 1)))));
  return `+${(value / 1e9).toFixed(digits)} s`;
}

const UNITS = { ns: 1, us: 1e3, ms: 1e6, '': 1e9, s: 1e9, min: 60e9, h: 3600e9 };

/** The moment that a text like "50%", "+1.5s" or "#1234" names, as an event or a time; null for others. Event
 * -1 is before all.
 * @param events  the number of events */
export function momentNamed(text, events) {
  const [found, part, event, time, unit] =
    /^(?:(\d+(?:\.\d+)?)%|#(\d{1,18})|\+(\d+(?:\.\d+)?)(ns|us|ms|s|min|h|))$/.exec(text) || [];
  if (!found || Number(part) > 100) return null;
  if (time) return { time: Number(time) * UNITS[unit] };
  return { event: part ? Math.floor(events * Number(part) / 100 + 0.5) - 1 : Number(event) };
}

/** When something was that is between two moments: "at" one, where a step does not distinguish them. */
export function momentBetween(times, step) {
  const [from, to] = times.map((value) => moment(value, step));
  return from === to ? `at ${from}` : `between ${times[0] ? from : START} and ${to}`;
}

/** The first moment, as the earlier of two. */
export const START = 'the start';

export function percent(part, whole) {
  if (!whole) return '';
  const value = 100 * part / whole;
  if (value > 0 && value < 0.05) return '< 0.1 %';
  return `${Math.abs(value) < 10 ? value.toFixed(1) : value.toFixed(0)} %`;
}

/** The parts of a name between which a line may break, instead of inside words. */
export function wordsOf(name) {
  return name.split(/(?<=::|[<,(_ ])(?!$)/);
}

/** A name of at most so many characters, without its middle. */
export function cutMiddle(name, long) {
  const end = Math.ceil(long * 0.6);
  return name.length > long ? `${name.slice(0, long - end - 1)}…${name.slice(-end)}` : name;
}

/** The last part of a path. */
export function baseName(path) {
  return path.slice(path.lastIndexOf('/') + 1);
}

const LONG_ARGUMENTS = 24;
const STRING = 'std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >';

function argumentsEnd(name, at) {
  let depth = 0;
  for (let i = at; i < name.length; i++) {
    const c = name[i];
    if (c === '<' || c === '(') depth++;
    else if ((c === '>' || c === ')') && name[i - 1] !== '-' && --depth === 0) return i + 1;
  }
  return 0;
}

/** A function's name without long template arguments. */
export function shortName(name) {
  let text = '';
  for (let i = 0; i < name.length;) {
    if (name.startsWith('operator', i)) {
      const sign = /^operator[<>=-]*/.exec(name.slice(i))[0];
      text += sign;
      i += sign.length;
    } else if (name.startsWith(STRING, i)) {
      text += 'std::string';
      i += STRING.length;
    } else {
      const end = name[i] === '<' ? argumentsEnd(name, i) : 0;
      text += end - i > LONG_ARGUMENTS ? '<…>' : name[i];
      i = end - i > LONG_ARGUMENTS ? end : i + 1;
    }
  }
  return text;
}

/** Where a name's arguments begin; its length if it has none. */
function argumentsStart(name) {
  let depth = 0;
  for (let i = name.endsWith(') const') ? name.length - 7 : name.length - 1; i > 0; i--) {
    if (name[i] === ')') depth++;
    else if (name[i] === '(' && --depth === 0) return i;
    if (depth === 0) break;
  }
  return name.length;
}

/** A function's name without arguments, and without the type that it returns. */
export function plainName(name) {
  const end = argumentsStart(name);
  if (/operator\s*$/.test(name.slice(0, end)) || end < 2) return name;
  let depth = 0;
  let start = 0;
  for (let i = 0; i < end; i++) {
    if (name.startsWith('operator', i)) break;
    if ('<({['.includes(name[i])) depth++;
    else if ('>)}]'.includes(name[i])) depth--;
    else if (name[i] === ' ' && depth === 0 && end < name.length) start = i + 1;
  }
  return name.slice(start, end);
}

/** A function's name where there is little room: without arguments and long template arguments. */
export function briefName(name) {
  return plainName(shortName(name));
}

/** Characters that change the direction of the text around them: a name with them could be taken
 * for another one. */
const DIRECTIONS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A name as it is shown. */
export function visible(name) {
  return name.replace(DIRECTIONS, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** A text that orders positions as they are ordered; "" for none. */
export function positionRank(position) {
  return position ? position.split(':').map((part) => part.padStart(16, '0')).join(':') : '';
}

/** Compares two positions, such as "FAB:17B1". */
export function comparePositions(a, b) {
  const [x, y] = [a, b].map((text) => text.split(':'));
  for (let i = 0; i < 2; i++) {
    if (x[i].length !== y[i].length) return x[i].length - y[i].length;
    if (x[i] !== y[i]) return x[i] < y[i] ? -1 : 1;
  }
  return 0;
}

/** The position right after another. */
export function followingPosition(position) {
  const [sequence, steps] = position.split(':');
  const next = (digits) => (BigInt(`0x${digits}`) + 1n).toString(16).toUpperCase();
  return steps === 'F'.repeat(16) ? `${next(sequence)}:0` : `${sequence}:${next(steps)}`;
}
