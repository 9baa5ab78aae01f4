/* SPDX-License-Identifier: MIT */
/* Vector files cut at every length, and with every byte changed: what is wrong is found and named,
 * and everything else is still there. */
#include "api/fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/chunk_edit.h"
#include "vectors/vectors.h"

/** A good file, and the text of each of its chunks. */
struct subject {
    const char *name;
    struct vector_file file;
    struct text_table chunks;
    /** The same for a reader that does not know the trace's time unit: the first chunk is bad. */
    struct text_table unitless;
    size_t chunk_count;
};

/** Notes a batch, or what is left of it without wall times. */
static void note(struct text_table *found, const struct ttd_batch *batch, bool has_times)
{
    struct text *to = text_table_at(found, (size_t)batch->chunk.number);
    if (batch->kind != TTD_KIND_EVENTS || has_times) {
        text_of_batch(to, batch);
        return;
    }
    for (size_t i = 0; i < batch->count; i++) {
        struct ttd_event event = batch->u.events[i];
        event.wall_time = 0;
        struct ttd_batch one = {.kind = TTD_KIND_EVENTS, .count = 1, .u.events = &event};
        text_of_batch(to, &one);
    }
}

/** Reads all that a reader finds; by chunk. */
static enum ttd_status read_noting(const uint8_t *data, size_t size, bool tolerant,
                                   struct text_table *found, struct ttd_error *error,
                                   bool has_times)
{
    struct ttd_input input;
    struct ttd_reader *reader = NULL;
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = tolerant;
    cr_assert_eq(ttd_input_memory(data, size, NULL, &input), TTD_OK);
    enum ttd_status status = ttd_reader_open(&input, &options, NULL, &reader, error);
    for (int batches = 0; status == TTD_OK; batches++) {
        struct ttd_batch batch;
        cr_assert_lt(batches, 100000, "endless");
        status = ttd_reader_next(reader, &batch, error);
        if (status == TTD_OK && !batch.synthetic)
            note(found, &batch, has_times);
    }
    ttd_reader_close(reader);
    return status;
}

static enum ttd_status read_chunks(const uint8_t *data, size_t size, bool tolerant,
                                   struct text_table *found, struct ttd_error *error)
{
    return read_noting(data, size, tolerant, found, error, true);
}

static struct subject make_subject(const char *name)
{
    struct subject s = {.name = name};
    for (const struct vector *v = vectors_good; v->name; v++)
        if (strcmp(v->name, name) == 0)
            s.file = vector_make(v);
    cr_assert_not_null(s.file.data);
    cr_assert_eq(read_chunks(s.file.data, s.file.size, false, &s.chunks, NULL), TTD_END);
    read_noting(s.file.data, s.file.size, false, &s.unitless, NULL, false);
    while (chunk_edit_find(s.file.data, s.file.size, s.chunk_count) < s.file.size)
        s.chunk_count++;
    text_table_at(&s.chunks, s.chunk_count - 1);
    text_table_at(&s.unitless, s.chunk_count - 1);
    return s;
}

static void free_subject(struct subject *s)
{
    free(s->file.data);
    text_table_free(&s->chunks);
    text_table_free(&s->unitless);
}

/** Whether both say the same of this chunk. */
static bool same_chunk(const struct text_table *a, const struct text_table *b, size_t chunk)
{
    struct text none = {0};
    struct text one = chunk < a->count ? a->texts[chunk] : none;
    struct text other = chunk < b->count ? b->texts[chunk] : none;
    return one.size == other.size && (!one.size || memcmp(one.data, other.data, one.size) == 0);
}

/** Checks that all chunks but those from `from` to before `to` were found, and those not. */
static void check_found(const struct subject *s, const struct text_table *found, size_t from,
                        size_t to, const char *how)
{
    const struct text_table *chunks = from == 0 ? &s->unitless : &s->chunks;
    cr_assert_leq(found->count, s->chunk_count, "%s: chunks that do not exist", how);
    for (size_t i = 0; i < s->chunk_count; i++) {
        if (i >= from && i < to)
            cr_assert(i >= found->count || found->texts[i].size == 0, "%s: bad chunk %zu", how, i);
        else
            cr_assert(same_chunk(chunks, found, i), "%s: chunk %zu is not there", how, i);
    }
}

static size_t offset_of(const struct subject *s, size_t chunk)
{
    return chunk_edit_find(s->file.data, s->file.size, chunk);
}

static unsigned kind_of(const struct subject *s, size_t chunk)
{
    return ttd_get16(s->file.data + offset_of(s, chunk) + TTD_HEADER_KIND);
}

static uint32_t items_of(const struct subject *s, size_t chunk)
{
    return ttd_get32(s->file.data + offset_of(s, chunk) + TTD_HEADER_RECORD_COUNT);
}

static bool keep_first(void *context, const struct ttd_problem *problem)
{
    struct ttd_problem *first = context;
    if (first->error.status == TTD_OK)
        *first = *problem;
    return true;
}

/** Recovers; checks that the result is intact and has all events but those of the bad chunks. */
static void check_recover(const struct subject *s, const uint8_t *data, size_t size, size_t from,
                          size_t to, const char *how)
{
    struct ttd_input input;
    struct ttd_memory_output recovered;
    struct ttd_output output;
    struct ttd_verdict verdict = {0};
    cr_assert_eq(ttd_input_memory(data, size, NULL, &input), TTD_OK);
    cr_assert_eq(ttd_output_memory(&recovered, NULL, &output), TTD_OK);
    enum ttd_status status = ttd_recover(&input, &output, NULL, NULL, &verdict, NULL);
    cr_assert_eq(status, TTD_OK, "%s: recover: %s", how, ttd_status_text(status));
    fixture_check_intact(recovered.data, recovered.size);
    struct text_table found = {0};
    struct ttd_reader *reader = fixture_reader(&recovered, false);
    cr_assert_eq(model_read(reader, &found), TTD_END);
    ttd_reader_close(reader);
    struct text *events = text_table_at(&found, TTD_KIND_EVENTS);
    size_t at = 0;
    for (size_t i = 0; i < s->chunk_count; i++) {
        if ((i >= from && i < to) || kind_of(s, i) != TTD_KIND_EVENTS)
            continue;
        const struct text *chunk = from == 0 ? &s->unitless.texts[i] : &s->chunks.texts[i];
        cr_assert(at + chunk->size <= events->size &&
                      memcmp(events->data + at, chunk->data, chunk->size) == 0,
                  "%s: recover: events of chunk %zu", how, i);
        at += chunk->size;
    }
    cr_assert_eq(at, events->size, "%s: recover: events that do not exist", how);
    text_table_free(&found);
    ttd_memory_output_free(&recovered);
}

/** One byte of `chunk` is wrong. */
static void check_flip(const struct subject *s, const uint8_t *data, size_t chunk, const char *how)
{
    size_t size = s->file.size;
    uint64_t offset = offset_of(s, chunk);
    bool in_index = kind_of(s, chunk) == TTD_KIND_INDEX;
    struct text_table found = {0};
    struct ttd_error error = {.what = ""};
    enum ttd_status status = read_chunks(data, size, false, &found, &error);
    if (!in_index || status != TTD_END) { /* reading in order does not look into the index */
        cr_assert(status == TTD_ERROR_CORRUPT || (chunk == 0 && status == TTD_ERROR_NOT_A_TRACE),
                  "%s: strict: %s", how, ttd_status_text(status));
        cr_assert_eq(error.offset, offset, "%s: strict: at %" PRIu64, how, error.offset);
        check_found(s, &found, chunk, s->chunk_count, how);
    }
    text_table_free(&found);
    status = read_chunks(data, size, true, &found, NULL);
    cr_assert_eq(status, TTD_END, "%s: tolerant: %s", how, ttd_status_text(status));
    check_found(s, &found, chunk, chunk + 1, how);
    text_table_free(&found);
    struct ttd_input input;
    struct ttd_verdict verdict = {0};
    struct ttd_problem first = {.error = {.what = ""}};
    cr_assert_eq(ttd_input_memory(data, size, NULL, &input), TTD_OK);
    cr_assert_eq(
        ttd_verify(&input, NULL,
                   &(struct ttd_problem_observer){.function = keep_first, .context = &first},
                   &verdict, NULL),
        TTD_OK, "%s", how);
    cr_assert(!verdict.ok, "%s: verify", how);
    cr_assert_eq(first.error.status, TTD_ERROR_CORRUPT, "%s: verify", how);
    cr_assert_eq(first.error.offset, offset, "%s: verify: at %" PRIu64, how, first.error.offset);
    uint64_t bad = offset_of(s, chunk + 1) - offset;
    cr_assert_eq(verdict.intact_bytes, size - bad, "%s: verify: intact bytes", how);
    cr_assert_eq(first.bytes, bad, "%s: verify: bad bytes", how);
    uint64_t missing = kind_of(s, chunk) == TTD_KIND_EVENTS ? items_of(s, chunk) : 0;
    bool last = chunk + 1 == s->chunk_count; /* which nothing tells from other kinds */
    cr_assert(first.missing_events == missing || (last && first.missing_events == TTD_UNKNOWN),
              "%s: verify: missing events", how);
    check_recover(s, data, size, chunk, chunk + 1, how);
}

static void check_flips(const char *name)
{
    static const uint8_t masks[] = {0x01, 0x80, 0xFF};
    struct subject s = make_subject(name);
    size_t chunk = 0;
    for (size_t i = 0; i < s.file.size; i++) {
        char how[100];
        while (i >= offset_of(&s, chunk + 1))
            chunk++;
        for (size_t k = 0; k < sizeof masks; k++) {
            snprintf(how, sizeof how, "%s: byte %zu ^ %x of chunk %zu", name, i, masks[k], chunk);
            s.file.data[i] ^= masks[k];
            uint8_t *copy = malloc(s.file.size);
            memcpy(copy, s.file.data, s.file.size);
            s.file.data[i] ^= masks[k];
            check_flip(&s, copy, chunk, how);
            free(copy);
        }
    }
    free_subject(&s);
}

Test(damage, flips_base)
{
    check_flips("good-base");
}

Test(damage, flips_kinds_raw)
{
    check_flips("good-kinds-raw");
}

Test(damage, flips_kinds_lz4)
{
    check_flips("good-kinds-lz4");
}

/** The file ends after `size` bytes, within `chunk` or at its start. */
static void check_cut(const struct subject *s, const uint8_t *data, size_t size, size_t chunk,
                      const char *how)
{
    uint64_t offset = offset_of(s, chunk);
    bool whole = size == offset;
    struct text_table found = {0};
    struct ttd_error error = {.what = ""};
    enum ttd_status status = read_chunks(data, size, false, &found, &error);
    if (size < TTD_MAGIC_SIZE) {
        cr_assert_eq(status, TTD_ERROR_NOT_A_TRACE, "%s: %s", how, ttd_status_text(status));
    } else if (whole) {
        cr_assert_eq(status, TTD_END, "%s: %s", how, ttd_status_text(status));
    } else {
        cr_assert_eq(status, TTD_ERROR_TRUNCATED, "%s: %s", how, ttd_status_text(status));
        cr_assert_eq(error.offset, offset, "%s: at %" PRIu64, how, error.offset);
    }
    check_found(s, &found, chunk, s->chunk_count, how);
    text_table_free(&found);
    status = read_chunks(data, size, true, &found, NULL);
    check_found(s, &found, chunk, s->chunk_count, how);
    text_table_free(&found);
    struct ttd_input input;
    struct ttd_verdict verdict = {0};
    struct ttd_problem first = {.error = {.what = ""}};
    cr_assert_eq(ttd_input_memory(data, size, NULL, &input), TTD_OK);
    status = ttd_verify(&input, NULL,
                        &(struct ttd_problem_observer){.function = keep_first, .context = &first},
                        &verdict, NULL);
    if (chunk == 0) {
        cr_assert_eq(status, size < TTD_MAGIC_SIZE ? TTD_ERROR_NOT_A_TRACE : TTD_ERROR_TRUNCATED,
                     "%s: verify: %s", how, ttd_status_text(status));
        return;
    }
    cr_assert_eq(status, TTD_OK, "%s: verify: %s", how, ttd_status_text(status));
    cr_assert(!verdict.ok && !verdict.closed, "%s: verify", how);
    cr_assert_eq(verdict.problems, 1, "%s: verify", how);
    cr_assert_eq(first.error.status, TTD_ERROR_TRUNCATED, "%s: verify", how);
    cr_assert_eq(first.error.offset, offset, "%s: verify", how);
    cr_assert_eq(verdict.intact_bytes, offset, "%s: verify", how);
    check_recover(s, data, size, chunk, s->chunk_count, how);
}

static void check_cuts(const char *name)
{
    struct subject s = make_subject(name);
    size_t chunk = 0;
    for (size_t size = 0; size < s.file.size; size++) {
        char how[100];
        while (size >= offset_of(&s, chunk + 1))
            chunk++;
        snprintf(how, sizeof how, "%s: %zu bytes, in chunk %zu", name, size, chunk);
        uint8_t *copy = malloc(size ? size : 1);
        memcpy(copy, s.file.data, size);
        check_cut(&s, copy, size, chunk, how);
        free(copy);
    }
    free_subject(&s);
}

Test(damage, cuts)
{
    check_cuts("good-empty");
    check_cuts("good-base");
    check_cuts("good-kinds-raw");
    check_cuts("good-kinds-lz4");
    check_cuts("good-chunks");
}

/* Whole chunks are missing, one after the other and in groups. */
Test(damage, missing_chunks)
{
    struct subject s = make_subject("good-chunks");
    for (size_t from = 1; from < s.chunk_count; from++) {
        for (size_t to = from + 1; to <= s.chunk_count && to < from + 5; to++) {
            char how[100];
            size_t begin = offset_of(&s, from);
            size_t end = offset_of(&s, to);
            snprintf(how, sizeof how, "without chunks %zu to %zu", from, to);
            uint8_t *copy = malloc(s.file.size);
            memcpy(copy, s.file.data, s.file.size);
            memset(copy + begin, 0, end - begin);
            struct text_table found = {0};
            enum ttd_status status = read_chunks(copy, s.file.size, true, &found, NULL);
            cr_assert(status == TTD_END || to == s.chunk_count, "%s", how);
            check_found(&s, &found, from, to, how);
            check_recover(&s, copy, s.file.size, from, to, how);
            text_table_free(&found);
            free(copy);
        }
    }
    free_subject(&s);
}
