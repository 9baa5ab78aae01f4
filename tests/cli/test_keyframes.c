/* SPDX-License-Identifier: MIT */
/* With keyframes and without, in whatever order it is asked for: the state at every position is
 * that of the model. */
#include <criterion/criterion.h>

#include "heap/index.h"
#include "heap/pass.h"
#include "support/heap_model.h"

#define TRACES  2000
#define VISITS  60
#define TRACEID 77

/* A trace in memory, its index, and what is true. */
typedef struct sample {
    ttd_event events[HEAP_MODEL_EVENTS_MAX];
    size_t count;
    heap_model states[HEAP_MODEL_TICKS];
    ttd_memory trace;
    ttd_memory sidecar;
    ttd_reader *reader;
    heap_keyframes keyframes;
    /** Batches of events that cursors have read. */
    size_t batches;
} sample;

/* ---- Writing ---- */

static ttd_writer *open_writer(ttd_memory *memory, const ttd_trace *trace,
                               const ttd_writer_options *options)
{
    ttd_output output;
    ttd_writer *writer;
    ttd_error error;
    cr_assert_eq(ttd_output_memory(memory, NULL, &output), TTD_OK);
    cr_assert_eq(ttd_writer_open(&output, trace, options, NULL, &writer, &error), TTD_OK, "%s",
                 error.what);
    return writer;
}

static void close_writer(ttd_writer *writer)
{
    ttd_end end = {.reason = TTD_END_EXITED};
    cr_assert_eq(ttd_writer_close(writer, &end, NULL), TTD_OK);
}

static void define(ttd_writer *writer)
{
    ttd_id id;
    for (unsigned i = 0; i < HEAP_MODEL_THREADS; i++) {
        ttd_thread thread = {.action = TTD_THREAD_BEGIN, .os_id = i};
        cr_assert_eq(ttd_writer_thread(writer, &thread, &id), TTD_OK);
    }
    for (unsigned i = 0; i < HEAP_MODEL_HEAPS; i++) {
        ttd_heap heap = {.handle = i};
        cr_assert_eq(ttd_writer_heap(writer, &heap, &id), TTD_OK);
    }
    for (unsigned i = 0; i < HEAP_MODEL_STACKS; i++)
        cr_assert_eq(ttd_writer_stack(writer, 0, 0, i, &id), TTD_OK);
}

/* Now and then something else between the events. */
static void interrupt(ttd_writer *writer, const ttd_event *event)
{
    ttd_position now = ttd_event_position(event);
    ttd_loss loss = {.reason = TTD_LOSS_OVERFLOW,
                     .count = heap_model_pick(3),
                     .last_good = now,
                     .first_good = now};
    ttd_user_event user = {.position = now, .thread = 1};
    if (!heap_model_pick(20))
        cr_assert_eq(ttd_writer_loss(writer, &loss), TTD_OK);
    if (!heap_model_pick(20))
        cr_assert_eq(ttd_writer_user_event(writer, &user), TTD_OK);
    if (!heap_model_pick(10))
        cr_assert_eq(ttd_writer_flush(writer), TTD_OK);
}

static void write_trace(sample *made)
{
    ttd_trace trace = {.trace_id = TRACEID, .time_unit = 1, .pointer_size = 8};
    ttd_writer_options options = ttd_writer_options_default();
    options.events_per_chunk = 1 + heap_model_pick(8);
    options.codec = heap_model_pick(2) ? TTD_CODEC_LZ4 : TTD_CODEC_RAW;
    ttd_writer *writer = open_writer(&made->trace, &trace, &options);
    define(writer);
    for (size_t i = 0; i < made->count; i++) {
        ttd_event event = made->events[i];
        /* What a call that failed returned goes into no trace. */
        event.address = event.result ? event.address : 0;
        cr_assert_eq(ttd_writer_event(writer, &event), TTD_OK, "%s", ttd_writer_error(writer).what);
        interrupt(writer, &event);
    }
    close_writer(writer);
}

static ttd_reader *open_reader(const ttd_memory *memory, bool tolerant)
{
    ttd_input input;
    ttd_reader *reader;
    ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = tolerant;
    cr_assert_eq(ttd_input_memory(memory->data, memory->size, NULL, &input), TTD_OK);
    cr_assert_eq(ttd_reader_open(&input, &options, NULL, &reader, NULL), TTD_OK);
    return reader;
}

static ttd_status pass(void *context, const ttd_batch *batch)
{
    size_t *batches = context;
    *batches += batch->kind == TTD_KIND_EVENTS;
    return TTD_OK;
}

static heap_index_facts write_index(sample *made, uint64_t spacing)
{
    ttd_trace derived = *ttd_reader_trace(made->reader);
    derived.flags |= TTD_TRACE_DERIVED;
    cr_assert_eq(ttd_reader_tie(made->reader, &derived), TTD_OK);
    ttd_writer *writer = open_writer(&made->sidecar, &derived, NULL);
    heap_batch_hook hook = {&made->batches, pass};
    heap_index_facts facts;
    ttd_error error;
    cr_assert_eq(heap_index_write(made->reader, spacing, &hook, writer, &facts, &error), TTD_OK);
    cr_assert_eq(facts.events, made->count);
    close_writer(writer);
    return facts;
}

static void open_sample(sample *made)
{
    made->count = heap_model_events(made->events);
    made->batches = 0;
    heap_model_run(made->states, made->events, made->count);
    write_trace(made);
    made->reader = open_reader(&made->trace, true);
    heap_index_facts facts = write_index(made, 0);
    ttd_reader *sidecar = open_reader(&made->sidecar, false);
    cr_assert_eq(heap_keyframes_open(sidecar, made->reader, &made->keyframes), TTD_OK);
    cr_assert_eq(made->keyframes.count, facts.keyframes);
}

static void close_sample(sample *made)
{
    heap_keyframes_close(&made->keyframes);
    ttd_reader_close(made->reader);
    ttd_memory_free(&made->trace);
    ttd_memory_free(&made->sidecar);
}

/* ---- Comparing ---- */

/* The tick of a position. */
static unsigned tick_of(ttd_position position)
{
    return (unsigned)(position.sequence * 4 + position.steps);
}

static void go_and_compare(sample *made, heap_cursor *cursor, unsigned tick)
{
    ttd_error error;
    cr_assert_eq(heap_cursor_seek(cursor, heap_model_at(tick), &error), TTD_OK);
    heap_model_expect(&made->states[tick], &cursor->replay);
}

/* Forwards, backwards and anywhere, in an order that differs from trace to trace. */
static void visit_all(sample *made, heap_cursor *cursor)
{
    unsigned stride = 1 + heap_model_pick(3);
    for (unsigned tick = 0; tick < HEAP_MODEL_TICKS; tick += stride)
        go_and_compare(made, cursor, tick);
    for (unsigned tick = HEAP_MODEL_TICKS; tick > 0; tick--)
        go_and_compare(made, cursor, tick - 1);
    for (unsigned i = 0; i < VISITS; i++)
        go_and_compare(made, cursor, heap_model_pick(HEAP_MODEL_TICKS));
}

/* Returns how many batches of events it took. */
static size_t check_cursor(sample *made, const heap_keyframes *keyframes)
{
    heap_cursor cursor;
    heap_batch_hook hook = {&made->batches, pass};
    made->batches = 0;
    cr_assert_eq(heap_cursor_init(&cursor, made->reader, HEAP_CURSOR_KINDS, keyframes, NULL, &hook),
                 TTD_OK);
    visit_all(made, &cursor);
    cr_assert_eq(cursor.keyframes, keyframes, "a keyframe was found to be wrong");
    heap_cursor_free(&cursor);
    return made->batches;
}

/* Each keyframe by itself is the state at its position, but for events that come later there. */
static void check_keyframes(sample *made)
{
    heap_replay replay;
    cr_assert_eq(heap_replay_init(&replay, NULL), TTD_OK);
    for (size_t i = 0; i < made->keyframes.count; i++) {
        const heap_keyframe *keyframe = &made->keyframes.items[i];
        cr_assert_eq(heap_keyframes_restore(&made->keyframes, keyframe, &replay), TTD_OK);
        cr_assert_eq(replay.live.count, keyframe->blocks);
        uint64_t next = keyframe->counts.events;
        cr_assert_lt(next, made->count);
        ttd_position after = ttd_event_position(&made->events[next]);
        if (ttd_position_compare(after, keyframe->position) > 0)
            heap_model_expect(&made->states[tick_of(keyframe->position)], &replay);
    }
    heap_replay_free(&replay);
}

static void expect_same_pass(const heap_outcome *a, const heap_outcome *b)
{
    cr_assert_eq(a->losses.records, b->losses.records);
    cr_assert_eq(a->losses.events, b->losses.events);
    cr_assert_eq(a->losses.kept_count, b->losses.kept_count);
    cr_assert_eq(ttd_position_compare(a->position, b->position), 0);
    cr_assert_eq(a->in_flight, b->in_flight);
    cr_assert_eq(a->reached_end, b->reached_end);
    cr_assert_eq(a->truncated, b->truncated);
}

static void check_passes(sample *made)
{
    for (unsigned tick = 0; tick < HEAP_MODEL_TICKS; tick += 1 + heap_model_pick(20)) {
        heap_outcome outcomes[2];
        for (unsigned i = 0; i < 2; i++) {
            heap_pass way;
            ttd_error error;
            cr_assert_eq(heap_pass_run(&way, made->reader, i ? &made->keyframes : NULL,
                                       heap_model_at(tick), NULL, NULL, &error),
                         TTD_OK);
            heap_pass_end(&way, &outcomes[i]);
        }
        expect_same_pass(&outcomes[0], &outcomes[1]);
    }
}

Test(keyframes, state_at_every_position_is_that_of_the_model)
{
    static sample made;
    size_t keyframes = 0;
    size_t with = 0;
    size_t without = 0;
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        heap_model_seed = seed;
        open_sample(&made);
        keyframes += made.keyframes.count;
        without += check_cursor(&made, NULL);
        with += check_cursor(&made, &made.keyframes);
        check_keyframes(&made);
        check_passes(&made);
        close_sample(&made);
    }
    /* They were there, and were used. */
    cr_assert_gt(keyframes, TRACES);
    cr_assert_lt(with, without * 3 / 4);
}

/* Small traces need no keyframes. */
Test(keyframes, are_spaced)
{
    static sample made;
    heap_model_seed = 1;
    open_sample(&made);
    ttd_memory_free(&made.sidecar);
    cr_assert_eq(write_index(&made, HEAP_INDEX_SPACING).keyframes, 0);
    ttd_memory_free(&made.sidecar);
    cr_assert_leq(write_index(&made, 10).keyframes, made.count / 10);
    close_sample(&made);
}
