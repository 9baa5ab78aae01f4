/* SPDX-License-Identifier: MIT */
/* Every allocation and every call of input and output of a reader fails once, and from then on.
 * Nothing leaks, the status says what happened, and what was opened is closed exactly once. */
#include "api/failures.h"

#include <errno.h>
#include <stdlib.h>

#include <ttdtrace/redact.h>

/* Reading, verifying and recovering: each is a function of a trace, under faults. */

typedef struct outcome (*subject)(const struct faults *f, const struct ttd_memory_output *trace);

static uint64_t read_all(struct ttd_reader *reader, struct outcome *result)
{
    struct text lines = {0};
    uint64_t sum = 0;
    while (result->status == TTD_OK) {
        struct ttd_batch batch;
        result->status = ttd_reader_next(reader, &batch, &result->error);
        lines.size = 0;
        if (result->status == TTD_OK)
            text_of_batch(&lines, &batch);
        for (size_t i = 0; i < lines.size; i++)
            sum = sum * 31 + (uint8_t)lines.data[i];
    }
    text_free(&lines);
    return sum;
}

/* A trace and memory that fail when told to. */
struct source {
    struct chaos_memory memory;
    struct chaos_input input;
};

static void begin_source(struct source *source, const struct faults *f,
                         const struct ttd_memory_output *trace)
{
    chaos_memory_init(&source->memory, f->memory);
    source->memory.counter.forever = f->forever;
    source->input = (struct chaos_input){.data = trace->data,
                                         .size = trace->size,
                                         .at_once = f->at_once,
                                         .counter = {.fail_at = f->input, .forever = f->forever}};
}

/* Checks that nothing is left of it, and counts its calls. */
static void end_source(const struct source *source, struct outcome *result)
{
    check_memory(&source->memory);
    cr_assert_eq(source->input.closed, 1);
    result->memory_calls = source->memory.counter.calls;
    result->io_calls = source->input.counter.calls;
}

static struct outcome run_reader(const struct faults *f, const struct ttd_memory_output *trace,
                                 bool tolerant, bool seek)
{
    struct source source;
    begin_source(&source, f, trace);
    struct ttd_allocator allocator = chaos_allocator(&source.memory);
    struct ttd_input table = chaos_input_table(&source.input);
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = tolerant;
    struct ttd_reader *reader = NULL;
    struct outcome result = {.status = TTD_OK};
    result.status = ttd_reader_open(&table, &options, &allocator, &reader, &result.error);
    if (result.status == TTD_OK && seek)
        result.status = ttd_reader_seek_event(reader, 200, &result.error);
    if (reader)
        result.sum = read_all(reader, &result);
    ttd_reader_close(reader);
    end_source(&source, &result);
    return result;
}

static struct outcome run_strict(const struct faults *f, const struct ttd_memory_output *trace)
{
    return run_reader(f, trace, false, false);
}

static struct outcome run_tolerant(const struct faults *f, const struct ttd_memory_output *trace)
{
    return run_reader(f, trace, true, false);
}

static struct outcome run_seek(const struct faults *f, const struct ttd_memory_output *trace)
{
    return run_reader(f, trace, false, true);
}

enum walk { WALK_VERIFY, WALK_RECOVER, WALK_REDACT, WALK_AMEND };

static enum ttd_status add_name(void *context, struct ttd_writer *writer)
{
    ttd_id id;
    (void)context;
    enum ttd_status status = ttd_writer_string(writer, "later", 5, &id);
    struct ttd_symbol_frame frame = {.function = id};
    struct ttd_symbol symbol = {.frames = &frame, .frame_count = 1};
    return status == TTD_OK ? ttd_writer_symbol(writer, &symbol) : status;
}

static enum ttd_status walk_input(enum walk walk, const struct ttd_input *from,
                                  const struct ttd_output *to,
                                  const struct ttd_allocator *allocator, struct outcome *result)
{
    struct ttd_verdict verdict = {0};
    struct ttd_redaction removed = {0};
    enum ttd_status status;
    const struct ttd_amendment amendment = {.function = add_name};
    if (walk == WALK_AMEND)
        status = ttd_amend(from, to, allocator, &amendment, &verdict, &result->error);
    else if (walk == WALK_REDACT)
        status = ttd_redact(from, to, allocator, TTD_REDACT_STRINGS, &removed, &result->error);
    else if (walk == WALK_RECOVER)
        status = ttd_recover(from, to, allocator, NULL, &verdict, &result->error);
    else
        status = ttd_verify(from, allocator, NULL, &verdict, &result->error);
    result->sum = verdict.events + removed.strings;
    return status;
}

static struct outcome run_walk(const struct faults *f, const struct ttd_memory_output *trace,
                               enum walk walk)
{
    struct source source;
    begin_source(&source, f, trace);
    struct chaos_output output = {.counter = {.fail_at = f->output, .forever = f->forever}};
    struct ttd_allocator allocator = chaos_allocator(&source.memory);
    struct ttd_input from = chaos_input_table(&source.input);
    struct ttd_output to = chaos_output_table(&output);
    struct outcome result = {.status = TTD_OK};
    result.status = walk_input(walk, &from, &to, &allocator, &result);
    end_source(&source, &result);
    cr_assert_eq(output.closed, walk != WALK_VERIFY);
    for (size_t i = 0; i < output.size; i++)
        result.sum = result.sum * 31 + output.data[i];
    free(output.data);
    return result;
}

static struct outcome run_verify(const struct faults *f, const struct ttd_memory_output *trace)
{
    return run_walk(f, trace, WALK_VERIFY);
}

static struct outcome run_recover(const struct faults *f, const struct ttd_memory_output *trace)
{
    return run_walk(f, trace, WALK_RECOVER);
}

static struct outcome run_redact(const struct faults *f, const struct ttd_memory_output *trace)
{
    return run_walk(f, trace, WALK_REDACT);
}

static struct outcome run_amend(const struct faults *f, const struct ttd_memory_output *trace)
{
    return run_walk(f, trace, WALK_AMEND);
}

static void make_trace(struct ttd_memory_output *trace, bool damaged)
{
    struct model m;
    struct ttd_writer_options options = fixture_options(TTD_CODEC_LZ4, 0, 50);
    fixture_write_model(&m, entropy_of_seed(11), MODEL_ANYTHING, &options, STEPS, trace);
    model_free(&m);
    if (damaged)
        for (size_t i = 3000; i < trace->size; i += 7000)
            trace->data[i] ^= 1;
}

/* Short reads change nothing. */
static void check_short_reads(subject run, const struct ttd_memory_output *trace)
{
    struct outcome whole = run(&no_faults, trace);
    for (size_t at_once = 1; at_once < 200; at_once = at_once * 2 + 1) {
        struct faults f = no_faults;
        f.at_once = at_once;
        struct outcome parts = run(&f, trace);
        cr_assert_eq(parts.status, whole.status);
        cr_assert_eq(parts.sum, whole.sum);
    }
}

static void check_subject(subject run, bool damaged)
{
    struct ttd_memory_output trace;
    make_trace(&trace, damaged);
    struct outcome whole = run(&no_faults, &trace);
    cr_assert(whole.status == TTD_OK || whole.status == TTD_END);
    cr_assert_gt(whole.memory_calls, 0);
    for (uint64_t i = 0; i < 2 * whole.memory_calls; i++) {
        struct faults f = memory_fault(i);
        struct outcome result = run(&f, &trace);
        check_failed(&result, TTD_ERROR_NO_MEMORY, i);
    }
    for (uint64_t i = 0; i < 2 * whole.io_calls; i++) {
        struct faults f = no_faults;
        f.input = i / 2;
        f.forever = i % 2;
        struct outcome result = run(&f, &trace);
        check_failed(&result, TTD_ERROR_IO, i);
        cr_assert_eq(result.error.system_error, EIO);
    }
    check_short_reads(run, &trace);
    ttd_memory_output_free(&trace);
}

Test(failures, strict)
{
    check_subject(run_strict, false);
}

Test(failures, tolerant)
{
    check_subject(run_tolerant, true);
}

Test(failures, verify)
{
    check_subject(run_verify, false);
    check_subject(run_verify, true);
}

Test(failures, recover)
{
    check_subject(run_recover, false);
    check_subject(run_recover, true);
}

Test(failures, redact)
{
    check_subject(run_redact, false);
}

Test(failures, amend)
{
    check_subject(run_amend, false);
    check_subject(run_amend, true);
}

/* Without the index, seeking still works: only where the index is read may a failure be passed
 * over. Whatever happens is a documented status, and what is read then is right. */
Test(failures, seek)
{
    struct ttd_memory_output trace;
    make_trace(&trace, false);
    struct outcome whole = run_seek(&no_faults, &trace);
    cr_assert_eq(whole.status, TTD_END);
    for (uint64_t i = 0; i < whole.io_calls; i++) {
        struct faults f = no_faults;
        f.input = i;
        struct outcome result = run_seek(&f, &trace);
        if (result.status == TTD_END)
            cr_assert_eq(result.sum, whole.sum, "input %d", (int)i);
        else
            cr_assert_eq(result.status, TTD_ERROR_IO, "input %d", (int)i);
    }
    for (uint64_t i = 0; i < whole.memory_calls; i++) {
        struct faults f = no_faults;
        f.memory = i;
        struct outcome result = run_seek(&f, &trace);
        if (result.status == TTD_END)
            cr_assert_eq(result.sum, whole.sum, "allocation %d", (int)i);
        else
            cr_assert_eq(result.status, TTD_ERROR_NO_MEMORY, "allocation %d", (int)i);
    }
    check_short_reads(run_seek, &trace);
    ttd_memory_output_free(&trace);
}

Test(failures, recover_output)
{
    struct ttd_memory_output trace;
    make_trace(&trace, true);
    for (uint64_t i = 0; i < 10000; i++) {
        struct faults f = no_faults;
        f.output = i;
        struct outcome result = run_recover(&f, &trace);
        if (result.status == TTD_OK) {
            cr_assert_gt(i, 20);
            ttd_memory_output_free(&trace);
            return;
        }
        cr_assert_eq(result.status, TTD_ERROR_IO);
        cr_assert_eq(result.error.system_error, ENOSPC);
    }
    cr_assert_fail("no end of writes");
}
