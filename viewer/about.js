// SPDX-License-Identifier: MIT
// The trace itself: the recording, its marks, snapshots and losses.
import { doubts, element } from './dom.js';
import { count, duration } from './format.js';
import { numberColumn, panel, positionColumn } from './findings.js';
import { Table } from './table.js';

export function metadataOf(info, key) {
  return info.metadata?.find((record) => record.key === key)?.value;
}

function markText(mark) {
  return String(mark.text ?? mark.data ?? mark.kind ?? 'mark');
}

/** The moments that the timeline marks: marks, snapshots, losses, threads that start. */
export function notesOf(parts) {
  const list = [];
  const add = (kind, position, text) => {
    if (position) list.push({ kind, position, text });
  };
  (parts.marks || []).forEach((mark) => add('mark', mark.position, `mark: ${markText(mark)}`));
  (parts.snapshots?.snapshots || []).forEach((snapshot) =>
    add('snapshot', snapshot.position, `snapshot ${snapshot.number}`));
  (parts.info?.loss_list || []).forEach((loss) =>
    add('loss', loss.last_good || loss.first_good, `lost: ${loss.reason}`));
  (parts.info?.thread_list || []).forEach((thread) =>
    add('thread', thread.begun, `thread ${thread.thread} ${thread.name || ''}`));
  return list;
}

function facts(parts) {
  const { info } = parts;
  const rows = [['File', parts.facts.path], ['Events', count(Number(info.events))],
    ['Length', parts.facts.has_times ? duration(Number(info.last_wall_time_ns)) : null],
    ['Size', `${count(Number(info.file_bytes))} bytes`],
    ['Started', info.trace?.start_time], ['Process', info.trace?.process_id],
    ['End', info.closed ? [info.end_reason, info.end_code].filter((x) => x !== null).join(' ')
      : 'the trace was not closed'],
    ['Lost events', count(Number(info.lost_events)) + (info.lost_events_exact ? '' : ' or more')],
    ...(info.metadata || []).map((record) => [record.key, record.value])];
  return element('dl', { class: 'facts' }, ...rows.filter(([, value]) => value !== undefined &&
    value !== null).flatMap(([name, value]) => [element('dt', {}, name),
    element('dd', {}, String(value))]));
}

export function aboutView(parts, pieces, notes) {
  const { info } = parts;
  const threads = new Table('threads', [numberColumn('Events', 'events'),
    numberColumn('Allocations without reallocations', 'allocs'), numberColumn('Releases', 'frees'),
    { title: 'Thread', is_number: false, value: (row) => row.thread,
      show: (row) => `${row.thread}, ${row.name || 'no name'}` },
    positionColumn(pieces, 'Begins', 'begun')]);
  threads.setRows(info.thread_list || []);
  /* The time of the last tick before or at a position; null if the page has none. */
  const timeOf = ({ position }) => (pieces.scope.has_times && pieces.scope.has(position)
    ? pieces.heap.time[pieces.heap.tickAt(position)] : null);
  const moments = new Table('moments', [
    { ...positionColumn(pieces, 'At', 'position'), show: ({ position }) => pieces.position(position) },
    { title: 'Time', value: timeOf, csv: [['Not before', timeOf]], show: ({ position }) => pieces.shortTime(position) },
    { title: 'Event', is_number: false, class: 'name', value: (row) => row.text }],
  { is_down: false });
  moments.setRows(notes);
  return element('div', { class: 'columns' }, panel('The trace', doubts(info), facts(parts)),
    panel('Marks, snapshots, losses, threads', moments.tools, moments.node),
    panel('Threads', threads.tools, threads.node));
}
