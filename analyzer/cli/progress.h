/* SPDX-License-Identifier: MIT */
/** How far a long command is, on standard error if that is a terminal. */
#ifndef ANALYZER_CLI_PROGRESS_H
#define ANALYZER_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool is_wanted;
    bool is_shown;
    unsigned calls;
    /** Milliseconds of a monotonic clock: the beginning, and the last display. */
    uint64_t begin;
    uint64_t last;
};

void progress_begin(struct progress *progress);

/** Says that `done` of `total` bytes are read; cheap. Nothing is shown in the first second. */
void progress_update(struct progress *progress, uint64_t done, uint64_t total);

/** Removes the display. */
void progress_end(struct progress *progress);

#endif
