/* SPDX-License-Identifier: MIT */
/* Several processes on one timeline. One counter gives the positions of all processes of a
 * recording, so events are in the order of positions. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash_map.h"
#include "remake/copier.h"

struct merger;

/* The name of a heap: a string's id, and its text. */
struct merge_name {
    ttd_id id;
    char text[48];
};

/* One of the traces. Its reader stands behind `batch`, which is of events that are left. */
struct merge_source {
    const struct heap_trace *trace;
    struct merger *merger;
    struct copier copier;
    struct ttd_batch batch;
    size_t taken;
    /** All events were copied; and the process has ended, too. */
    bool is_over;
    bool is_done;
    /** Position behind its last call. */
    struct ttd_position end;
    /** The heap of its events without a heap, and the kinds of heaps that it has. */
    ttd_id unknown_heap;
    /** By old ids: the last event of a heap was no destruction. */
    bool *is_live;
    size_t heap_count;
    size_t heap_capacity;
    bool has_unknown;
    bool has_known;
    /** The names of its heaps. */
    struct merge_name *names;
    size_t name_count;
    size_t name_capacity;
};

struct merger {
    struct merge_source *sources;
    size_t count;
    struct ttd_writer *writer;
    struct remake_result *result;
    struct ttd_error *error;
    /** Snapshots were left out. */
    bool had_snapshots;
};

/* Properties. */

static const char *merge_find_fault(const struct heap_trace *first, const struct heap_trace *other)
{
    static const struct ttd_group none;
    const struct ttd_trace *a = ttd_reader_trace(first->reader);
    const struct ttd_trace *b = ttd_reader_trace(other->reader);
    if (!memcmp(&a->group, &none, sizeof none) || memcmp(&a->group, &b->group, sizeof none) != 0)
        return "the traces are not of one recording: their positions have no common order";
    if (a->time_unit != b->time_unit || a->architecture != b->architecture ||
        a->pointer_size != b->pointer_size)
        return "the traces have different clocks or architectures";
    if (first->choice.is_made != other->choice.is_made ||
        first->choice.sample != other->choice.sample ||
        first->choice.least != other->choice.least ||
        first->choice.is_live_only != other->choice.is_live_only)
        return "the traces have different choices of blocks";
    return NULL;
}

static enum ttd_status merge_check_sources(const struct heap_trace *traces, size_t count,
                                           struct ttd_error *error)
{
    if (count > REMAKE_SOURCES_MAX)
        return remake_refuse(error, TTD_ERROR_UNSUPPORTED, "too many traces");
    for (size_t i = 0; i < count; i++) {
        const char *fault = merge_find_fault(&traces[0], &traces[i]);
        for (size_t j = 0; j < i && !fault; j++) {
            if (ttd_reader_trace(traces[i].reader)->trace_id ==
                ttd_reader_trace(traces[j].reader)->trace_id)
                fault = "a trace is named twice";
        }
        if (fault)
            return remake_refuse(error, TTD_ERROR_UNSUPPORTED, fault);
    }
    return TTD_OK;
}

/* The merged trace is of no group: nobody must add it to its own parts. */
static struct ttd_trace merge_properties(const struct merger *merger)
{
    const struct ttd_trace *first = ttd_reader_trace(merger->sources[0].trace->reader);
    struct ttd_trace trace = {.trace_id = hash_key_new().add | 1,
                              .parent_position = ttd_position_invalid(),
                              .start_time = first->start_time,
                              .process_id = first->process_id,
                              .parent_process_id = first->parent_process_id,
                              .time_unit = first->time_unit,
                              .architecture = first->architecture,
                              .pointer_size = first->pointer_size};
    for (size_t i = 0; i < merger->count; i++) {
        const struct ttd_trace *other = ttd_reader_trace(merger->sources[i].trace->reader);
        if (other->start_time < trace.start_time)
            trace.start_time = other->start_time;
        trace.flags |= other->flags;
    }
    return trace;
}

static void merge_set_offsets(struct merger *merger, const struct ttd_trace *trace)
{
    for (size_t i = 0; i < merger->count; i++) {
        struct merge_source *source = &merger->sources[i];
        const struct ttd_trace *old = ttd_reader_trace(source->trace->reader);
        uint64_t offset = (uint64_t)old->start_time - (uint64_t)trace->start_time;
        if (trace_has_times(trace))
            source->copier.time_offset = offset - offset % trace->time_unit;
    }
}

/* Heaps. */

/* Writes the name of a heap with its process. */
static enum ttd_status merge_name_heap(struct merge_source *source, const char *name, ttd_id *id)
{
    char text[sizeof((struct merge_name *)0)->text + 64];
    snprintf(text, sizeof text, "%s of process %" PRIu64, name,
             ttd_reader_trace(source->trace->reader)->process_id);
    source->merger->result->records[TTD_KIND_STRINGS]++;
    return ttd_writer_string(source->merger->writer, text, strlen(text), id);
}

static enum ttd_status merge_change_heap(void *context, struct ttd_heap *heap)
{
    struct merge_source *source = context;
    const char *name = "heap";
    for (size_t i = 0; i < source->name_count; i++) {
        if (source->names[i].id == heap->name && source->names[i].text[0])
            name = source->names[i].text;
    }
    return merge_name_heap(source, name, &heap->name);
}

/* Calls without a heap have one of their own, in a process without any other. */
static enum ttd_status merge_unknown_heap(struct merge_source *source)
{
    struct ttd_heap heap = {.handle = 0};
    enum ttd_status status = merge_name_heap(source, "unknown heap", &heap.name);
    if (status == TTD_OK)
        status = ttd_writer_heap(source->merger->writer, &heap, &source->unknown_heap);
    source->merger->result->records[TTD_KIND_HEAPS]++;
    return status;
}

static enum ttd_status merge_note_heap(struct merge_source *source, ttd_id name)
{
    enum ttd_status status = grow_array((void **)&source->names, &source->name_capacity,
                                        source->name_count + 1, sizeof *source->names);
    if (status == TTD_OK)
        source->names[source->name_count++] = (struct merge_name){.id = name};
    return status;
}

static void merge_note_string(struct merge_source *source,
                              const struct ttd_string_definition *string)
{
    for (size_t i = 0; i < source->name_count; i++) {
        struct merge_name *name = &source->names[i];
        if (name->id == string->id)
            snprintf(name->text, sizeof name->text, "%.*s",
                     (int)(string->text.size < sizeof name->text ? string->text.size
                                                                 : sizeof name->text - 1),
                     string->text.data);
    }
}

/* Reads one kind of definitions: heaps, then the strings that are their names. */
static enum ttd_status merge_read_names(struct merge_source *source, enum ttd_kind kind)
{
    struct ttd_reader *reader = source->trace->reader;
    enum ttd_status status = ttd_reader_rewind(reader, TTD_KIND_BIT(kind));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(reader, &batch, source->merger->error);
        for (size_t i = 0; status == TTD_OK && batch.kind == kind && i < batch.count; i++) {
            if (kind == TTD_KIND_HEAPS)
                status = merge_note_heap(source, batch.u.heaps[i].name);
            else
                merge_note_string(source, &batch.u.strings[i]);
        }
    }
    return heap_is_over(status) ? TTD_OK : status;
}

/* Notes whether a heap may have blocks. */
static enum ttd_status merge_note_use(struct merge_source *source, const struct ttd_event *event)
{
    enum ttd_status status = TTD_OK;
    if (event->heap >= source->heap_count)
        status = grow_array((void **)&source->is_live, &source->heap_capacity,
                            (size_t)event->heap + 1, sizeof *source->is_live);
    if (status != TTD_OK)
        return status;
    while (source->heap_count <= event->heap)
        source->is_live[source->heap_count++] = false;
    source->is_live[event->heap] = event->action != TTD_ACTION_DESTROY || !event->result;
    return TTD_OK;
}

static enum ttd_status merge_change_event(void *context, struct ttd_event *event)
{
    struct merge_source *source = context;
    enum ttd_status status = merge_note_use(source, event);
    bool is_known = event->heap != TTD_NONE;
    source->has_known |= is_known;
    source->has_unknown |= !is_known;
    if (source->has_known && source->has_unknown)
        return remake_refuse(source->merger->error, TTD_ERROR_UNSUPPORTED,
                             "a process has calls of known and of unknown heaps, which may be the "
                             "same");
    if (status == TTD_OK && !is_known && !source->unknown_heap)
        status = merge_unknown_heap(source);
    event->heap =
        is_known ? copier_id(&source->copier, COPIER_HEAPS, event->heap) : source->unknown_heap;
    return status;
}

/* Records. */

/* All processes of a recording have the same recorder and system. */
static bool merge_wants_fact(const struct merge_source *source, const struct ttd_metadata *fact)
{
    static const char *const common[] = {"host", "system", "writer"};
    bool is_common = false;
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        is_common |= fact->key.size == strlen(common[i]) &&
                     memcmp(fact->key.data, common[i], fact->key.size) == 0;
    return !is_common || source == source->merger->sources;
}

/* Parts of snapshots have addresses of one process. An event without a thread is about all threads
 * of its process, and a sample of memory about the process. */
static bool merge_wants(void *context, const struct ttd_batch *batch, const void *record)
{
    struct merge_source *source = context;
    const struct ttd_user_event *event = record;
    bool is_wanted = true;
    switch (batch->kind) {
    case TTD_KIND_SNAPSHOTS:
        source->merger->had_snapshots = true;
        is_wanted = false;
        break;
    case TTD_KIND_FRAMES:
    case TTD_KIND_REGIONS:
    case TTD_KIND_REFERENCES:
    case TTD_KIND_CLASSES:
    case TTD_KIND_BLOCK_HEADERS:
    case TTD_KIND_MEMORY_MAP:
    case TTD_KIND_PAGES:
    case TTD_KIND_VARIABLES:
    case TTD_KIND_STATES:
    case TTD_KIND_SUMS:
    case TTD_KIND_LIVE_BLOCKS:
    case TTD_KIND_FATAL_SIGNALS:
        is_wanted = false;
        break;
    case TTD_KIND_METADATA:
        return merge_wants_fact(source, record);
    case TTD_KIND_USER_EVENTS:
        is_wanted =
            memcmp(event->client, TTD_CLIENT_MEMORY, sizeof event->client) != 0 &&
            (event->thread || memcmp(event->client, TTD_CLIENT_THREADS, sizeof event->client) != 0);
        break;
    default:
        break;
    }
    source->merger->result->records_left_out += !is_wanted;
    return is_wanted;
}

/* Copies all up to the next events of a source. */
static enum ttd_status merge_fetch(struct merge_source *source)
{
    struct merger *merger = source->merger;
    const struct heap_batch_hook *hook = &source->trace->hook;
    enum ttd_status status = TTD_OK;
    source->taken = 0;
    while (status == TTD_OK) {
        status = ttd_reader_next(source->trace->reader, &source->batch, merger->error);
        if (status == TTD_OK && source->batch.kind == TTD_KIND_LOSSES && source->batch.synthetic) {
            *merger->error = source->batch.error;
            return TTD_ERROR_CORRUPT;
        }
        if (status == TTD_OK && hook->batch)
            status = hook->batch(hook->context, &source->batch);
        if (status == TTD_OK && source->batch.kind == TTD_KIND_EVENTS)
            return TTD_OK;
        if (status == TTD_OK)
            status = copier_put(&source->copier, &source->batch);
    }
    source->is_over = true;
    return status == TTD_END ? TTD_OK : status;
}

/* Notes that a call ends at a position. */
static void merge_reach(struct merge_source *source, const struct ttd_event *event)
{
    struct ttd_position position = ttd_event_returned(event) ? event->time_end : event->time_start;
    position.steps += position.steps < UINT64_MAX;
    if (ttd_position_compare(source->end, position) < 0)
        source->end = position;
}

/* Destroys the heaps of a process that has ended, as the recorder does for an exec. Processes that
 * were alive at the last call of all keep theirs. */
static enum ttd_status merge_end(struct merge_source *source)
{
    const struct ttd_trace *trace = ttd_reader_trace(source->trace->reader);
    uint64_t time = source->copier.end.wall_time;
    struct ttd_event event = {.action = TTD_ACTION_DESTROY, .result = 1};
    enum ttd_status status = TTD_OK;
    source->is_done = true;
    event.wall_time = trace_has_times(trace) ? time - time % trace->time_unit : 0;
    event.time_start = event.time_end = source->end;
    for (size_t i = 0; i < source->heap_count && status == TTD_OK; i++) {
        if (!source->is_live[i])
            continue;
        event.heap = (ttd_id)i;
        event.time_end.steps += event.time_end.steps < UINT64_MAX;
        source->copier.result->records[TTD_KIND_EVENTS]++;
        source->copier.result->destroyed++;
        status = copier_put_event(&source->copier, &event);
        event.time_start = event.time_end;
    }
    return status;
}

/* Whether the trace says that the process has ended, and others have gone on. */
static bool merge_has_ended(const struct merger *merger, const struct merge_source *source)
{
    enum ttd_end_reason reason = source->copier.end.reason;
    size_t left = 0;
    for (size_t i = 0; i < merger->count; i++)
        left += !merger->sources[i].is_done;
    return left > 1 && (reason == TTD_END_REASON_EXITED || reason == TTD_END_REASON_SIGNALED);
}

static const struct ttd_event *merge_event(const struct merge_source *source)
{
    return &source->batch.u.events[source->taken];
}

static struct ttd_position merge_position(const struct merge_source *source)
{
    return source->is_over ? source->end : ttd_event_position(merge_event(source));
}

/* Returns the source with the first event, or end; NULL at the end. Sets `bound` to the first
 * position of the others. */
static struct merge_source *merge_first(struct merger *merger, struct ttd_position *bound)
{
    struct merge_source *first = NULL;
    *bound = ttd_position_max();
    for (size_t i = 0; i < merger->count; i++) {
        struct merge_source *source = &merger->sources[i];
        if (source->is_done)
            continue;
        struct ttd_position position = merge_position(source);
        if (!first || ttd_position_compare(position, merge_position(first)) < 0) {
            if (first)
                *bound = merge_position(first);
            first = source;
        } else if (ttd_position_compare(position, *bound) < 0) {
            *bound = position;
        }
    }
    return first;
}

/* Copies the events of a source up to a position. */
static enum ttd_status merge_run(struct merge_source *source, struct ttd_position bound)
{
    enum ttd_status status = TTD_OK;
    do {
        const struct ttd_event *event = merge_event(source);
        source->copier.result->records[TTD_KIND_EVENTS]++;
        merge_reach(source, event);
        status = copier_put_event(&source->copier, event);
        source->taken++;
    } while (status == TTD_OK && source->taken < source->batch.count &&
             ttd_position_compare(ttd_event_position(merge_event(source)), bound) <= 0);
    if (status == TTD_OK && source->taken == source->batch.count)
        status = merge_fetch(source);
    return status;
}

static enum ttd_status merge_state(struct merger *merger)
{
    char text[128];
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < merger->count && status == TTD_OK; i++) {
        struct merge_source *source = &merger->sources[i];
        snprintf(text, sizeof text, "process %" PRIu64 ", trace %016" PRIX64,
                 ttd_reader_trace(source->trace->reader)->process_id,
                 ttd_reader_trace(source->trace->reader)->trace_id);
        status = copier_put_fact(&source->copier, "merged", text);
    }
    if (status == TTD_OK && merger->result->records_left_out) {
        snprintf(text, sizeof text,
                 "%" PRIu64 " records of memory: snapshots, lists of blocks and samples (merge)",
                 merger->result->records_left_out);
        status = copier_put_fact(&merger->sources[0].copier, "unrecorded", text);
    }
    if (status == TTD_OK && merger->had_snapshots)
        status = copier_put_fact(&merger->sources[0].copier, "missing_snapshot", "merge");
    return status;
}

/* Returns the end that says least about the blocks that are live at the end: of the processes that
 * have not ended before. */
static struct ttd_end merge_last_end(const struct merger *merger)
{
    static const int ranks[] = {[TTD_END_REASON_EXITED] = 1,
                                [TTD_END_REASON_UNKNOWN] = 2,
                                [TTD_END_REASON_SIGNALED] = 3,
                                [TTD_END_REASON_DETACHED] = 4,
                                [TTD_END_REASON_NOT_RECORDED] = 5};
    struct ttd_end last = {.reason = TTD_END_REASON_NOT_RECORDED};
    int rank = 0;
    for (size_t i = 0; i < merger->count; i++) {
        const struct ttd_end *end = &merger->sources[i].copier.end;
        if (merger->result->ended[i] || ranks[end->reason] <= rank)
            continue;
        rank = ranks[end->reason];
        last = (struct ttd_end){.reason = end->reason, .code = end->code};
    }
    return last;
}

static enum ttd_status merge_copy(struct merger *merger)
{
    struct remake_result *result = merger->result;
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < merger->count && status == TTD_OK; i++) {
        status = ttd_reader_rewind(merger->sources[i].trace->reader, TTD_KINDS_ALL);
        if (status == TTD_OK)
            status = merge_fetch(&merger->sources[i]);
    }
    while (status == TTD_OK) {
        struct ttd_position bound;
        struct merge_source *source = merge_first(merger, &bound);
        if (!source)
            break;
        if (!source->is_over) {
            status = merge_run(source, bound);
            continue;
        }
        result->ended[source - merger->sources] = merge_has_ended(merger, source);
        if (result->ended[source - merger->sources])
            status = merge_end(source);
        source->is_done = true;
    }
    return status == TTD_OK ? merge_state(merger) : status;
}

static enum ttd_status merge_write(struct merger *merger, const struct ttd_output *output)
{
    struct copier *first = &merger->sources[0].copier;
    struct ttd_trace trace = merge_properties(merger);
    enum ttd_status status = copier_open(first, &trace, output);
    if (status != TTD_OK)
        return status;
    merger->writer = first->writer;
    for (size_t i = 0; i < merger->count; i++)
        merger->sources[i].copier.writer = merger->writer;
    merge_set_offsets(merger, &trace);
    status = merge_copy(merger);
    struct ttd_end end = merge_last_end(merger);
    for (size_t i = 0; i < merger->count; i++) {
        const struct copier *copier = &merger->sources[i].copier;
        uint64_t time = copier->time_offset + copier->end.wall_time;
        end.wall_time = time > end.wall_time ? time : end.wall_time;
    }
    return copier_close_writer(first, status, &end);
}

enum ttd_status remake_merge(const struct heap_trace *traces, size_t count,
                             const struct ttd_output *output, struct remake_result *result,
                             struct ttd_error *error)
{
    struct merger merger = {.count = count, .result = result, .error = error};
    *result = (struct remake_result){.events = 0};
    enum ttd_status status = merge_check_sources(traces, count, error);
    merger.sources = calloc(count, sizeof *merger.sources);
    if (status == TTD_OK && !merger.sources)
        status = TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < count && status == TTD_OK; i++) {
        struct merge_source *source = &merger.sources[i];
        *source = (struct merge_source){.trace = &traces[i], .merger = &merger};
        source->copier = (struct copier){.result = result,
                                         .error = error,
                                         .changes_ids = true,
                                         .wants = merge_wants,
                                         .change_heap = merge_change_heap,
                                         .change_event = merge_change_event,
                                         .context = source};
        status = remake_check_source(&traces[i], result, error);
        if (status == TTD_OK)
            status = merge_read_names(source, TTD_KIND_HEAPS);
        if (status == TTD_OK && source->name_count)
            status = merge_read_names(source, TTD_KIND_STRINGS);
    }
    if (status == TTD_OK)
        status = merge_write(&merger, output);
    else
        output->close(output->context);
    for (size_t i = 0; i < count && merger.sources; i++) {
        copier_free(&merger.sources[i].copier);
        free(merger.sources[i].names);
        free(merger.sources[i].is_live);
    }
    free(merger.sources);
    return status;
}
