/* SPDX-License-Identifier: MIT */
/* The part of taking a snapshot that tells the frames of stacks. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "snapshot/stacks/follower.h"
#include "snapshot/taking.h"

/* Processor time to follow all stacks, while the process may be held. On a busy machine as many are
 * followed as on an idle one; the deadline of the snapshot holds as well. */
#define FRAMES_TIME_NS UINT64_C(50000000)

static uint64_t processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void taking_note_stacks(struct taking *taking)
{
    const struct threads *threads = &taking->threads;
    taking->stacks = calloc(threads->count + 1, sizeof *taking->stacks);
    for (size_t i = 0; taking->stacks != NULL && i < threads->count; i++) {
        const struct thread_state *thread = &threads->items[i];
        uint64_t pointer = thread->registers[THREAD_STACK_POINTER];
        const struct region *region =
            thread->is_stopped ? regions_at(&taking->layout.regions, pointer) : NULL;
        /* It may be on another stack for the moment, such as one for signals. */
        if (region == NULL || region->kind != TTD_REGION_STACK || region->tid != thread->tid)
            continue;
        struct held_stack *stack = &taking->stacks[taking->stack_count++];
        stack->tid = thread->tid;
        stack->span = (struct memory_span){pointer, region->end};
        memcpy(stack->registers, thread->registers, sizeof stack->registers);
    }
}

bool taking_write_frames(struct taking *taking)
{
    const struct snapshot_calls *calls = &taking->order->calls;
    uint64_t limit = processor_ns() + FRAMES_TIME_NS;
    struct stack_frames frames;
    struct follower *follower =
        taking->stack_count != 0 ? follower_new(&taking->memory, &taking->subject) : NULL;
    bool is_written = true;
    size_t i = 0;
    while (follower != NULL && is_written && i < taking->stack_count && processor_ns() < limit &&
           !memory_is_late(&taking->memory)) {
        const struct held_stack *stack = &taking->stacks[i++];
        follower_list(follower, stack->registers, stack->span, &frames);
        is_written = calls->frames(calls->context, stack->tid, &frames);
    }
    calls->frames_missing(calls->context, taking->stack_count - i);
    follower_free(follower);
    taking_tick(taking);
    return is_written;
}
