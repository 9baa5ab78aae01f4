/* SPDX-License-Identifier: MIT */
/** The copier: passes records of one source to the writer of a new trace. */
#ifndef ANALYZER_REMAKE_COPIER_H
#define ANALYZER_REMAKE_COPIER_H

#include <ttdtrace/writer.h>

#include "remake/remake.h"

/** The sorts of ids that a trace defines. */
enum copier_sort {
    COPIER_STRINGS,
    COPIER_MODULES,
    COPIER_THREADS,
    COPIER_HEAPS,
    COPIER_STACKS,
    COPIER_SORTS
};

/** New ids of a source, by their old ones. */
struct copier_ids {
    ttd_id *ids;
    size_t count;
    size_t capacity;
};

struct copier {
    struct ttd_writer *writer;
    struct remake_result *result;
    struct ttd_error *error;
    /** Several sources share the writer, so ids change. Otherwise a definition that would get
     * another id is refused. */
    bool changes_ids;
    struct copier_ids ids[COPIER_SORTS];
    /** Added to wall times, in nanoseconds. */
    uint64_t time_offset;
    /** Largest wall time of the events so far. */
    uint64_t wall_time;
    /** The End of the source, once it was passed. */
    struct ttd_end end;
    /** Whether a record is to be copied; NULL for all. */
    bool (*wants)(void *context, const struct ttd_batch *batch, const void *record);
    /** Change a copied heap, event or list before it is written; NULL for none. The heap of a
     * changed event has its old id. The list's blocks are an array that may be changed. */
    enum ttd_status (*change_heap)(void *context, struct ttd_heap *heap);
    enum ttd_status (*change_event)(void *context, struct ttd_event *event);
    enum ttd_status (*change_list)(void *context, struct ttd_live_blocks *list,
                                   struct ttd_block *blocks);
    void *context;
    /** Spare room for changed records. */
    void *spare;
    size_t spare_capacity;
};

/** Begins a trace with the properties of `trace`; takes over the output. Statuses as
 * ttd_writer_open(). */
enum ttd_status copier_open(struct copier *copier, const struct ttd_trace *trace,
                            const struct ttd_output *output);

/** Copies a batch of records. @return TTD_OK; TTD_ERROR_UNSUPPORTED with the reason in the error;
 * statuses of the writer. */
enum ttd_status copier_put(struct copier *copier, const struct ttd_batch *batch);

/** Copies one event, changed as copier_put() does. */
enum ttd_status copier_put_event(struct copier *copier, const struct ttd_event *event);

/** Writes a loss or a fact of the new trace's own. */
enum ttd_status copier_put_loss(struct copier *copier, const struct ttd_loss *loss);
enum ttd_status copier_put_fact(struct copier *copier, const char *key, const char *value);

/** Sets the new id of an old one. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status copier_set_id(struct copier *copier, enum copier_sort sort, ttd_id old, ttd_id id);

/** Returns the new id of an old one. */
ttd_id copier_id(const struct copier *copier, enum copier_sort sort, ttd_id old);

/** Completes the trace if `status` is TTD_OK, else leaves it incomplete. Returns `status`, or the
 * failure of the output. */
enum ttd_status copier_close_writer(struct copier *copier, enum ttd_status status,
                                    const struct ttd_end *end);

/** Releases everything but the writer. */
void copier_free(struct copier *copier);

/** Returns the number of records that each element of a batch counts for: 1, or the entries of a
 * list; 0 for the first and the last chunk. */
uint64_t copier_count(const struct ttd_batch *batch);

/** Adds an event to a digest. */
uint64_t copier_digest(uint64_t digest, const struct ttd_event *event);

#endif
