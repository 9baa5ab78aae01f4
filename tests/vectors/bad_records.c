/* SPDX-License-Identifier: MIT */
/* Files that are wrong in their records, and damaged ones with what looks like chunks. */
#include "vectors/rows.h"

#include <stdlib.h>
#include <string.h>

#include "support/chunk_edit.h"

static void id_beyond(struct vector_file *file)
{
    static const uint8_t payload[] = {0, 0x80, 0x80, 0x80, 0x80, 0x10}; /* name: 2^32 */
    vector_set_payload(file, HEAPS, payload, sizeof payload);
}

/* In place of the heaps: reason 2^31, thread 0, no event, from 1:0 to 1:1. */
static void loss_reason(struct vector_file *file)
{
    static const uint8_t payload[] = {0x80, 0x80, 0x80, 0x80, 8, 0, 1, 1, 0, 1, 1};
    uint8_t *chunk = vector_chunk(file, HEAPS);
    ttd_put16(chunk + TTD_HEADER_KIND, TTD_KIND_LOSSES);
    ttd_put64(chunk + TTD_HEADER_FIRST_RECORD, 0);
    vector_set_payload(file, HEAPS, payload, sizeof payload);
}

/* ---- What looks like chunks ---- */

/*
 * Puts a chunk with a bad header before the stacks, whose payload is a copy of the second chunk of
 * events, so that it would be taken for the next chunk: then the first one is lost. Returns the
 * copy's header.
 */
static uint8_t *add_decoy(struct vector_file *file)
{
    const uint8_t *events = vector_chunk(file, MORE_EVENTS);
    size_t size = (size_t)chunk_edit_size(events, file->size);
    uint8_t *container = calloc(1, TTD_HEADER_SIZE + size);
    if (!container)
        abort();
    memcpy(container, vector_chunk(file, STRINGS), TTD_HEADER_SIZE);
    ttd_put16(container + TTD_HEADER_KIND, TTD_KIND_METADATA);
    ttd_put32(container + TTD_HEADER_STORED_SIZE, (uint32_t)size);
    ttd_put32(container + TTD_HEADER_RAW_SIZE, (uint32_t)size);
    ttd_put64(container + TTD_HEADER_FIRST_RECORD, 0);
    memcpy(container + TTD_HEADER_SIZE, events, size);
    vector_insert(file, STACKS, container, TTD_HEADER_SIZE + size);
    free(container);
    uint8_t *chunk = vector_chunk(file, STACKS);
    ttd_put64(chunk + TTD_HEADER_HASH, 0);
    uint8_t *decoy = chunk + TTD_HEADER_SIZE;
    ttd_put64(decoy + TTD_HEADER_OFFSET, (uint64_t)(decoy - file->data));
    ttd_put64(decoy + TTD_HEADER_NUMBER, STACKS + 1);
    chunk_edit_seal_header(decoy);
    return decoy;
}

static void decoy_taken(struct vector_file *file)
{
    add_decoy(file);
}

static void decoy_hash(struct vector_file *file)
{
    ttd_put64(add_decoy(file) + TTD_HEADER_HASH, 1);
}

static void decoy_fields(struct vector_file *file)
{
    uint8_t *decoy = add_decoy(file);
    ttd_put32(decoy + TTD_HEADER_RESERVED, 1);
    chunk_edit_seal_header(decoy);
}

static void decoy_trace(struct vector_file *file)
{
    uint8_t *decoy = add_decoy(file);
    ttd_put64(decoy + TTD_HEADER_TRACE_ID, 99);
    chunk_edit_seal_header(decoy);
}

/* So large that all that follows would be passed over with it. */
static void decoy_number(struct vector_file *file)
{
    uint8_t *decoy = add_decoy(file);
    size_t rest = file->size - (size_t)(decoy - file->data) - TTD_HEADER_SIZE;
    ttd_put64(decoy + TTD_HEADER_NUMBER, 0);
    ttd_put32(decoy + TTD_HEADER_STORED_SIZE, (uint32_t)rest);
    ttd_put32(decoy + TTD_HEADER_RAW_SIZE, (uint32_t)rest);
    chunk_edit_seal_header(decoy);
}

static void decoy_offset(struct vector_file *file)
{
    uint8_t *decoy = add_decoy(file);
    ttd_put64(decoy + TTD_HEADER_OFFSET, 8);
    chunk_edit_seal_header(decoy);
}

/* Tolerant reading finds all four events of the base file, or with the decoy two of them. */
#define DECOY(name_, purpose_, requirements_, damage_, events_)                                    \
    {                                                                                              \
        .name = "bad-resync-" name_, .purpose = purpose_, .requirements = requirements_,           \
        .damage = damage_, .status = TTD_ERROR_CORRUPT, .chunk = STACKS,                           \
        .what = "header checksum", .tolerant_events = events_                                      \
    }

const struct vector vectors_bad_records[] = {
    BAD("id-beyond", "an id of 2^32", "R-3", HEAPS, "value out of range", .damage = id_beyond),
    BAD("no-records", "a chunk without records", "R-21", STRINGS, "number of records",
        HEADER(STRINGS, TTD_HEADER_RECORD_COUNT, 4, 0)),
    BAD("trace-twice", "two records in a trace chunk", "R-21", TRACE, "number of records",
        HEADER(TRACE, TTD_HEADER_RECORD_COUNT, 4, 2)),
    BAD("first-id-zero", "a string of id 0", "R-34", STRINGS, "identifiers of a chunk",
        HEADER(STRINGS, TTD_HEADER_FIRST_RECORD, 8, 0)),
    BAD("last-id-beyond", "a stack of id 2^32", "R-34", STACKS, "identifiers of a chunk",
        HEADER(STACKS, TTD_HEADER_FIRST_RECORD, 8, UINT64_C(1) << 32)),
    BAD("loss-reason", "a reason of a loss beyond its range", "R-50", HEAPS, "value out of range",
        .damage = loss_reason),
    DECOY("taken", "in a damaged chunk a good one that is taken for one of the file",
          "R-29 R-30 R-31 R-32 R-33", decoy_taken, 2),
    DECOY("hash", "what looks like a chunk, with a bad header hash", "R-30", decoy_hash, 4),
    DECOY("fields", "what looks like a chunk, with a reserved field", "R-11 R-30", decoy_fields, 4),
    DECOY("trace", "what looks like a chunk, of another trace", "R-31", decoy_trace, 4),
    DECOY("number", "what looks like a chunk, of a number that was there", "R-32", decoy_number, 4),
    DECOY("offset", "what looks like a chunk, from elsewhere", "R-33", decoy_offset, 4),
    {.name = NULL},
};
