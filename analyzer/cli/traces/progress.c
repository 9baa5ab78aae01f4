/* SPDX-License-Identifier: MIT */
#include "cli/traces/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Calls between two readings of the clock. */
#define CALLS 64

static uint64_t now(void)
{
    struct timespec time = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

void progress_begin(struct progress *progress)
{
    *progress = (struct progress){.is_wanted = isatty(STDERR_FILENO), .begin = now()};
}

void progress_update(struct progress *progress, uint64_t done, uint64_t total)
{
    if (!progress->is_wanted || ++progress->calls % CALLS || !total)
        return;
    uint64_t time = now();
    if (time - progress->begin < 1000 || time - progress->last < 100)
        return;
    progress->last = time;
    progress->is_shown = true;
    double part = (double)done / (double)total;
    fprintf(stderr, "\rreading: %3.0f%%", 100 * (part < 1 ? part : 1));
}

void progress_end(struct progress *progress)
{
    if (progress->is_shown)
        fputs("\r\033[K", stderr);
    progress->is_shown = false;
}
