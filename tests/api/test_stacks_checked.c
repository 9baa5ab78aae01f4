/* SPDX-License-Identifier: MIT */
/* A reading that checks everything, and leaves stacks as they are stored, finds what verify finds,
 * which decodes each of them. */
#include "api/fixture.h"
#include "support/chunk_edit.h"

#include <string.h>

#include "base/bytes.h"
#include "layout.h"

static struct ttd_memory_output trace_file;

static uint8_t *stacks_chunk(void)
{
    return trace_file.data +
           chunk_edit_find_kind(trace_file.data, trace_file.size, TTD_KIND_STACKS);
}

static bool is_intact_for_reader(void)
{
    struct ttd_reader_options options = ttd_reader_options_default();
    options.lazy_stacks = true;
    options.tolerant = true;
    struct ttd_reader *reader = fixture_reader_with(&trace_file, &options);
    cr_assert_eq(ttd_reader_rewind_checked(reader, TTD_KINDS_ALL), TTD_OK);
    struct ttd_batch batch;
    enum ttd_status status;
    while ((status = ttd_reader_next(reader, &batch, NULL)) == TTD_OK)
        continue;
    cr_assert_eq(status, TTD_END);
    bool is_intact = ttd_reader_is_intact(reader);
    ttd_reader_close(reader);
    return is_intact;
}

static bool is_intact_for_verify(void)
{
    struct ttd_input input;
    struct ttd_verdict verdict;
    cr_assert_eq(ttd_input_memory(trace_file.data, trace_file.size, NULL, &input), TTD_OK);
    cr_assert_eq(ttd_verify(&input, NULL, NULL, &verdict, NULL), TTD_OK);
    return verdict.ok;
}

static struct ttd_writer *begin_trace(void)
{
    struct ttd_trace trace = fixture_trace();
    struct ttd_writer_options options = fixture_options(TTD_CODEC_RAW, 0, 1000);
    return fixture_writer(&trace_file, &trace, &options);
}

static void add_stack(struct ttd_writer *writer, ttd_id parent, uint64_t offset)
{
    ttd_id id;
    cr_assert_eq(ttd_writer_stack(writer, parent, TTD_NONE, offset, &id), TTD_OK);
}

/* Closes the trace, and takes out the index: it has the hashes of all headers, so that no damage
 * would be the stacks' alone. */
static void end_trace(struct ttd_writer *writer)
{
    fixture_close(writer);
    uint8_t *data = trace_file.data;
    uint8_t *index = data + chunk_edit_find_kind(data, trace_file.size, TTD_KIND_INDEX);
    uint8_t *end = data + trace_file.size - TTD_END_CHUNK_SIZE;
    memmove(index, end, TTD_END_CHUNK_SIZE);
    uint8_t *payload = index + TTD_HEADER_SIZE;
    ttd_put64(payload + TTD_END_PAYLOAD_CHUNKS, ttd_get64(payload + TTD_END_PAYLOAD_CHUNKS) - 1);
    ttd_put64(payload + TTD_END_PAYLOAD_INDEX_OFFSET, 0);
    trace_file.size -= (size_t)(end - index);
    chunk_edit_seal_all(data, trace_file.size);
    cr_assert(is_intact_for_verify());
    cr_assert(is_intact_for_reader());
}

/* Callers near by and far off; frames that are new, and ones of one byte and of two. */
static void write_stacks(void)
{
    struct ttd_writer *writer = begin_trace();
    for (ttd_id id = 1; id <= 700; id++) {
        ttd_id back = id % 31 == 0 ? id - 1 : id % 7;
        add_stack(writer, back < id && back ? id - back : TTD_NONE, id % 300 * 1000);
    }
    end_trace(writer);
}

Test(stacks_checked, each_byte_of_a_chunk)
{
    static const uint8_t values[] = {0x00, 0x01, 0x07, 0x7F, 0x80, 0xFF};
    write_stacks();
    uint8_t *chunk = stacks_chunk();
    uint32_t size = ttd_get32(chunk + TTD_HEADER_STORED_SIZE);
    unsigned damaged = 0;
    unsigned intact = 0;
    for (size_t at = TTD_HEADER_SIZE; at < TTD_HEADER_SIZE + size; at++) {
        uint8_t right = chunk[at];
        for (size_t i = 0; i < sizeof values; i++) {
            chunk[at] = values[i];
            chunk_edit_seal(chunk, trace_file.size - (size_t)(chunk - trace_file.data));
            bool is_intact = is_intact_for_verify();
            damaged += !is_intact;
            intact += is_intact;
            cr_assert_eq(is_intact_for_reader(), is_intact, "byte %zu, value %#x", at, values[i]);
        }
        chunk[at] = right;
    }
    cr_assert_gt(damaged, 1000);
    cr_assert_gt(intact, 1000);
    ttd_memory_output_free(&trace_file);
}

/* One stack as deep as stacks may be; another, without a caller, then gets that one as its own. */
Test(stacks_checked, depth)
{
    struct ttd_writer *writer = begin_trace();
    for (ttd_id id = 1; id <= TTD_STACK_DEPTH_MAX; id++)
        add_stack(writer, id - 1, 1);
    add_stack(writer, TTD_NONE, 1);
    end_trace(writer);
    uint8_t *chunk = stacks_chunk();
    uint8_t *parent = chunk + TTD_HEADER_SIZE + 16 + TTD_STACK_DEPTH_MAX;
    cr_assert_eq(*parent, 0);
    *parent = 1;
    chunk_edit_seal(chunk, trace_file.size - (size_t)(chunk - trace_file.data));
    cr_assert_not(is_intact_for_verify());
    cr_assert_not(is_intact_for_reader());
    *parent = 2; /* beside the deepest */
    chunk_edit_seal(chunk, trace_file.size - (size_t)(chunk - trace_file.data));
    cr_assert(is_intact_for_verify());
    cr_assert(is_intact_for_reader());
    ttd_memory_output_free(&trace_file);
}
