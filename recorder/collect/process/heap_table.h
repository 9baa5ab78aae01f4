/* SPDX-License-Identifier: MIT */
/* The custom heaps that the collector remembers of a process, by handle. Nothing here writes. */
#ifndef RECORDER_COLLECT_PROCESS_HEAP_TABLE_H
#define RECORDER_COLLECT_PROCESS_HEAP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/event.h>

/* Stands for the handle of a parent where there is none. */
#define HEAP_OUTER UINT64_MAX

/*
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

/* Returns the newest heap of a handle, which may have been destroyed; NULL if there is none. */
struct custom_heap *heap_table_find(const struct custom_heaps *heaps, uint64_t handle);

/* Returns the heap that has a handle; NULL if none exists. */
struct custom_heap *heap_table_find_live(const struct custom_heaps *heaps, uint64_t handle);

/* Makes a heap with room for a name of `size` bytes, which is in no list yet. NULL if there is no
 * room. */
struct custom_heap *heap_table_new(struct custom_heaps *heaps, size_t size);

/* Adds a new heap, whose handle and parent are set. */
void heap_table_add(struct custom_heaps *heaps, struct custom_heap *heap);

/* Moves a heap to those that were destroyed. Those within it stay, without a parent. */
void heap_table_end(struct custom_heaps *heaps, struct custom_heap *heap, uint64_t sequence);

/* Forgets the heap that was destroyed first. */
void heap_table_forget(struct custom_heaps *heaps);

/* Lists the heaps that were defined up to a sequence, in that order. The caller frees the list.
 * NULL if memory ran out. */
struct custom_heap **heap_table_list(const struct custom_heaps *heaps, uint64_t sequence,
                                     size_t *count);

void heap_table_free(struct custom_heaps *heaps);

#endif
