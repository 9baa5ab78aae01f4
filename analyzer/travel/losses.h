/* SPDX-License-Identifier: MIT */
/** Losses: what is missing in a trace, and whether that may have caused a finding. */
#ifndef ANALYZER_TRAVEL_LOSSES_H
#define ANALYZER_TRAVEL_LOSSES_H

#include <ttdtrace/reader.h>

/** Losses that are kept one by one; more are only counted. */
#define HEAP_LOSSES_KEPT 256

struct heap_losses {
    struct ttd_loss kept[HEAP_LOSSES_KEPT];
    size_t kept_count;
    /** All records, and those that a reader made up for damage. */
    uint64_t records;
    uint64_t damaged;
    /** Events of all records whose number is known; and records whose number is not. */
    uint64_t events;
    uint64_t unknown;
};

/** Adds the losses of a batch of that kind. */
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

/** Returns the number of records that may tell of an event after `from` and at `to` or before it.
 */
uint64_t heap_losses_between(const struct heap_losses *losses, struct ttd_position from,
                             struct ttd_position to);

/** Text for a reason, such as "buffers were full". Static. */
const char *heap_loss_text(enum ttd_loss_reason reason);

#endif
