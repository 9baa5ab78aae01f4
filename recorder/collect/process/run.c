/* SPDX-License-Identifier: MIT */
#include "collect/process/processes.h"

#include <string.h>

#include "channel_record.h"

enum { RUN_CALLS = 64, RUN_FRAMES = 512 };

/* Distance of the records that are asked for ahead of their use: they are in the cache of the
 * processor that has written them. */
enum { PREFETCH_BYTES = 512 };

/* The stack of a call that is not known yet, as a difference from the stack of the call before. */
struct run_stack {
    uint32_t kept;
    uint32_t depth; /* the other frames are in run.frames, behind the frames of the call before */
};

struct run_frame {
    uint64_t pc;
    uint32_t hash;
};

/* Calls are copied out of the channel before anything is looked up: the program may change it, and
 * the entries of all their stacks come into the cache at the same time. */
struct run {
    uint32_t word; /* behind the last of them, in the chunk */
    uint32_t count;
    uint32_t known; /* calls, from the first, whose stacks were found among the recent ones */
    uint32_t frame_count;
    uint32_t depth; /* of the last one's stack */
    struct ttd_call calls[RUN_CALLS];
    struct run_stack stacks[RUN_CALLS];
    struct run_frame frames[RUN_FRAMES];
};

/* Copies the call of a record with this head. False if it is none that is usual. */
static inline bool run_take_call(struct run *run, uint64_t head, const volatile uint64_t *operands)
{
    const struct call_shape *shape = &call_shapes[record_operation(head)];
    struct ttd_call *call = &run->calls[run->count];
    bool frees = shape->usual == USUAL_FREE;
    if (shape->usual == USUAL_NONE || record_flags(head) != 0 ||
        record_words(head) != 1u + shape->operands + record_added(head))
        return false;
    uint64_t first = operands[0], second = shape->operands == 2 ? operands[1] : 0;
    call->address = frees ? first : second;
    call->size = frees ? second : first;
    call->action = shape->action;
    call->api = (uint8_t)record_operation(head);
    call->parameter_count = shape->parameters;
    return call->address != 0;
}

/* Returns where a stack is kept that was looked up lately. */
static inline struct recent_stack *run_recent_at(struct thread_stream *thread, ttd_id parent,
                                                 uint64_t pc)
{
    uint32_t mixed = (uint32_t)pc * UINT32_C(0x9E3779B1) + parent * UINT32_C(0x85EBCA6B);
    return &thread->recent[mixed >> (32 - RECENT_BITS)];
}

/* Looks for frames among the recent stacks, up to one that is not there. Returns its depth, or
 * `end`. */
static inline uint32_t run_recall_frames(struct thread_stream *thread, uint32_t depth, uint32_t end,
                                         const volatile uint64_t *frames, ttd_id *stack)
{
    ttd_id parent = depth != 0 ? thread->path[depth - 1] : TTD_NONE;
    for (; depth < end; depth++) {
        uint64_t pc = *frames++;
        const struct recent_stack *recent = run_recent_at(thread, parent, pc);
        if (recent->pc != pc || recent->parent != parent || recent->id == TTD_NONE)
            break;
        thread->path[depth] = parent = recent->id;
        thread->hashes[depth] = recent->hash;
    }
    *stack = parent;
    return depth;
}

/* Copies frames, from `depth` on, and begins to look them up. */
static inline void run_copy_frames(struct run *run, uint32_t *hashes, const struct stacks *stacks,
                                   uint32_t depth, uint32_t end, const volatile uint64_t *frames)
{
    uint32_t frame = run->frame_count, hash = depth != 0 ? hashes[depth - 1] : 0;
    run->stacks[run->count] = (struct run_stack){depth, end};
    for (; depth < end; frame++) {
        uint64_t pc = *frames++;
        hash = stacks_hash(stacks, hash, pc);
        stacks_prefetch(stacks, hash);
        hashes[depth++] = hash;
        run->frames[frame] = (struct run_frame){pc, hash};
    }
    run->frame_count = frame;
}

/* Takes the frames of a record. */
static inline void run_take_frames(struct run *run, struct thread_stream *thread,
                                   const struct stacks *stacks, uint64_t head,
                                   const volatile uint64_t *frames)
{
    uint32_t kept = record_kept(head), depth = kept, end = kept + record_added(head);
    /* Behind a stack that is not known yet, none is: it may depend on that one. */
    if (run->known == run->count)
        depth = run_recall_frames(thread, depth, end, frames, &run->calls[run->count].stack);
    run->depth = end != 0 ? end : run->depth; /* without a stack, the last one stays known */
    if (depth == end && run->known == run->count)
        run->known++;
    else
        run_copy_frames(run, thread->hashes, stacks, depth, end, frames + (depth - kept));
}

/* Copies the usual calls that come next, as far as they are known to be committed. */
static void take_run(struct run *run, struct thread_stream *thread, const struct stacks *stacks)
{
    const volatile uint64_t *words = thread->stream.chunk->data + thread->stream.word;
    const volatile uint64_t *end = thread->stream.chunk->data + thread->stream.committed;
    uint64_t head =
        thread->next.head; /* the position was read with it: words[0] may have changed */
    run->depth = thread->depth;
    run->count = run->known = run->frame_count = 0;
    while (run->count < RUN_CALLS) {
        uint32_t kept_frames = record_kept(head), added_frames = record_added(head),
                 count = record_words(head);
        ptrdiff_t remaining = end - words;
        if (count > remaining || kept_frames > run->depth ||
            kept_frames + added_frames > STACK_DEPTH_MAX ||
            added_frames > RUN_FRAMES - run->frame_count || !run_take_call(run, head, words + 1))
            break;
        /* A call that releases has returned if its thread went on. */
        if (count == remaining && run->calls[run->count].action == TTD_ACTION_FREE)
            break;
        words += count;
        __builtin_prefetch((const void *)((uintptr_t)words + PREFETCH_BYTES));
        run_take_frames(run, thread, stacks, head, words - added_frames);
        run->count++;
        if (words == end)
            break;
        head = words[0];
    }
    run->word = (uint32_t)(words - thread->stream.chunk->data);
}

/* Looks up the stacks that are not known yet. */
static void run_find_stacks(struct run *run, struct thread_stream *thread, struct trace *trace)
{
    const struct run_frame *frame = run->frames;
    for (uint32_t i = run->known; i < run->count; i++) {
        uint32_t depth = run->stacks[i].kept, end = run->stacks[i].depth;
        ttd_id stack = depth != 0 ? thread->path[depth - 1] : TTD_NONE;
        for (; depth < end; frame++) {
            ttd_id parent = stack;
            thread->path[depth++] = stack = trace_stack(trace, frame->hash, parent, frame->pc);
            *run_recent_at(thread, parent, frame->pc) =
                (struct recent_stack){frame->pc, parent, stack, frame->hash};
        }
        run->calls[i].stack = stack;
    }
    thread->depth = run->depth;
}

size_t run_merge(struct process *process, struct thread_stream *thread)
{
    struct trace *trace = process->trace;
    struct run run;
    if (thread->has_held || !thread->has_next || !thread->is_defined ||
        record_flags(thread->next.head) != 0)
        return 0;
    struct ttd_calls calls = {
        .calls = run.calls,
        .thread = thread->id,
        .heap = trace->heap,
        .wall_time = thread->wall_time,
        .start = {thread->sequence, thread->steps + 1},
    };
    if (ttd_position_compare(calls.start, trace->last) < 0)
        return 0;
    /* The recent stacks are forgotten if the trace's table has lost some. */
    if (thread->recent_removals != trace->stacks.removals) {
        memset(thread->recent, 0, sizeof thread->recent);
        thread->recent_removals = trace->stacks.removals;
    }
    take_run(&run, thread, &trace->stacks);
    if (run.count == 0)
        return 0;
    run_find_stacks(&run, thread, trace);
    calls.count = run.count;
    trace_calls(trace, &calls);
    thread->steps += 2 * (uint64_t)run.count;
    thread->stream.word = run.word;
    thread->has_next = false;
    return run.count;
}
