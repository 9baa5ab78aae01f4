/* SPDX-License-Identifier: MIT */
#include "cli/traces/source.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/task.h"
#include "cli/process/limits.h"
#include "cli/process/message.h"
#include "travel/certainty.h"
#include "travel/heap_cursor.h"
#include "travel/losses.h"

/* Calls between two readings of the clock. */
#define CALLS 64

static uint64_t source_now(void)
{
    struct timespec time = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

void progress_begin(struct progress *progress)
{
    *progress = (struct progress){.is_wanted = isatty(STDERR_FILENO), .begin = source_now()};
}

void progress_update(struct progress *progress, uint64_t done, uint64_t total)
{
    if (!progress->is_wanted || ++progress->calls % CALLS || !total)
        return;
    uint64_t time = source_now();
    if (time - progress->begin < 1000 || time - progress->last < 100)
        return;
    progress->last = time;
    progress->is_shown = true;
    double part = (double)done / (double)total;
    fprintf(stderr, "\rreading: %3.0f%%", 100 * (part < 1 ? part : 1));
}

void progress_end(struct progress *progress)
{
    if (progress->is_shown)
        fputs("\r\033[K", stderr);
    progress->is_shown = false;
}

static enum ttd_status source_open_reader(const char *path,
                                          const struct ttd_reader_options *options,
                                          struct ttd_reader **reader, struct ttd_error *error)
{
    struct ttd_input input;
    enum ttd_status status = input_open(path, &input, error);
    return status == TTD_OK ? ttd_reader_open(&input, options, NULL, reader, error) : status;
}

int source_open(struct source *source, const char *path, bool reads_whole_chunks)
{
    memset(source, 0, sizeof *source);
    source->path = path;
    source->opened = stamp_of(path);
    struct ttd_error error = {.offset = TTD_NOWHERE, .chunk = TTD_NOWHERE, .what = ""};
    struct ttd_reader_options options = ttd_reader_options_default();
    /* A damaged trace is useful all the same: missing events are a loss, and make the answer
     * uncertain. */
    options.tolerant = true;
    options.event_batches = heap_prefetch_batches();
    options.lazy_stacks = true;
    options.whole_chunks = reads_whole_chunks;
    enum ttd_status status = source_open_reader(path, &options, &source->reader, &error);
    if (status != TTD_OK)
        return source_fail(source, status, &error);
    source->size = ttd_reader_size(source->reader);
    source->is_closed = ttd_reader_end(source->reader, &source->end) == TTD_OK;
    if (!ttd_reader_trace(source->reader)->time_unit)
        message("warning: %s: the first chunk is lost: wall times are not known", path);
    status = heap_choice_read(source->reader, &source->choice, &error);
    if (status != TTD_OK) {
        ttd_reader_close(source->reader);
        source->reader = NULL;
        return source_fail(source, status, &error);
    }
    progress_begin(&source->progress);
    return STATUS_OK;
}

void source_close(struct source *source)
{
    progress_end(&source->progress);
    clock_free(&source->clock);
    if (source->has_keyframes)
        heap_keyframes_close(&source->keyframes);
    source_end_second(source);
    ttd_reader_close(source->reader);
    source->reader = NULL;
}

int source_fail(struct source *source, enum ttd_status status, const struct ttd_error *error)
{
    progress_end(&source->progress);
    /* Whoever has begun the work says why it ends. */
    if (interrupt_cause() != INTERRUPT_NONE)
        return STATUS_INTERNAL;
    return input_fail(source->path, status, error);
}

int source_fail_times(const struct source *source)
{
    message("%s: wall times are not known", source->path);
    return exit_for(TTD_ERROR_CORRUPT);
}

void source_truncated(struct source *source, const struct ttd_error *error)
{
    /* Later passes end at the same place: only the first one says so. */
    if (!source->is_truncated && !source->is_given_up)
        message_error("warning: ", source->path, error);
    source->is_given_up |= error->status == TTD_ERROR_LIMIT;
    source->is_truncated |= error->status != TTD_ERROR_LIMIT;
}

void source_damaged(struct source *source, const struct ttd_error *error)
{
    /* Each pass comes by the same damage; it is reported once. */
    for (size_t i = 0; i < source->reported_count; i++) {
        if (source->reported[i] == error->offset)
            return;
    }
    if (source->reported_more)
        return;
    progress_end(&source->progress);
    if (source->reported_count < SOURCE_REPORTED_MAX) {
        source->reported[source->reported_count++] = error->offset;
        message_error("warning: ", source->path, error);
        return;
    }
    source->reported_more = true;
    message("warning: %s: more damage; 'ttdanalyze verify' lists it all", source->path);
}

static enum ttd_status source_see_batch(void *context, const struct ttd_batch *batch)
{
    struct source *source = context;
    clock_see(&source->clock, batch);
    progress_update(&source->progress, batch->chunk.offset, source->size);
    if (batch->kind == TTD_KIND_LOSSES && batch->synthetic)
        source_damaged(source, &batch->error);
    return interrupt_cause() == INTERRUPT_NONE ? TTD_OK : TTD_ERROR_MISUSE;
}

static enum ttd_status source_see_net(void *context, const struct ttd_chunk *chunk,
                                      const struct ttd_netted *netted)
{
    struct source *source = context;
    clock_see_net(&source->clock, chunk, netted);
    /* The chunks come from the last to the first. */
    progress_update(&source->progress, source->size - chunk->offset, source->size);
    return interrupt_cause() == INTERRUPT_NONE ? TTD_OK : TTD_ERROR_MISUSE;
}

struct heap_trace source_trace(struct source *source)
{
    return (struct heap_trace){
        .reader = source->reader,
        .choice = source->choice,
        .hook = {.context = source, .batch = source_see_batch, .net = source_see_net},
        .threads = source->threads ? source->threads : task_processors()};
}

bool source_second_trace(struct source *source, struct heap_trace *trace)
{
    struct ttd_reader_options options = ttd_reader_options_default();
    struct ttd_error error;
    options.tolerant = true;
    options.lazy_stacks = true;
    if (!source->is_closed || !source->opened.text[0] || !task_has_processor() ||
        source_open_reader(source->path, &options, &source->second, &error) != TTD_OK)
        return false;
    /* It may be another file by now. */
    struct stamp now = stamp_of(source->path);
    *trace = (struct heap_trace){
        .reader = source->second, .choice = source->choice, .is_one_of_two = true};
    return stamp_is_same(&source->opened, &now);
}

void source_end_second(struct source *source)
{
    ttd_reader_close(source->second);
    source->second = NULL;
}

static int traces_source_read_on(struct source *source, const struct heap_batch_hook *hook,
                                 bool takes_unsupported)
{
    struct ttd_error error = {.what = NULL};
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(source->reader, &batch, &error);
        if (status == TTD_OK)
            status = source_see_batch(source, &batch);
        if (status == TTD_OK)
            status = hook->batch(hook->context, &batch);
    }
    progress_end(&source->progress);
    if (status != TTD_END && heap_is_over(status))
        source_truncated(source, &error);
    else if (status != TTD_END && !(takes_unsupported && status == TTD_ERROR_UNSUPPORTED))
        return source_fail(source, status, &error);
    return STATUS_OK;
}

int source_read_on(struct source *source, const struct heap_batch_hook *hook)
{
    return traces_source_read_on(source, hook, false);
}

int source_read(struct source *source, uint32_t kinds, const struct heap_batch_hook *hook)
{
    struct ttd_error error = {.what = NULL};
    /* Losses are read by every pass, because the reader reports damage as losses. */
    enum ttd_status status =
        ttd_reader_rewind(source->reader, kinds | TTD_KIND_BIT(TTD_KIND_LOSSES));
    return status == TTD_OK ? traces_source_read_on(source, hook, true)
                            : source_fail(source, status, &error);
}

/* Reads all chunks to check them. */
static void source_check_all(struct source *source)
{
    struct ttd_error ended;
    struct heap_trace trace = source_trace(source);
    /* A failure leaves the trace unchecked, and so the answer uncertain. */
    (void)certainty_check_all(&trace, &ended);
    progress_end(&source->progress);
    if (ended.status != TTD_OK)
        source_truncated(source, &ended);
}

void source_take_intact(struct source *source, const struct source *other)
{
    bool is_found =
        other->is_judged && other->is_intact && !other->has_keyframes && !other->is_partly_read;
    if ((is_found || other->is_known_intact) && stamp_is_same(&source->opened, &other->opened))
        source->is_known_intact = true;
}

bool source_is_intact(struct source *source)
{
    /* Judged once, and only when a report needs it: the check may have to read the whole file. */
    if (source->is_judged)
        return source->is_intact;
    source->is_judged = true;
    bool has_damage = source->is_truncated || source->is_given_up || source->reported_count;
    if (!source->is_closed || has_damage)
        return false;
    /* An answer that rests on an index is not certain anyway, so nothing is read to find that out.
     */
    bool is_checked = source->has_keyframes || source->is_known_intact || source->is_partly_read;
    if (!is_checked && !ttd_reader_is_intact(source->reader))
        source_check_all(source);
    /* If the file was written to meanwhile, its parts may have been read in different states. */
    struct stamp now = stamp_of(source->path);
    source->is_intact = (is_checked || ttd_reader_is_intact(source->reader)) &&
                        (!source->second || ttd_reader_is_intact(source->second)) &&
                        (!source->opened.text[0] || stamp_is_same(&source->opened, &now));
    if (source->is_intact)
        (void)certainty_find_patch(source->reader, &source->is_patched);
    source->is_intact &= !source->is_patched;
    return source->is_intact;
}

static enum ttd_status source_add_definitions(void *context, const struct ttd_batch *batch)
{
    return definitions_add(context, batch);
}

int source_define(struct source *source, uint32_t kinds, struct definitions *definitions)
{
    struct heap_batch_hook hook = {.context = definitions, .batch = source_add_definitions};
    return source_read(source, kinds, &hook);
}

int position_spec_resolve(const struct position_spec *spec, enum position_purpose purpose,
                          struct source *source, struct ttd_position *position)
{
    struct ttd_error error = {.what = NULL};
    struct position_found found = {.part_of = 0};
    struct heap_trace trace = source_trace(source);
    enum ttd_status status = position_spec_find(&trace, source->is_closed ? &source->end : NULL,
                                                spec, purpose, &found, &error);
    if (spec->kind == POSITION_SPEC_MARK)
        progress_end(&source->progress);
    if (found.ended.status != TTD_OK)
        source_truncated(source, &found.ended);
    if (found.part_of)
        source->part_of = found.part_of;
    if (status == TTD_ERROR_MISUSE)
        return source_fail_times(source);
    if (status == TTD_END) {
        message("%s: no mark has the text '%s'; 'ttdanalyze marks' lists them", source->path,
                spec->mark);
        return STATUS_USAGE;
    }
    if (status != TTD_OK)
        return source_fail(source, status, &error);
    *position = found.position;
    return STATUS_OK;
}

int position_range_check(const char *command, const struct source *source,
                         struct ttd_position begin, struct ttd_position end)
{
    if (ttd_position_compare(end, begin) > 0)
        return STATUS_OK;
    if (!heap_is_end(begin))
        return message_usage(command, POSITION_RANGE_EMPTY);
    message("%s: the range is empty: no event that can be read comes at --from or after it",
            source->path);
    return STATUS_USAGE;
}
