/* SPDX-License-Identifier: MIT */
/* Cuts: a trace is replaced by one without the part before a cut, which its writer continues. */
#include "api/fixture.h"

#include <stdlib.h>
#include <string.h>

#include <ttdtrace/advanced.h>

enum { CALLS = 40, KEPT = 8 };

/* A trace in the making: its writer, all that was written, and the next position. */
struct making {
    struct ttd_writer *writer;
    struct chaos_output *written;
    struct ttd_position position;
    ttd_id stack;
};

static struct ttd_event making_event(struct making *making, uint64_t address, bool frees)
{
    making->position.sequence++;
    return (struct ttd_event){.action = frees ? TTD_ACTION_FREE : TTD_ACTION_ALLOC,
                              .stack = making->stack,
                              .address = frees ? 0 : address,
                              .base_address = frees ? address : 0,
                              .size = frees ? 0 : 8,
                              .result = 1,
                              .time_start = making->position,
                              .time_end = making->position};
}

/* Allocates blocks, and releases all but KEPT of them. Sets `kept` to the calls of these. Returns
 * the status of the first call that fails. */
static enum ttd_status making_calls(struct making *making, struct ttd_event kept[KEPT])
{
    for (uint64_t i = 0; i < 2 * CALLS - KEPT; i++) {
        bool frees = i >= CALLS;
        struct ttd_event event = making_event(making, 16 * (i % CALLS + 1), frees);
        enum ttd_status status = ttd_writer_event(making->writer, &event);
        if (status != TTD_OK)
            return status;
        if (!frees && i >= CALLS - KEPT)
            kept[i - (CALLS - KEPT)] = event;
    }
    return TTD_OK;
}

static enum ttd_status making_open_cut(struct making *making, const struct ttd_event kept[KEPT],
                                       struct ttd_cut **cut)
{
    enum ttd_status status = ttd_cut_open(making->writer, cut);
    for (size_t i = 0; status == TTD_OK && i < KEPT; i++)
        status = ttd_cut_event(*cut, &kept[i]);
    return status;
}

/* Applies a cut; `output` gets the new file, and `counter` fails when it is read. */
static enum ttd_status making_apply(struct making *making, struct ttd_cut *cut,
                                    struct chaos_output *output, uint64_t fail_at,
                                    uint64_t *left_out)
{
    struct ttd_output table = chaos_output_table(output);
    enum ttd_status status = ttd_writer_flush(making->writer);
    if (status != TTD_OK) {
        ttd_cut_close(cut);
        return status;
    }
    struct chaos_input input = {.data = making->written->data,
                                .size = making->written->size,
                                .counter = {.fail_at = fail_at}};
    struct ttd_input from = chaos_input_table(&input);
    status = ttd_cut_apply(cut, &from, &table, TTD_LOSS_LIMIT, left_out, NULL);
    cr_assert_eq(input.closed, 0);
    cr_assert_eq(output->closed, status != TTD_OK);
    return status;
}

static struct making making_begin(struct chaos_output *written, struct chaos_memory *memory)
{
    struct making making = {.written = written};
    struct ttd_trace info = fixture_trace();
    struct ttd_output output = chaos_output_table(written);
    struct ttd_allocator allocator = chaos_allocator(memory);
    struct ttd_writer_options options = fixture_options(TTD_CODEC_LZ4, 0, 16);
    cr_assert_eq(ttd_writer_open(&output, &info, &options, &allocator, &making.writer, NULL),
                 TTD_OK);
    cr_assert_eq(ttd_writer_stack(making.writer, TTD_NONE, TTD_NONE, 7, &making.stack), TTD_OK);
    return making;
}

/* The events and the losses of an intact trace, and the sizes of the blocks that it ends with. */
struct sums {
    uint64_t events, lost, live;
};

static struct sums sum(const struct chaos_output *written)
{
    struct sums sums = {0};
    struct ttd_batch batch;
    const struct ttd_memory_output memory = {.data = written->data, .size = written->size};
    fixture_check_intact(written->data, written->size);
    struct ttd_reader *reader = fixture_reader(&memory, false);
    while (ttd_reader_next(reader, &batch, NULL) == TTD_OK) {
        for (size_t i = 0; batch.kind == TTD_KIND_EVENTS && i < batch.count; i++) {
            sums.events++;
            sums.live += batch.u.events[i].address != 0;
            sums.live -= batch.u.events[i].base_address != 0;
            cr_assert_eq(batch.u.events[i].stack, 1);
        }
        for (size_t i = 0; batch.kind == TTD_KIND_LOSSES && i < batch.count; i++) {
            cr_assert_eq(batch.u.losses[i].reason, TTD_LOSS_LIMIT);
            sums.lost += batch.u.losses[i].count;
        }
    }
    ttd_reader_close(reader);
    return sums;
}

Test(cut, the_past_is_replaced_by_what_lived)
{
    enum { CUTS = 3, EVENTS = 2 * CALLS - KEPT };
    struct chaos_memory memory;
    struct chaos_output outputs[CUTS + 1] = {0};
    for (size_t i = 0; i <= CUTS; i++)
        outputs[i].counter.fail_at = CHAOS_NEVER;
    chaos_memory_init(&memory, CHAOS_NEVER);
    struct making making = making_begin(&outputs[0], &memory);
    for (size_t i = 0; i < CUTS; i++) {
        struct ttd_event kept[KEPT];
        struct ttd_cut *cut;
        uint64_t left_out;
        cr_assert_eq(making_calls(&making, kept), TTD_OK);
        cr_assert_eq(making_open_cut(&making, kept, &cut), TTD_OK);
        /* Behind the cut the blocks are released. */
        for (size_t k = 0; k < KEPT; k++) {
            struct ttd_event event = making_event(&making, kept[k].address, true);
            cr_assert_eq(ttd_writer_event(making.writer, &event), TTD_OK);
        }
        cr_assert_eq(making_apply(&making, cut, &outputs[i + 1], CHAOS_NEVER, &left_out), TTD_OK);
        cr_assert_eq(outputs[i].closed, 1);
        /* The releases behind the cut before are before this one. */
        cr_assert_eq(left_out, (i + 1) * (EVENTS - KEPT) + i * 2 * KEPT);
        making.written = &outputs[i + 1];
    }
    fixture_close(making.writer);
    struct sums sums = sum(making.written);
    cr_assert_eq(sums.events, 2 * KEPT);
    cr_assert_eq(sums.live, 0);
    cr_assert_eq(sums.lost + sums.events, CUTS * (EVENTS + KEPT));
    for (size_t i = 0; i <= CUTS; i++)
        free(outputs[i].data);
    cr_assert_eq(memory.blocks, 0);
}

/* Runs with one fault: of memory, of the new file, or of the reading of the old one. Returns
 * whether the cut was applied. Whatever happens, a trace that is intact goes on, unless its writer
 * has failed. */
static bool run_with(uint64_t memory_at, uint64_t output_at, uint64_t input_at)
{
    struct chaos_memory memory;
    struct chaos_output old = {.counter = {.fail_at = CHAOS_NEVER}};
    struct chaos_output new = {.counter = {.fail_at = output_at}};
    struct ttd_event kept[KEPT];
    struct ttd_cut *cut = NULL;
    uint64_t left_out;
    chaos_memory_init(&memory, CHAOS_NEVER);
    struct making making = making_begin(&old, &memory);
    cr_assert_eq(making_calls(&making, kept), TTD_OK);
    cr_assert_eq(ttd_writer_flush(making.writer), TTD_OK);
    if (memory_at != CHAOS_NEVER)
        memory.counter.fail_at = memory.counter.calls + memory_at;
    enum ttd_status status = making_open_cut(&making, kept, &cut);
    if (status == TTD_OK)
        status = making_apply(&making, cut, &new, input_at, &left_out);
    else
        ttd_cut_close(cut);
    memory.counter.fail_at = new.counter.fail_at = CHAOS_NEVER;
    bool is_applied = status == TTD_OK;
    cr_assert_eq(old.closed, is_applied);
    fixture_close(making.writer);
    struct sums sums = sum(is_applied ? &new : &old);
    cr_assert_eq(sums.events, is_applied ? KEPT : 2 * CALLS - KEPT);
    cr_assert_eq(sums.live, KEPT);
    cr_assert_eq(sums.lost, is_applied ? 2 * CALLS - 2 * KEPT : 0);
    free(old.data);
    free(new.data);
    cr_assert_eq(memory.blocks, 0);
    return is_applied;
}

Test(cut, a_failure_leaves_the_trace_as_it_was)
{
    for (uint64_t i = 0; !run_with(i, CHAOS_NEVER, CHAOS_NEVER); i++)
        cr_assert_lt(i, 1000);
    for (uint64_t i = 0; !run_with(CHAOS_NEVER, i, CHAOS_NEVER); i++)
        cr_assert_lt(i, 1000);
    for (uint64_t i = 0; !run_with(CHAOS_NEVER, CHAOS_NEVER, i); i++)
        cr_assert_lt(i, 1000);
}

Test(cut, another_file_is_refused)
{
    struct chaos_memory memory;
    struct chaos_output old = {.counter = {.fail_at = CHAOS_NEVER}}, new = old;
    struct ttd_memory_output other;
    struct ttd_trace info = fixture_trace();
    struct ttd_event kept[KEPT];
    struct ttd_cut *cut;
    uint64_t left_out;
    info.trace_id++;
    fixture_close(fixture_writer(&other, &info, NULL));
    chaos_memory_init(&memory, CHAOS_NEVER);
    struct making making = making_begin(&old, &memory);
    cr_assert_eq(making_calls(&making, kept), TTD_OK);
    cr_assert_eq(making_open_cut(&making, kept, &cut), TTD_OK);
    struct chaos_output stranger = {.data = other.data, .size = other.size};
    making.written = &stranger;
    cr_assert_eq(making_apply(&making, cut, &new, CHAOS_NEVER, &left_out), TTD_ERROR_CORRUPT);
    fixture_close(making.writer);
    cr_assert_eq(sum(&old).lost, 0);
    free(old.data);
    free(new.data);
    ttd_memory_output_free(&other);
    cr_assert_eq(memory.blocks, 0);
}
