/* SPDX-License-Identifier: MIT */
/* Files that are wrong in the columns of their events. The columns of the base file's first chunk
 * of events are those of the examples in spec/format.md. */
#include "vectors/edit.h"

#include "support/chunk_edit.h"

static void set_column(struct vector_file *file, enum ttd_column column, const uint8_t *bytes,
                       size_t size)
{
    vector_set_column(file, EVENTS, column, bytes, size);
}

#define SET_COLUMN(file, column, ...)                                                              \
    do {                                                                                           \
        static const uint8_t bytes_[] = {__VA_ARGS__};                                             \
        set_column(file, column, bytes_, sizeof bytes_);                                           \
    } while (0)

/* The two classes as they are, but for action, api, form and parameters of the first. */
#define SET_CLASS(file, action, api, form, parameters)                                             \
    SET_COLUMN(file, TTD_COLUMN_CLASSES, action, api, form, parameters, 1, 0, 3, 5, 9, 0, 1, 0)

static void shape_none(struct vector_file *file)
{
    SET_COLUMN(file, TTD_COLUMN_SHAPES_FIRST, 0, 2);
}

static void shape_beyond(struct vector_file *file)
{
    SET_COLUMN(file, TTD_COLUMN_SHAPES_FIRST, 1, 3);
}

static void times_form_none(struct vector_file *file)
{
    SET_COLUMN(file, TTD_COLUMN_TIME_GAPS, 0, 0);
    SET_COLUMN(file, TTD_COLUMN_TIME_FORMS, 3, 0);
}

static void times_form_bits(struct vector_file *file)
{
    SET_COLUMN(file, TTD_COLUMN_TIME_FORMS, 0x43);
}

static void times_form_reserved(struct vector_file *file)
{
    SET_COLUMN(file, TTD_COLUMN_TIME_FORMS, 3 | 5 << TTD_TIME_END_SHIFT);
}

static void times_no_thread(struct vector_file *file)
{
    SET_COLUMN(file, TTD_COLUMN_TIME_FORMS, 2);
    SET_COLUMN(file, TTD_COLUMN_TIME_VALUES, 0);
}

static void times_thread_beyond(struct vector_file *file)
{
    SET_COLUMN(file, TTD_COLUMN_TIME_VALUES, 1, 1);
}

/* Both events are exceptions, whose thread is new to the list; both have the same id. */
static void times_thread_twice(struct vector_file *file)
{
    SET_COLUMN(file, TTD_COLUMN_TIME_GAPS, 0, 0);
    SET_COLUMN(file, TTD_COLUMN_TIME_FORMS, 3, 1 | TTD_TIME_START_EXPLICIT << TTD_TIME_START_SHIFT);
    SET_COLUMN(file, TTD_COLUMN_TIME_VALUES, 0, 1, 1, 1, 0, 2);
}

/* From 1:0 to 0:5. */
static void times_backwards(struct vector_file *file)
{
    SET_COLUMN(file, TTD_COLUMN_TIME_FORMS, 3 | TTD_TIME_END_EXPLICIT << TTD_TIME_END_SHIFT);
    SET_COLUMN(file, TTD_COLUMN_TIME_VALUES, 0, 1, 1, 5);
}

/* The second event from 0:9 to 0:A, after one that ended at 1:1. */
static void times_effect_back(struct vector_file *file)
{
    SET_COLUMN(file, TTD_COLUMN_TIME_GAPS, 0, 0);
    SET_COLUMN(file, TTD_COLUMN_TIME_FORMS, 3, TTD_TIME_START_EXPLICIT << TTD_TIME_START_SHIFT);
    SET_COLUMN(file, TTD_COLUMN_TIME_VALUES, 0, 1, 1, 9);
}

static void times_start_invalid(struct vector_file *file)
{
    SET_COLUMN(file, TTD_COLUMN_TIME_FORMS, 1 | TTD_TIME_START_EXPLICIT << TTD_TIME_START_SHIFT);
    SET_COLUMN(file, TTD_COLUMN_TIME_VALUES, 0, 1, 1, 0);
}

/* From step 2^64 - 1 on one step further. */
static void times_overflow(struct vector_file *file)
{
    SET_COLUMN(file, TTD_COLUMN_TIME_FORMS, 1 | TTD_TIME_START_EXPLICIT << TTD_TIME_START_SHIFT);
    SET_COLUMN(file, TTD_COLUMN_TIME_VALUES, 0, 1, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
               0xFF, 0xFF, 1);
}

static void set_steps(struct vector_file *file, size_t field, uint64_t steps)
{
    uint8_t *chunk = vector_chunk(file, EVENTS);
    ttd_put64(chunk + field + 8, steps);
    chunk_edit_seal_header(chunk);
}

static void times_first(struct vector_file *file)
{
    set_steps(file, TTD_HEADER_FIRST_POSITION, 0);
}

static void times_last(struct vector_file *file)
{
    set_steps(file, TTD_HEADER_LAST_POSITION, 3);
}

static void times_never(struct vector_file *file)
{
    SET_COLUMN(file, TTD_COLUMN_TIME_FORMS, 3 | TTD_TIME_END_NEVER << TTD_TIME_END_SHIFT);
}

static void times_returned(struct vector_file *file)
{
    SET_CLASS(file, 1, TTD_API_MALLOC, TTD_FORM_SIZE | TTD_OUTCOME_NEVER, 0);
    SET_COLUMN(file, TTD_COLUMN_ACQUIRED, 0);
}

/* A call that never returned where the prediction says that it did: without an exception. */
static void times_predicted(struct vector_file *file)
{
    SET_COLUMN(file, TTD_COLUMN_CLASSES, 1, 1, 0x15, 0, 1, 0, 3, 5, 0x0B, 0, 1, 0);
}

/* A clock that, multiplied by the trace's time_unit, does not fit 64 bits. */
static void clock_overflow(struct vector_file *file)
{
    uint8_t *trace = vector_chunk(file, TRACE);
    ttd_put64(trace + TTD_HEADER_SIZE + TTD_TRACE_TIME_UNIT, UINT64_C(1) << 62);
    chunk_edit_seal(trace, file->size);
}

/* One unit before 0. */
static void clock_max(struct vector_file *file)
{
    uint8_t *trace = vector_chunk(file, TRACE);
    ttd_put64(trace + TTD_HEADER_SIZE + TTD_TRACE_TIME_UNIT, 1);
    chunk_edit_seal(trace, file->size);
    SET_COLUMN(file, TTD_COLUMN_CLOCK, 1, 1);
}

static void clock_gap(struct vector_file *file)
{
    SET_COLUMN(file, TTD_COLUMN_CLOCK, 0x81, 0x80, 4, 0x14);
}

static void clock_beyond(struct vector_file *file)
{
    SET_COLUMN(file, TTD_COLUMN_CLOCK, 1, 0x14, 0, 0x14);
}

static void place_beyond(struct vector_file *file)
{
    SET_COLUMN(file, TTD_COLUMN_RELEASED, 2);
}

static void address_zero(struct vector_file *file)
{
    SET_COLUMN(file, TTD_COLUMN_ACQUIRED_EXPLICIT, 0);
}

static void result_small(struct vector_file *file)
{
    SET_CLASS(file, 1, TTD_API_MALLOC, TTD_FORM_SIZE | TTD_FORM_ADDRESS | TTD_OUTCOME_RESULT, 0);
    SET_COLUMN(file, TTD_COLUMN_EXTRA, 1);
}

static void set_calloc(struct vector_file *file)
{
    SET_CLASS(file, 1, TTD_API_CALLOC,
              TTD_PARAMETERS_BY_API | TTD_FORM_SIZE | TTD_FORM_ADDRESS | TTD_OUTCOME_ONE, 2);
}

static void parameters_remainder(struct vector_file *file)
{
    set_calloc(file);
    SET_COLUMN(file, TTD_COLUMN_EXTRA, 7);
}

static void parameters_zero(struct vector_file *file)
{
    set_calloc(file);
    SET_COLUMN(file, TTD_COLUMN_EXTRA, 0);
}

#define BAD(name_, purpose_, requirements_, damage_, what_)                                        \
    {                                                                                              \
        .name = "bad-events-" name_, .purpose = purpose_, .requirements = requirements_,           \
        .damage = damage_, .status = TTD_ERROR_CORRUPT, .chunk = EVENTS, .what = what_             \
    }

const struct vector vectors_bad_events[] = {
    BAD("shape-none", "a first event of the predicted shape: there is none", "R-41", shape_none,
        "shape of an event"),
    BAD("shape-beyond", "a shape that the chunk does not have", "R-41", shape_beyond,
        "shape of an event"),
    BAD("times-form-none", "an exception of form 0", "R-42", times_form_none,
        "form of an event's times"),
    BAD("times-form-bits", "a form of times with bit 6", "R-42", times_form_bits,
        "form of an event's times"),
    BAD("times-form-reserved", "a form of times whose end is reserved", "R-42 R-43",
        times_form_reserved, "form of an event's times"),
    BAD("times-no-thread", "a first exception that names no thread", "R-42", times_no_thread,
        "thread of an event"),
    BAD("times-thread-beyond", "a thread beyond the end of the chunk's list", "R-42",
        times_thread_beyond, "thread of an event"),
    BAD("times-thread-twice", "a thread a second time in the chunk's list", "R-65",
        times_thread_twice, "thread of an event"),
    BAD("times-backwards", "a call that returned before it began", "R-4 R-44", times_backwards,
        "times of an event"),
    BAD("times-effect-back", "an event that takes effect before the one before it", "R-5 R-44",
        times_effect_back, "times of an event"),
    BAD("times-start-invalid", "a call that began at the invalid position", "R-4 R-44",
        times_start_invalid, "times of an event"),
    BAD("times-overflow", "steps beyond 2^64", "R-44", times_overflow, "times of an event"),
    BAD("times-first", "a header whose first position is not that of its first event", "R-44",
        times_first, "first position of a chunk"),
    BAD("times-last", "a header whose last position is not that of its last event", "R-44",
        times_last, "last position of a chunk"),
    BAD("times-never", "times of a call that never returned, and a result", "R-43", times_never,
        "times of an event"),
    BAD("times-returned", "a call that never returned with a time of its end", "R-43",
        times_returned, "times of an event"),
    BAD("times-predicted", "a call that never returned, and no exception", "R-43", times_predicted,
        "times of an event"),
    BAD("clock-overflow", "a wall time of more than 64 bits", "R-45", clock_overflow,
        "wall time of an event"),
    BAD("clock-max", "a wall time of 2^64 - 1", "R-45", clock_max, "wall time of an event"),
    BAD("clock-gap", "more events up to a change of the clock than a chunk has", "R-46", clock_gap,
        "value out of range"),
    BAD("clock-beyond", "a change of the clock after the last event", "R-46", clock_beyond,
        "entry beyond the last event"),
    BAD("place-beyond", "a place beyond the end of a list of addresses", "R-47", place_beyond,
        "place of an address"),
    BAD("address-zero", "an address 0 that is coded", "R-47", address_zero, "address of an event"),
    BAD("result-small", "a result of 1 that is spelled out", "R-48", result_small,
        "result of an event"),
    BAD("parameters-remainder", "a number of elements that is no whole number", "R-49",
        parameters_remainder, "parameters of an event"),
    BAD("parameters-zero", "a number of elements divided by 0", "R-49", parameters_zero,
        "parameters of an event"),
    {.name = NULL},
};
