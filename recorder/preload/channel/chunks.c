/* SPDX-License-Identifier: MIT */
/*
 * Takes chunks from the channel, and waits for them: by sleeping, or, where the program may be
 * confined by seccomp, by spinning. A wait ends without a chunk once the collector has stalled.
 */
#include <errno.h>
#include <linux/futex.h>
#include <time.h>

#include "channel_pool.h"
#include "preload/system/sys.h"
#include "preload/channel/target.h"

enum {
    WAIT_ONCE_NS = 20 * 1000 * 1000,
    WAIT_TIMES = 3000,   /* a minute of a collector that works but frees no chunk */
    SPINS_MAX = 1 << 27, /* about as long as COLLECTOR_STALL_NS */
};

bool collector_is_gone(void)
{
    return atomic_load(&target_channel->stopped) != 0 ||
           (!process_is_elsewhere &&
            sys_call3(SYS_kill, target_channel->collector_pid, 0, 0) == -ESRCH);
}

/* Takes a free chunk in place of a full one; that then counts for the backlog. Small chunks do not
 * count: each chain has at most one. */
static uint32_t take_chunk(uint32_t full, size_t words)
{
    struct channel *channel = target_channel;
    bool is_small = full == CHANNEL_NONE && words <= channel_chunk_words(1);
    bool counts = full != CHANNEL_NONE && !channel_chunk_is_small(full);
    if (counts && atomic_fetch_add(&channel->backlog, 1) >= CHANNEL_BACKLOG) {
        atomic_fetch_sub(&channel->backlog, 1);
        return CHANNEL_NONE;
    }
    uint32_t index = channel_take_chunk(&target_view, channel, is_small);
    if (index != CHANNEL_NONE)
        channel_chunk(&target_view, index)->counts = 0;
    if (counts && index != CHANNEL_NONE)
        channel_chunk(&target_view, full)->counts = 1;
    else if (counts)
        atomic_fetch_sub(&channel->backlog, 1);
    return index;
}

/* Whether the collector takes no more records of this process; it then stops recording. */
static bool chunks_is_unwanted(void)
{
    const struct process_slot *slot = channel_process(&target_view, process_index());
    bool refused = atomic_load_explicit(&slot->state, memory_order_relaxed) == SLOT_REFUSED;
    if (!refused && !atomic_load(&target_channel->stopped))
        return false;
    target_on->refused = refused;
    target_on->on = 0;
    return true;
}

bool collector_has_stalled(struct patience *patience, uint64_t now, uint64_t limit)
{
    uint32_t progress = atomic_load_explicit(&target_channel->heartbeat, memory_order_relaxed) +
                        atomic_load_explicit(&target_channel->freed, memory_order_relaxed);
    uint64_t passed = now - patience->looked;
    if (progress != patience->progress || patience->looked == 0)
        *patience = (struct patience){.progress = progress};
    else /* whoever did not look for long may have been stopped together with the collector */
        patience->waited += passed < limit / 4 ? passed : limit / 4;
    patience->looked = now;
    return patience->waited > limit;
}

/* Waits for a chunk without a system call, as long as the collector frees some. */
static uint32_t spin_for_chunk(uint32_t full, size_t words)
{
    const struct channel *channel = target_channel;
    for (int i = 0; i < WAIT_TIMES; i++) {
        uint32_t freed = atomic_load(&channel->freed);
        uint32_t index = take_chunk(full, words);
        if (index != CHANNEL_NONE)
            return index;
        struct patience patience = {0};
        for (uint64_t spin = 1; atomic_load(&channel->freed) == freed; spin++) {
            if (collector_has_stalled(&patience, spin, SPINS_MAX) || chunks_is_unwanted())
                return CHANNEL_NONE;
            __builtin_ia32_pause();
        }
    }
    return CHANNEL_NONE;
}

static uint32_t sleep_for_chunk(uint32_t full, size_t words)
{
    struct channel *channel = target_channel;
    uint32_t index = CHANNEL_NONE;
    struct timespec once = {.tv_nsec = WAIT_ONCE_NS};
    struct patience patience = {0};
    atomic_fetch_add(&channel->waiters, 1);
    for (int i = 0; i < WAIT_TIMES; i++) {
        uint32_t freed = atomic_load(&channel->freed);
        atomic_store(&channel_is_short, false);
        index = take_chunk(full, words);
        if (index != CHANNEL_NONE || atomic_load(&channel_is_short))
            break;
        if (collector_is_gone())
            atomic_store(&channel->stopped, 1);
        if (chunks_is_unwanted() ||
            collector_has_stalled(&patience, sys_clock(), COLLECTOR_STALL_NS))
            break;
        collector_wake();
        sys_call6(SYS_futex, (long)&channel->freed, FUTEX_WAIT, freed, (long)&once, 0, 0);
    }
    atomic_fetch_sub(&channel->waiters, 1);
    return index;
}

uint32_t chunk_wait(uint32_t full, size_t words, bool *starving)
{
    if (chunks_is_unwanted())
        return CHANNEL_NONE;
    uint32_t index = take_chunk(full, words);
    if (index == CHANNEL_NONE && !*starving)
        index = process_is_confined ? spin_for_chunk(full, words) : sleep_for_chunk(full, words);
    *starving = index == CHANNEL_NONE;
    return index;
}
