/* SPDX-License-Identifier: MIT */
/** The parts of the search for errors: what they share, and the judging of calls. */
#ifndef ANALYZER_ANALYSES_ERRORS_ERRORS_PARTS_H
#define ANALYZER_ANALYSES_ERRORS_ERRORS_PARTS_H

#include "analyses/errors/errors.h"
#include "analyses/errors/last_calls.h"

struct error_finder {
    struct heap_errors *errors;
    const struct heap_arrival *arrival;
    const struct heap_live *live;
    struct heap_freed freed;
    /** All gaps of the trace. */
    struct heap_gaps gaps;
    struct heap_status_table statuses;
    /** The process had blocks before the trace began; addresses that no block can have. */
    bool has_early_blocks;
    uint64_t misaligned;
    uint64_t searched;
    struct heap_last_calls last_calls;
};

/** A finding of a kind about a call, which is certain so far. */
struct heap_finding heap_finding_of(enum heap_error_kind kind, const struct ttd_event *event);

/** Makes a block the one that the finding is about. */
void heap_finding_set_block(struct heap_finding *finding, const struct heap_block *block);

/** Adds a finding, with the signal if the process died in its call. Statuses as heap_errors_add().
 */
enum ttd_status heap_error_finder_add(struct error_finder *finder,
                                      const struct heap_finding *finding);

/** Judges a call by the state just before it; for an observer. */
enum ttd_status heap_error_finder_see_call(void *context, const struct ttd_event *event);

#endif
