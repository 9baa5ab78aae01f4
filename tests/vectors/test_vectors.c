/* SPDX-License-Identifier: MIT */
/* The library says of each vector file what the list says; the published files are up to date. */
#include <criterion/criterion.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lz4.h>
#include <xxhash.h>

#include "support/chunk_edit.h"
#include "support/records/record_text.h"
#include "vectors/vectors.h"

#define PATH_SIZE 4096

static void for_each(void (*check)(const struct vector *v, const struct vector_file *file))
{
    for (const struct vector *const *table = vectors_all; *table; table++) {
        for (const struct vector *v = *table; v->name; v++) {
            struct vector_file file = vector_make(v);
            check(v, &file);
            free(file.data);
        }
    }
}

static uint64_t offset_of(const struct vector *v, const struct vector_file *file)
{
    return chunk_edit_find(file->data, file->size, (size_t)v->chunk);
}

/* Reads a file to its end or its first error; `lines` gets the text of all records. */
static enum ttd_status read_lines(const struct vector_file *file, struct text *lines,
                                  struct ttd_error *error)
{
    struct ttd_input input;
    struct ttd_reader *reader = NULL;
    cr_assert_eq(ttd_input_memory(file->data, file->size, NULL, &input), TTD_OK);
    enum ttd_status status = ttd_reader_open(&input, NULL, NULL, &reader, error);
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(reader, &batch, error);
        if (status == TTD_OK)
            text_of_batch(lines, &batch);
    }
    ttd_reader_close(reader);
    return status;
}

static void check_reading(const struct vector *v, const struct vector_file *file)
{
    struct ttd_error error = {.what = ""};
    struct text lines = {0};
    enum ttd_status status = read_lines(file, &lines, &error);
    text_free(&lines);
    if (v->status == TTD_OK) {
        cr_expect_eq(status, TTD_END, "%s: %s", v->name, error.what);
        return;
    }
    cr_expect_eq(status, v->status, "%s: %s", v->name, ttd_status_text(status));
    cr_expect_str_eq(error.what, v->what, "%s: %s", v->name, error.what);
    cr_expect_eq(error.status, v->status, "%s", v->name);
    cr_expect_eq(error.offset, offset_of(v, file), "%s: at %" PRIu64, v->name, error.offset);
}

Test(vectors, reading)
{
    for_each(check_reading);
}

/* Tolerant reading comes to an end, and never says that something is corrupt. */
static void check_tolerant(const struct vector *v, const struct vector_file *file)
{
    struct ttd_input input;
    struct ttd_reader *reader = NULL;
    struct ttd_batch batch;
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = true;
    cr_assert_eq(ttd_input_memory(file->data, file->size, NULL, &input), TTD_OK);
    enum ttd_status status = ttd_reader_open(&input, &options, NULL, &reader, NULL);
    if (status != TTD_OK)
        return;
    size_t events = 0;
    for (int batches = 0; status == TTD_OK && batches < 10000; batches++) {
        status = ttd_reader_next(reader, &batch, NULL);
        events += status == TTD_OK && batch.kind == TTD_KIND_EVENTS ? batch.count : 0;
    }
    if (v->tolerant_events)
        cr_expect_eq(events, v->tolerant_events, "%s: %zu events", v->name, events);
    cr_expect(status == TTD_END || status == TTD_ERROR_TRUNCATED || status == TTD_ERROR_UNSUPPORTED,
              "%s: %s", v->name, ttd_status_text(status));
    ttd_reader_close(reader);
}

Test(vectors, tolerant)
{
    for_each(check_tolerant);
}

struct found {
    struct ttd_problem first;
    size_t index_problems;
};

static bool note_problem(void *context, const struct ttd_problem *problem)
{
    struct found *found = context;
    if (found->first.error.status == TTD_OK)
        found->first = *problem;
    found->index_problems += strstr(problem->error.what, "of an index") != NULL;
    return true;
}

static void check_verify(const struct vector *v, const struct vector_file *file)
{
    struct ttd_input input;
    struct ttd_verdict verdict = {0};
    struct found found = {.first = {.error = {.what = ""}}};
    struct ttd_error error = {.what = ""};
    cr_assert_eq(ttd_input_memory(file->data, file->size, NULL, &input), TTD_OK);
    enum ttd_status status = ttd_verify(
        &input, NULL, &(struct ttd_problem_observer){.function = note_problem, .context = &found},
        &verdict, &error);
    if (status == TTD_ERROR_NOT_A_TRACE || status == TTD_ERROR_UNSUPPORTED ||
        status == TTD_ERROR_TRUNCATED || status == TTD_ERROR_CORRUPT) {
        enum ttd_status expected = v->verify_what ? v->verify_status : v->status;
        cr_expect_eq(status, expected, "%s: %s", v->name, error.what);
        cr_expect_str_eq(error.what, v->verify_what ? v->verify_what : v->what, "%s", v->name);
        return;
    }
    cr_expect_eq(status, TTD_OK, "%s: %s", v->name, error.what);
    enum ttd_status expected = v->verify_what ? v->verify_status : v->status;
    const char *what = v->verify_what ? v->verify_what : v->what;
    cr_expect_eq(verdict.ok, expected == TTD_OK, "%s: verdict", v->name);
    if (expected == TTD_OK)
        return;
    cr_expect_eq(found.first.error.status, expected, "%s: %s", v->name, found.first.error.what);
    if (v->status != TTD_ERROR_TRUNCATED)
        cr_expect_str_eq(found.first.error.what, what, "%s: %s", v->name, found.first.error.what);
    if (v->chunk >= 0 && v->status != TTD_OK)
        cr_expect_eq(found.first.error.offset, offset_of(v, file), "%s", v->name);
    /* Nor is the index of a file wrong that reads well, unless it is about the index. */
    if (v->status == TTD_OK)
        cr_expect(found.index_problems == 0 || strstr(what, "index"), "%s", v->name);
}

Test(vectors, verify)
{
    for_each(check_verify);
}

/* Whatever can be recovered of them is intact. */
static void check_recover(const struct vector *v, const struct vector_file *file)
{
    struct ttd_input input;
    struct ttd_memory_output recovered;
    struct ttd_output output;
    struct ttd_verdict verdict = {0};
    cr_assert_eq(ttd_input_memory(file->data, file->size, NULL, &input), TTD_OK);
    cr_assert_eq(ttd_output_memory(&recovered, NULL, &output), TTD_OK);
    if (ttd_recover(&input, &output, NULL, NULL, &verdict, NULL) == TTD_OK) {
        struct found found = {.first = {.error = {.what = ""}}};
        cr_assert_eq(ttd_input_memory(recovered.data, recovered.size, NULL, &input), TTD_OK);
        cr_expect_eq(
            ttd_verify(&input, NULL,
                       &(struct ttd_problem_observer){.function = note_problem, .context = &found},
                       &verdict, NULL),
            TTD_OK);
        /* Recover leaves problems as they are that only verify looks for. */
        bool is_kept = v->verify_what && strcmp(found.first.error.what, v->verify_what) == 0;
        cr_expect(verdict.ok || is_kept, "%s: %s", v->name, found.first.error.what);
    }
    ttd_memory_output_free(&recovered);
}

Test(vectors, recover)
{
    for_each(check_recover);
}

/* A reader that needs no payload but the last reads none: damage elsewhere is not seen. */
Test(vectors, unread)
{
    const struct vector *v = vectors_bad;
    while (strcmp(v->name, "bad-payload-hash") != 0)
        v++;
    struct vector_file file = vector_make(v);
    struct ttd_input input;
    struct ttd_reader *reader = NULL;
    struct ttd_batch batch;
    struct ttd_reader_options options = ttd_reader_options_default();
    options.kinds = TTD_KIND_BIT(TTD_KIND_END);
    cr_assert_eq(ttd_input_memory(file.data, file.size, NULL, &input), TTD_OK);
    cr_assert_eq(ttd_reader_open(&input, &options, NULL, &reader, NULL), TTD_OK);
    cr_expect_eq(ttd_reader_next(reader, &batch, NULL), TTD_OK);
    cr_expect_eq(batch.kind, TTD_KIND_END);
    cr_expect_eq(ttd_reader_next(reader, &batch, NULL), TTD_END);
    ttd_reader_close(reader);
    free(file.data);
}

/* Reads what a derived file says that it belongs to, and what a trace says of itself. */
static bool is_tied(const char *derived, const struct vector_file *source)
{
    const struct vector *v = vectors_good;
    while (strcmp(v->name, derived) != 0)
        v++;
    struct vector_file file = vector_make(v);
    struct ttd_input input;
    struct ttd_reader *reader = NULL;
    cr_assert_eq(ttd_input_memory(file.data, file.size, NULL, &input), TTD_OK);
    cr_assert_eq(ttd_reader_open(&input, NULL, NULL, &reader, NULL), TTD_OK);
    struct ttd_trace told = *ttd_reader_trace(reader);
    struct ttd_trace tie = {0};
    ttd_reader_close(reader);
    cr_assert_eq(ttd_input_memory(source->data, source->size, NULL, &input), TTD_OK);
    cr_assert_eq(ttd_reader_open(&input, NULL, NULL, &reader, NULL), TTD_OK);
    cr_assert_eq(ttd_reader_tie(reader, &tie), TTD_OK);
    ttd_reader_close(reader);
    free(file.data);
    return told.source_trace_id == tie.source_trace_id && told.source_size == tie.source_size &&
           told.source_hash == tie.source_hash;
}

Test(vectors, derived)
{
    struct vector base = {.name = "good-base"};
    struct vector_file file = vector_make(&base);
    cr_expect(is_tied("good-derived", &file));
    cr_expect(!is_tied("good-derived-stale", &file));
    free(file.data);
}

/* Whether LZ4 compresses here to the bytes of the published files. An encoder may choose any:
 * another version, or one of a big-endian machine, finds other matches. */
static bool lz4_is_as_published(void)
{
    uint8_t sample[4096];
    char packed[LZ4_COMPRESSBOUND(sizeof sample)];
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof sample; i++) {
        state = state * 1103515245 + 12345;
        sample[i] = (uint8_t)(state >> 30);
    }
    int size = LZ4_compress_default((const char *)sample, packed, sizeof sample, sizeof packed);
    cr_assert_gt(size, 0);
    return XXH3_64bits(packed, (size_t)size) == UINT64_C(0x51164779703138a4);
}

/* Both files end alike, with the same records. */
static bool reads_alike(const struct vector_file *a, const struct vector_file *b)
{
    struct text lines[2] = {{0}, {0}};
    struct ttd_error errors[2] = {{.what = ""}, {.what = ""}};
    bool is_alike = read_lines(a, &lines[0], &errors[0]) == read_lines(b, &lines[1], &errors[1]) &&
                    strcmp(errors[0].what, errors[1].what) == 0 && lines[0].size == lines[1].size &&
                    (!lines[0].size || memcmp(lines[0].data, lines[1].data, lines[0].size) == 0);
    text_free(&lines[0]);
    text_free(&lines[1]);
    return is_alike;
}

static void check_published(const struct vector *v, const struct vector_file *file)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s.trace", getenv("TTD_VECTORS"), v->name);
    FILE *input = fopen(path, "rb");
    cr_assert_not_null(input, "%s", path);
    uint8_t *data = malloc(file->size + 1);
    size_t size = fread(data, 1, file->size + 1, input);
    fclose(input);
    struct vector_file published = {data, size};
    bool is_same = size == file->size && memcmp(data, file->data, size) == 0;
    cr_expect(is_same || (!lz4_is_as_published() && reads_alike(&published, file)),
              "%s is not up to date: run make_vectors", v->name);
    free(data);
}

Test(vectors, published)
{
    for_each(check_published);
}
