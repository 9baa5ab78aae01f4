/* SPDX-License-Identifier: MIT */
#include "support/heap/indexed_trace.h"

#include <criterion/criterion.h>

#include "support/chunk_edit.h"

/* Keyframes wherever there can be one, and only some of them. */
static const struct heap_index_spacing everywhere = {.keyframes = 0, .summary_blocks = 1};
static const struct heap_index_spacing few_keyframes = {.keyframes = 5, .summary_blocks = 1};

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
        struct ttd_heap_parent parent = {.heap = id, .parent = heap_model_parent(id)};
        if (parent.parent != TTD_NONE)
            cr_assert_eq(ttd_writer_heap_parent(writer, &parent), TTD_OK);
    }
    for (unsigned i = 0; i < HEAP_MODEL_STACKS; i++)
        cr_assert_eq(ttd_writer_stack(writer, 0, 0, i, &id), TTD_OK);
}

/* Writes a loss, a user event or the end of a chunk after some events. */
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

static void write_trace(struct indexed_trace *indexed)
{
    struct ttd_trace trace = {.trace_id = INDEXED_TRACE_ID, .time_unit = 1, .pointer_size = 8};
    struct ttd_writer_options options = ttd_writer_options_default();
    options.events_per_chunk = 1 + entropy_pick(&indexed->entropy, 8);
    options.codec = entropy_pick(&indexed->entropy, 2) ? TTD_CODEC_LZ4 : TTD_CODEC_RAW;
    struct ttd_writer *writer = open_writer(&indexed->trace, &trace, &options);
    define(writer);
    for (size_t i = 0; i < indexed->count; i++) {
        struct ttd_event event = indexed->events[i];
        /* A trace does not say what a failed call returned. */
        event.address = event.result ? event.address : 0;
        cr_assert_eq(ttd_writer_event(writer, &event), TTD_OK, "%s", ttd_writer_error(writer).what);
        interrupt(&indexed->entropy, writer, &event);
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

enum ttd_status indexed_trace_count_batch(void *context, const struct ttd_batch *batch)
{
    size_t *batches = context;
    *batches += batch->kind == TTD_KIND_EVENTS;
    return TTD_OK;
}

/* Writes a chunk of another kind, which make_unknown() turns into one of an unknown kind. */
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

struct heap_index_facts indexed_trace_write_index(struct indexed_trace *indexed,
                                                  const struct heap_index_spacing *spacing)
{
    struct ttd_trace derived = *ttd_reader_trace(indexed->reader);
    derived.flags |= TTD_TRACE_DERIVED;
    cr_assert_eq(ttd_reader_tie(indexed->reader, &derived), TTD_OK);
    struct ttd_writer *writer = open_writer(&indexed->sidecar, &derived, NULL);
    struct heap_trace trace = {
        .reader = indexed->reader,
        .hook = {.context = &indexed->batches, .batch = indexed_trace_count_batch}};
    struct heap_index_facts facts;
    struct ttd_error error;
    bool has_unknown = !entropy_pick(&indexed->entropy, 3);
    if (has_unknown)
        write_foreign(writer);
    cr_assert_eq(heap_index_write(&trace, spacing, writer, &facts, &error), TTD_OK);
    cr_assert_eq(facts.events, indexed->count);
    close_writer(writer);
    if (has_unknown)
        make_unknown(&indexed->sidecar);
    return facts;
}

/* Sets some sizes so large that their sums overflow. */
static void inflate(struct indexed_trace *indexed)
{
    for (size_t i = 0; i < indexed->count; i++)
        if (indexed->events[i].size && !entropy_pick(&indexed->entropy, 3))
            indexed->events[i].size |= UINT64_C(1) << 63;
}

void indexed_trace_open(struct indexed_trace *indexed, uint64_t seed)
{
    indexed->entropy = entropy_of_seed(seed);
    indexed->count = heap_model_events(&indexed->entropy, indexed->events);
    if (!entropy_pick(&indexed->entropy, 8))
        inflate(indexed);
    indexed->batches = 0;
    heap_model_run(indexed->states, indexed->events, indexed->count);
    write_trace(indexed);
    indexed->reader = open_reader(&indexed->trace, true);
    struct heap_index_facts facts = indexed_trace_write_index(
        indexed, entropy_pick(&indexed->entropy, 2) ? &everywhere : &few_keyframes);
    struct ttd_reader *sidecar = open_reader(&indexed->sidecar, false);
    cr_assert_eq(heap_keyframes_open(sidecar, indexed->reader, &indexed->keyframes), TTD_OK);
    cr_assert_eq(indexed->keyframes.count, facts.keyframes + facts.summaries);
}

void indexed_trace_close(struct indexed_trace *indexed)
{
    heap_keyframes_close(&indexed->keyframes);
    ttd_reader_close(indexed->reader);
    ttd_memory_output_free(&indexed->trace);
    ttd_memory_output_free(&indexed->sidecar);
}
