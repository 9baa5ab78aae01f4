/* SPDX-License-Identifier: MIT */
/**
 * Free entries of the channel's tables: both sides take and give them back, without locks. The
 * collector cannot rely on it: a recorded program may put anything there.
 */
#ifndef RECORDER_CHANNEL_POOL_H
#define RECORDER_CHANNEL_POOL_H

#include "channel_view.h"

/** Returns the field that names the next free entry after one; NULL if it cannot be mapped. */
typedef _Atomic uint32_t *channel_link(struct channel_view *view, uint32_t entry);

static inline _Atomic uint32_t *channel_process_link(struct channel_view *view, uint32_t entry)
{
    struct process_slot *slot = channel_process(view, entry);
    return slot ? &slot->free_next : NULL;
}

static inline _Atomic uint32_t *channel_thread_link(struct channel_view *view, uint32_t entry)
{
    struct thread_slot *slot = channel_thread(view, entry);
    return slot ? &slot->free_next : NULL;
}

static inline _Atomic uint32_t *channel_small_link(struct channel_view *view, uint32_t entry)
{
    struct chunk *chunk = channel_chunk(view, entry);
    return chunk ? &chunk->free_next : NULL;
}

static inline _Atomic uint32_t *channel_large_link(struct channel_view *view, uint32_t entry)
{
    return channel_small_link(view, entry + CHANNEL_SMALL_CHUNKS);
}

/**
 * Takes a free entry out of a pool of `count`. Returns CHANNEL_NONE if there is none, or none that
 * can be mapped. The tag keeps a stale top from matching.
 */
static inline uint32_t channel_take(struct channel_view *view, struct channel_pool *pool,
                                    uint32_t count, channel_link *link)
{
    uint64_t top = atomic_load_explicit(&pool->free, memory_order_acquire);
    while ((uint32_t)top != CHANNEL_NONE && (uint32_t)top <= count) {
        const _Atomic uint32_t *next = link(view, (uint32_t)top);
        if (!next)
            return CHANNEL_NONE;
        uint64_t new_top =
            ((top >> 32) + 1) << 32 | atomic_load_explicit(next, memory_order_relaxed);
        if (atomic_compare_exchange_weak_explicit(&pool->free, &top, new_top, memory_order_acquire,
                                                  memory_order_acquire))
            return (uint32_t)top;
    }
    uint32_t used = atomic_load_explicit(&pool->used, memory_order_relaxed);
    while (used < count && link(view, used + 1))
        if (atomic_compare_exchange_weak(&pool->used, &used, used + 1))
            return used + 1;
    return CHANNEL_NONE;
}

/** Gives an entry back. One that cannot be mapped is lost. */
static inline void channel_put(struct channel_view *view, struct channel_pool *pool, uint32_t entry,
                               channel_link *link)
{
    _Atomic uint32_t *next = link(view, entry);
    uint64_t top = atomic_load_explicit(&pool->free, memory_order_relaxed);
    uint64_t new_top;
    if (!next)
        return;
    do {
        atomic_store_explicit(next, (uint32_t)top, memory_order_relaxed);
        new_top = ((top >> 32) + 1) << 32 | entry;
    } while (!atomic_compare_exchange_weak_explicit(&pool->free, &top, new_top,
                                                    memory_order_release, memory_order_relaxed));
}

/** Returns how many entries, from the first, were ever taken from a pool of `count`. */
static inline uint32_t channel_used(const struct channel_pool *pool, uint32_t count)
{
    uint32_t used = atomic_load_explicit(&pool->used, memory_order_acquire);
    return used < count ? used : count;
}

/** Takes a free chunk; CHANNEL_NONE if there is none. */
static inline uint32_t channel_take_chunk(struct channel_view *view, struct channel *channel,
                                          bool is_small)
{
    if (is_small)
        return channel_take(view, &channel->free_small, CHANNEL_SMALL_CHUNKS, channel_small_link);
    uint32_t entry =
        channel_take(view, &channel->free_large, CHANNEL_LARGE_CHUNKS, channel_large_link);
    return entry != CHANNEL_NONE ? entry + CHANNEL_SMALL_CHUNKS : CHANNEL_NONE;
}

/** Empties a chunk and gives it back. */
static inline void channel_put_chunk(struct channel_view *view, struct channel *channel,
                                     uint32_t index)
{
    struct chunk *chunk = channel_chunk(view, index);
    if (!chunk)
        return;
    atomic_store_explicit(&chunk->committed, 0, memory_order_relaxed);
    atomic_store_explicit(&chunk->next, CHANNEL_NONE, memory_order_relaxed);
    if (channel_chunk_is_small(index))
        channel_put(view, &channel->free_small, index, channel_small_link);
    else
        channel_put(view, &channel->free_large, index - CHANNEL_SMALL_CHUNKS, channel_large_link);
}

#endif
