/* SPDX-License-Identifier: MIT */
/* The custom heaps of a process: those that it defines by ttdtrace/live_heap.h. */
#ifndef RECORDER_COLLECT_PROCESS_HEAPS_H
#define RECORDER_COLLECT_PROCESS_HEAPS_H

#include "collect/process/processes.h"

struct heap_definition {
    uint64_t handle;
    uint64_t parent;   /* its handle; 0 for the heap of malloc; HEAP_OUTER */
    uint64_t sequence; /* of the definition */
    const char *name;  /* `size` bytes, of which TTD_LIVE_HEAP_NAME_MAX are kept */
    size_t size;
};

/* Defines a heap. An earlier heap that still has the handle is destroyed there, with those within
 * it. Does nothing if memory ran out. */
void heaps_define(struct process *process, const struct heap_definition *definition,
                  struct ttd_position position);

/*
 * Completes the event of a thread's call about a custom heap, the first operand of which is the
 * handle. A handle that is not known gets a heap without a name; one whose heap was destroyed means
 * that heap. Before a Destroy, heaps within the heap are destroyed at the same position.
 */
void heaps_complete(struct process *process, const struct thread_stream *thread,
                    struct ttd_event *event);

/* Gives the child of a fork the heaps that its parent had at a sequence, and at the child's begin
 * destroys those that were destroyed before. False if not all of them are known. */
bool heaps_inherit(struct process *child, const struct process *parent, uint64_t sequence,
                   struct ttd_position position);

/* Destroys all heaps, when the process image has ended. */
void heaps_end(struct process *process, struct ttd_position position);

#endif
