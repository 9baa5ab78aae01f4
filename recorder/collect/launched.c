/* SPDX-License-Identifier: MIT */
#include <ttdtrace/names.h>

#include <stdio.h>
#include <sys/wait.h>

#include "collect/collector.h"
#include "collect/process/origin.h"

uint32_t launched_child(const struct collector *collector)
{
    return collector->is_attached ? 0 : (uint32_t)collector->launched;
}

/* A process that was attached to is not waited for by this one. */
static void launched_look_for_end(struct collector *collector)
{
    const struct process *process =
        processes_by_pid(&collector->processes, (uint32_t)collector->launched);
    bool has_ended = process
                         ? process->is_gone
                         : origin_is_over((uint32_t)collector->launched, collector->launched_start);
    if (has_ended && !collector->launched_has_ended)
        *collector->done = collector->launched_has_ended = true;
}

void launched_reap(struct collector *collector)
{
    int status;
    if (collector->is_attached) {
        launched_look_for_end(collector);
        return;
    }
    while (!collector->launched_has_ended &&
           waitpid(collector->launched, &status, WNOHANG | WUNTRACED | WCONTINUED) > 0) {
        collector->launched_stop = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
        if (WIFSTOPPED(status) || WIFCONTINUED(status))
            continue;
        collector->launched_status = status;
        *collector->done = collector->launched_has_ended = true;
    }
}

static bool launched_others_run(const struct collector *collector)
{
    for (size_t i = 0; i < collector->processes.count; i++) {
        uint32_t pid = collector->processes.items[i]->pid;
        if (pid != (uint32_t)collector->launched && origin_is_running(pid))
            return true;
    }
    return false;
}

void launched_follow_stop(struct collector *collector)
{
    if (collector->launched_stop == 0 ||
        (launched_others_run(collector) && !collector->wants_stop()))
        return;
    for (size_t i = 0; i < collector->processes.count; i++)
        trace_flush(collector->processes.items[i]->trace);
    collector->stop(collector->launched_stop);
    collector->launched_stop = 0;
}

enum { BATCH = 256 };

/* The function in the only frame of the blocks' stack. */
#define EARLIER_FUNCTION "[found when the recorder was attached]"

/* Returns the stack of the blocks; none is known: a frame in no module, with a name that says where
 * they come from. */
static ttd_id earlier_stack(struct trace *trace)
{
    static const uint64_t nowhere = 1;
    const struct ttd_name name = {.function = {EARLIER_FUNCTION, sizeof EARLIER_FUNCTION - 1}};
    if (!trace->writer ||
        (!trace->names && ttd_names_open(trace->writer, NULL, NULL, NULL, &trace->names) != TTD_OK))
        return TTD_NONE;
    trace_check(trace, ttd_names_symbol(trace->names, TTD_NONE, nowhere, &name, 1));
    return trace_whole_stack(trace, &nowhere, 1);
}

static void earlier_write_batch(struct trace *trace, ttd_id stack, const struct known_block *blocks,
                                size_t count, struct ttd_position position)
{
    struct ttd_call calls[BATCH];
    for (size_t i = 0; i < count; i++)
        calls[i] = (struct ttd_call){.address = blocks[i].address,
                                     .size = blocks[i].size,
                                     .stack = stack,
                                     .action = TTD_ACTION_ALLOC,
                                     .api = TTD_API_OTHER,
                                     .parameter_count = 1};
    trace_calls(trace, &(struct ttd_calls){
                           .calls = calls, .count = count, .heap = trace->heap, .start = position});
}

void earlier_write(struct trace *trace, const struct known_blocks *blocks, const char *reason,
                   struct ttd_position position)
{
    char text[256];
    const struct ttd_position begin = position;
    ttd_id stack = blocks->count != 0 ? earlier_stack(trace) : TTD_NONE;
    for (size_t i = 0; i < blocks->count; i += BATCH) {
        size_t count = blocks->count - i < BATCH ? blocks->count - i : BATCH;
        earlier_write_batch(trace, stack, blocks->items + i, count, position);
        position.steps += 2 * count;
    }
    snprintf(text, sizeof text, "%zu blocks of %llu bytes, found when the recorder was attached",
             blocks->count, (unsigned long long)blocks->bytes);
    trace_metadata(trace, "before", text);
    if (!reason)
        return;
    snprintf(text, sizeof text, "blocks from before the recorder was attached: %s", reason);
    trace_metadata(trace, "unrecorded", text);
    /* A block that a thread was then allocating or releasing may be listed wrongly. */
    if (blocks->is_busy)
        trace_loss(trace, TTD_LOSS_NOT_RECORDING, TTD_NONE, TTD_UNKNOWN, begin, position);
}
