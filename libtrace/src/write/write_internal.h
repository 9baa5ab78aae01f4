/* SPDX-License-Identifier: MIT */
/** Internals of the writer, private to `write/`. */
#ifndef TTD_WRITE_WRITE_INTERNAL_H
#define TTD_WRITE_WRITE_INTERNAL_H

#include <ttdtrace/reader.h>
#include <ttdtrace/writer.h>

#include "base/buffer.h"
#include "codec/chunk/emitter.h"
#include "codec/events/events.h"
#include "codec/heap_state/heap_states.h"
#include "codec/snapshots/snapshots.h"
#include "codec/snapshots/references.h"
#include "codec/stacks/stacks.h"

/** A chunk of records of one kind in the making. */
struct ttd_record_buffer {
    struct ttd_buffer payload;
    /** Ordinal, or id, of the next record to be buffered. */
    uint64_t next_record;
    uint32_t count;
    /** Range of the positions of its records; unset for records without positions. */
    bool has_position;
    struct ttd_position first;
    struct ttd_position last;
};

#define TTD_RECORD_KINDS (TTD_KIND_LAST + 1)

/** The events that cuts have left out of a trace, see ttd_cut_apply(). */
struct ttd_cut_record {
    uint64_t events;
    /** Offset of the chunk that says so; 0 for none. */
    uint64_t offset;
};

struct ttd_writer {
    struct ttd_allocator allocator;
    struct ttd_output output;
    struct ttd_writer_options options;
    uint64_t time_unit;
    /** Identifiers come from another trace. */
    bool derived;
    /** Only names are written: see struct ttd_written. */
    bool adds_names;
    bool failed;
    struct ttd_error error;
    struct ttd_emitter emitter;
    struct ttd_record_buffer records[TTD_RECORD_KINDS];
    struct ttd_stacks_encoder stacks;
    struct ttd_events_encoder events;
    struct ttd_buffer payload;
    /** Columns of the chunk of live blocks in the making. */
    struct ttd_buffer columns[TTD_BLOCK_COLUMN_COUNT];
    /** Ids defined so far. */
    ttd_id strings;
    ttd_id stack_count;
    ttd_id modules;
    ttd_id threads;
    ttd_id heaps;
    /** The largest heap that an event or a record of parents has referred to; its parent cannot be
     * set any more. */
    ttd_id settled_heap;
    struct ttd_list_state list;
    struct ttd_snapshot_order snapshots;
    /** The references of a chunk while it is made; empty between calls. */
    struct ttd_reference_encoder references;
    uint64_t event_count;
    /** Effect position of the last event. */
    struct ttd_position position;
    /** Last wall_time seen, known to be a multiple of the time unit. */
    uint64_t wall_time;
    uint64_t lost_events;
    struct ttd_cut_record replaced;
    /** Offset of the last symbol of the chunk in the making. */
    uint64_t symbol_offset;
    /** Offset of the last variable of the chunk in the making. */
    uint64_t variable_offset;
};

/** Sets up all but the emitter; the writer is zeroed but for its allocator and options. */
void ttd_writer_init_buffers(struct ttd_writer *writer, uint64_t time_unit);

/** Releases everything but the output. */
void ttd_writer_release(struct ttd_writer *writer);

/** Refuses an invalid argument; the writer is unchanged. Returns TTD_ERROR_ARGUMENT. */
enum ttd_status ttd_writer_refuse(struct ttd_writer *writer, const char *what);

/** Refuses an argument that exceeds a limit of the format; the writer is unchanged. Returns
 * TTD_ERROR_LIMIT. */
enum ttd_status ttd_writer_limit(struct ttd_writer *writer, const char *what);

/** Records a failure; the writer cannot be used after it. Returns `status`. */
enum ttd_status ttd_writer_break(struct ttd_writer *writer, enum ttd_status status,
                                 const char *what);

/** Whether the id is defined, or 0. */
static inline bool ttd_writer_knows(const struct ttd_writer *writer, ttd_id id, ttd_id count)
{
    return id <= count || writer->derived;
}

/**
 * Begins a record of a kind. Refuses it if `violation`, a description of its first violation, is
 * not NULL; returns TTD_ERROR_MISUSE after a failure; else makes room for it.
 */
enum ttd_status ttd_writer_begin_record(struct ttd_writer *writer, enum ttd_kind kind,
                                        const char *violation);

/**
 * Begins a chunk that is written at once, behind all that is buffered. Refuses it if `violation`, a
 * description of its first violation, is not NULL.
 */
enum ttd_status ttd_writer_begin_chunk(struct ttd_writer *writer, const char *violation);

/** Counts the record that was appended to the payload of `kind`. */
enum ttd_status ttd_writer_end_record(struct ttd_writer *writer, enum ttd_kind kind);

/** Widens the range of positions of the records of `kind`. */
void ttd_writer_touch(struct ttd_writer *writer, enum ttd_kind kind, struct ttd_position position);

/** Writes out all buffered definitions and records but events. */
enum ttd_status ttd_writer_flush_records(struct ttd_writer *writer);

/** Validates an event. Returns a description of the first violation, or NULL. */
const char *ttd_writer_check_event(const struct ttd_writer *writer, const struct ttd_event *event);

/** Writes out the buffered events, after their definitions. */
enum ttd_status ttd_writer_flush_events(struct ttd_writer *writer);

/** Writes a chunk whose payload is in writer->payload, all of it at one position. */
enum ttd_status ttd_writer_put_payload(struct ttd_writer *writer, enum ttd_kind kind,
                                       uint64_t first_record, uint32_t record_count,
                                       struct ttd_position position);

/** Writes a chunk of the `count` records in writer->payload, and counts them. */
enum ttd_status ttd_writer_put_records(struct ttd_writer *writer, enum ttd_kind kind, size_t count,
                                       struct ttd_position position);

/* Writers that continue a trace, to add names to it. */

/** The state of a trace that another writer has begun. */
struct ttd_written {
    struct ttd_emitter *emitter;
    /** The last ids in use. */
    ttd_id strings;
    ttd_id modules;
    /** Ordinals of the next records. */
    uint64_t symbols;
    uint64_t variables;
};

/**
 * Makes a writer that accepts names only. The emitter is the writer's until ttd_writer_end_names().
 *
 * @param allocator  used by the emitter as well
 * @return TTD_OK, TTD_ERROR_NO_MEMORY
 */
enum ttd_status ttd_writer_begin_names(const struct ttd_written *written,
                                       const struct ttd_allocator *allocator,
                                       struct ttd_writer **writer);

/** Writes out all that is buffered, gives the emitter back and releases the writer. The detail of a
 * failure is in written->emitter->error. */
enum ttd_status ttd_writer_end_names(struct ttd_writer *writer, const struct ttd_written *written);

#endif
