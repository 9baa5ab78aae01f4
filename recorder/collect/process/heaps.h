/* SPDX-License-Identifier: MIT */
/** The custom heaps of a process: those that it defines by ttdtrace/live_heap.h. */
#ifndef RECORDER_COLLECT_PROCESS_HEAPS_H
#define RECORDER_COLLECT_PROCESS_HEAPS_H

#include <ttdtrace/event.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct process;
struct thread_stream;

/** Stands for the handle of a parent where there is none. */
#define HEAP_OUTER UINT64_MAX

/**
 * A heap, in the chain of its bucket, in the list of its siblings, and in a list of heaps: existing
 * ones, parents before the heaps within them, or destroyed ones, in the order of their ends. The
 * latter give late calls their meaning, and the child of an earlier fork its heaps. The newest of a
 * handle is the first one in the chain.
 */
struct custom_heap {
    uint64_t handle;
    uint64_t sequence; /* when it was defined */
    uint64_t end;      /* when it was destroyed */
    bool has_ended;    /* it was destroyed */
    uint64_t within;   /* its parent's handle, 0 or HEAP_OUTER */
    ttd_id id, name;
    struct custom_heap *chained;
    struct custom_heap *parent; /* NULL for malloc's heap, or none, or if it was destroyed */
    struct custom_heap *child, *sibling, *sibling_before;
    struct custom_heap *before, *after;
    char text[]; /* its name */
};

struct heap_list {
    struct custom_heap *first, *last;
};

struct custom_heaps {
    uint64_t key;                 /* of the hash: a program cannot cause collisions */
    struct custom_heap **buckets; /* hash table, by handle */
    size_t bucket_count, count;
    struct heap_list live, destroyed;
    size_t ended_count;
    uint64_t forgotten; /* when the last of the heaps was destroyed that were given up; 0 if none */
};

void heap_table_free(struct custom_heaps *heaps);

struct heap_definition {
    uint64_t handle;
    uint64_t parent;   /* its handle; 0 for the heap of malloc; HEAP_OUTER */
    uint64_t sequence; /* of the definition */
    const char *name;  /* `size` bytes; TTD_LIVE_HEAP_NAME_MAX are kept */
    size_t size;
};

/** Defines a heap. An earlier heap that still has the handle is destroyed there, with those within
 * it. Does nothing if memory ran out. */
void heaps_define(struct process *process, const struct heap_definition *definition,
                  struct ttd_position position);

/**
 * Completes the event of a thread's call about a custom heap; its first operand is the handle. A
 * handle that is not known gets a heap without a name; one whose heap was destroyed means that
 * heap. Before a Destroy, heaps within the heap are destroyed at the same position.
 */
void heaps_complete(struct process *process, const struct thread_stream *thread,
                    struct ttd_event *event);

/** Gives the child of a fork the heaps that its parent had at a sequence, and at the child's begin
 * destroys those that were destroyed before. False if not all of them are known. */
bool heaps_inherit(struct process *child, const struct process *parent, uint64_t sequence,
                   struct ttd_position position);

/** Destroys all heaps, when the process image has ended. */
void heaps_end(struct process *process, struct ttd_position position);

#endif
