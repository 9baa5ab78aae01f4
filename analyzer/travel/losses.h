/* SPDX-License-Identifier: MIT */
/** Losses: what is missing in a trace, and whether that may have caused a finding. */
#ifndef ANALYZER_TRAVEL_LOSSES_H
#define ANALYZER_TRAVEL_LOSSES_H

#include <ttdtrace/reader.h>

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
    /** Events lost, where a record tells the number; and the records that do not tell it. */
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

/** Whether `events` are all that were lost: all records tell their number, and no damage may hide a
 * record. */
static inline bool heap_losses_are_exact(const struct heap_losses *losses)
{
    return !losses->unknown && !losses->damaged;
}

/** Returns the number of losses that may include an event after `from` and at or before `to`. */
uint64_t heap_losses_between(const struct heap_losses *losses, struct ttd_position from,
                             struct ttd_position to);

/** Returns a static text for a reason, such as "buffers were full". */
const char *heap_loss_text(enum ttd_loss_reason reason);

#endif
