/* SPDX-License-Identifier: MIT */
/* The records of snapshots in a trace. */
#include "collect/trace/trace.h"

bool trace_regions(struct trace *trace, const struct ttd_regions *regions)
{
    return trace->writer != NULL && trace_check(trace, ttd_writer_regions(trace->writer, regions));
}

bool trace_references(struct trace *trace, struct ttd_reference_pack *pack)
{
    return trace->writer != NULL &&
           trace_check(trace, ttd_writer_reference_pack(trace->writer, pack));
}

bool trace_classes(struct trace *trace, const struct ttd_classes *classes)
{
    return trace->writer != NULL && trace_check(trace, ttd_writer_classes(trace->writer, classes));
}

bool trace_block_headers(struct trace *trace, const struct ttd_block_headers *headers)
{
    return trace->writer != NULL &&
           trace_check(trace, ttd_writer_block_headers(trace->writer, headers));
}

ttd_id trace_whole_stack(struct trace *trace, const uint64_t *pcs, size_t count)
{
    ttd_id stack = TTD_NONE;
    uint32_t hash = 0;
    for (size_t i = count; i-- > 0;) {
        uint64_t pc = pcs[i]; /* the program may change it meanwhile */
        hash = stacks_hash(&trace->stacks, hash, pc);
        stack = trace_stack(trace, hash, stack, pc);
    }
    return stack;
}

bool trace_frames(struct trace *trace, uint32_t snapshot, ttd_id thread,
                  const struct stack_frames *found)
{
    struct ttd_frames frames = {.snapshot = snapshot,
                                .thread = thread,
                                .stack = trace_whole_stack(trace, found->pcs, found->count),
                                .addresses = found->cfas};
    while (frames.count < found->count && found->cfas[frames.count] != 0)
        frames.count++;
    return frames.stack == TTD_NONE ||
           (trace->writer != NULL && trace_check(trace, ttd_writer_frames(trace->writer, &frames)));
}

bool trace_snapshot(struct trace *trace, const struct ttd_snapshot *snapshot)
{
    return trace->writer != NULL &&
           trace_check(trace, ttd_writer_snapshot(trace->writer, snapshot));
}

bool trace_fatal_signal(struct trace *trace, const struct ttd_fatal_signal *fatal)
{
    return trace->writer != NULL &&
           trace_check(trace, ttd_writer_fatal_signal(trace->writer, fatal));
}
