/* SPDX-License-Identifier: MIT */
/** Hash table of a trace's stacks: from (caller's stack, return address) to the stack's id. Also of
 * other pairs of a number and an address. */
#ifndef RECORDER_COLLECT_TRACE_TRACE_STACKS_H
#define RECORDER_COLLECT_TRACE_TRACE_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/model.h>

#include "arrays.h"

struct stack_entry {
    uint64_t pc;
    ttd_id parent;
    ttd_id id; /* TTD_NONE in a free entry */
};

struct stacks {
    struct stack_entry *entries;
    uint32_t *hashes; /* of the entries, for a larger table */
    size_t capacity;  /* a power of two */
    size_t count;
    uint64_t key;      /* random: addresses come from an untrusted process */
    uint64_t removals; /* moves when stacks are removed */
};

/** False when there is no memory. */
bool stacks_init(struct stacks *stacks);
void stacks_free(struct stacks *stacks);

/**
 * Returns the hash of a frame: `parent` is the hash of its caller's stack, and 0 for the outermost
 * frame. It does not depend on ids. So the hashes of all frames of a stack, or of several, are
 * known before the first of them is looked up, and their entries come into the cache at the same
 * time.
 */
static inline uint32_t stacks_hash(const struct stacks *stacks, uint32_t parent, uint64_t pc)
{
    return (uint32_t)(array_hash(pc ^ (uint64_t)parent << 32 ^ stacks->key, stacks->key | 1) >> 16);
}

/** Begins to load the entry of a frame into the cache. */
static inline void stacks_prefetch(const struct stacks *stacks, uint32_t hash)
{
    __builtin_prefetch(&stacks->entries[hash & (stacks->capacity - 1)]);
}

/** Returns the entry of a frame, or the free entry where it belongs. */
static inline struct stack_entry *stacks_probe(const struct stacks *stacks, uint32_t hash,
                                               ttd_id parent, uint64_t pc)
{
    size_t slot = hash & (stacks->capacity - 1);
    for (;; slot = (slot + 1) & (stacks->capacity - 1)) {
        struct stack_entry *entry = &stacks->entries[slot];
        if (entry->id == TTD_NONE || (entry->pc == pc && entry->parent == parent))
            return entry;
    }
}

/**
 * Returns the entry of a frame, added if it is new: its id is then TTD_NONE, and the caller sets it
 * before any other call. Returns NULL if memory ran out.
 */
struct stack_entry *stacks_find(struct stacks *stacks, uint32_t hash, ttd_id parent, uint64_t pc);

/** Removes the stacks of addresses in [begin, end): other code will use them. */
void stacks_forget(struct stacks *stacks, uint64_t begin, uint64_t end);

#endif
