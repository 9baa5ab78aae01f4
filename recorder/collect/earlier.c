/* SPDX-License-Identifier: MIT */
#include "collect/earlier.h"

#include <ttdtrace/names.h>

#include <stdio.h>

enum { BATCH = 256 };

/* The function in the only frame of the blocks' stack. */
#define EARLIER_FUNCTION "[found when the recorder was attached]"

/* Returns the stack of the blocks, of which none is known: a frame in no module, with a name that
 * says where they come from. */
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
