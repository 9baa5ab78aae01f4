/* SPDX-License-Identifier: MIT */
/* The part of taking a snapshot that tells the frames of stacks. */
#include <stdlib.h>
#include <string.h>

#include "stacks/follower.h"
#include "taking.h"

/* Time to follow all stacks, while the process may be held. */
#define FRAMES_TIME_NS UINT64_C(50000000)

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
    uint64_t deadline = taking->memory.deadline;
    uint64_t limit = taking_now_ns() + FRAMES_TIME_NS;
    struct stack_frames frames;
    struct follower *follower =
        taking->stack_count != 0 ? follower_new(&taking->memory, &taking->subject) : NULL;
    bool is_written = true;
    size_t i = 0;
    if (deadline == 0 || limit < deadline)
        taking->memory.deadline = limit;
    while (follower != NULL && is_written && i < taking->stack_count &&
           !memory_is_late(&taking->memory)) {
        const struct held_stack *stack = &taking->stacks[i++];
        follower_list(follower, stack->registers, stack->span, &frames);
        is_written = calls->frames(calls->context, stack->tid, &frames);
    }
    calls->frames_missing(calls->context, taking->stack_count - i);
    taking->memory.deadline = deadline;
    follower_free(follower);
    taking_tick(taking);
    return is_written;
}
