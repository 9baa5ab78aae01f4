/* SPDX-License-Identifier: MIT */
#include "api/fixture.h"

#include <inttypes.h>

struct ttd_writer_options fixture_options(enum ttd_codec codec, int level,
                                          uint32_t events_per_chunk)
{
    struct ttd_writer_options options = ttd_writer_options_default();
    options.codec = codec;
    options.level = level;
    options.events_per_chunk = events_per_chunk;
    return options;
}

struct ttd_trace fixture_trace(void)
{
    return (struct ttd_trace){.trace_id = 7, .time_unit = 1, .pointer_size = 8};
}

struct ttd_writer *fixture_writer(struct ttd_memory_output *memory, const struct ttd_trace *trace,
                                  const struct ttd_writer_options *options)
{
    struct ttd_output output;
    struct ttd_writer *writer = NULL;
    cr_assert_eq(ttd_output_memory(memory, NULL, &output), TTD_OK);
    cr_assert_eq(ttd_writer_open(&output, trace, options, NULL, &writer, NULL), TTD_OK);
    cr_assert_not_null(writer);
    return writer;
}

void fixture_close(struct ttd_writer *writer)
{
    struct ttd_end end = {.reason = TTD_END_REASON_EXITED, .code = 3, .wall_time = 99};
    struct ttd_error error = {.what = ""};
    enum ttd_status status = ttd_writer_close(writer, &end, &error);
    cr_assert_eq(status, TTD_OK, "close: %s", error.what);
}

struct ttd_reader *fixture_reader_with(const struct ttd_memory_output *memory,
                                       const struct ttd_reader_options *options)
{
    struct ttd_input input;
    struct ttd_reader *reader = NULL;
    struct ttd_error error = {.what = ""};
    cr_assert_eq(ttd_input_memory(memory->data, memory->size, NULL, &input), TTD_OK);
    enum ttd_status status = ttd_reader_open(&input, options, NULL, &reader, &error);
    cr_assert_eq(status, TTD_OK, "open: %s", error.what);
    return reader;
}

struct ttd_reader *fixture_reader(const struct ttd_memory_output *memory, bool tolerant)
{
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = tolerant;
    return fixture_reader_with(memory, &options);
}

static bool report(void *context, const struct ttd_problem *problem)
{
    (void)context;
    cr_log_error("problem: %s at %" PRIu64, problem->error.what, problem->error.offset);
    return true;
}

void fixture_check_intact(const void *data, size_t size)
{
    struct ttd_input input;
    struct ttd_verdict verdict;
    cr_assert_eq(ttd_input_memory(data, size, NULL, &input), TTD_OK);
    cr_assert_eq(ttd_verify(&input, NULL, &(struct ttd_problem_observer){.function = report},
                            &verdict, NULL),
                 TTD_OK);
    cr_assert(verdict.ok);
    cr_assert(verdict.closed);
    cr_assert_eq(verdict.problems, 0);
    cr_assert_eq(verdict.file_bytes, size);
    cr_assert_eq(verdict.intact_bytes, size);
}

void fixture_check_model(const struct model *m, const struct ttd_memory_output *memory)
{
    struct text_table found = {0};
    struct ttd_reader *reader = fixture_reader(memory, false);
    enum ttd_status status = model_read(reader, &found);
    cr_assert_eq(status, TTD_END, "read: %s", ttd_status_text(status));
    struct ttd_end end;
    cr_assert_eq(ttd_reader_end(reader, &end), TTD_OK);
    cr_assert_eq(end.events, m->events);
    cr_assert_eq(end.reason, TTD_END_REASON_EXITED);
    cr_assert_eq(end.code, 3);
    cr_assert_eq(end.wall_time, 99);
    ttd_reader_close(reader);
    size_t kind = text_table_difference(&m->expected, &found);
    cr_assert_eq(kind, SIZE_MAX, "records of kind %s differ", ttd_kind_name((unsigned)kind));
    text_table_free(&found);
    fixture_check_intact(memory->data, memory->size);
}

void fixture_write_model(struct model *m, struct entropy from, enum model_style style,
                         const struct ttd_writer_options *options, size_t steps,
                         struct ttd_memory_output *memory)
{
    struct ttd_trace trace = model_begin(m, from, style);
    struct ttd_writer *writer = fixture_writer(memory, &trace, options);
    for (size_t i = 0; i < steps; i++) {
        enum ttd_status status = model_step(m, writer);
        cr_assert_eq(status, TTD_OK, "step %zu: %s", i, ttd_writer_error(writer).what);
    }
    fixture_close(writer);
}
