/* SPDX-License-Identifier: MIT */
/* Recording threads: their slots, their chunks, their records. */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <time.h>

#include "sys.h"
#include "target.h"
#include "unwind_mem.h"

__thread struct thread *target_self __attribute__((tls_model("initial-exec")));

/* By slot; a slot that the collector frees is that of a dead thread, so its memory is free too. A
 * page of them at a time. */
enum { PAGE_THREADS = CHANNEL_PAGE / sizeof(struct thread *) };
static struct thread **_Atomic thread_pages[(CHANNEL_THREADS + PAGE_THREADS - 1) / PAGE_THREADS];

enum {
    WAIT_ONCE_NS = 20 * 1000 * 1000,
    WAIT_TIMES = 3000,             /* a minute, if the collector goes on but frees nothing for us */
    STALL_NS = 1500 * 1000 * 1000, /* in which the collector does not go on */
    SPINS_MAX = 1 << 25,           /* about as long */
    LEAP_NS = 1000 * 1000 * 1000,  /* no thread moves the clock on by as much */
};

bool collector_is_gone(void)
{
    return atomic_load(&target_channel->stopped) != 0 ||
           sys_call3(SYS_kill, target_channel->collector_pid, 0, 0) == -ESRCH;
}

/* The full chunk counts from now on, if there is another one. A small one does not: each chain has
 * at most one. */
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

/* Whether nobody takes what this process publishes: then it stops. */
static bool is_unwanted(void)
{
    const struct process_slot *slot = channel_process(&target_view, process_index());
    bool refused = atomic_load_explicit(&slot->state, memory_order_relaxed) == SLOT_REFUSED;
    if (!refused && !atomic_load(&target_channel->stopped))
        return false;
    target_on->refused = refused;
    target_on->on = 0;
    return true;
}

/* How far the collector was when it was last seen to go on, and when that was. */
struct patience {
    uint32_t progress;
    uint64_t since;
};

/* Whether the collector has stalled: it is stopped, or what it writes to takes nothing. `now` and
 * `limit` are of any unit. */
static bool is_stalled(struct patience *patience, uint64_t now, uint64_t limit)
{
    uint32_t progress = atomic_load_explicit(&target_channel->heartbeat, memory_order_relaxed) +
                        atomic_load_explicit(&target_channel->freed, memory_order_relaxed);
    if (progress != patience->progress || patience->since == 0)
        *patience = (struct patience){progress, now};
    return now - patience->since > limit;
}

/* Waits for a chunk without a system call: as long as the collector frees some. */
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
            if (is_stalled(&patience, spin, SPINS_MAX) || is_unwanted())
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
        if (is_unwanted() || is_stalled(&patience, sys_clock(), STALL_NS))
            break;
        collector_wake();
        sys_call6(SYS_futex, (long)&channel->freed, FUTEX_WAIT, freed, (long)&once, 0, 0);
    }
    atomic_fetch_sub(&channel->waiters, 1);
    return index;
}

uint32_t chunk_wait(uint32_t full, size_t words, bool *starving)
{
    if (is_unwanted())
        return CHANNEL_NONE;
    uint32_t index = take_chunk(full, words);
    if (index == CHANNEL_NONE && !*starving)
        index = process_is_confined ? spin_for_chunk(full, words) : sleep_for_chunk(full, words);
    *starving = index == CHANNEL_NONE;
    return index;
}

/* Helps the collector to keep the clock right. */
static void tick(void)
{
    uint64_t ns = process_is_confined ? 0 : sys_clock();
    if (ns == 0)
        return;
    uint64_t clock = atomic_load_explicit(&target_channel->clock, memory_order_relaxed);
    /* In a time namespace of its own the process has another clock. */
    if (ns - target_channel->start - clock < LEAP_NS)
        channel_tick(target_channel, ns);
}

static bool thread_next_chunk(struct thread *thread, size_t words)
{
    uint32_t index = chunk_wait(thread->chunk_index, words, &thread->starving);
    if (index == CHANNEL_NONE)
        return false;
    tick();
    struct chunk *chunk = channel_chunk(&target_view, index);
    thread->is_switching = true;
    atomic_signal_fence(memory_order_seq_cst);
    if (thread->chunk != NULL)
        atomic_store_explicit(&thread->chunk->next, index, memory_order_release);
    else
        atomic_store_explicit(&thread->slot->first, index, memory_order_release);
    thread->chunk = chunk;
    thread->chunk_index = index;
    thread->data = thread->write = chunk->data;
    thread->limit = chunk->data + channel_chunk_words(index);
    atomic_signal_fence(memory_order_seq_cst);
    thread->is_switching = false;
    return true;
}

/* The event is lost: say so, and begin anew, with a fragment and a stack that depend on nothing. */
static bool lose(struct thread *thread)
{
    atomic_fetch_add_explicit(&thread->slot->lost[LOSS_OVERFLOW], 1, memory_order_relaxed);
    thread->sequence = 0;
    unwinder_reset(thread->unwinder);
    return false;
}

void thread_capture(struct thread *thread, const struct unwind_regs *caller,
                    struct unwind_delta *stack)
{
    unwinder_capture(thread->unwinder, caller, stack);
}

bool thread_append(struct thread *thread, unsigned operation, const struct unwind_delta *stack,
                   const uint64_t *operands, unsigned count)
{
    uint32_t kept = stack->kept, added = stack->added;
    /* One word for the head, up to two for sequence and clock. */
    if (UNLIKELY(thread->limit - thread->write < (ptrdiff_t)(3 + count + added))) {
        if (!thread_next_chunk(thread, 3 + count + added + kept))
            return lose(thread);
        added += kept;
        kept = 0;
    }
    thread_pending(thread);
    unsigned flags = thread_stamp(thread) ? RECORD_SEQUENCE : 0;
    uint64_t *word = thread->write + 1;
    if (flags & RECORD_SEQUENCE)
        *word++ = thread->sequence;
    uint64_t clock = atomic_load_explicit(&target_channel->clock, memory_order_relaxed);
    if (clock != thread->clock) {
        flags |= RECORD_CLOCK;
        *word++ = thread->clock = clock;
    }
    for (unsigned i = 0; i < count; i++)
        *word++ = operands[i];
    const uintptr_t *frames = stack->frames + kept;
    for (uint32_t i = 0; i < added; i++)
        *word++ = frames[i];
    *thread->write = record_head(operation, flags, kept, added, (unsigned)(word - thread->write));
    thread->write = word;
    atomic_store_explicit(&thread->chunk->committed,
                          (uint32_t)((char *)word - (char *)thread->data), memory_order_release);
    thread_not_pending(thread);
    return true;
}

/* Where the memory of a slot's thread is noted; NULL if there is no memory for that. */
static struct thread **thread_place(uint32_t index)
{
    struct thread **_Atomic *page = &thread_pages[(index - 1) / PAGE_THREADS];
    struct thread **known = atomic_load(page);
    if (known == NULL) {
        struct thread **fresh = unwind_pages(CHANNEL_PAGE);
        if (fresh == NULL)
            return NULL;
        if (atomic_compare_exchange_strong(page, &known, fresh))
            known = fresh;
        else
            unwind_pages_free(fresh, CHANNEL_PAGE);
    }
    return &known[(index - 1) % PAGE_THREADS];
}

static struct thread *thread_memory(uint32_t index)
{
    struct thread **place = thread_place(index);
    if (place == NULL)
        return NULL;
    struct thread *thread = *place;
    if (thread == NULL) {
        struct unwinder *unwinder = unwind_pages(unwinder_size() + LEVELS * sizeof *thread);
        if (unwinder == NULL)
            return NULL;
        thread = (struct thread *)((char *)unwinder + unwinder_size());
        thread->unwinder = unwinder;
        *place = thread;
    }
    for (int i = 0; i < LEVELS; i++)
        thread[i] = (struct thread){.unwinder = thread[i].unwinder,
                                    .is_special = i > 0,
                                    .outer = i > 0 ? &thread[i - 1] : NULL,
                                    .inner = i + 1 < LEVELS ? &thread[i + 1] : NULL};
    return thread;
}

static uint32_t claim_slot(void)
{
    uint32_t claimed = SLOT_CLAIMED | process_index() << SLOT_PROCESS;
    for (;;) {
        uint32_t expected = SLOT_FREE;
        uint32_t index = channel_take(&target_view, &target_channel->free_threads, CHANNEL_THREADS,
                                      channel_thread_link);
        if (index == CHANNEL_NONE ||
            atomic_compare_exchange_strong(&channel_thread(&target_view, index)->state, &expected,
                                           claimed))
            return index;
    }
}

/* Makes a claimed slot that of a thread, or of an inner level of the one in slot `within`. */
static void begin_slot(struct thread *thread, uint32_t index, uint32_t tid, uint32_t within)
{
    struct thread_slot *slot = channel_thread(&target_view, index);
    /* In this order: a collector that does not see the slot claimed is not ahead of us. */
    atomic_fetch_add(&target_channel->attention, 1);
    thread->sequence = atomic_fetch_add(&target_channel->sequence, 1) + 1;
    slot->within = within;
    slot->tid = tid;
    slot->sequence = thread->sequence;
    atomic_store_explicit(&slot->first, CHANNEL_NONE, memory_order_relaxed);
    atomic_store_explicit(&slot->pending, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->in_release, 0, memory_order_relaxed);
    for (int i = 0; i < LOSS_COUNTERS; i++)
        atomic_store_explicit(&slot->lost[i], 0, memory_order_relaxed);
    atomic_store_explicit(&slot->state, SLOT_READY | process_index() << SLOT_PROCESS,
                          memory_order_release);
    thread->slot_index = index;
    thread->slot = slot;
}

struct thread *thread_attach(uintptr_t stack_pointer)
{
    struct stack_bounds bounds = stack_bounds_find(stack_pointer);
    uint32_t tid = thread_id();
    uint32_t index = tid != 0 ? claim_slot() : CHANNEL_NONE;
    if (index == CHANNEL_NONE)
        return NULL;
    struct thread_slot *slot = channel_thread(&target_view, index);
    struct thread *thread = thread_memory(index);
    if (thread == NULL) {
        atomic_store(&slot->state, SLOT_FREE);
        channel_put(&target_view, &target_channel->free_threads, index, channel_thread_link);
        return NULL;
    }
    unwinder_init(thread->unwinder, bounds.low, bounds.high, bounds.grows);
    thread->stack = bounds;
    begin_slot(thread, index, tid, CHANNEL_NONE);
    target_self = thread;
    return thread;
}

/* The slot that stands for the thread in the trace. */
static uint32_t first_slot(const struct thread *level)
{
    while (level->outer != NULL)
        level = level->outer;
    return level->slot->within != CHANNEL_NONE ? level->slot->within : level->slot_index;
}

void thread_recover(struct thread *level)
{
    unwinder_abandon(level->unwinder);
    level->clock = 0;
    if (!level->is_switching)
        return;
    /* Half a record is not published, but a chain without its end is lost: there is another one. */
    uint32_t tid = level->slot->tid, within = first_slot(level), index = claim_slot();
    level->is_switching = false;
    level->chunk = NULL;
    level->chunk_index = CHANNEL_NONE;
    level->data = level->write = level->limit = NULL;
    if (index != CHANNEL_NONE)
        begin_slot(level, index, tid, within);
    else
        target_on->on = 0;
}

bool thread_attach_inner(struct thread *level)
{
    const struct thread *thread = level;
    while (thread->outer != NULL)
        thread = thread->outer;
    if (level->unwinder == NULL)
        level->unwinder = unwind_pages(unwinder_size());
    uint32_t index = level->unwinder != NULL ? claim_slot() : CHANNEL_NONE;
    if (index == CHANNEL_NONE)
        return false;
    unwinder_init(level->unwinder, thread->stack.low, thread->stack.high, thread->stack.grows);
    begin_slot(level, index, thread->slot->tid, first_slot(level));
    return true;
}
