/* SPDX-License-Identifier: MIT */
/* Appends a thread's records to its chunks. */
#include "preload/threads/recorded_thread.h"

#include <string.h>

#include "channel_record.h"
#include "preload/system/sys.h"
#include "preload/threads/chosen.h"
#include "preload/threads/island.h"

/* A difference of clocks that no thread brings about: it is another clock. */
#define LEAP_NS UINT64_C(1000000000)

/* Moves the clock on, as the collector does: it may not get a processor in time. */
static void record_tick(void)
{
    uint64_t ns = process_is_confined ? 0 : sys_clock();
    if (ns == 0)
        return;
    uint64_t clock = atomic_load_explicit(&target_channel->clock, memory_order_relaxed);
    /* A process in a time namespace of its own has another clock. */
    if (ns - target_channel->start - clock < LEAP_NS)
        channel_tick(target_channel, ns);
}

/* Words of the end of a reallocation: head, sequence, clock, result. Each chunk has room for one
 * behind the thread's limit, so that a reallocation never waits for a chunk: the collector frees
 * none while it waits for this end. */
enum { REALLOCATION_END_WORDS = 4 };

static bool thread_next_chunk(struct thread *thread, size_t words)
{
    if (target_channel->flags & CHANNEL_LOSES)
        thread->starving = true; /* does not wait */
    uint32_t index =
        chunk_wait(thread->chunk_index, words + REALLOCATION_END_WORDS, &thread->starving);
    if (index == CHANNEL_NONE)
        return false;
    record_tick();
    atomic_store_explicit(&target_on->has_records, 1, memory_order_relaxed);
    struct chunk *chunk = channel_chunk(&target_view, index);
    thread->is_switching = true;
    atomic_signal_fence(memory_order_seq_cst);
    if (thread->chunk)
        atomic_store_explicit(&thread->chunk->next, index, memory_order_release);
    else
        atomic_store_explicit(&thread->slot->first, index, memory_order_release);
    thread->chunk = chunk;
    thread->chunk_index = index;
    thread->data = thread->write = chunk->data;
    thread->limit = chunk->data + channel_chunk_words(index) - REALLOCATION_END_WORDS;
    atomic_signal_fence(memory_order_seq_cst);
    thread->is_switching = false;
    return true;
}

/* Counts a lost event. The next one begins a fragment and has a whole stack, so that it depends on
 * nothing. */
static bool record_lose(struct thread *thread)
{
    atomic_fetch_add_explicit(&thread->slot->lost[LOSS_OVERFLOW], 1, memory_order_relaxed);
    thread->sequence = 0;
    unwinder_reset(thread->unwinder);
    return false;
}

/* Stamps a record (there is room for it), and writes its beginning. Returns where the rest
 * belongs. */
static inline uint64_t *record_begin(struct thread *thread, unsigned *flags,
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

/*
 * Distance of the memory that is asked for ahead of its use. The collector has read a chunk before
 * it is used again, so every line must be taken from the cache of another processor, and a store
 * that waits for its line holds up all those behind it. With two threads that do little else, the
 * whole recording takes two thirds of the time where the processors share no cache, and as long
 * where they do.
 */
enum { PREFETCH_BYTES = 512 };

/* Begins to take a line for writing. A hint: addresses that are not mapped do no harm, and
 * processors that do not know it ignore it. The compiler's own prefetch would ask for a copy that
 * can only be read. */
static inline void record_prefetch_for_writing(const void *line)
{
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
}

/* Makes the record visible to the collector. */
static inline void record_publish(struct thread *thread, uint64_t head)
{
    uint64_t *end = thread->write + record_words(head);
    record_prefetch_for_writing((const char *)end + PREFETCH_BYTES);
    *thread->write = head;
    thread->write = end;
    atomic_store_explicit(&thread->chunk->committed, (uint32_t)((char *)end - (char *)thread->data),
                          memory_order_release);
    thread_not_pending(thread);
}

/* Whether a record of this operation is the first one of a reallocation. */
static bool record_begins_reallocation(unsigned operation)
{
    return (call_facts_of(operation).effect & TTD_EFFECT_ACTION_MASK) == TTD_EFFECT_REALLOC;
}

/* Suspends the thread after a record that has reached its island's throttle, or because the
 * recorder's user has paused it; not between the two records of a reallocation. An inner level
 * records on. */
static __attribute__((noinline, cold)) void record_suspend(struct thread *thread,
                                                           unsigned operation)
{
    if (thread->outer || thread != target_self || record_begins_reallocation(operation))
        return;
    if (island_state(thread) == TTD_ISLAND_THROTTLED)
        island_changed(thread, TTD_THREAD_THROTTLED, thread->island.client, NULL, 0);
    island_update(thread);
}

/* Whether the record is the end of a reallocation whose begin is the last record of the chunk. In a
 * fork's child it is not. */
static bool record_has_reserve(const struct thread *thread, unsigned operation)
{
    bool is_end = operation == OP_REALLOC_END || operation == OP_REALLOC_COPIED ||
                  operation == OP_REALLOC_REMAPPED;
    return is_end && thread->write != thread->data && thread->write <= thread->limit;
}

bool thread_append(struct thread *thread, unsigned operation, const struct unwind_delta *stack,
                   const uint64_t *operands, unsigned count)
{
    uint32_t kept_frames = stack->kept, added_frames = stack->added;
    /* One word for the head, up to two for sequence and clock. */
    if (UNLIKELY(thread->limit - thread->write < (ptrdiff_t)(3 + count + added_frames)) &&
        !record_has_reserve(thread, operation)) {
        if (!thread_next_chunk(thread, 3 + count + added_frames + kept_frames))
            return record_lose(thread);
        added_frames += kept_frames;
        kept_frames = 0;
    }
    unsigned flags;
    uint64_t *word = record_begin(thread, &flags, operands, count);
    const uintptr_t *frames = stack->frames + kept_frames;
    for (uint32_t i = 0; i < added_frames; i++)
        *word++ = frames[i];
    record_publish(thread, record_head(operation, flags, kept_frames, added_frames,
                                       (unsigned)(word - thread->write)));
    bool is_paused = atomic_load_explicit(&thread->slot->paused, memory_order_relaxed) != 0;
    if (UNLIKELY(--thread->island.remaining == 0 || is_paused))
        record_suspend(thread, operation);
    return true;
}

bool thread_has_stack(unsigned operation)
{
    static const uint32_t kinds[] = {[ACQUIRES] = CALLS_ACQUIRE,
                                     [RELEASES] = CALLS_RELEASE,
                                     [REALLOCATES] = CALLS_REALLOCATE,
                                     [RESIZES] = CALLS_REALLOCATE,
                                     [OTHER] = CALLS_OTHER};
    uint32_t stackless = atomic_load_explicit(&target_channel->stackless, memory_order_relaxed);
    return stackless == 0 || (stackless & kinds[chosen_kind_of(operation)]) == 0;
}

void thread_reduce_stack(struct thread *thread, unsigned operation, struct unwind_delta *stack)
{
    uint32_t limit = atomic_load_explicit(&target_channel->stack_depth, memory_order_relaxed);
    uint32_t depth = stack->kept + stack->added;
    bool has_stack = thread_has_stack(operation);
    if (depth == 0 || (limit == 0 && has_stack))
        return;
    /* The collector does not see the omitted record: the next one has a whole stack. */
    unwinder_reset(thread->unwinder);
    if (!has_stack) {
        *stack = (struct unwind_delta){0};
        return;
    }
    uint32_t left_out = depth > limit ? depth - limit : 0;
    stack->frames += left_out;
    stack->kept = 0;
    stack->added = depth - left_out;
}

bool thread_record_chosen(struct thread *thread, unsigned operation,
                          const struct unwind_regs *caller, const uint64_t *operands,
                          unsigned count)
{
    enum chosen_part part = chosen_call(thread, operation, caller, operands, count);
    if (part == CHOSEN_NONE)
        return false;
    struct unwind_delta stack;
    unsigned recorded = part == CHOSEN_WHOLE ? operation : TTD_API_FREE;
    thread_capture(thread, recorded, caller, &stack);
    if (recorded == operation)
        return thread_append(thread, operation, &stack, operands, count);
    thread_append(thread, TTD_API_FREE, &stack, operands, 1);
    thread->steps++;
    return false;
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
        return record_lose(thread);
    unsigned changes;
    uint64_t *word = record_begin(thread, &changes, operands, EVENT_OPERANDS);
    for (size_t i = 0; i < data->field_count; i++)
        word[i] = data->fields[i];
    if (data->size != 0)
        memcpy(word + data->field_count, data->data, data->size);
    word += words;
    record_publish(thread, record_head(OP_EVENT, changes, 0, (unsigned)words,
                                       (unsigned)(word - thread->write)));
    return true;
}
