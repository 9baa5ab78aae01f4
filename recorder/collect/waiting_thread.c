/* SPDX-License-Identifier: MIT */
#include "waiting_thread.h"

static uint32_t frame_count(const struct snapshot_request *request)
{
    return request->frame_count < SNAPSHOT_FRAMES ? request->frame_count : SNAPSHOT_FRAMES;
}

/* Returns the stack of the thread, or TTD_NONE. */
static ttd_id stack_of(struct trace *trace, const struct snapshot_request *request)
{
    ttd_id stack = TTD_NONE;
    uint32_t hash = 0;
    for (uint32_t i = frame_count(request); i-- > 0;) {
        uint64_t pc = request->frame_pcs[i]; /* the program may change it meanwhile */
        hash = stacks_hash(&trace->stacks, hash, pc);
        stack = trace_stack(trace, hash, stack, pc);
    }
    return stack;
}

bool waiting_thread_frames(struct trace *trace, const struct ttd_snapshot *snapshot,
                           const struct snapshot_request *request)
{
    uint32_t count = frame_count(request);
    struct ttd_frames frames = {.snapshot = snapshot->number,
                                .thread = snapshot->thread,
                                .stack = stack_of(trace, request),
                                .addresses = request->frame_cfas};
    while (frames.count < count && request->frame_cfas[frames.count] != 0)
        frames.count++;
    return frames.stack == TTD_NONE || trace_frames(trace, &frames);
}

bool waiting_thread_signal(struct process *process, struct host *host,
                           const struct ttd_snapshot *snapshot,
                           const struct snapshot_request *request)
{
    struct ttd_register registers[SNAPSHOT_REGISTERS];
    struct ttd_fatal_signal fatal = {
        .wall_time = process_time(process, host_tick(host)),
        .signal = request->signal,
        .code = request->code,
        .address = request->fault_address,
        .registers = registers,
    };
    if (snapshot != NULL) {
        fatal.position = snapshot->position;
        fatal.snapshot = snapshot->number;
    } else {
        fatal.position.sequence = atomic_fetch_add(&host->channel->sequence, 1) + 1;
    }
    if (request->signal > INT32_MAX || fatal.position.sequence > TTD_SEQUENCE_MAX)
        return false;
    for (uint32_t number = 0; number < SNAPSHOT_REGISTERS; number++)
        if ((request->registers_valid >> number & 1) != 0)
            registers[fatal.count++] =
                (struct ttd_register){.number = number, .value = request->registers[number]};
    fatal.thread = process_thread_id(process, fatal.position, request->tid);
    fatal.stack = stack_of(process->trace, request);
    return trace_fatal_signal(process->trace, &fatal);
}
