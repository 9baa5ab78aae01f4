/* SPDX-License-Identifier: MIT */
/* Hash table of a trace's stacks: from (caller's stack, return address) to the stack's id. */
#ifndef TTD_COLLECT_TRACE_STACKS_H
#define TTD_COLLECT_TRACE_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/model.h>

struct stack_entry {
    uint64_t pc;
    ttd_id parent;
    ttd_id id; /* TTD_NONE in a free entry */
};

struct stacks {
    struct stack_entry *entries;
    size_t capacity; /* a power of two */
    size_t count;
    uint64_t key; /* random: addresses come from an untrusted process */
};

/* False when there is no memory. */
bool stacks_init(struct stacks *stacks);
void stacks_free(struct stacks *stacks);

static inline size_t stacks_slot(const struct stacks *stacks, ttd_id parent, uint64_t pc)
{
    /* Multiply and fold. Both factors depend on the key: a program cannot cause collisions. */
    __uint128_t product =
        (__uint128_t)(pc ^ stacks->key) *
        (((uint64_t)parent << 1 | 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (stacks->key << 1));
    return ((uint64_t)(product >> 64) ^ (uint64_t)product) & (stacks->capacity - 1);
}

/* Returns the entry of a frame, or the free entry where it belongs. */
static inline struct stack_entry *stacks_probe(const struct stacks *stacks, ttd_id parent,
                                               uint64_t pc)
{
    size_t slot = stacks_slot(stacks, parent, pc);
    for (;; slot = (slot + 1) & (stacks->capacity - 1)) {
        struct stack_entry *entry = &stacks->entries[slot];
        if (entry->id == TTD_NONE || (entry->pc == pc && entry->parent == parent))
            return entry;
    }
}

/*
 * Returns the entry of a frame, added if it is new: its id is then TTD_NONE, and the caller sets it
 * before any other call. Returns NULL if memory ran out.
 */
struct stack_entry *stacks_find(struct stacks *stacks, ttd_id parent, uint64_t pc);

/* Removes the stacks of addresses in [begin, end), which other code will use. */
void stacks_forget(struct stacks *stacks, uint64_t begin, uint64_t end);

#endif
