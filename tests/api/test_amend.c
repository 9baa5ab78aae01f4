/* SPDX-License-Identifier: MIT */
/* Names that are added to a trace that was written before: they are all that changes. */
#include "api/fixture.h"

#include <string.h>

#include "support/chunk_edit.h"

#define STRING_BEHIND_DAMAGE (UINT32_C(1) << 31)

/* A trace with a module, an event with a stack, and names of two frames. The second string, which
 * is in a chunk of its own, names a thread that comes later. */
static void write_trace(struct ttd_memory_output *memory, const struct ttd_end *end)
{
    struct ttd_trace info = fixture_trace();
    struct ttd_writer *writer = fixture_writer(memory, &info, NULL);
    struct ttd_module module = {
        .action = TTD_MODULE_LOAD, .position = ttd_position_min(), .begin = 1, .end = 9};
    struct ttd_thread thread = {.action = TTD_THREAD_BEGIN, .position = ttd_position_min()};
    struct ttd_symbol_frame frame = {.line = 1};
    struct ttd_symbol symbol = {.offset = 1, .frames = &frame, .frame_count = 1};
    ttd_id id, stack;
    cr_assert_eq(ttd_writer_string(writer, "old", 3, &frame.function), TTD_OK);
    cr_assert_eq(ttd_writer_module(writer, &module, &symbol.module), TTD_OK);
    cr_assert_eq(ttd_writer_stack(writer, TTD_NONE, symbol.module, 1, &stack), TTD_OK);
    cr_assert_eq(ttd_writer_symbol(writer, &symbol), TTD_OK);
    cr_assert_eq(ttd_writer_flush(writer), TTD_OK);
    cr_assert_eq(ttd_writer_string(writer, "thread", 6, &thread.name), TTD_OK);
    cr_assert_eq(ttd_writer_flush(writer), TTD_OK);
    cr_assert_eq(ttd_writer_thread(writer, &thread, &id), TTD_OK);
    struct ttd_event event = {.action = TTD_ACTION_ALLOC,
                              .thread = id,
                              .stack = stack,
                              .address = 16,
                              .result = 16,
                              .size = 8,
                              .time_start = ttd_position_min(),
                              .time_end = ttd_position_min()};
    cr_assert_eq(ttd_writer_event(writer, &event), TTD_OK);
    cr_assert_eq(ttd_writer_close(writer, end, NULL), TTD_OK);
}

static const struct ttd_end exited = {.reason = TTD_END_REASON_EXITED};

static enum ttd_status add(void *context, struct ttd_writer *writer)
{
    struct ttd_names *names;
    struct ttd_name name = {.function = {"new", 3}, .file = {"new.c", 5}, .line = 7};
    (void)context;
    enum ttd_status status = ttd_names_open(writer, NULL, NULL, NULL, &names);
    if (status != TTD_OK)
        return status;
    status = ttd_names_symbol(names, 1, 1, &name, 1);
    ttd_names_close(names);
    return status;
}

static enum ttd_status add_event(void *context, struct ttd_writer *writer)
{
    struct ttd_position position = *(struct ttd_position *)context;
    struct ttd_event event = {.action = TTD_ACTION_ALLOC,
                              .address = 16,
                              .result = 16,
                              .size = 8,
                              .time_start = position,
                              .time_end = position};
    return ttd_writer_event(writer, &event);
}

static enum ttd_status amend(const struct ttd_memory_output *trace, struct ttd_amendment amendment,
                             struct ttd_memory_output *amended, struct ttd_verdict *verdict)
{
    struct ttd_input input;
    struct ttd_output output;
    cr_assert_eq(ttd_input_memory(trace->data, trace->size, NULL, &input), TTD_OK);
    cr_assert_eq(ttd_output_memory(amended, NULL, &output), TTD_OK);
    return ttd_amend(&input, &output, NULL, &amendment, verdict, NULL);
}

/* The records that a reading of a trace finds. */
struct found {
    struct text_table lines; /* by kind */
    uint32_t flags;
    ttd_id last_string;
};

static struct found find(const struct ttd_memory_output *trace)
{
    struct found found = {.flags = 0};
    struct ttd_reader *reader = fixture_reader(trace, false);
    struct ttd_batch batch;
    found.flags = ttd_reader_trace(reader)->flags;
    while (ttd_reader_next(reader, &batch, NULL) == TTD_OK) {
        if (batch.kind == TTD_KIND_STRINGS)
            found.last_string = batch.u.strings[batch.count - 1].id;
        text_of_batch(text_table_at(&found.lines, batch.kind), &batch);
    }
    ttd_reader_close(reader);
    return found;
}

static const char *lines(struct found *found, enum ttd_kind kind)
{
    struct text *text = text_table_at(&found->lines, kind);
    text_append(text, "%s", "");
    return text->data;
}

static size_t count_lines(struct found *found, enum ttd_kind kind)
{
    size_t count = 0;
    for (const char *at = lines(found, kind); *at != '\0'; at++)
        count += *at == '\n';
    return count;
}

Test(amend, an_intact_trace_gets_names_and_nothing_else)
{
    struct ttd_memory_output trace, amended;
    struct ttd_verdict verdict;
    write_trace(&trace, &exited);
    cr_assert_eq(amend(&trace, (struct ttd_amendment){.function = add}, &amended, &verdict),
                 TTD_OK);
    cr_assert(verdict.ok);
    fixture_check_intact(amended.data, amended.size);
    struct found before = find(&trace);
    struct found after = find(&amended);
    cr_assert_eq(after.flags, 0);
    cr_assert_str_eq(lines(&after, TTD_KIND_EVENTS), lines(&before, TTD_KIND_EVENTS));
    cr_assert_str_eq(lines(&after, TTD_KIND_THREADS), lines(&before, TTD_KIND_THREADS));
    cr_assert_eq(count_lines(&after, TTD_KIND_LOSSES), 0);
    cr_assert_eq(count_lines(&after, TTD_KIND_SYMBOLS), 2);
    cr_assert_eq(count_lines(&after, TTD_KIND_STRINGS), 4);
    cr_assert_eq(after.last_string, 4);
    text_table_free(&before.lines);
    text_table_free(&after.lines);
    ttd_memory_output_free(&trace);
    ttd_memory_output_free(&amended);
}

/* Names are added again and again, as ids of strings permit. */
Test(amend, a_trace_that_was_not_closed_stays_one_that_was_recovered)
{
    struct ttd_memory_output trace, amended, twice;
    struct ttd_verdict verdict;
    write_trace(&trace, NULL);
    cr_assert_eq(amend(&trace, (struct ttd_amendment){.function = add}, &amended, &verdict),
                 TTD_OK);
    cr_assert_not(verdict.ok);
    fixture_check_intact(amended.data, amended.size);
    struct found after = find(&amended);
    cr_assert_eq(after.flags, TTD_TRACE_RECOVERED);
    cr_assert_eq(count_lines(&after, TTD_KIND_LOSSES), 1);
    cr_assert_eq(after.last_string, 4, "nothing is missing before the end");
    text_table_free(&after.lines);
    cr_assert_eq(amend(&amended, (struct ttd_amendment){.function = add}, &twice, &verdict),
                 TTD_OK);
    fixture_check_intact(twice.data, twice.size);
    after = find(&twice);
    cr_assert_eq(after.flags, TTD_TRACE_RECOVERED);
    cr_assert_eq(count_lines(&after, TTD_KIND_LOSSES), 1);
    text_table_free(&after.lines);
    ttd_memory_output_free(&trace);
    ttd_memory_output_free(&amended);
    ttd_memory_output_free(&twice);
}

/* The definition of the thread's name is lost: nothing that is added takes its id. */
Test(amend, a_lost_string_stays_lost)
{
    struct ttd_memory_output trace, amended;
    struct ttd_verdict verdict;
    write_trace(&trace, &exited);
    size_t strings = 0, at = 0;
    for (size_t i = 0; strings < 2; i++) {
        at = chunk_edit_find(trace.data, trace.size, i);
        cr_assert_lt(at, trace.size);
        strings += trace.data[at + 10] == TTD_KIND_STRINGS;
    }
    trace.data[at + 112] ^= 1;
    cr_assert_eq(amend(&trace, (struct ttd_amendment){.function = add}, &amended, &verdict),
                 TTD_OK);
    cr_assert_not(verdict.ok);
    fixture_check_intact(amended.data, amended.size);
    struct found after = find(&amended);
    cr_assert_eq(after.flags, TTD_TRACE_RECOVERED);
    cr_assert_eq(count_lines(&after, TTD_KIND_SYMBOLS), 2);
    cr_assert_eq(count_lines(&after, TTD_KIND_STRINGS), 3);
    cr_assert_eq(after.last_string, STRING_BEHIND_DAMAGE + 1);
    text_table_free(&after.lines);
    ttd_memory_output_free(&trace);
    ttd_memory_output_free(&amended);
}

Test(amend, nothing_but_names_can_be_added)
{
    struct ttd_memory_output trace, amended;
    struct ttd_verdict verdict;
    struct ttd_position position = {9, 9};
    write_trace(&trace, &exited);
    cr_assert_eq(amend(&trace, (struct ttd_amendment){.function = add_event, .context = &position},
                       &amended, &verdict),
                 TTD_ERROR_MISUSE);
    ttd_memory_output_free(&trace);
    ttd_memory_output_free(&amended);
}

Test(amend, a_derived_file_is_refused)
{
    struct ttd_memory_output trace, amended;
    struct ttd_verdict verdict;
    struct ttd_trace info = fixture_trace();
    info.flags = TTD_TRACE_DERIVED;
    fixture_close(fixture_writer(&trace, &info, NULL));
    cr_assert_eq(amend(&trace, (struct ttd_amendment){.function = add}, &amended, &verdict),
                 TTD_ERROR_ARGUMENT);
    ttd_memory_output_free(&trace);
    ttd_memory_output_free(&amended);
}
