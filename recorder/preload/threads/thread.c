/* SPDX-License-Identifier: MIT */
/* Recording threads: their slots, memory and records. */
#include <string.h>

#include "../../channel_pool.h"
#include "../../channel_record.h"
#include "../system/sys.h"
#include "island.h"
#include "signal_stack.h"
#include "thread.h"
#include "../system/memory.h"

__thread struct thread *target_self __attribute__((tls_model("initial-exec")));

/* The memory of threads, by slot, in pages that are mapped when needed. The collector frees a slot
 * when its thread is dead, so the memory can be used again as well. */
enum { PAGE_THREADS = CHANNEL_PAGE / sizeof(struct thread *) };
static struct thread **_Atomic thread_pages[(CHANNEL_THREADS + PAGE_THREADS - 1) / PAGE_THREADS];

/* A difference of clocks that no thread brings about: it is another clock. */
#define LEAP_NS UINT64_C(1000000000)

/* Moves the clock on, as the collector does: it may not get a processor in time. */
static void tick(void)
{
    uint64_t ns = process_is_confined ? 0 : sys_clock();
    if (ns == 0)
        return;
    uint64_t clock = atomic_load_explicit(&target_channel->clock, memory_order_relaxed);
    /* A process in a time namespace of its own has another clock. */
    if (ns - target_channel->start - clock < LEAP_NS)
        channel_tick(target_channel, ns);
}

static bool thread_next_chunk(struct thread *thread, size_t words)
{
    uint32_t index = chunk_wait(thread->chunk_index, words, &thread->starving);
    if (index == CHANNEL_NONE)
        return false;
    tick();
    atomic_store_explicit(&target_on->has_records, 1, memory_order_relaxed);
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

/* Counts a lost event. The next one begins a fragment and has a whole stack, so that it depends on
 * nothing. */
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

/* Stamps a record, for which there is room, and writes what comes first in it. Returns where the
 * rest belongs. */
static inline uint64_t *begin_record(struct thread *thread, unsigned *flags,
                                     const uint64_t *operands, unsigned count)
{
    thread_pending(thread);
    *flags = thread_stamp(thread) ? RECORD_SEQUENCE : 0;
    uint64_t *word = thread->write + 1;
    if (*flags & RECORD_SEQUENCE)
        *word++ = thread->sequence;
    uint64_t clock = atomic_load_explicit(&target_channel->clock, memory_order_relaxed);
    if (clock != thread->clock) {
        *flags |= RECORD_CLOCK;
        *word++ = thread->clock = clock;
    }
    for (unsigned i = 0; i < count; i++)
        *word++ = operands[i];
    return word;
}

/* Makes the record visible to the collector. */
static inline void publish(struct thread *thread, uint64_t head)
{
    uint64_t *end = thread->write + record_words(head);
    *thread->write = head;
    thread->write = end;
    atomic_store_explicit(&thread->chunk->committed, (uint32_t)((char *)end - (char *)thread->data),
                          memory_order_release);
    thread_not_pending(thread);
}

/* Suspends the thread after a record that has reached its island's throttle, or because the
 * recorder's user has paused it. An inner level records on. */
static __attribute__((noinline, cold)) void suspend(struct thread *thread)
{
    if (thread->outer != NULL || thread != target_self)
        return;
    if (island_state(thread) == TTD_ISLAND_THROTTLED)
        island_changed(thread, TTD_THREAD_THROTTLED, thread->island.client, NULL, 0);
    island_update(thread);
}

bool thread_append(struct thread *thread, unsigned operation, const struct unwind_delta *stack,
                   const uint64_t *operands, unsigned count)
{
    uint32_t kept_frames = stack->kept, added_frames = stack->added;
    /* One word for the head, up to two for sequence and clock. */
    if (UNLIKELY(thread->limit - thread->write < (ptrdiff_t)(3 + count + added_frames))) {
        if (!thread_next_chunk(thread, 3 + count + added_frames + kept_frames))
            return lose(thread);
        added_frames += kept_frames;
        kept_frames = 0;
    }
    unsigned flags;
    uint64_t *word = begin_record(thread, &flags, operands, count);
    const uintptr_t *frames = stack->frames + kept_frames;
    for (uint32_t i = 0; i < added_frames; i++)
        *word++ = frames[i];
    publish(thread, record_head(operation, flags, kept_frames, added_frames,
                                (unsigned)(word - thread->write)));
    bool is_paused = atomic_load_explicit(&thread->slot->paused, memory_order_relaxed) != 0;
    if (UNLIKELY(--thread->island.remaining == 0 || is_paused))
        suspend(thread);
    return true;
}

bool thread_append_event(struct thread *thread, const uint64_t client[2], uint32_t flags,
                         const struct event_data *data)
{
    const size_t word_size = sizeof(uint64_t);
    size_t words = data->field_count + (data->size + word_size - 1) / word_size;
    const uint64_t operands[EVENT_OPERANDS] = {client[0], client[1], [EVENT_FLAGS] = flags,
                                               [EVENT_SIZE] =
                                                   data->field_count * word_size + data->size};
    if (thread->limit - thread->write < (ptrdiff_t)(3 + EVENT_OPERANDS + words) &&
        !thread_next_chunk(thread, 3 + EVENT_OPERANDS + words))
        return lose(thread);
    unsigned changes;
    uint64_t *word = begin_record(thread, &changes, operands, EVENT_OPERANDS);
    for (size_t i = 0; i < data->field_count; i++)
        word[i] = data->fields[i];
    if (data->size != 0)
        memcpy(word + data->field_count, data->data, data->size);
    word += words;
    publish(thread,
            record_head(OP_EVENT, changes, 0, (unsigned)words, (unsigned)(word - thread->write)));
    return true;
}

/* Returns the entry for the memory of a slot's thread; NULL if its page cannot be mapped. */
static struct thread **thread_entry(uint32_t index)
{
    struct thread **_Atomic *page = &thread_pages[(index - 1) / PAGE_THREADS];
    struct thread **slots = atomic_load(page);
    if (slots == NULL) {
        struct thread **fresh = unwind_pages_used(CHANNEL_PAGE);
        if (fresh == NULL)
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
    if (entry == NULL)
        return NULL;
    struct thread *thread = *entry;
    if (thread == NULL) {
        struct unwinder *unwinder = unwind_pages_used(unwinder_size() + LEVELS * sizeof *thread);
        if (unwinder == NULL)
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

/* Begins a claimed slot, for a thread or for an inner level of the thread in slot `within`. */
static void begin_slot(struct thread *thread, uint32_t index, uint32_t tid, uint32_t within)
{
    struct thread_slot *slot = channel_thread(&target_view, index);
    /* Only after the claim: a collector that has not seen it has not gone beyond this sequence. */
    atomic_fetch_add(&target_channel->attention, 1);
    thread->sequence = atomic_fetch_add(&target_channel->sequence, 1) + 1;
    slot->within = within;
    slot->tid = tid;
    slot->sequence = thread->sequence;
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
    signal_stack_give(&thread->signal_stack);
    target_self = thread;
    return thread;
}

static const struct thread *first_level(const struct thread *level)
{
    while (level->outer != NULL)
        level = level->outer;
    return level;
}

/* Returns the slot that stands for the thread in the trace. */
static uint32_t first_slot(const struct thread *level)
{
    level = first_level(level);
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

struct unwinder *thread_unwinder(struct thread *level)
{
    const struct stack_bounds *stack = &first_level(level)->stack;
    if (level->unwinder == NULL)
        level->unwinder = unwind_pages_used(unwinder_size());
    if (level->slot == NULL && level->unwinder != NULL)
        unwinder_init(level->unwinder, stack->low, stack->high, stack->grows);
    return level->unwinder;
}

bool thread_attach_inner(struct thread *level)
{
    uint32_t index = thread_unwinder(level) != NULL ? claim_slot() : CHANNEL_NONE;
    if (index == CHANNEL_NONE)
        return false;
    begin_slot(level, index, first_level(level)->slot->tid, first_slot(level));
    return true;
}
