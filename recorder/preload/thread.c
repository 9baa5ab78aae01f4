/* SPDX-License-Identifier: MIT */
/* Recording threads: their slots, their chunks, their records. */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <time.h>

#include "sys.h"
#include "target.h"

__thread struct thread *target_self __attribute__((tls_model("initial-exec")));

/* By slot; a slot that the collector frees is that of a dead thread, so its memory is free too. */
static struct thread *threads[CHANNEL_THREADS];

enum {
    WAIT_ONCE_NS = 20 * 1000 * 1000,
    WAIT_TIMES = 3000, /* a minute: long enough for a stalled disk, and yet never for ever */
    LEAP_NS = 1000 * 1000 * 1000, /* no thread moves the clock on by as much */
};

bool collector_is_gone(void)
{
    return atomic_load(&target_channel->stopped) != 0 ||
           sys_call3(SYS_kill, target_channel->collector_pid, 0, 0) == -ESRCH;
}

/* The full chunk counts from now on, if there is another one. */
static uint32_t take_chunk(struct chunk *full)
{
    struct channel *channel = target_channel;
    if (full != NULL && atomic_fetch_add(&channel->backlog, 1) >= CHANNEL_BACKLOG) {
        atomic_fetch_sub(&channel->backlog, 1);
        return CHANNEL_NONE;
    }
    uint32_t index = channel_take_chunk(channel);
    if (index != CHANNEL_NONE)
        channel_chunk(channel, index)->counts = 0;
    if (full != NULL && index != CHANNEL_NONE)
        full->counts = 1;
    else if (full != NULL)
        atomic_fetch_sub(&channel->backlog, 1);
    return index;
}

/* Whether nobody takes what this process publishes: then it stops. */
static bool is_unwanted(void)
{
    const struct process_slot *slot = channel_process(target_channel, process_index());
    bool refused = atomic_load_explicit(&slot->state, memory_order_relaxed) == SLOT_REFUSED;
    if (!refused && !atomic_load(&target_channel->stopped))
        return false;
    target_on->refused = refused;
    target_on->on = 0;
    return true;
}

uint32_t chunk_wait(struct chunk *full, bool *starving)
{
    struct channel *channel = target_channel;
    if (is_unwanted())
        return CHANNEL_NONE;
    uint32_t index = take_chunk(full);
    if (index != CHANNEL_NONE || *starving) {
        *starving = index == CHANNEL_NONE;
        return index;
    }
    struct timespec once = {.tv_nsec = WAIT_ONCE_NS};
    atomic_fetch_add(&channel->waiters, 1);
    for (int i = 0; i < WAIT_TIMES; i++) {
        uint32_t freed = atomic_load(&channel->freed);
        index = take_chunk(full);
        if (index != CHANNEL_NONE)
            break;
        if (collector_is_gone())
            atomic_store(&channel->stopped, 1);
        if (is_unwanted())
            break;
        collector_wake();
        sys_call6(SYS_futex, (long)&channel->freed, FUTEX_WAIT, freed, (long)&once, 0, 0);
    }
    atomic_fetch_sub(&channel->waiters, 1);
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

static bool thread_next_chunk(struct thread *thread)
{
    uint32_t index = chunk_wait(thread->chunk, &thread->starving);
    if (index == CHANNEL_NONE)
        return false;
    tick();
    struct chunk *chunk = channel_chunk(target_channel, index);
    if (thread->chunk != NULL)
        atomic_store_explicit(&thread->chunk->next, index, memory_order_release);
    else
        atomic_store_explicit(&thread->slot->first, index, memory_order_release);
    thread->chunk = chunk;
    thread->data = thread->write = chunk->data;
    thread->limit = chunk->data + CHUNK_WORDS;
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
    thread->phase = PHASE_RECORD;
    atomic_signal_fence(memory_order_seq_cst);
    unwinder_capture(thread->unwinder, caller, stack);
    atomic_signal_fence(memory_order_seq_cst);
    thread->phase = PHASE_CALL;
}

bool thread_append(struct thread *thread, unsigned operation, const struct unwind_delta *stack,
                   const uint64_t *operands, unsigned count)
{
    uint32_t kept = stack->kept, added = stack->added;
    thread->phase = PHASE_RECORD;
    atomic_signal_fence(memory_order_seq_cst);
    /* One word for the head, up to two for sequence and clock. */
    if (UNLIKELY(thread->limit - thread->write < (ptrdiff_t)(3 + count + added))) {
        if (!thread_next_chunk(thread))
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
    atomic_signal_fence(memory_order_seq_cst);
    thread->phase = PHASE_CALL;
    return true;
}

static struct thread *thread_memory(uint32_t index)
{
    struct thread *thread = threads[index - 1];
    struct unwinder *unwinder;
    if (thread != NULL) {
        unwinder = thread->unwinder;
    } else {
        unwinder = sys_map(unwinder_size() + sizeof *thread);
        if (unwinder == NULL)
            return NULL;
        thread = (struct thread *)((char *)unwinder + unwinder_size());
        threads[index - 1] = thread;
    }
    memset(thread, 0, sizeof *thread);
    thread->unwinder = unwinder;
    return thread;
}

static uint32_t claim_slot(void)
{
    uint32_t claimed = SLOT_CLAIMED | process_index() << SLOT_PROCESS;
    for (uint32_t index = 1; index <= CHANNEL_THREADS; index++) {
        struct thread_slot *slot = channel_thread(target_channel, index);
        uint32_t expected = SLOT_FREE;
        if (atomic_load_explicit(&slot->state, memory_order_relaxed) == SLOT_FREE &&
            atomic_compare_exchange_strong(&slot->state, &expected, claimed))
            return index;
    }
    return CHANNEL_NONE;
}

struct thread *thread_attach(uintptr_t stack_pointer)
{
    struct stack_bounds bounds = stack_bounds_find(stack_pointer);
    uint32_t index = claim_slot();
    if (index == CHANNEL_NONE)
        return NULL;
    struct thread_slot *slot = channel_thread(target_channel, index);
    struct thread *thread = thread_memory(index);
    if (thread == NULL) {
        atomic_store(&slot->state, SLOT_FREE);
        return NULL;
    }
    unwinder_init(thread->unwinder, bounds.low, bounds.high, bounds.grows);
    thread->stack = bounds;
    thread->slot = slot;
    /* In this order: a collector that does not see the slot claimed is not ahead of us. */
    atomic_fetch_add(&target_channel->attention, 1);
    thread->sequence = atomic_fetch_add(&target_channel->sequence, 1) + 1;
    slot->tid = (uint32_t)sys_call3(SYS_gettid, 0, 0, 0);
    slot->sequence = thread->sequence;
    atomic_store_explicit(&slot->first, CHANNEL_NONE, memory_order_relaxed);
    atomic_store_explicit(&slot->pending, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->in_release, 0, memory_order_relaxed);
    for (int i = 0; i < LOSS_COUNTERS; i++)
        atomic_store_explicit(&slot->lost[i], 0, memory_order_relaxed);
    atomic_store_explicit(&slot->state, SLOT_READY | process_index() << SLOT_PROCESS,
                          memory_order_release);
    target_self = thread;
    return thread;
}
