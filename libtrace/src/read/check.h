/* SPDX-License-Identifier: MIT */
/** Checks everything on the way through a file. Verify, recover and verdicts rest on it. */
#ifndef TTD_READ_CHECK_H
#define TTD_READ_CHECK_H

#include <ttdtrace/reader.h>
#include <ttdtrace/verify.h>

#include "base/cursor.h"
#include "codec/heap_state/blocks.h"
#include "codec/chunk/header.h"
#include "codec/chunk/index.h"
#include "codec/snapshots/order.h"

/** The ids that are defined, to check references. */
struct ttd_id_check {
    /** Identifiers cannot be checked: they are another trace's, or definitions were lost. */
    bool unknown;
    /** The last batch defines an id that was defined before. */
    bool redefines;
    ttd_id strings;
    ttd_id stacks;
    ttd_id modules;
    ttd_id threads;
    ttd_id heaps;
    /** The largest heap of an event, or of which a parent was told. */
    ttd_id settled_heap;
    uint64_t pages;
    struct ttd_list_state list;
    struct ttd_snapshot_order snapshots;
    /** Depth of each stack, from id 1 on. */
    uint16_t *depths;
    size_t depths_capacity;
};

/**
 * Checks the records of a batch, and takes in what they define.
 *
 * @param what  set to what is wrong, or NULL
 * @return false without memory
 */
bool ttd_id_check_batch(struct ttd_id_check *ids, const struct ttd_allocator *allocator,
                        const struct ttd_batch *batch, const char **what);

/** Checks a batch of snapshots, or of parts of snapshots but memory maps. Returns the first
 * violation; NULL if there is none, or the batch is of another kind. */
const char *ttd_id_check_snapshots(struct ttd_id_check *ids, const struct ttd_batch *batch);

/** Whether the id is defined, or 0, or that cannot be known. */
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
    /** The entry that the next index chunk must have for itself; set by a chunk of events. */
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
/** Called for each loss, in its place among the chunks. */
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
    /** Something is missing, so that totals cannot be checked. */
    bool damaged;
    /** The chunk at hand: a description of its first wrong statement, or NULL; whether it defines
     * ids again. */
    const char *wrong;
    bool redefines;
    /** All ids in the tables of the chunk of events at hand are defined. */
    bool has_known_tables;
    /** verdict.lost_events with the losses of the chunk at hand. */
    uint64_t lost_events;
    /** An End was read. It ends where the file should. */
    bool has_end;
    uint64_t end_behind;
    struct ttd_end end;
    /** The last problem, as long as it is not known how many events are missing with it. */
    bool is_held;
    struct ttd_problem held;
};

/** Starts a check of the whole file; the reader is before its first chunk. */
void ttd_check_begin(struct ttd_reader *reader);

/** Releases everything; the functions stay. */
void ttd_check_free(struct ttd_reader *reader);

/** Notes damage: so many bytes and chunks were passed over. */
void ttd_check_damage(struct ttd_reader *reader, const struct ttd_error *error, uint64_t bytes,
                      uint64_t chunks);

/** Notes the loss that was made of the damage noted since the last one. */
void ttd_check_lost(struct ttd_reader *reader, const struct ttd_loss *loss);

/** Checks a batch of the chunk at hand; TTD_ERROR_NO_MEMORY. */
enum ttd_status ttd_check_batch(struct ttd_reader *reader, const struct ttd_batch *batch,
                                struct ttd_error *error);

/**
 * Checks all stacks of the chunk at hand without decoding them, and takes it in if nothing is
 * wrong; TTD_ERROR_NO_MEMORY. Otherwise they are to be decoded, and checked batch by batch.
 *
 * @param is_right  set in any case
 */
enum ttd_status ttd_check_stacks(struct ttd_reader *reader, bool *is_right,
                                 struct ttd_error *error);

/** Checks the payload of an index chunk, which is the chunk at hand; TTD_ERROR_NO_MEMORY. */
enum ttd_status ttd_check_index(struct ttd_reader *reader, struct ttd_cursor payload,
                                struct ttd_error *error);

/** Takes in the chunk at hand, all of which is intact; TTD_ERROR_NO_MEMORY. */
enum ttd_status ttd_check_chunk(struct ttd_reader *reader, struct ttd_error *error);

/** Completes the verdict: the reading has come to its end with `status` and `error`. */
void ttd_check_end(struct ttd_reader *reader, enum ttd_status status,
                   const struct ttd_error *error);

/** Checks an index chunk against the chunks seen. `what` as above; false without memory. */
bool ttd_index_check_chunk(struct ttd_reader *reader, struct ttd_cursor payload, const char **what);

/** Takes in a chunk. False without memory. */
bool ttd_index_check_see(struct ttd_reader *reader, const struct ttd_header *header);

#endif
