/* SPDX-License-Identifier: MIT */
#include "earlier.h"

#include <stdio.h>

enum { BATCH = 256 };

static void write_batch(struct trace *trace, const struct known_block *blocks, size_t count,
                        struct ttd_position position)
{
    struct ttd_call calls[BATCH];
    for (size_t i = 0; i < count; i++)
        calls[i] = (struct ttd_call){.address = blocks[i].address,
                                     .size = blocks[i].size,
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
    for (size_t i = 0; i < blocks->count; i += BATCH) {
        size_t count = blocks->count - i < BATCH ? blocks->count - i : BATCH;
        write_batch(trace, blocks->items + i, count, position);
        position.steps += 2 * count;
    }
    snprintf(text, sizeof text, "%zu blocks of %llu bytes, found when the recorder was attached",
             blocks->count, (unsigned long long)blocks->bytes);
    trace_metadata(trace, "before", text);
    if (reason == NULL)
        return;
    snprintf(text, sizeof text, "blocks from before the recorder was attached: %s", reason);
    trace_metadata(trace, "unrecorded", text);
}
