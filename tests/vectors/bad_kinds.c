/* SPDX-License-Identifier: MIT */
/* Files with one record that is not as it must be: in place of the base file's heaps there is a
 * chunk of another kind, written byte by byte. */
#include "vectors/rows.h"

#include <string.h>

#include "support/chunk_edit.h"

#define CLIENT 9, 9, 9, 9, 9, 9, 0x49, 9, 0x89, 9, 9, 9, 9, 9, 9, 9

#define COUNTS(overlaps) 2, 2, 0, 0, 0, overlaps, 0, 2, 0, 0, 0, 0, 0, 0, 0

/* Live blocks: list, list_id, flags, reserved, position; sizes of the columns; a block. */
#define BLOCKS(list, id, flags, reserved, sequence, address, first)                                \
    U32(list), U32(id), U32(flags), U32(reserved), sequence, ZERO_64, U32(1), U32(1), U32(1),      \
        U32(first), U32(1), U32(1), U32(1), U32(1), U32(1), address, 24, 1
#define BLOCKS_END 0, 1, 1, 0, 1

/* Lists of one block each, every one `step` bytes behind that of the list before. Only the last
 * list has a last chunk; the first one has, too, if `ends_first`. */
static void write_lists(struct ttd_memory_output *memory, uint32_t count, uint64_t step,
                        bool ends_first)
{
    struct ttd_writer_options options = ttd_writer_options_default();
    options.codec = TTD_CODEC_RAW;
    struct ttd_writer *writer = vector_writer(memory, &options);
    for (uint32_t i = 0; i < count; i++) {
        struct ttd_block block = {.address = 0x20 + i * step, .size = 24, .event = TTD_UNKNOWN};
        struct ttd_live_blocks list = {.list = TTD_BLOCKS_SNAPSHOT,
                                       .list_id = i + 1,
                                       .last = i + 1 == count || (i == 0 && ends_first),
                                       .position = {1, 0},
                                       .blocks = &block,
                                       .count = 1};
        vector_check(ttd_writer_live_blocks(writer, &list));
    }
    vector_close(writer);
}

static void write_same_block(struct ttd_memory_output *memory)
{
    write_lists(memory, 2, 0, false);
}

static void write_two_lists(struct ttd_memory_output *memory)
{
    write_lists(memory, 2, 0x10, true);
}

static void write_three_lists(struct ttd_memory_output *memory)
{
    write_lists(memory, 3, 0x10, false);
}

/* Pages: page_size, reserved, and a page. */
static void page(struct vector_file *file, uint64_t first, uint32_t page_size, uint32_t reserved)
{
    uint8_t payload[TTD_PAGES_DATA + TTD_PAGE_SIZE_MIN] = {0};
    ttd_put32(payload + TTD_PAGES_PAGE_SIZE, page_size);
    ttd_put32(payload + TTD_PAGES_RESERVED, reserved);
    vector_replace(file, &(struct vector_records){.kind = TTD_KIND_PAGES,
                                                  .first_record = first,
                                                  .count = 1,
                                                  .bytes = payload,
                                                  .size = TTD_PAGES_DATA + page_size});
}

static void pages_first(struct vector_file *file)
{
    page(file, TTD_PAGE_FIRST - 1, TTD_PAGE_SIZE_MIN, 0);
}

static void pages_size(struct vector_file *file)
{
    page(file, TTD_PAGE_FIRST, TTD_PAGE_SIZE_MIN - 1, 0);
}

static void pages_reserved(struct vector_file *file)
{
    page(file, TTD_PAGE_FIRST, TTD_PAGE_SIZE_MIN, 1);
}

/* Memory maps: snapshot, flags, position, page_size, reserved; distance, pages, protection, page.
 */
#define MAP(snapshot, flags, sequence, size)                                                       \
    U32(snapshot), U32(flags), sequence, ZERO_64, U32(size), U32(0)

/* ---- The first and the last chunk ---- */

static void trace_again(struct vector_file *file)
{
    uint8_t payload[TTD_TRACE_SIZE];
    memcpy(payload, vector_chunk(file, TRACE) + TTD_HEADER_SIZE, sizeof payload);
    vector_chunk(file, HEAPS)[TTD_HEADER_FLAGS] = TTD_CHUNK_CRITICAL;
    vector_replace(
        file, &(struct vector_records){
                  .kind = TTD_KIND_TRACE, .count = 1, .bytes = payload, .size = sizeof payload});
}

/** An LZ4 block of literals only. Returns its size: two bytes more. */
static size_t to_lz4(uint8_t *block, const uint8_t *raw, size_t size)
{
    block[0] = 0xF0;
    block[1] = (uint8_t)(size - 15);
    memcpy(block + 2, raw, size);
    return size + 2;
}

static void trace_lz4(struct vector_file *file)
{
    uint8_t block[TTD_TRACE_SIZE + 2];
    size_t size = to_lz4(block, vector_chunk(file, TRACE) + TTD_HEADER_SIZE, TTD_TRACE_SIZE);
    vector_set_payload(file, TRACE, block, size);
    uint8_t *trace = vector_chunk(file, TRACE);
    trace[TTD_HEADER_CODEC] = TTD_CODEC_LZ4;
    ttd_put32(trace + TTD_HEADER_RAW_SIZE, TTD_TRACE_SIZE);
    chunk_edit_seal_header(trace);
}

static void end_lz4(struct vector_file *file)
{
    uint8_t block[TTD_END_PAYLOAD_SIZE + 2];
    size_t size = to_lz4(block, vector_chunk(file, END) + TTD_HEADER_SIZE, TTD_END_PAYLOAD_SIZE);
    vector_resize(file, file->size + TTD_ALIGNMENT);
    uint8_t *end = vector_chunk(file, END);
    memcpy(end + TTD_HEADER_SIZE, block, size);
    end[TTD_HEADER_CODEC] = TTD_CODEC_LZ4;
    ttd_put32(end + TTD_HEADER_STORED_SIZE, (uint32_t)size);
    chunk_edit_seal(end, (size_t)(file->data + file->size - end));
}

const struct vector vectors_bad_kinds[] = {
    /* Modules: action, id, position, path, bias, begin, end, build-id. */
    BAD("module-action", "a module record that is neither load nor unload", "R-36", HEAPS,
        "action of a module", RECORD(TTD_KIND_MODULES, 0, 3, 1, 1, 0)),
    BAD("module-id-zero", "a module of id 0", "R-36", HEAPS, "id of a module",
        RECORD(TTD_KIND_MODULES, 0, 1, 0, 1, 0, 1, 0, 1, 2, 0)),
    BAD("module-position", "a module loaded at the invalid position", "R-66", HEAPS,
        "invalid position", RECORD(TTD_KIND_MODULES, 0, 1, 1, INVALID, 0, 1, 0, 1, 2, 0)),
    BAD("module-range", "a module that ends before it begins", "R-36", HEAPS, "range of a module",
        RECORD(TTD_KIND_MODULES, 0, 1, 1, 1, 0, 1, 0, 2, 1, 0)),
    BAD("module-build-id", "a build-id of 65 bytes", "R-36", HEAPS, "value out of range",
        RECORD(TTD_KIND_MODULES, 0, 1, 1, 1, 0, 1, 0, 1, 2, 65, 1, 2, 3, 4)),
    /* Threads: action, id, position, name. */
    BAD("thread-position", "a thread that ended at the invalid position", "R-66", HEAPS,
        "invalid position", RECORD(TTD_KIND_THREADS, 1, 2, 1, INVALID, 0, 0)),
    /* User events: client, position, wall time, thread, flags, data. */
    BAD("user-position", "a user event at the invalid position", "R-66", HEAPS, "invalid position",
        RECORD(TTD_KIND_USER_EVENTS, 0, CLIENT, INVALID, 0, 0, 0, 0, 0)),
    BAD("user-flags", "a reserved flag of a user event", "R-67", HEAPS,
        "unknown flags of a user event", RECORD(TTD_KIND_USER_EVENTS, 0, CLIENT, 1, 0, 0, 0, 2, 0)),
    /* Losses: reason, thread, count + 1, last_good, first_good. */
    BAD("loss-inverted", "a loss that ends before it begins", "R-68", HEAPS, "range of a loss",
        RECORD(TTD_KIND_LOSSES, 0, 1, 0, 2, 2, 9, 2, 0)),
    BAD("loss-last-good", "a loss after the invalid position", "R-66", HEAPS, "invalid position",
        RECORD(TTD_KIND_LOSSES, 0, 1, 0, 2, INVALID, INVALID, INVALID, INVALID)),
    BAD("loss-first-good", "an invalid position that is not 2^64 - 1 in both numbers", "R-66",
        HEAPS, "invalid position", RECORD(TTD_KIND_LOSSES, 0, 1, 0, 2, 2, 0, INVALID, 0)),
    /* Symbols: module, offset, number of frames. */
    BAD("symbol-frames", "a symbol of more frames than it can have", "R-12 R-60", HEAPS,
        "value out of range", RECORD(TTD_KIND_SYMBOLS, 0, 0, 8, 0x81, 8)),
    /* States: form, position, blocks, next event, events, failed, unfinished, unknown releases,
     * overlaps, actions; of a summary: sums, end. */
    BAD("state-form-zero", "a state of form 0", "R-76", HEAPS, "form of a state",
        RECORD(TTD_KIND_STATES, 0, 0, 1, 0, 0, COUNTS(0))),
    BAD("state-form", "a state of a fourth form", "R-76", HEAPS, "value out of range",
        RECORD(TTD_KIND_STATES, 0, 4, 1, 0, 0, COUNTS(0))),
    BAD("state-position", "a keyframe at the invalid position", "R-66", HEAPS, "invalid position",
        RECORD(TTD_KIND_STATES, 0, 1, INVALID, 0, 0, COUNTS(0))),
    BAD("state-counts", "a keyframe of more overlaps than events", "R-76", HEAPS,
        "counts of a state", RECORD(TTD_KIND_STATES, 0, 1, 1, 0, 0, COUNTS(3))),
    BAD("state-end", "a summary that ends before it begins", "R-76", HEAPS, "end of a summary",
        RECORD(TTD_KIND_STATES, 0, 2, 2, 0, 0, COUNTS(0), 0, 1, 0)),
    /* Sums: table, key, api, blocks, bytes; by stack: first and last. */
    BAD("sum-table", "a sum of a fifth table", "R-77", HEAPS, "value out of range",
        RECORD(TTD_KIND_SUMS, 0, 4, 1, 1, 1, 1)),
    BAD("sum-size", "a size of 65 binary digits", "R-77", HEAPS, "size of a sum",
        RECORD(TTD_KIND_SUMS, 0, 3, 65, 1, 1, 1)),
    BAD("sum-empty", "a sum of no blocks", "R-77", HEAPS, "sum of no blocks",
        RECORD(TTD_KIND_SUMS, 0, 1, 1, 1, 0, 0)),
    BAD("sum-key", "a sum of an id beyond 32 bits", "R-77", HEAPS, "value out of range",
        RECORD(TTD_KIND_SUMS, 0, 1, 0x80, 0x80, 0x80, 0x80, 0x10, 1, 1, 1)),
    BAD("sum-positions", "a last block before the first", "R-77", HEAPS, "positions of a sum",
        RECORD(TTD_KIND_SUMS, 0, 0, 1, 1, 1, 1, 2, 0, 1, 9)),
    BAD("blocks-list", "a list of blocks of a fourth kind", "R-51", HEAPS, "list of blocks",
        RECORD(TTD_KIND_LIVE_BLOCKS, 0, BLOCKS(4, 1, 1, 0, ZERO_64, 2, 1), 2, BLOCKS_END)),
    BAD("blocks-id-zero", "a list of blocks without a number", "R-51", HEAPS,
        "number of a list of blocks",
        RECORD(TTD_KIND_LIVE_BLOCKS, 0, BLOCKS(2, 0, 1, 0, ZERO_64, 2, 1), 2, BLOCKS_END)),
    BAD("blocks-flags", "a reserved flag of a list of blocks", "R-51", HEAPS,
        "unknown flags of a list of blocks",
        RECORD(TTD_KIND_LIVE_BLOCKS, 0, BLOCKS(2, 1, 2, 0, ZERO_64, 2, 1), 2, BLOCKS_END)),
    BAD("blocks-reserved", "a reserved field of a list of blocks", "R-51", HEAPS,
        "reserved field is not zero",
        RECORD(TTD_KIND_LIVE_BLOCKS, 0, BLOCKS(2, 1, 1, 1, ZERO_64, 2, 1), 2, BLOCKS_END)),
    BAD("blocks-position", "a list of blocks at the invalid position", "R-66", HEAPS,
        "invalid position",
        RECORD(TTD_KIND_LIVE_BLOCKS, 0, BLOCKS(2, 1, 1, 0, INVALID_64, 2, 1), 2, BLOCKS_END)),
    BAD("blocks-address-zero", "a block at address 0", "R-51", HEAPS,
        "blocks not in order of address",
        RECORD(TTD_KIND_LIVE_BLOCKS, 0, BLOCKS(2, 1, 1, 0, ZERO_64, 0, 1), 2, BLOCKS_END)),
    /* zigzag(-1): from sequence 0 to the invalid one. */
    BAD("blocks-allocated", "a block that was never allocated", "R-66", HEAPS, "invalid position",
        RECORD(TTD_KIND_LIVE_BLOCKS, 0, BLOCKS(2, 1, 1, 0, ZERO_64, 2, 1), 1, BLOCKS_END)),
    BAD("blocks-order", "blocks whose addresses do not rise", "R-51", HEAPS,
        "blocks not in order of address", /* At 0x20 and at 0x10. */
        RECORDS(2, TTD_KIND_LIVE_BLOCKS, 0, U32(2), U32(1), U32(1), U32(0), ZERO_64, ZERO_64,
                U32(2), U32(2), U32(2), U32(2), U32(2), U32(2), U32(2), U32(2), U32(2), 4, 1, 24,
                24, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1)),
    BAD("pages-first-id", "a page of a reserved id", "R-52", HEAPS, "id of the first page",
        .damage = pages_first),
    BAD("pages-size", "a page size that is no power of two", "R-52", HEAPS, "page size",
        .damage = pages_size),
    BAD("pages-reserved", "the reserved field of a chunk of pages", "R-52", HEAPS,
        "reserved field is not zero", .damage = pages_reserved),
    BAD("map-snapshot-zero", "a snapshot without a number", "R-53", HEAPS, "number of a snapshot",
        RECORD(TTD_KIND_MEMORY_MAP, 0, MAP(0, 1, ZERO_64, 512), 1, 1, 3, 0)),
    BAD("map-flags", "a reserved flag of a memory map", "R-53", HEAPS,
        "unknown flags of a memory map",
        RECORD(TTD_KIND_MEMORY_MAP, 0, MAP(1, 2, ZERO_64, 512), 1, 1, 3, 0)),
    BAD("map-position", "a memory map at the invalid position", "R-66", HEAPS, "invalid position",
        RECORD(TTD_KIND_MEMORY_MAP, 0, MAP(1, 1, INVALID_64, 512), 1, 1, 3, 0)),
    BAD("map-page-size", "a page size of a memory map that is no power of two", "R-53", HEAPS,
        "page size", RECORD(TTD_KIND_MEMORY_MAP, 0, MAP(1, 1, ZERO_64, 513), 1, 1, 3, 0)),
    BAD("map-run-empty", "a run without pages", "R-53", HEAPS, "run without pages",
        RECORD(TTD_KIND_MEMORY_MAP, 0, MAP(1, 1, ZERO_64, 512), 1, 0, 3, 0)),
    BAD("map-run-protection", "a protection that does not exist", "R-53", HEAPS,
        "value out of range", RECORD(TTD_KIND_MEMORY_MAP, 0, MAP(1, 1, ZERO_64, 512), 1, 1, 16, 0)),
    /* 2^55 pages of 512 bytes are the whole address space; here they begin at the second. */
    BAD("map-run-beyond", "a run that ends after 2^64", "R-53", HEAPS, "value out of range",
        RECORD(TTD_KIND_MEMORY_MAP, 0, MAP(1, 1, ZERO_64, 512), 1, 0x80, 0x80, 0x80, 0x80, 0x80,
               0x80, 0x80, 0x40, 3, 0)),
    BAD("map-page-beyond", "a run whose ids end after 2^64", "R-72", HEAPS, "page of a run",
        RECORD(TTD_KIND_MEMORY_MAP, 0, MAP(1, 1, ZERO_64, 512), 1, 1, 3, INVALID)),
    DOUBTFUL("blocks-continued",
             "a list whose addresses fall from one chunk to the next; only verify looks there",
             "R-74", "order of blocks", .write = write_same_block,
             PAYLOAD(2, TTD_BLOCKS_LIST_ID, 4, 1)),
    DOUBTFUL("blocks-after-last", "a list that goes on after its last chunk", "R-74",
             "continuation of a list of blocks", .write = write_two_lists,
             PAYLOAD(2, TTD_BLOCKS_LIST_ID, 4, 1)),
    DOUBTFUL("blocks-mixed", "a list that goes on after chunks of another one", "R-74",
             "continuation of a list of blocks", .write = write_three_lists,
             PAYLOAD(3, TTD_BLOCKS_LIST_ID, 4, 1)),
    {.name = "bad-string-again",
     .purpose = "an id that is defined twice: the first counts; only verify looks for that",
     .requirements = "R-69",
     RECORD(TTD_KIND_STRINGS, 1, 1, 'x'),
     .chunk = VECTOR_NOWHERE,
     .verify_status = TTD_ERROR_CORRUPT,
     .verify_what = "order of strings"},
    BAD("trace-again", "a second trace chunk", "R-62", HEAPS, "second trace chunk",
        .damage = trace_again),
    BAD("trace-parent", "an invalid parent_position that is not 2^64 - 1 in both numbers", "R-66",
        TRACE, "parent_position",
        PAYLOAD(TRACE, TTD_TRACE_PARENT_POSITION, 8, TTD_SEQUENCE_INVALID)),
    BAD("trace-lz4", "a compressed trace chunk", "R-63", TRACE, "codec of a trace or an End chunk",
        .damage = trace_lz4),
    BAD("end-lz4", "a compressed End chunk", "R-63", END, "codec of a trace or an End chunk",
        .damage = end_lz4),
    BAD("end-first-record", "an End chunk whose record is not number 0", "R-63", END,
        "number of the first record", HEADER(END, TTD_HEADER_FIRST_RECORD, 8, 1)),
    BAD("critical-missing", "events that are not critical", "R-64", EVENTS,
        "critical flag of a chunk", HEADER(EVENTS, TTD_HEADER_FLAGS, 1, 0)),
    BAD("critical-set", "strings that are critical", "R-64", STRINGS, "critical flag of a chunk",
        HEADER(STRINGS, TTD_HEADER_FLAGS, 1, TTD_CHUNK_CRITICAL)),
    {.name = NULL},
};
