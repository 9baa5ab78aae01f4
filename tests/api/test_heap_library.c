/* SPDX-License-Identifier: MIT */
/*
 * libttdheap in a program: many handles in many threads, cancelling, failures of memory and of
 * input. Answers are compared by a hash of all their records.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <ttdtrace/ttdheap.h>

#include "api/fixture.h"

enum { THREADS = 8, ROUNDS = 3, STEPS = 600 };

static struct ttd_memory_output made;

static void heap_trace_make(void)
{
    struct model m;
    struct ttd_writer_options options = fixture_options(TTD_CODEC_LZ4, 1, 64);
    fixture_write_model(&m, (struct entropy){.state = 3}, MODEL_REALISTIC, &options, STEPS, &made);
    model_free(&m);
}

/* Failures that tests inject. */
struct faults {
    uint64_t left;
    bool is_armed;
    atomic_uint_fast64_t blocks;
};

static bool faults_strike(struct faults *faults)
{
    return faults->is_armed && !faults->left--;
}

static void *faults_resize(void *context, void *block, size_t size)
{
    struct faults *faults = context;
    if (faults_strike(faults))
        return NULL;
    faults->blocks += !block;
    return realloc(block, size);
}

static void faults_release(void *context, void *block)
{
    struct faults *faults = context;
    faults->blocks -= block != NULL;
    free(block);
}

static int faults_read(void *context, uint64_t offset, void *data, size_t size, size_t *got)
{
    if (faults_strike(context))
        return EIO;
    *got = offset < made.size ? made.size - (size_t)offset : 0;
    *got = *got < size ? *got : size;
    if (*got)
        memcpy(data, made.data + offset, *got);
    return 0;
}

static int faults_size(void *context, uint64_t *size)
{
    (void)context;
    *size = made.size;
    return 0;
}

static uint64_t hash_add(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(0x100000001b3);
}

/* Asks some questions; `hash` gets their answers. */
static enum ttd_status ask(struct ttdheap *heap, uint64_t *hash, struct ttdheap_error *error)
{
    struct ttd_position half;
    struct ttdheap_groups groups;
    struct ttdheap_blocks blocks;
    struct ttdheap_findings findings;
    *hash = 0;
    enum ttd_status status = ttdheap_find(heap, "50%", &half, error);
    if (status == TTD_OK)
        status = ttdheap_go(heap, half);
    if (status == TTD_OK)
        status = ttdheap_groups(heap, TTDHEAP_BY_FUNCTION, &groups, error);
    if (status != TTD_OK)
        return status;
    for (size_t i = 0; i < groups.count; i++)
        *hash = hash_add(*hash, groups.items[i].bytes ^ groups.items[i].name.size);
    *hash = hash_add(*hash, groups.answer.is_certain);
    ttdheap_free(&groups.answer);
    status = ttdheap_blocks(heap, &blocks, error);
    if (status != TTD_OK)
        return status;
    for (size_t i = 0; i < blocks.count; i++)
        *hash = hash_add(*hash, blocks.items[i].address);
    ttdheap_free(&blocks.answer);
    status = ttdheap_errors(heap, &findings, error);
    if (status != TTD_OK)
        return status;
    for (size_t i = 0; i < findings.count; i++)
        *hash = hash_add(*hash, findings.items[i].address);
    *hash = hash_add(*hash, findings.calls);
    ttdheap_free(&findings.answer);
    return TTD_OK;
}

static struct ttdheap *handle_open(struct faults *faults, struct ttdheap_options *options,
                                   enum ttd_status *status, struct ttdheap_error *error)
{
    struct ttdheap *heap = NULL;
    struct ttd_input input = {faults, faults_read, faults_size, NULL};
    struct ttd_allocator allocator = {faults, faults_resize, faults_release};
    options->input = &input;
    options->allocator = &allocator;
    *status = ttdheap_open("made", options, &heap, error);
    return heap;
}

/* ---- Threads ---- */

static void *thread_ask(void *context)
{
    uint64_t *hash = context;
    for (int round = 0; round < ROUNDS; round++) {
        struct faults faults = {.is_armed = false};
        struct ttdheap_error error = {.text = ""};
        enum ttd_status status;
        uint64_t answer = 0;
        struct ttdheap_options options = ttdheap_options_default();
        struct ttdheap *heap = handle_open(&faults, &options, &status, &error);
        for (int again = 0; status == TTD_OK && again < 2; again++)
            status = ask(heap, &answer, &error);
        ttdheap_close(heap);
        if (status != TTD_OK || faults.blocks || (round && answer != *hash))
            return NULL;
        *hash = answer;
    }
    return hash;
}

Test(heap_library, has_many_handles_in_many_threads, .init = heap_trace_make)
{
    pthread_t threads[THREADS];
    uint64_t hashes[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, thread_ask, &hashes[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        cr_assert_eq(pthread_join(threads[i], &result), 0);
        cr_assert_not_null(result, "thread %d", i);
        cr_assert_eq(hashes[i], hashes[0]);
    }
    ttd_memory_output_free(&made);
}

/* ---- Cancelling ---- */

static int cancel_after(void *context, uint64_t done, uint64_t total)
{
    uint64_t *left = context;
    cr_assert_leq(done, total);
    return *left == 0 || !(*left)--;
}

Test(heap_library, can_be_cancelled_at_any_call, .init = heap_trace_make)
{
    struct faults faults = {.is_armed = false};
    struct ttdheap_error error = {.text = ""};
    enum ttd_status status;
    uint64_t left = UINT64_MAX, expected = 0, hash = 0;
    struct ttdheap_options options = ttdheap_options_default();
    options.progress = cancel_after;
    options.context = &left;
    struct ttdheap *heap = handle_open(&faults, &options, &status, &error);
    cr_assert_eq(status, TTD_OK, "%s", error.text);
    cr_assert_eq(ask(heap, &expected, &error), TTD_OK, "%s", error.text);
    uint64_t cancelled = 0;
    for (uint64_t call = 0;; call++) {
        left = call;
        status = ask(heap, &hash, &error);
        if (status == TTD_OK)
            break;
        cr_assert_eq(status, TTD_ERROR_CANCELLED, "%s", error.text);
        cr_assert_str_eq(error.text, "made: cancelled");
        cancelled++;
    }
    cr_assert_gt(cancelled, 5);
    cr_assert_eq(hash, expected);
    ttdheap_close(heap);
    cr_assert_eq(faults.blocks, 0);
    ttd_memory_output_free(&made);
}

/* ---- Failures of memory and of input ---- */

/* Each call of the allocator and of the input fails once, from the opening on. The handle then
 * answers as if nothing had been. */
Test(heap_library, survives_every_failure_of_memory_and_input, .init = heap_trace_make)
{
    struct faults faults = {.is_armed = false};
    struct ttdheap_error error = {.text = ""};
    enum ttd_status status;
    uint64_t expected = 0;
    uint64_t call = 0;
    bool has_struck = true;
    struct ttdheap_options options = ttdheap_options_default();
    options.reads_ahead = false;
    struct ttdheap *heap = handle_open(&faults, &options, &status, &error);
    cr_assert_eq(ask(heap, &expected, &error), TTD_OK, "%s", error.text);
    ttdheap_close(heap);
    for (; has_struck; call++) {
        uint64_t hash = 0;
        faults = (struct faults){.left = call, .is_armed = true};
        heap = handle_open(&faults, &options, &status, &error);
        if (status == TTD_OK)
            status = ask(heap, &hash, &error);
        has_struck = faults.left > call;
        faults.is_armed = false;
        cr_assert(status == TTD_OK ? hash == expected
                                   : status == TTD_ERROR_NO_MEMORY || status == TTD_ERROR_IO,
                  "call %d: %s", (int)call, error.text);
        if (heap) {
            cr_assert_eq(ask(heap, &hash, &error), TTD_OK, "call %d: %s", (int)call, error.text);
            cr_assert_eq(hash, expected, "call %d", (int)call);
        }
        ttdheap_close(heap);
        cr_assert_eq(faults.blocks, 0, "call %d", (int)call);
    }
    cr_assert_gt(call, 50);
    ttd_memory_output_free(&made);
}

Test(heap_library, refuses_wrong_arguments, .init = heap_trace_make)
{
    struct ttdheap *heap = NULL;
    struct ttdheap_error error = {.text = ""};
    struct ttdheap_options options = ttdheap_options_default();
    options.size--;
    cr_assert_eq(ttdheap_open("made", &options, &heap, &error), TTD_ERROR_ARGUMENT);
    cr_assert_str_eq(error.text, "trace: options of unknown size");
    cr_assert_eq(ttdheap_open(NULL, NULL, &heap, &error), TTD_ERROR_ARGUMENT);
    cr_assert_eq(ttdheap_open("made", NULL, NULL, NULL), TTD_ERROR_ARGUMENT);
    cr_assert_eq(ttdheap_go(NULL, ttd_position_min()), TTD_ERROR_ARGUMENT);
    cr_assert_null(heap);
    ttdheap_close(NULL);
    ttdheap_free(NULL);
    ttd_memory_output_free(&made);
}
