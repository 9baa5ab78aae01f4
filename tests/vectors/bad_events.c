/* SPDX-License-Identifier: MIT */
/* Files that are wrong in the columns of their events. The columns of the base file's first chunk
 * of events are those of the examples in spec/format.md. */
#include "vectors/rows.h"

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

const struct vector vectors_bad_events[] = {
    BAD("events-shape-none", "a first event of the predicted shape: there is none", "R-41", EVENTS,
        "shape of an event", .damage = shape_none),
    BAD("events-shape-beyond", "a shape that the chunk does not have", "R-41", EVENTS,
        "shape of an event", .damage = shape_beyond),
    BAD("events-times-form-none", "an exception of form 0", "R-42", EVENTS,
        "form of an event's times", .damage = times_form_none),
    BAD("events-times-form-bits", "a form of times with bit 6", "R-42", EVENTS,
        "form of an event's times", .damage = times_form_bits),
    BAD("events-times-form-reserved", "a form of times whose end is reserved", "R-42 R-43", EVENTS,
        "form of an event's times", .damage = times_form_reserved),
    BAD("events-times-no-thread", "a first exception that names no thread", "R-42", EVENTS,
        "thread of an event", .damage = times_no_thread),
    BAD("events-times-thread-beyond", "a thread beyond the end of the chunk's list", "R-42", EVENTS,
        "thread of an event", .damage = times_thread_beyond),
    BAD("events-times-thread-twice", "a thread a second time in the chunk's list", "R-65", EVENTS,
        "thread of an event", .damage = times_thread_twice),
    BAD("events-times-backwards", "a call that returned before it began", "R-4 R-44", EVENTS,
        "times of an event", .damage = times_backwards),
    BAD("events-times-effect-back", "an event that takes effect before the one before it",
        "R-5 R-44", EVENTS, "times of an event", .damage = times_effect_back),
    BAD("events-times-start-invalid", "a call that began at the invalid position", "R-4 R-44",
        EVENTS, "times of an event", .damage = times_start_invalid),
    BAD("events-times-overflow", "steps beyond 2^64", "R-44", EVENTS, "times of an event",
        .damage = times_overflow),
    BAD("events-times-first", "a header whose first position is not that of its first event",
        "R-44", EVENTS, "first position of a chunk", .damage = times_first),
    BAD("events-times-last", "a header whose last position is not that of its last event", "R-44",
        EVENTS, "last position of a chunk", .damage = times_last),
    BAD("events-times-never", "times of a call that never returned, and a result", "R-43", EVENTS,
        "times of an event", .damage = times_never),
    BAD("events-times-returned", "a call that never returned with a time of its end", "R-43",
        EVENTS, "times of an event", .damage = times_returned),
    BAD("events-times-predicted", "a call that never returned, and no exception", "R-43", EVENTS,
        "times of an event", .damage = times_predicted),
    BAD("events-clock-overflow", "a wall time of more than 64 bits", "R-45", EVENTS,
        "wall time of an event", .damage = clock_overflow),
    BAD("events-clock-max", "a wall time of 2^64 - 1", "R-45", EVENTS, "wall time of an event",
        .damage = clock_max),
    BAD("events-clock-gap", "more events up to a change of the clock than a chunk has", "R-46",
        EVENTS, "value out of range", .damage = clock_gap),
    BAD("events-clock-beyond", "a change of the clock after the last event", "R-46", EVENTS,
        "entry beyond the last event", .damage = clock_beyond),
    BAD("events-place-beyond", "a place beyond the end of a list of addresses", "R-47", EVENTS,
        "place of an address", .damage = place_beyond),
    BAD("events-address-zero", "an address 0 that is coded", "R-47", EVENTS, "address of an event",
        .damage = address_zero),
    BAD("events-result-small", "a result of 1 that is spelled out", "R-48", EVENTS,
        "result of an event", .damage = result_small),
    BAD("events-parameters-remainder", "a number of elements that is no whole number", "R-49",
        EVENTS, "parameters of an event", .damage = parameters_remainder),
    BAD("events-parameters-zero", "a number of elements divided by 0", "R-49", EVENTS,
        "parameters of an event", .damage = parameters_zero),
    {.name = NULL},
};
