/* SPDX-License-Identifier: MIT */
/* Threads begin to record: their slots in the channel, and their memory. */
#include "preload/threads/recorded_thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include "channel_pool.h"
#include "preload/system/own_memory.h"
#include "preload/system/sys.h"
#include "preload/threads/island.h"
#include "preload/threads/internal.h"

__thread struct thread_locals thread_locals __attribute__((tls_model("initial-exec")));

/* The memory of threads, by slot, in pages that are mapped when needed. The collector frees a slot
 * when its thread is dead, so the memory can be used again as well. */
enum { PAGE_THREADS = CHANNEL_PAGE / sizeof(struct thread *) };
static struct thread **_Atomic thread_pages[(CHANNEL_THREADS + PAGE_THREADS - 1) / PAGE_THREADS];

/* Returns the entry for the memory of a slot's thread; NULL if its page cannot be mapped. */
static struct thread **thread_entry(uint32_t index)
{
    struct thread **_Atomic *page = &thread_pages[(index - 1) / PAGE_THREADS];
    struct thread **slots = atomic_load(page);
    if (!slots) {
        struct thread **fresh = unwind_pages_used(CHANNEL_PAGE);
        if (!fresh)
            return NULL;
        if (atomic_compare_exchange_strong(page, &slots, fresh))
            slots = fresh;
        else
            unwind_pages_free(fresh, CHANNEL_PAGE);
    }
    return &slots[(index - 1) % PAGE_THREADS];
}

static struct thread *thread_memory(uint32_t index)
{
    struct thread **entry = thread_entry(index);
    if (!entry)
        return NULL;
    struct thread *thread = *entry;
    if (!thread) {
        size_t size = unwinder_size() + LEVELS * sizeof *thread;
        /* A copy follows no stacks, and so does not use most of it. */
        struct unwinder *unwinder = process_is_copy ? unwind_pages(size) : unwind_pages_used(size);
        if (!unwinder)
            return NULL;
        thread = (struct thread *)((char *)unwinder + unwinder_size());
        thread->unwinder = unwinder;
        *entry = thread;
    }
    for (int i = 0; i < LEVELS; i++) {
        thread[i] = (struct thread){.unwinder = thread[i].unwinder,
                                    .signal_stack = thread[i].signal_stack,
                                    .is_special = i > 0,
                                    .outer = i > 0 ? &thread[i - 1] : NULL,
                                    .inner = i + 1 < LEVELS ? &thread[i + 1] : NULL};
        island_open(&thread[i].island, (const uint64_t[2]){0}, 0, UINT64_MAX);
    }
    return thread;
}

/*
 * Keeps handlers of signals away while a slot is claimed and not ready: the collector waits for it,
 * and would for ever if a handler jumped out of the hook, or ended the thread. Signals that
 * instructions cause come nevertheless. A confined process cannot ask for it. Returns whether it
 * did; `before` is for recorded_admit_signals().
 */
static bool recorded_block_signals(uint64_t *before)
{
    static const int caused[] = {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
    uint64_t signals = UINT64_MAX;
    for (size_t i = 0; i < sizeof caused / sizeof *caused; i++)
        signals &= ~(UINT64_C(1) << (caused[i] - 1));
    return !process_is_confined && sys_call6(SYS_rt_sigprocmask, SIG_BLOCK, (long)&signals,
                                             (long)before, sizeof signals, 0, 0) == 0;
}

static void recorded_admit_signals(bool are_blocked, const uint64_t *before)
{
    if (are_blocked)
        sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)before, 0, sizeof *before, 0, 0);
}

static uint32_t recorded_claim_slot(void)
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

/* Begins a claimed slot, for a thread or for an inner level of the thread in slot `within`. */
static void recorded_begin_slot(struct thread *thread, uint32_t index, uint32_t tid,
                                uint32_t within)
{
    struct thread_slot *slot = channel_thread(&target_view, index);
    /* Only after the claim: a collector that has not seen it has not gone beyond this sequence. */
    atomic_fetch_add(&target_channel->attention, 1);
    thread->sequence = atomic_fetch_add(&target_channel->sequence, 1) + 1;
    slot->within = within;
    slot->tid = tid;
    slot->sequence = thread->sequence;
    slot->name[0] = '\0';
    if (within == CHANNEL_NONE && !process_is_confined)
        sys_call3(SYS_prctl, PR_GET_NAME, (long)slot->name, 0);
    atomic_store_explicit(&slot->first, CHANNEL_NONE, memory_order_relaxed);
    atomic_store_explicit(&slot->pending, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->in_release, 0, memory_order_relaxed);
    /* If this misses a pause that begins now, the collector sets it when it finds the thread. */
    const struct process_slot *process = channel_process(&target_view, process_index());
    atomic_store_explicit(&slot->paused, atomic_load(&process->paused), memory_order_relaxed);
    for (int i = 0; i < LOSS_COUNTERS; i++)
        atomic_store_explicit(&slot->lost[i], 0, memory_order_relaxed);
    atomic_store_explicit(&slot->state, SLOT_READY | process_index() << SLOT_PROCESS,
                          memory_order_release);
    thread->slot_index = index;
    thread->slot = slot;
}

static struct thread *recorded_attach(uintptr_t stack_pointer)
{
    struct stack_bounds bounds = stack_bounds_find(stack_pointer);
    uint32_t tid = thread_id();
    uint32_t index = tid != 0 ? recorded_claim_slot() : CHANNEL_NONE;
    if (index == CHANNEL_NONE)
        return NULL;
    struct thread_slot *slot = channel_thread(&target_view, index);
    struct thread *thread = thread_memory(index);
    if (!thread) {
        atomic_store(&slot->state, SLOT_FREE);
        channel_put(&target_view, &target_channel->free_threads, index, channel_thread_link);
        return NULL;
    }
    unwinder_init(thread->unwinder, bounds.low, bounds.high, bounds.grows);
    thread->stack = bounds;
    thread->handle = (uint64_t)pthread_self();
    recorded_begin_slot(thread, index, tid, CHANNEL_NONE);
    signal_stack_give(&thread->signal_stack);
    target_self = thread;
    return thread;
}

struct thread *thread_attach(uintptr_t stack_pointer)
{
    uint64_t before;
    bool are_blocked = recorded_block_signals(&before);
    struct thread *thread = recorded_attach(stack_pointer);
    recorded_admit_signals(are_blocked, &before);
    return thread;
}

/* Returns the thread with a pthread_t: the one that began last, since they are used again. */
static struct thread *thread_of_handle(uint64_t handle)
{
    struct thread *latest = NULL;
    for (size_t i = 0; i < sizeof thread_pages / sizeof *thread_pages; i++) {
        struct thread **slots = atomic_load(&thread_pages[i]);
        for (size_t k = 0; slots && k < PAGE_THREADS; k++)
            if (slots[k] && slots[k]->handle == handle && slots[k]->slot &&
                (!latest || slots[k]->slot->sequence > latest->slot->sequence))
                latest = slots[k];
    }
    return latest;
}

/* Whether the slot still belongs to a running thread of this process. */
static bool has_thread(const struct thread_slot *slot)
{
    uint32_t state = atomic_load(&slot->state), kind = state & SLOT_STATE;
    return state >> SLOT_PROCESS == process_index() && (kind == SLOT_READY || kind == SLOT_KNOWN) &&
           !process_is_confined &&
           sys_call3(SYS_tgkill, sys_call3(SYS_getpid, 0, 0, 0), slot->tid, 0) == 0;
}

void thread_rename(uint64_t handle, const char *name)
{
    bool is_own = handle == 0 || handle == (uint64_t)pthread_self();
    struct thread *thread = is_own ? target_self : thread_of_handle(handle);
    size_t size = 0;
    if (!thread || !thread->slot || (!is_own && !has_thread(thread->slot)))
        return;
    for (; size < THREAD_NAME_SIZE - 1 && name[size] != '\0'; size++)
        thread->slot->name[size] = name[size];
    thread->slot->name[size] = '\0';
}

static const struct thread *recorded_first_level(const struct thread *level)
{
    while (level->outer)
        level = level->outer;
    return level;
}

/* Returns the slot that stands for the thread in the trace. */
static uint32_t recorded_first_slot(const struct thread *level)
{
    level = recorded_first_level(level);
    return level->slot->within != CHANNEL_NONE ? level->slot->within : level->slot_index;
}

void thread_recover(struct thread *level)
{
    unwinder_abandon(level->unwinder);
    level->clock = 0;
    if (!level->is_switching)
        return;
    /* Half a record was not published. But the chain has no end to append to: a new slot begins
     * one. */
    uint64_t before;
    bool are_blocked = recorded_block_signals(&before);
    uint32_t tid = level->slot->tid, within = recorded_first_slot(level),
             index = recorded_claim_slot();
    level->is_switching = false;
    level->chunk = NULL;
    level->chunk_index = CHANNEL_NONE;
    level->data = level->write = level->limit = NULL;
    if (index != CHANNEL_NONE)
        recorded_begin_slot(level, index, tid, within);
    else
        target_on->on = 0;
    recorded_admit_signals(are_blocked, &before);
}

struct unwinder *thread_unwinder(struct thread *level)
{
    const struct stack_bounds *stack = &recorded_first_level(level)->stack;
    if (!level->unwinder)
        level->unwinder = unwind_pages_used(unwinder_size());
    if (!level->slot && level->unwinder)
        unwinder_init(level->unwinder, stack->low, stack->high, stack->grows);
    return level->unwinder;
}

bool thread_attach_inner(struct thread *level)
{
    uint64_t before;
    if (!thread_unwinder(level))
        return false;
    bool are_blocked = recorded_block_signals(&before);
    uint32_t index = recorded_claim_slot();
    if (index != CHANNEL_NONE)
        recorded_begin_slot(level, index, recorded_first_level(level)->slot->tid,
                            recorded_first_slot(level));
    recorded_admit_signals(are_blocked, &before);
    return index != CHANNEL_NONE;
}
