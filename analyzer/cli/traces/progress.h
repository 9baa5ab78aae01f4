/* SPDX-License-Identifier: MIT */
/** Progress of a long command, shown on standard error if that is a terminal. */
#ifndef ANALYZER_CLI_PROGRESS_H
#define ANALYZER_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool is_wanted;
    bool is_shown;
    unsigned calls;
    /** Milliseconds of a monotonic clock, at the beginning and at the last display. */
    uint64_t begin;
    uint64_t last;
};

void progress_begin(struct progress *progress);

/** Notes that `done` of `total` bytes are read. Cheap. Nothing is shown in the first second. */
void progress_update(struct progress *progress, uint64_t done, uint64_t total);

/** Removes the display. */
void progress_end(struct progress *progress);

#endif
