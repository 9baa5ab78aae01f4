/* SPDX-License-Identifier: MIT */
/* Files with damage in more than one place, for what is made of it together. */
#include "vectors/edit.h"

#include <string.h>

#include "support/chunk_edit.h"

/* Flips a bit of a payload. */
static void spoil(struct vector_file *file, size_t number)
{
    vector_chunk(file, number)[TTD_HEADER_SIZE] ^= 1;
}

static void payloads(struct vector_file *file)
{
    spoil(file, EVENTS);
    spoil(file, MORE_EVENTS);
}

static void names_and_events(struct vector_file *file)
{
    spoil(file, STRINGS);
    spoil(file, EVENTS);
}

/* Another End behind the one at the end, with its number. */
static uint8_t *add_end(struct vector_file *file)
{
    size_t at = chunk_edit_find(file->data, file->size, END);
    size_t size = file->size;
    vector_resize(file, size + TTD_END_CHUNK_SIZE);
    memcpy(file->data + size, file->data + at, TTD_END_CHUNK_SIZE);
    uint8_t *added = file->data + size;
    ttd_put64(added + TTD_HEADER_NUMBER, END + 1);
    ttd_put64(added + TTD_HEADER_OFFSET, size);
    ttd_put64(added + TTD_HEADER_SIZE + TTD_END_PAYLOAD_CHUNKS, END + 2);
    chunk_edit_seal(added, TTD_END_CHUNK_SIZE);
    return added;
}

static void end_payload(struct vector_file *file)
{
    add_end(file);
    spoil(file, END);
}

static void cut_behind_end(struct vector_file *file)
{
    add_end(file);
    vector_resize(file, file->size - 8);
}

/* All else is right: numbers, events, and the totals of End. */
static void first_strings(struct vector_file *file)
{
    size_t size = chunk_edit_find(file->data, file->size, STRINGS);
    memmove(file->data, file->data + size, file->size - size);
    vector_resize(file, file->size - size);
    uint8_t *end = file->data + file->size - TTD_END_CHUNK_SIZE;
    ttd_put64(end + TTD_HEADER_SIZE + TTD_END_PAYLOAD_CHUNKS, END);
    chunk_edit_seal_all(file->data, file->size);
}

/* The first good header behind the bad one is of a chunk that the file does not have to its end. */
static void first_and_too_long(struct vector_file *file)
{
    uint8_t *strings = vector_chunk(file, STRINGS);
    ttd_put32(strings + TTD_HEADER_STORED_SIZE, TTD_PAYLOAD_MAX);
    ttd_put32(strings + TTD_HEADER_RAW_SIZE, TTD_PAYLOAD_MAX);
    chunk_edit_seal_header(strings);
    file->data[TTD_HEADER_NUMBER] ^= 1;
}

/* Nothing but the first chunk, whose header says something wrong. */

static void only_trace(struct vector_file *file)
{
    vector_resize(file, chunk_edit_find(file->data, file->size, STRINGS));
}

static void only_hash(struct vector_file *file)
{
    only_trace(file);
    file->data[TTD_HEADER_NUMBER] ^= 1;
}

static void only_reserved(struct vector_file *file)
{
    only_trace(file);
    ttd_put32(file->data + TTD_HEADER_RESERVED, 1);
    chunk_edit_seal_header(file->data);
}

#define BAD(name_, purpose_, requirements_, damage_, chunk_, what_)                                \
    {                                                                                              \
        .name = "bad-" name_, .purpose = purpose_, .requirements = requirements_,                  \
        .damage = damage_, .status = TTD_ERROR_CORRUPT, .chunk = chunk_, .what = what_             \
    }

const struct vector vectors_bad_damage[] = {
    BAD("payloads", "two chunks of events, one after the other, both bad: one loss", "R-29 R-75",
        payloads, EVENTS, "payload checksum"),
    BAD("payloads-apart", "bad strings, and bad events behind them: one loss, of the events",
        "R-29 R-75", names_and_events, STRINGS, "payload checksum"),
    BAD("end-payload", "an End with a bad payload is none; another one follows", "R-18 R-29",
        end_payload, END, "payload checksum"),
    BAD("cut-behind-end", "an incomplete chunk behind End is corrupt, not truncated", "R-27 R-29",
        cut_behind_end, END + 1, "data after the End chunk"),
    BAD("first-strings", "the trace chunk is missing, and nothing else", "R-24 R-29", first_strings,
        TRACE, "first chunk"),
    {.name = "bad-first-and-too-long",
     .purpose = "a bad first chunk, and one behind it that would go on after the end of the file",
     .requirements = "R-9 R-15 R-29",
     .damage = first_and_too_long,
     .status = TTD_ERROR_CORRUPT,
     .what = "header checksum",
     .tolerant_events = 4},
    BAD("only-header-hash", "a single chunk with a bit of its header flipped: no good one at all",
        "R-9", only_hash, TRACE, "header checksum"),
    BAD("only-reserved", "a single chunk whose reserved field is not zero", "R-11", only_reserved,
        TRACE, "reserved field is not zero"),
    {.name = NULL},
};
