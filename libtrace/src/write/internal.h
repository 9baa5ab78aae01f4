/* SPDX-License-Identifier: MIT */
/** What the parts of the writer share. */
#ifndef TTD_WRITE_INTERNAL_H
#define TTD_WRITE_INTERNAL_H

#include <ttdtrace/reader.h>
#include <ttdtrace/writer.h>

#include "base/buffer.h"
#include "codec/columns.h"
#include "codec/emitter.h"
#include "codec/events.h"

/** A chunk of records of one kind in the making. */
typedef struct ttd_rows {
    ttd_buffer payload;
    /** Ordinal, or id, of the next record to be buffered. */
    uint64_t next_item;
    uint32_t count;
    /** Range of the positions in it, if there are any. */
    bool has_position;
    ttd_position first;
    ttd_position last;
} ttd_rows;

#define TTD_ROW_KINDS (TTD_KIND_END + 1)

struct ttd_writer {
    ttd_allocator allocator;
    ttd_output output;
    ttd_writer_options options;
    uint64_t time_unit;
    /** Identifiers are those of another trace. */
    bool derived;
    bool failed;
    ttd_error error;
    ttd_emitter emitter;
    ttd_rows rows[TTD_ROW_KINDS];
    ttd_stacks_encoder stacks;
    ttd_events_encoder events;
    ttd_buffer payload;
    ttd_buffer block_columns[TTD_BLOCK_COLUMN_COUNT];
    /** Ids defined so far. */
    ttd_id strings;
    ttd_id stack_count;
    ttd_id modules;
    ttd_id threads;
    ttd_id heaps;
    ttd_list_state list;
    uint64_t event_count;
    /** Effect position of the last event. */
    ttd_position position;
    /** Last wall_time seen, known to be a multiple of the time unit. */
    uint64_t wall_time;
    uint64_t lost_events;
    /** Offset of the last symbol of the chunk in the making. */
    uint64_t symbol_offset;
};

/** Refuses an argument: nothing has changed. */
ttd_status ttd_writer_refuse(ttd_writer *writer, const char *what);

/** Records a failure after which the writer is of no use. */
ttd_status ttd_writer_break(ttd_writer *writer, ttd_status status, const char *what);

/** Whether the id is defined, or 0. */
static inline bool ttd_writer_knows(const ttd_writer *writer, ttd_id id, ttd_id count)
{
    return id <= count || writer->derived;
}

/** TTD_ERROR_MISUSE after a failure; else makes room for one more record of a kind. */
ttd_status ttd_writer_begin_row(ttd_writer *writer, ttd_kind kind);

/** Counts the record that was appended to the payload of `kind`. */
ttd_status ttd_writer_end_row(ttd_writer *writer, ttd_kind kind);

/** Widens the range of positions of the records of `kind`. */
void ttd_writer_touch(ttd_writer *writer, ttd_kind kind, ttd_position position);

/** Writes out all buffered definitions and records but events. */
ttd_status ttd_writer_flush_rows(ttd_writer *writer);

/** What is wrong with an event; NULL if nothing. */
const char *ttd_writer_check_event(const ttd_writer *writer, const ttd_event *event);

/** Writes out the buffered events, after what they refer to. */
ttd_status ttd_writer_flush_events(ttd_writer *writer);

/** Writes a chunk whose payload is in writer->payload, all of it at one position. */
ttd_status ttd_writer_put_payload(ttd_writer *writer, ttd_kind kind, uint64_t first_item,
                                  uint32_t item_count, ttd_position position);

#endif
