/* SPDX-License-Identifier: MIT */
/* Takes a snapshot of a child into memory, and reads it back. */
#ifndef TEST_SNAPSHOT_TRACE_OF_H
#define TEST_SNAPSHOT_TRACE_OF_H

#include <ttdtrace/ttdtrace.h>

#include "snapshot/take.h"

struct found_stack {
    uint32_t tid;
    struct stack_frames frames;
};

struct found {
    struct ttd_snapshot snapshot;
    struct ttd_region *regions;
    size_t region_count;
    struct ttd_reference *references;
    size_t reference_count;
    uint32_t tids[256]; /* by the trace's id - 1 */
    size_t thread_count;
    struct found_stack stacks[64]; /* of the threads that were stopped */
    size_t stack_count;
    size_t stacks_missing;
    size_t variable_count; /* words of data that are references */
    bool is_taken;
};

/* The code by which processes are copied, if they are; NULL at first. */
extern const struct borrowed_code *trace_of_copy;

/* Takes a snapshot of a process that was forked by this one and has its modules. */
struct found trace_of(uint32_t pid, const struct snapshot_request *request,
                      const struct heap_pages *pages, uint64_t time_limit);
void found_free(struct found *found);

/* Returns the reference at an address; NULL if there is none. `region` is where it lies. */
const struct ttd_reference *found_at(const struct found *found, uint64_t address,
                                     const struct ttd_region **region);

#endif
