/* SPDX-License-Identifier: MIT */
#include "collect/waiting_thread.h"

#include <string.h>

static uint32_t frame_count(const struct snapshot_request *request)
{
    return request->frame_count < SNAPSHOT_FRAMES ? request->frame_count : SNAPSHOT_FRAMES;
}

bool waiting_thread_frames(struct trace *trace, const struct ttd_snapshot *snapshot,
                           const struct snapshot_request *request)
{
    struct stack_frames frames = {.count = frame_count(request)};
    memcpy(frames.pcs, request->frame_pcs, frames.count * sizeof *frames.pcs);
    memcpy(frames.cfas, request->frame_cfas, frames.count * sizeof *frames.cfas);
    return trace_frames(trace, snapshot->number, snapshot->thread, &frames);
}

/* Has the addresses named that the thread was releasing: an allocator aborts if one is no block. */
static void name_released(struct process *process, uint32_t tid)
{
    for (size_t i = 0; i < process->thread_count; i++) {
        const struct thread_stream *thread = process->threads[i];
        if (thread->tid == tid && thread->has_held)
            trace_name_address(process->trace, thread->held.base_address);
    }
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
    trace_name_address(process->trace, request->fault_address);
    name_released(process, request->tid);
    for (size_t i = 0; i < fatal.count; i++)
        trace_name_address(process->trace, registers[i].value);
    fatal.thread = process_thread_id(process, fatal.position, request->tid);
    fatal.stack = trace_whole_stack(process->trace, request->frame_pcs, frame_count(request));
    return trace_fatal_signal(process->trace, &fatal);
}
