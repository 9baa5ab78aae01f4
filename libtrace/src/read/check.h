/* SPDX-License-Identifier: MIT */
/** Checks of a file that is read from beginning to end. Verify, recover and the verdict of a reader
 * rest on them. */
#ifndef TTD_READ_CHECK_H
#define TTD_READ_CHECK_H

#include <ttdtrace/reader.h>
#include <ttdtrace/verify.h>

#include "base/cursor.h"
#include "codec/heap_state/heap_states.h"
#include "codec/chunk/header.h"
#include "codec/chunk/fixed_chunks.h"
#include "codec/snapshots/snapshots.h"

/** The number of ids defined so far; references are checked against it. */
struct ttd_id_check {
    /** Ids cannot be checked, because they are defined in another trace or definitions were lost.
     */
    bool unknown;
    /** The last batch defines an id that was defined before. */
    bool redefines;
    ttd_id strings;
    ttd_id stacks;
    ttd_id modules;
    ttd_id threads;
    ttd_id heaps;
    /** The largest heap that an event or a record of parents has referred to; later records must
     * not change its parent. */
    ttd_id settled_heap;
    uint64_t pages;
    struct ttd_list_state list;
    struct ttd_snapshot_order snapshots;
    /** Depth of each stack, from id 1 on. */
    uint16_t *depths;
    size_t depths_capacity;
};

/**
 * Checks the records of a batch, and notes the ids that they define.
 *
 * @param what  set to a static description of the first violation, or NULL
 * @return false if memory is exhausted
 */
bool ttd_id_check_batch(struct ttd_id_check *ids, const struct ttd_allocator *allocator,
                        const struct ttd_batch *batch, const char **what);

/** Whether an id is 0 or defined; true if ids cannot be checked. */
static inline bool ttd_id_check_knows(const struct ttd_id_check *ids, ttd_id id, ttd_id count)
{
    return id <= count || ids->unknown;
}

/** Makes room for the depths of `count` more stacks. False without memory. */
bool ttd_id_check_grow(struct ttd_id_check *ids, const struct ttd_allocator *allocator,
                       size_t count);

/** The index chunks seen so far, and the chunks that the next one must list. */
struct ttd_index_check {
    struct ttd_index_link *seen;
    size_t seen_count;
    size_t seen_capacity;
    /** The link to itself that the next index chunk must have; set by a chunk of events. */
    struct ttd_index_link pending;
    bool pending_set;
    /** Hash of each chunk's header since the last index chunk. */
    uint64_t *hashes;
    size_t hash_count;
    size_t hash_capacity;
};

struct ttd_reader;

/**
 * Called for each intact chunk.
 *
 * @param stored     header->stored_size bytes
 * @param redefines  the chunk defines ids a second time
 */
typedef enum ttd_status (*ttd_check_chunk_function)(void *context, struct ttd_reader *reader,
                                                    const struct ttd_header *header,
                                                    const uint8_t *stored, bool redefines);
/** Called for each loss, between the chunks before and after it. */
typedef enum ttd_status (*ttd_check_loss_function)(void *context, struct ttd_reader *reader,
                                                   const struct ttd_loss *loss);

/** Returns the observer of an argument that may be NULL. */
static inline struct ttd_problem_observer
ttd_observer_or_none(const struct ttd_problem_observer *observer)
{
    return observer ? *observer : (struct ttd_problem_observer){0};
}

/** The state of a check; see ttd_check_begin(). */
struct ttd_check {
    /** Every function may be NULL. The first status of a function that is not TTD_OK ends the
     * reading. */
    struct ttd_problem_observer observer;
    ttd_check_chunk_function chunk;
    ttd_check_loss_function loss;
    void *context;
    enum ttd_status status;

    struct ttd_verdict verdict;
    struct ttd_id_check ids;
    struct ttd_index_check index;
    /** Chunks are missing, so totals cannot be checked. */
    bool damaged;
    /** The current chunk: a static description of its first violation, or NULL; and whether it
     * defines ids that were defined before. */
    const char *wrong;
    bool redefines;
    /** The tables of the current chunk of events have only ids that are defined. */
    bool has_known_tables;
    /** verdict.lost_events, including the losses of the current chunk. */
    uint64_t lost_events;
    /** An End was read; and the offset of its end, where the file should end. */
    bool has_end;
    uint64_t end_behind;
    struct ttd_end end;
    /** The last problem; it is not reported before the number of events missing with it is
     * known. */
    bool is_held;
    struct ttd_problem held;
};

/** Starts a check of the whole file; the reader is before its first chunk. */
void ttd_check_begin(struct ttd_reader *reader);

/** Releases everything but the caller's functions. */
void ttd_check_free(struct ttd_reader *reader);

/** Notes damage; `bytes` and `chunks` were passed over. */
void ttd_check_damage(struct ttd_reader *reader, const struct ttd_error *error, uint64_t bytes,
                      uint64_t chunks);

/** Notes the loss that stands for the damage since the last loss. */
void ttd_check_lost(struct ttd_reader *reader, const struct ttd_loss *loss);

/** Checks a batch of the current chunk. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status ttd_check_batch(struct ttd_reader *reader, const struct ttd_batch *batch,
                                struct ttd_error *error);

/**
 * Checks all stacks of the current chunk without decoding them, and notes them if there is no
 * violation. If there is one, the caller decodes the stacks and checks them batch by batch: this
 * finds the problem.
 *
 * @param is_right  set to whether there is no violation, also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status ttd_check_stacks(struct ttd_reader *reader, bool *is_right,
                                 struct ttd_error *error);

/** Checks the payload of the current chunk, an index. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status ttd_check_index(struct ttd_reader *reader, struct ttd_cursor payload,
                                struct ttd_error *error);

/** Takes the current chunk, events that are not read, for intact. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status ttd_check_unread(struct ttd_reader *reader, struct ttd_error *error);

/** Ends the current chunk; all of it is intact. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status ttd_check_chunk(struct ttd_reader *reader, struct ttd_error *error);

/** Completes the verdict after the reading has ended with `status` and `error`. */
void ttd_check_end(struct ttd_reader *reader, enum ttd_status status,
                   const struct ttd_error *error);

/** Compares an index chunk with the chunks read. Sets `what` to a static description of the first
 * difference, or NULL. Returns false if memory is exhausted. */
bool ttd_index_check_chunk(struct ttd_reader *reader, struct ttd_cursor payload, const char **what);

/** Notes a chunk that the next index chunk must list. Returns false if memory is exhausted. */
bool ttd_index_check_see(struct ttd_reader *reader, const struct ttd_header *header);

#endif
