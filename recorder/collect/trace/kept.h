/* SPDX-License-Identifier: MIT */
/*
 * The calls of a trace that has only live blocks. They are kept back until a snapshot, or the end:
 * a block that is released before is left out with both of its calls. What then remains is written
 * in the order of the calls, so that the trace has the right blocks there, and is a trace like any
 * other.
 */
#ifndef RECORDER_COLLECT_TRACE_KEPT_H
#define RECORDER_COLLECT_TRACE_KEPT_H

#include <stdbool.h>
#include <stddef.h>

#include <ttdtrace/ttdtrace.h>

struct kept_call;

struct kept {
    struct kept_call *calls;
    size_t count, capacity;
    size_t gone;        /* of these, calls that are left out */
    uint32_t *numbers;  /* hash table of acquisitions, by block: number of the call from 1 on */
    size_t number_room; /* a power of two; 0 before the first */
    uint64_t key;       /* random: addresses come from an untrusted process */
    uint64_t left_out;  /* calls in all that were left out */
};

/* Returns an empty table; NULL if there is no memory. */
struct kept *kept_new(void);
void kept_free(struct kept *kept);

/* Adds a call, of which the memory of the parameters is not kept. False if there is no memory. */
bool kept_add(struct kept *kept, const struct ttd_event *event);

/* Removes the calls, the first of all first, and hands them over. */
void kept_take(struct kept *kept, void (*take)(void *context, const struct ttd_event *event),
               void *context);

#endif
