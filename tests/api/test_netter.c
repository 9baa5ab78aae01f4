/* SPDX-License-Identifier: MIT */
/* A reader that leaves chunks of events unread, and the netters that read them instead, check what
 * a reader of everything checks. */
#include "api/fixture.h"
#include "support/chunk_edit.h"

#include <string.h>
#include <ttdtrace/advanced.h>

#include "layout.h"

#define BLOCKS 100

static struct ttd_memory_output trace_file;

static void write_event(struct ttd_writer *writer, ttd_id stack, uint64_t number)
{
    struct ttd_event event = {.time_start = {1, 2 * number},
                              .time_end = {1, 2 * number + 1},
                              .thread = 1,
                              .stack = stack,
                              .address = 0x1000 + 16 * number,
                              .size = number,
                              .result = 1,
                              .heap = 1,
                              .action = TTD_ACTION_ALLOC,
                              .api = TTD_API_MALLOC};
    cr_assert_eq(ttd_writer_event(writer, &event), TTD_OK);
}

/* Ten chunks of ten allocations; before the last one, the heap gets a parent. */
static void write_trace(bool has_parent)
{
    struct ttd_trace trace = fixture_trace();
    struct ttd_writer_options options = fixture_options(TTD_CODEC_LZ4, 1, 10);
    struct ttd_writer *writer = fixture_writer(&trace_file, &trace, &options);
    ttd_id stack;
    ttd_id heap;
    struct ttd_thread thread = {.action = TTD_THREAD_BEGIN};
    cr_assert_eq(ttd_writer_thread(writer, &thread, &stack), TTD_OK);
    struct ttd_heap record = {.name = TTD_NONE};
    cr_assert_eq(ttd_writer_heap(writer, &record, &heap), TTD_OK);
    cr_assert_eq(ttd_writer_heap(writer, &record, &heap), TTD_OK);
    cr_assert_eq(ttd_writer_stack(writer, TTD_NONE, TTD_NONE, 1, &stack), TTD_OK);
    for (uint64_t i = 0; i < BLOCKS; i++) {
        if (has_parent && i == BLOCKS - 10) {
            struct ttd_heap_parent parent = {.heap = 2, .parent = 1};
            cr_assert_eq(ttd_writer_heap_parent(writer, &parent), TTD_OK);
        }
        write_event(writer, stack, i);
    }
    fixture_close(writer);
}

static uint64_t net_chunk(struct ttd_netter *netter, const struct ttd_chunk *chunk,
                          const struct ttd_defined *defined)
{
    struct ttd_netted netted;
    struct ttd_net_block block;
    struct ttd_position start;
    cr_assert_eq(ttd_netter_net(netter, chunk, defined, &netted, NULL), TTD_OK);
    cr_assert(netted.is_plain);
    for (size_t i = 0; i < netted.count; i++) {
        ttd_netter_block(netter, &netted.nets[i], &block);
        cr_assert_eq(block.block.address, 0x1000 + 16 * block.block.event);
        cr_assert_eq(block.block.size, block.block.event);
        cr_assert(ttd_netter_find(netter, block.block.address, &start));
        cr_assert_eq(start.steps, 2 * block.block.event);
    }
    cr_assert_not(ttd_netter_find(netter, 0x1001, &start));
    return netted.count;
}

/* Reads the trace, and nets its chunks; returns the number of blocks. `last` is set to the last of
 * these chunks. */
static uint64_t net_all(struct ttd_reader *reader, struct ttd_chunk *last)
{
    struct ttd_netter *netter;
    struct ttd_batch batch;
    uint64_t blocks = 0;
    enum ttd_status status;
    cr_assert_eq(ttd_netter_open(reader, &netter), TTD_OK);
    cr_assert_eq(ttd_reader_rewind_unread(reader, TTD_KIND_BIT(TTD_KIND_EVENTS)), TTD_OK);
    while ((status = ttd_reader_next(reader, &batch, NULL)) == TTD_OK) {
        struct ttd_defined defined = ttd_reader_defined(reader);
        cr_assert_eq(batch.kind, TTD_KIND_EVENTS);
        cr_assert_eq(batch.count, 0);
        blocks += net_chunk(netter, &batch.chunk, &defined);
        *last = batch.chunk;
    }
    cr_assert_eq(status, TTD_END);
    ttd_netter_close(netter);
    return blocks;
}

static void finish(struct ttd_reader *reader)
{
    ttd_reader_close(reader);
    ttd_memory_output_free(&trace_file);
}

Test(netter, nets_each_chunk_that_the_reader_leaves)
{
    struct ttd_chunk last;
    write_trace(false);
    struct ttd_reader *reader = fixture_reader(&trace_file, true);
    cr_assert_eq(net_all(reader, &last), BLOCKS);
    cr_assert(ttd_reader_is_intact(reader));
    finish(reader);
}

Test(netter, leaves_no_verdict_on_a_parent_behind_events)
{
    struct ttd_chunk last;
    write_trace(true);
    struct ttd_reader *reader = fixture_reader(&trace_file, true);
    cr_assert_eq(net_all(reader, &last), BLOCKS);
    cr_assert_not(ttd_reader_is_intact(reader));
    finish(reader);
}

static void expect_refused(struct ttd_netter *netter, const struct ttd_chunk *chunk,
                           const struct ttd_defined *defined, enum ttd_status expected)
{
    struct ttd_netted netted;
    struct ttd_error error;
    cr_assert_eq(ttd_netter_net(netter, chunk, defined, &netted, &error), expected);
    cr_assert_eq(error.status, expected);
}

Test(netter, refuses_other_chunks_and_undefined_ids)
{
    struct ttd_chunk last;
    struct ttd_netter *netter;
    write_trace(false);
    struct ttd_reader *reader = fixture_reader(&trace_file, true);
    (void)net_all(reader, &last);
    cr_assert_eq(ttd_netter_open(reader, &netter), TTD_OK);
    struct ttd_defined defined = {.stacks = 0, .threads = 1, .heaps = 1};
    expect_refused(netter, &last, &defined, TTD_ERROR_CORRUPT);
    defined = (struct ttd_defined){.stacks = 1, .threads = 0, .heaps = 1};
    expect_refused(netter, &last, &defined, TTD_ERROR_CORRUPT);
    defined = (struct ttd_defined){.stacks = 1, .threads = 1, .heaps = 0};
    expect_refused(netter, &last, &defined, TTD_ERROR_CORRUPT);
    defined.heaps = 1;
    cr_assert_eq(net_chunk(netter, &last, &defined), 10);
    struct ttd_chunk changed = last;
    changed.number--;
    expect_refused(netter, &changed, NULL, TTD_ERROR_CORRUPT);
    changed = last;
    changed.offset = trace_file.size;
    expect_refused(netter, &changed, NULL, TTD_ERROR_TRUNCATED);
    changed = last;
    changed.kind = TTD_KIND_STACKS;
    expect_refused(netter, &changed, NULL, TTD_ERROR_ARGUMENT);
    ttd_netter_close(netter);
    ttd_netter_close(NULL);
    finish(reader);
}

Test(netter, refuses_a_chunk_with_any_byte_changed)
{
    struct ttd_chunk last;
    struct ttd_netter *netter;
    write_trace(false);
    struct ttd_reader *reader = fixture_reader(&trace_file, true);
    (void)net_all(reader, &last);
    cr_assert_eq(ttd_netter_open(reader, &netter), TTD_OK);
    for (size_t i = 0; i < TTD_HEADER_SIZE + last.stored_size; i++) {
        trace_file.data[last.offset + i] ^= 0x10;
        expect_refused(netter, &last, NULL, TTD_ERROR_CORRUPT);
        trace_file.data[last.offset + i] ^= 0x10;
    }
    ttd_netter_close(netter);
    finish(reader);
}
