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
static void write_trace(enum ttd_codec codec, bool has_parent)
{
    struct ttd_trace trace = fixture_trace();
    struct ttd_writer_options options = fixture_options(codec, 1, 10);
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
    write_trace(TTD_CODEC_LZ4, false);
    struct ttd_reader *reader = fixture_reader(&trace_file, true);
    cr_assert_eq(net_all(reader, &last), BLOCKS);
    cr_assert(ttd_reader_is_intact(reader));
    finish(reader);
}

Test(netter, leaves_no_verdict_on_a_parent_behind_events)
{
    struct ttd_chunk last;
    write_trace(TTD_CODEC_LZ4, true);
    struct ttd_reader *reader = fixture_reader(&trace_file, true);
    cr_assert_eq(net_all(reader, &last), BLOCKS);
    cr_assert_not(ttd_reader_is_intact(reader));
    finish(reader);
}

static struct ttd_reader *open_whole(void)
{
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = true;
    options.whole_chunks = true;
    return fixture_reader_with(&trace_file, &options);
}

/* Reads to the end; returns the number of events, and of the losses that the reader synthesised. */
static uint64_t count_on(struct ttd_reader *reader, uint64_t *losses)
{
    struct ttd_batch batch;
    uint64_t events = 0;
    *losses = 0;
    while (ttd_reader_next(reader, &batch, NULL) == TTD_OK) {
        if (batch.kind == TTD_KIND_EVENTS)
            events += batch.u.events ? batch.count : batch.chunk.record_count;
        *losses += batch.synthetic;
    }
    return events;
}

/* Checks that a reader of whole chunks, which leaves the events unread, finds what one finds that
 * reads them. */
static void check_counts(bool is_intact, uint64_t events)
{
    uint64_t losses;
    uint64_t expected_losses;
    uint32_t kinds = TTD_KIND_BIT(TTD_KIND_EVENTS) | TTD_KIND_BIT(TTD_KIND_LOSSES);
    struct ttd_reader *reader = open_whole();
    ttd_reader_rewind_checked(reader, kinds);
    cr_assert_eq(count_on(reader, &expected_losses), events);
    cr_assert_eq(ttd_reader_is_intact(reader), is_intact);
    ttd_reader_rewind_unread(reader, kinds);
    cr_assert_eq(count_on(reader, &losses), events);
    cr_assert_eq(losses, expected_losses);
    cr_assert_eq(ttd_reader_is_intact(reader), is_intact);
    ttd_reader_close(reader);
}

Test(netter, whole_chunks_are_checked_before_they_are_left)
{
    write_trace(TTD_CODEC_RAW, true);
    check_counts(true, BLOCKS);
    size_t chunk = chunk_edit_find_kind(trace_file.data, trace_file.size, TTD_KIND_EVENTS);
    size_t size = trace_file.size - chunk;
    uint8_t *payload = trace_file.data + chunk + TTD_HEADER_SIZE;
    uint32_t shapes = ttd_get32(payload + TTD_EVENTS_SHAPE_COUNT);
    ttd_put32(payload + TTD_EVENTS_SHAPE_COUNT, shapes + 1);
    check_counts(false, BLOCKS - 10);
    chunk_edit_seal(trace_file.data + chunk, size);
    check_counts(false, BLOCKS - 10);
    ttd_memory_output_free(&trace_file);
}

/* Removes the index, whose entries are hashes of the headers. */
static void remove_index(void)
{
    uint8_t *index =
        trace_file.data + chunk_edit_find_kind(trace_file.data, trace_file.size, TTD_KIND_INDEX);
    uint8_t *end = index + chunk_edit_size(index, TTD_HEADER_SIZE);
    uint64_t chunks = ttd_get64(end + TTD_HEADER_SIZE + TTD_END_PAYLOAD_CHUNKS);
    size_t end_size = (size_t)(trace_file.data + trace_file.size - end);
    memmove(index, end, end_size);
    trace_file.size -= (size_t)(end - index);
    ttd_put64(index + TTD_HEADER_SIZE + TTD_END_PAYLOAD_CHUNKS, chunks - 1);
    ttd_put64(index + TTD_HEADER_SIZE + TTD_END_PAYLOAD_INDEX_OFFSET, 0);
    chunk_edit_seal_all(trace_file.data, trace_file.size);
}

Test(netter, whole_chunks_that_are_left_refer_to_what_is_defined)
{
    write_trace(TTD_CODEC_RAW, false);
    remove_index();
    check_counts(true, BLOCKS);
    size_t stacks = chunk_edit_find_kind(trace_file.data, trace_file.size, TTD_KIND_STACKS);
    ttd_put16(trace_file.data + stacks + TTD_HEADER_KIND, TTD_KIND_PRIVATE);
    chunk_edit_seal_all(trace_file.data, trace_file.size);
    check_counts(false, BLOCKS);
    ttd_memory_output_free(&trace_file);
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
    write_trace(TTD_CODEC_LZ4, false);
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
    write_trace(TTD_CODEC_LZ4, false);
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
