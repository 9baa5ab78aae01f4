/* SPDX-License-Identifier: MIT */
/* A derived file: a keyframe, a summary and the peak of good-base. */
#include "vectors/vectors.h"

#include "support/chunk_edit.h"

/** A summary of the state, whose block does not end; and the peak. */
static void write_summary(struct ttd_writer *writer, const struct ttd_state *keyframe)
{
    struct ttd_state summary = *keyframe;
    summary.form = TTD_STATE_SUMMARY;
    summary.blocks = 0;
    summary.sums = 4;
    summary.end = ttd_position_invalid();
    vector_check(ttd_writer_state(writer, &summary));
    for (int table = TTD_SUMS_BY_STACK; table <= TTD_SUMS_BY_SIZE; table++) {
        struct ttd_sum sum = {.table = (enum ttd_sum_table)table,
                              .key = 1,
                              .api = TTD_API_MALLOC,
                              .blocks = 1,
                              .bytes = 24,
                              .first = {1, 1},
                              .last = {1, 1}};
        sum.key = table == TTD_SUMS_BY_SIZE ? 5 : 1; /* 24 has five binary digits */
        vector_check(ttd_writer_sum(writer, &sum));
    }
    struct ttd_state peak = {.form = TTD_STATE_PEAK, .position = {1, 1}, .blocks = 1, .bytes = 24};
    vector_check(ttd_writer_state(writer, &peak));
}

void vector_write_tied(struct ttd_memory_output *memory, uint64_t more)
{
    struct ttd_memory_output base;
    vector_write_base(&base);
    const uint8_t *end = base.data + base.size - TTD_END_CHUNK_SIZE;
    struct ttd_trace trace = {.trace_id = UINT64_C(0x99AABBCCDDEEFF00),
                              .time_unit = 10,
                              .flags = TTD_TRACE_DERIVED,
                              .pointer_size = 8,
                              .source_trace_id = ttd_get64(base.data + TTD_HEADER_TRACE_ID),
                              .source_size = base.size + more,
                              .source_hash = ttd_get64(end + TTD_HEADER_HASH)};
    ttd_memory_output_free(&base);
    struct ttd_output output;
    struct ttd_writer *writer = NULL;
    vector_check(ttd_output_memory(memory, NULL, &output));
    vector_check(ttd_writer_open(&output, &trace, NULL, NULL, &writer, NULL));
    struct ttd_state state = {.form = TTD_STATE_KEYFRAME,
                              .position = {1, 1},
                              .blocks = 1,
                              .next_event = 1,
                              .events = 1,
                              .actions = {[TTD_ACTION_ALLOC] = 1}};
    vector_check(ttd_writer_state(writer, &state));
    struct ttd_block block = {.address = 0x602010,
                              .size = 24,
                              .event = 0,
                              .allocated = {1, 1},
                              .thread = 1,
                              .heap = 1,
                              .stack = 1,
                              .api = TTD_API_MALLOC};
    struct ttd_live_blocks blocks = {.list = TTD_BLOCKS_KEYFRAME,
                                     .list_id = 1,
                                     .last = true,
                                     .position = {1, 1},
                                     .blocks = &block,
                                     .count = 1};
    vector_check(ttd_writer_live_blocks(writer, &blocks));
    write_summary(writer, &state);
    struct ttd_end closing = {.reason = TTD_END_REASON_NOT_RECORDED};
    vector_check(ttd_writer_close(writer, &closing, NULL));
}
