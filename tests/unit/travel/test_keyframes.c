/* SPDX-License-Identifier: MIT */
/* With keyframes and without, in whatever order it is asked for: the state at every position is
 * that of the model. */
#include <criterion/criterion.h>

#include "travel/index.h"
#include "travel/replay_to.h"
#include "support/chunk_edit.h"
#include "support/heap_model.h"

#define TRACES  2000
#define VISITS  60
#define TRACEID 77

/* A keyframe wherever there can be one, and few of them. */
static const struct heap_index_spacing everywhere = {.keyframes = 0, .summary_blocks = 1};
static const struct heap_index_spacing few_keyframes = {.keyframes = 5, .summary_blocks = 1};

/* A trace in memory, its index, and what is true. */
struct sample {
    struct entropy entropy;
    struct ttd_event events[HEAP_MODEL_EVENTS_MAX];
    size_t count;
    struct heap_model states[HEAP_MODEL_TICKS];
    struct ttd_memory_output trace;
    struct ttd_memory_output sidecar;
    struct ttd_reader *reader;
    struct heap_keyframes keyframes;
    /** Batches of events that cursors have read. */
    size_t batches;
    /** How often there were sums at the end of a trace. */
    size_t sums_at_end;
};

/* ---- Writing ---- */

static struct ttd_writer *open_writer(struct ttd_memory_output *memory,
                                      const struct ttd_trace *trace,
                                      const struct ttd_writer_options *options)
{
    struct ttd_output output;
    struct ttd_writer *writer;
    struct ttd_error error;
    cr_assert_eq(ttd_output_memory(memory, NULL, &output), TTD_OK);
    cr_assert_eq(ttd_writer_open(&output, trace, options, NULL, &writer, &error), TTD_OK, "%s",
                 error.what);
    return writer;
}

static void close_writer(struct ttd_writer *writer)
{
    struct ttd_end end = {.reason = TTD_END_REASON_EXITED};
    cr_assert_eq(ttd_writer_close(writer, &end, NULL), TTD_OK);
}

static void define(struct ttd_writer *writer)
{
    ttd_id id;
    for (unsigned i = 0; i < HEAP_MODEL_THREADS; i++) {
        struct ttd_thread thread = {.action = TTD_THREAD_BEGIN, .os_id = i};
        cr_assert_eq(ttd_writer_thread(writer, &thread, &id), TTD_OK);
    }
    for (unsigned i = 0; i < HEAP_MODEL_HEAPS; i++) {
        struct ttd_heap heap = {.handle = i};
        cr_assert_eq(ttd_writer_heap(writer, &heap, &id), TTD_OK);
    }
    for (unsigned i = 0; i < HEAP_MODEL_STACKS; i++)
        cr_assert_eq(ttd_writer_stack(writer, 0, 0, i, &id), TTD_OK);
}

/* Now and then something else between the events. */
static void interrupt(struct entropy *entropy, struct ttd_writer *writer,
                      const struct ttd_event *event)
{
    struct ttd_position now = ttd_event_position(event);
    struct ttd_loss loss = {.reason = TTD_LOSS_OVERFLOW,
                            .count = entropy_pick(entropy, 3),
                            .last_good = now,
                            .first_good = now};
    struct ttd_user_event user = {.position = now, .thread = 1};
    if (!entropy_pick(entropy, 20))
        cr_assert_eq(ttd_writer_loss(writer, &loss), TTD_OK);
    if (!entropy_pick(entropy, 20))
        cr_assert_eq(ttd_writer_user_event(writer, &user), TTD_OK);
    if (!entropy_pick(entropy, 10))
        cr_assert_eq(ttd_writer_flush(writer), TTD_OK);
}

static void write_trace(struct sample *sample)
{
    struct ttd_trace trace = {.trace_id = TRACEID, .time_unit = 1, .pointer_size = 8};
    struct ttd_writer_options options = ttd_writer_options_default();
    options.events_per_chunk = 1 + entropy_pick(&sample->entropy, 8);
    options.codec = entropy_pick(&sample->entropy, 2) ? TTD_CODEC_LZ4 : TTD_CODEC_RAW;
    struct ttd_writer *writer = open_writer(&sample->trace, &trace, &options);
    define(writer);
    for (size_t i = 0; i < sample->count; i++) {
        struct ttd_event event = sample->events[i];
        /* What a call that failed returned goes into no trace. */
        event.address = event.result ? event.address : 0;
        cr_assert_eq(ttd_writer_event(writer, &event), TTD_OK, "%s", ttd_writer_error(writer).what);
        interrupt(&sample->entropy, writer, &event);
    }
    close_writer(writer);
}

static struct ttd_reader *open_reader(const struct ttd_memory_output *memory, bool tolerant)
{
    struct ttd_input input;
    struct ttd_reader *reader;
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = tolerant;
    cr_assert_eq(ttd_input_memory(memory->data, memory->size, NULL, &input), TTD_OK);
    cr_assert_eq(ttd_reader_open(&input, &options, NULL, &reader, NULL), TTD_OK);
    return reader;
}

static enum ttd_status count_batch(void *context, const struct ttd_batch *batch)
{
    size_t *batches = context;
    *batches += batch->kind == TTD_KIND_EVENTS;
    return TTD_OK;
}

/* A chunk that is no list, to become one of a kind that nobody knows. */
static void write_foreign(struct ttd_writer *writer)
{
    struct ttd_memory_run run = {.address = 0x1000, .page_count = 1, .page = 1};
    struct ttd_memory_map map = {
        .snapshot = 1, .last = true, .page_size = 4096, .runs = &run, .count = 1};
    cr_assert_eq(ttd_writer_memory_map(writer, &map), TTD_OK);
}

static void make_unknown(struct ttd_memory_output *memory)
{
    size_t at = chunk_edit_find_kind(memory->data, memory->size, TTD_KIND_MEMORY_MAP);
    cr_assert_lt(at, memory->size);
    ttd_put16(memory->data + at + TTD_HEADER_KIND, TTD_KIND_PRIVATE);
    chunk_edit_seal_header(memory->data + at);
}

static struct heap_index_facts write_index(struct sample *sample,
                                           const struct heap_index_spacing *spacing)
{
    struct ttd_trace derived = *ttd_reader_trace(sample->reader);
    derived.flags |= TTD_TRACE_DERIVED;
    cr_assert_eq(ttd_reader_tie(sample->reader, &derived), TTD_OK);
    struct ttd_writer *writer = open_writer(&sample->sidecar, &derived, NULL);
    struct heap_batch_hook hook = {.context = &sample->batches, .batch = count_batch};
    struct heap_index_facts facts;
    struct ttd_error error;
    bool has_unknown = !entropy_pick(&sample->entropy, 3);
    if (has_unknown)
        write_foreign(writer);
    cr_assert_eq(heap_index_write(sample->reader, spacing, &hook, writer, &facts, &error), TTD_OK);
    cr_assert_eq(facts.events, sample->count);
    close_writer(writer);
    if (has_unknown)
        make_unknown(&sample->sidecar);
    return facts;
}

/* Sizes that are nonsense, and more in sum than there can be. */
static void inflate(struct sample *sample)
{
    for (size_t i = 0; i < sample->count; i++)
        if (sample->events[i].size && !entropy_pick(&sample->entropy, 3))
            sample->events[i].size |= UINT64_C(1) << 63;
}

static void open_sample(struct sample *sample, uint64_t seed)
{
    sample->entropy = entropy_of_seed(seed);
    sample->count = heap_model_events(&sample->entropy, sample->events);
    if (!entropy_pick(&sample->entropy, 8))
        inflate(sample);
    sample->batches = 0;
    heap_model_run(sample->states, sample->events, sample->count);
    write_trace(sample);
    sample->reader = open_reader(&sample->trace, true);
    struct heap_index_facts facts =
        write_index(sample, entropy_pick(&sample->entropy, 2) ? &everywhere : &few_keyframes);
    struct ttd_reader *sidecar = open_reader(&sample->sidecar, false);
    cr_assert_eq(heap_keyframes_open(sidecar, sample->reader, &sample->keyframes), TTD_OK);
    cr_assert_eq(sample->keyframes.count, facts.keyframes + facts.summaries);
}

static void close_sample(struct sample *sample)
{
    heap_keyframes_close(&sample->keyframes);
    ttd_reader_close(sample->reader);
    ttd_memory_output_free(&sample->trace);
    ttd_memory_output_free(&sample->sidecar);
}

/* ---- Comparing ---- */

/* The tick of a position. */
static unsigned tick_of(struct ttd_position position)
{
    return (unsigned)(position.sequence * 4 + position.steps);
}

static void go_and_compare(struct sample *sample, struct heap_cursor *cursor, unsigned tick)
{
    struct ttd_error error;
    cr_assert_eq(heap_cursor_seek(cursor, heap_model_at(tick), &error), TTD_OK);
    heap_model_expect(&sample->states[tick], &cursor->replay);
}

/* Forwards, backwards and anywhere, in an order that differs from trace to trace. */
static void visit_all(struct sample *sample, struct heap_cursor *cursor)
{
    unsigned stride = 1 + entropy_pick(&sample->entropy, 3);
    for (unsigned tick = 0; tick < HEAP_MODEL_TICKS; tick += stride)
        go_and_compare(sample, cursor, tick);
    for (unsigned tick = HEAP_MODEL_TICKS; tick > 0; tick--)
        go_and_compare(sample, cursor, tick - 1);
    for (unsigned i = 0; i < VISITS; i++)
        go_and_compare(sample, cursor, entropy_pick(&sample->entropy, HEAP_MODEL_TICKS));
}

/* Returns how many batches of events it took. */
static size_t check_cursor(struct sample *sample, const struct heap_keyframes *keyframes)
{
    struct heap_cursor cursor;
    struct heap_batch_hook hook = {.context = &sample->batches, .batch = count_batch};
    sample->batches = 0;
    cr_assert_eq(
        heap_cursor_init(&cursor, sample->reader, HEAP_CURSOR_KINDS, keyframes, NULL, &hook),
        TTD_OK);
    visit_all(sample, &cursor);
    cr_assert_eq(cursor.keyframes, keyframes, "a keyframe was found to be wrong");
    heap_cursor_free(&cursor);
    return sample->batches;
}

/* Each keyframe by itself is the state at its position, but for events that come later there. */
static void check_keyframes(struct sample *sample)
{
    struct heap_replay replay;
    cr_assert_eq(heap_replay_init(&replay, NULL), TTD_OK);
    for (size_t i = 0; i < sample->keyframes.count; i++) {
        const struct heap_keyframe *keyframe = &sample->keyframes.items[i];
        if (keyframe->is_summary)
            continue;
        cr_assert_eq(heap_keyframes_restore(&sample->keyframes, keyframe, &replay, NULL), TTD_OK);
        cr_assert_eq(replay.live.count, keyframe->blocks);
        uint64_t next = keyframe->next;
        cr_assert_lt(next, sample->count);
        struct ttd_position after = ttd_event_position(&sample->events[next]);
        if (ttd_position_compare(after, keyframe->position) > 0)
            heap_model_expect(&sample->states[tick_of(keyframe->position)], &replay);
    }
    heap_replay_free(&replay);
}

/* ---- Sums ---- */

/* Binary ones. */
static unsigned count_digits(uint64_t number)
{
    unsigned count = 0;
    for (; number; number >>= 1)
        count++;
    return count;
}

/* Whether a group of a table has a block that the event acquired. */
static bool is_of(const struct heap_group *group, size_t table, const struct ttd_event *event)
{
    switch (table) {
    case HEAP_BY_STACK:
        return event->stack == group->key.stack;
    case HEAP_BY_HEAP:
        return event->heap == group->key.other;
    case HEAP_BY_THREAD:
        return event->thread == group->key.other;
    default:
        return count_digits(event->size) == group->key.other;
    }
}

static void expect_group(const struct heap_group *group, size_t table,
                         const struct heap_model *state)
{
    struct heap_group sum = {.first = ttd_position_max()};
    for (size_t i = 0; i < state->count; i++) {
        const struct ttd_event *event = state->live[i];
        if (!is_of(group, table, event))
            continue;
        sum.blocks++;
        sum.bytes = heap_add(sum.bytes, event->size);
        if (ttd_position_compare(event->time_end, sum.first) < 0)
            sum.first = event->time_end;
        if (ttd_position_compare(event->time_end, sum.last) > 0)
            sum.last = event->time_end;
    }
    cr_assert_gt(sum.blocks, 0);
    cr_assert_eq(group->blocks, sum.blocks);
    cr_assert_eq(group->bytes, sum.bytes);
    if (table != HEAP_BY_STACK)
        return;
    cr_assert_eq(ttd_position_compare(group->first, sum.first), 0);
    cr_assert_eq(ttd_position_compare(group->last, sum.last), 0);
}

/* What was summed up and what is live are together what the model has. */
static void expect_sums(const struct heap_model *state, const struct heap_tables *sums,
                        const struct heap_live *live)
{
    struct heap_tables all;
    size_t cursor = 0;
    const struct heap_block *block;
    heap_tables_init(&all);
    for (size_t i = 0; i < HEAP_TABLES; i++)
        for (size_t j = 0; j < sums->by[i].count; j++)
            cr_assert_eq(heap_groups_add_sum(&all.by[i], &sums->by[i].items[j]), TTD_OK);
    while ((block = heap_live_each(live, &cursor)))
        cr_assert_eq(heap_tables_add(&all, block), TTD_OK);
    for (size_t i = 0; i < HEAP_TABLES; i++) {
        uint64_t blocks = 0;
        for (size_t j = 0; j < all.by[i].count; j++) {
            expect_group(&all.by[i].items[j], i, state);
            blocks += all.by[i].items[j].blocks;
        }
        cr_assert_eq(blocks, state->count);
        cr_assert_eq(all.by[i].blocks, state->count);
    }
    heap_tables_free(&all);
}

/* Returns how often there were sums. */
static size_t check_sums(struct sample *sample)
{
    size_t with_sums = 0;
    struct heap_tables sums;
    struct heap_cursor cursor;
    struct ttd_error error;
    heap_tables_init(&sums);
    cr_assert_eq(heap_cursor_init(&cursor, sample->reader, HEAP_CURSOR_KINDS, &sample->keyframes,
                                  NULL, NULL),
                 TTD_OK);
    cursor.sums = &sums;
    for (unsigned i = 0; i < VISITS; i++) {
        unsigned tick = entropy_pick(&sample->entropy, HEAP_MODEL_TICKS);
        cr_assert_eq(heap_cursor_seek(&cursor, heap_model_at(tick), &error), TTD_OK);
        heap_model_expect_progress(&sample->states[tick], &cursor.replay);
        expect_sums(&sample->states[tick], &sums, &cursor.replay.live);
        with_sums += cursor.start && cursor.start->is_summary;
    }
    cr_assert_eq(heap_cursor_seek(&cursor, ttd_position_max(), &error), TTD_OK);
    expect_sums(&sample->states[HEAP_MODEL_TICKS - 1], &sums, &cursor.replay.live);
    sample->sums_at_end += cursor.start && cursor.start->is_summary;
    cr_assert_eq(cursor.keyframes, &sample->keyframes, "a summary was found to be wrong");
    heap_cursor_free(&cursor);
    heap_tables_free(&sums);
    return with_sums;
}

/* ---- Arrivals ---- */

static void expect_same_outcome(const struct heap_outcome *a, const struct heap_outcome *b)
{
    cr_assert_eq(a->losses.records, b->losses.records);
    cr_assert_eq(a->losses.events, b->losses.events);
    cr_assert_eq(a->losses.kept_count, b->losses.kept_count);
    cr_assert_eq(ttd_position_compare(a->position, b->position), 0);
    cr_assert_eq(a->in_flight, b->in_flight);
    cr_assert_eq(a->reached_end, b->reached_end);
    cr_assert_eq(a->truncated, b->truncated);
}

static void check_outcomes(struct sample *sample)
{
    for (unsigned tick = 0; tick < HEAP_MODEL_TICKS;
         tick += 1 + entropy_pick(&sample->entropy, 20)) {
        struct heap_outcome outcomes[2];
        for (unsigned i = 0; i < 2; i++) {
            struct heap_trace trace = {.reader = sample->reader,
                                       .keyframes = i ? &sample->keyframes : NULL};
            struct heap_route route = {.to = heap_model_at(tick)};
            struct heap_arrival arrival;
            struct ttd_error error;
            cr_assert_eq(heap_replay_to(&arrival, &trace, &route, &error), TTD_OK);
            heap_arrival_end(&arrival, &outcomes[i]);
        }
        expect_same_outcome(&outcomes[0], &outcomes[1]);
    }
}

Test(keyframes, state_at_every_position_is_that_of_the_model)
{
    static struct sample sample;
    size_t keyframes = 0;
    size_t with_sums = 0;
    size_t with = 0;
    size_t without = 0;
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        open_sample(&sample, seed);
        keyframes += sample.keyframes.count;
        without += check_cursor(&sample, NULL);
        with += check_cursor(&sample, &sample.keyframes);
        check_keyframes(&sample);
        with_sums += check_sums(&sample);
        check_outcomes(&sample);
        close_sample(&sample);
    }
    /* Keyframes and sums were there, and were used. */
    cr_assert_gt(keyframes, TRACES);
    cr_assert_lt(with, without * 3 / 4);
    cr_assert_gt(with_sums, TRACES * VISITS / 4);
    cr_assert_gt(sample.sums_at_end, TRACES / 4);
}

/* An index of the sample, with that spacing. */
static struct heap_index_facts write_spaced_index(struct heap_index_spacing spacing)
{
    static struct sample sample;
    open_sample(&sample, 1);
    ttd_memory_output_free(&sample.sidecar);
    struct heap_index_facts facts = write_index(&sample, &spacing);
    close_sample(&sample);
    return facts;
}

Test(keyframes, of_a_small_trace_are_not_needed)
{
    struct heap_index_facts facts = write_spaced_index(HEAP_INDEX_SPACING);
    cr_assert_eq(facts.keyframes, 0);
    cr_assert_eq(facts.summaries, 0);
}

Test(keyframes, are_as_far_apart_as_is_wanted)
{
    const struct heap_index_spacing spacing = {
        .keyframes = 10, .summaries = 10, .summary_blocks = 1};
    struct heap_index_facts facts = write_spaced_index(spacing);
    cr_assert_leq(facts.keyframes, facts.events / 10);
    cr_assert_leq(facts.summaries, facts.events / 10 + facts.keyframes + 1);
}
