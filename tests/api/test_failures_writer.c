/* SPDX-License-Identifier: MIT */
/* Every allocation and every write of a writer fails once, and from then on. Nothing leaks, the
 * status says what happened, and the output is closed exactly once. */
#include "api/failures.h"

#include <errno.h>
#include <stdlib.h>

static struct outcome run_writer(const struct faults *f, struct chaos_output *output)
{
    struct chaos_memory memory;
    struct outcome result = {.status = TTD_OK};
    chaos_memory_init(&memory, f->memory);
    memory.counter.forever = f->forever;
    *output = (struct chaos_output){.counter = {.fail_at = f->output, .forever = f->forever}};
    struct ttd_allocator allocator = chaos_allocator(&memory);
    struct ttd_output table = chaos_output_table(output);
    struct ttd_writer_options options = fixture_options(TTD_CODEC_LZ4, 0, 50);
    struct model m;
    struct ttd_trace trace = model_begin(&m, entropy_of_seed(11), MODEL_ANYTHING);
    struct ttd_writer *writer = NULL;
    result.status = ttd_writer_open(&table, &trace, &options, &allocator, &writer, &result.error);
    for (int i = 0; i < STEPS && result.status == TTD_OK; i++)
        result.status = model_step(&m, writer);
    if (writer && result.status != TTD_OK) {
        result.error = ttd_writer_error(writer);
        cr_assert_eq(ttd_writer_flush(writer), TTD_ERROR_MISUSE);
        cr_assert_eq(model_event(&m, writer), TTD_ERROR_MISUSE);
        cr_assert_eq(ttd_writer_close(writer, &(struct ttd_end){0}, NULL), TTD_ERROR_MISUSE);
    } else if (writer) {
        result.status = ttd_writer_close(writer, &(struct ttd_end){0}, &result.error);
    }
    check_memory(&memory);
    cr_assert_eq(output->closed, 1);
    if (!f->forever)
        cr_assert_eq(output->calls_after, 0, "written to after a failure");
    result.memory_calls = memory.counter.calls;
    result.io_calls = output->counter.calls;
    model_free(&m);
    return result;
}

/* Checks that the chunks written before a failure are there, with a piece of one at most. */
static void check_written(const struct chaos_output *output)
{
    struct ttd_input input;
    struct ttd_verdict verdict;
    cr_assert_eq(ttd_input_memory(output->data, output->size, NULL, &input), TTD_OK);
    enum ttd_status status = ttd_verify(&input, NULL, NULL, &verdict, NULL);
    if (status == TTD_OK)
        cr_assert(verdict.problems <= 1, "%d problems", (int)verdict.problems);
    else
        cr_assert(status == TTD_ERROR_NOT_A_TRACE || status == TTD_ERROR_TRUNCATED);
}

Test(failures_writer, memory)
{
    struct chaos_output output;
    uint64_t calls = run_writer(&no_faults, &output).memory_calls;
    free(output.data);
    cr_assert_gt(calls, 20);
    for (uint64_t i = 0; i < 2 * calls; i++) {
        struct faults f = memory_fault(i);
        struct outcome result = run_writer(&f, &output);
        check_failed(&result, TTD_ERROR_NO_MEMORY, i);
        check_written(&output);
        free(output.data);
    }
}

Test(failures_writer, output)
{
    struct chaos_output output;
    uint64_t calls = run_writer(&no_faults, &output).io_calls;
    free(output.data);
    cr_assert_gt(calls, 50);
    for (uint64_t i = 0; i < 2 * calls; i++) {
        struct faults f = no_faults;
        f.output = i / 2;
        f.forever = i % 2;
        struct outcome result = run_writer(&f, &output);
        check_failed(&result, TTD_ERROR_IO, i);
        cr_assert_eq(result.error.system_error, ENOSPC);
        check_written(&output);
        free(output.data);
    }
}
