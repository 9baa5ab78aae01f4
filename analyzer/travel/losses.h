/* SPDX-License-Identifier: MIT */
/** Losses: calls missing in a trace, and whether they may have caused a finding. */
#ifndef ANALYZER_TRAVEL_LOSSES_H
#define ANALYZER_TRAVEL_LOSSES_H

#include <stdbool.h>
#include <ttdtrace/reader.h>

#include "heap/groups.h"

/** Limit on the losses that are kept with their positions; any more are only counted. */
#define HEAP_LOSSES_KEPT 256

/** The last reason that is known. */
#define HEAP_LOSS_LAST TTD_LOSS_LIMIT

struct heap_losses {
    struct ttd_loss kept[HEAP_LOSSES_KEPT];
    size_t kept_count;
    /** All records of losses; and those among them that the reader made up where it met damage. */
    uint64_t records;
    uint64_t damaged;
    /** Events lost, where a record has the number; and the records without one. */
    uint64_t events;
    uint64_t unknown;
};

/** Adds the losses of a batch; ignores batches of other kinds. */
void heap_losses_add(struct heap_losses *losses, const struct ttd_batch *batch);

/**
 * Reads the recorded losses of a trace, and leaves the reader at the end.
 *
 * @param add  sees each batch of losses; anything but TTD_OK ends the reading with that status
 * @return as ttd_reader_next(), and what `add` returns.
 */
enum ttd_status heap_losses_read(struct ttd_reader *reader,
                                 enum ttd_status (*add)(void *context,
                                                        const struct ttd_batch *batch),
                                 void *context, struct ttd_error *error);

/** Whether `events` are all that were lost: all records have their number, and no damage may hide a
 * record. */
static inline bool heap_losses_are_exact(const struct heap_losses *losses)
{
    return !losses->unknown && !losses->damaged;
}

/** Returns the number of losses that may include an event after `from` and at or before `to`. */
uint64_t heap_losses_between(const struct heap_losses *losses, struct ttd_position from,
                             struct ttd_position to);

/**
 * Whether a loss leaves the live blocks at a position as they are: all of it was cut off before,
 * and the calls of the blocks that were live at the cut are there (spec, "Losses").
 */
static inline bool heap_loss_is_past(const struct ttd_loss *loss, struct ttd_position position)
{
    return loss->reason == TTD_LOSS_LIMIT &&
           ttd_position_compare(loss->last_good, ttd_position_min()) == 0 &&
           ttd_position_compare(loss->first_good, position) <= 0;
}

/** Returns the number of losses that may have changed the live blocks at a position. */
uint64_t heap_losses_before(const struct heap_losses *losses, struct ttd_position position);

/** Returns a static text for a reason, such as "buffers were full". */
const char *heap_loss_text(enum ttd_loss_reason reason);

/*
 * Gaps: ranges of positions where a thread ran without being recorded, because it was paused,
 * throttled or in no island. The thread may have released any block that was live in the gap. Such
 * a block is *unknown* from the gap on, until an event about it is recorded.
 *
 * Calls that are never recorded, such as a foreign allocator's, are a loss without an end and not a
 * gap: they make every finding uncertain, but no block unknown.
 */

struct heap_gap {
    struct ttd_position begin;
    /** Once the gaps are sorted: the latest end of this gap and all gaps that begin before it. */
    struct ttd_position end;
};

/** The gaps of a trace; all zero when empty. */
struct heap_gaps {
    struct heap_gap *items;
    size_t count;
    size_t capacity;
    bool is_sorted;
};

/** Adds the gaps among the losses of a batch; ignores batches of other kinds. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_gaps_add(struct heap_gaps *gaps, const struct ttd_batch *batch);

/** Reads the gaps of a trace, and leaves the reader at the end. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY, and as ttd_reader_next(). */
enum ttd_status heap_gaps_read(struct heap_gaps *gaps, struct ttd_reader *reader,
                               struct ttd_error *error);
void heap_gaps_free(struct heap_gaps *gaps);

/** Returns the latest end of all gaps that begin before a position; 0:0 if there is none. A block
 * that is live at the position and was allocated before this end is unknown. */
struct ttd_position heap_gaps_end(struct heap_gaps *gaps, struct ttd_position position);

/** Whether a block allocated at a position is unknown, where `unknown_before` is the result of
 * heap_gaps_end(). */
static inline bool heap_is_unknown(struct ttd_position allocated,
                                   struct ttd_position unknown_before)
{
    return ttd_position_compare(allocated, unknown_before) < 0;
}

/** Whether a gap begins before a position: blocks that are live there may have been released in it.
 */
bool heap_losses_have_gap(const struct heap_losses *losses, struct ttd_position position);

/* The choice of blocks that the recorder has made. */

/**
 * Reads the choice of a trace from its metadata; none is made if there are none, or if they are
 * damaged. Leaves the reader at an undefined position.
 *
 * @param choice  set on TTD_OK
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
enum ttd_status heap_choice_read(struct ttd_reader *reader, struct heap_choice *choice,
                                 struct ttd_error *error);

#endif
