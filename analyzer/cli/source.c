/* SPDX-License-Identifier: MIT */
#include "cli/source.h"

#include <string.h>

#include "cli/exit.h"
#include "cli/input.h"
#include "cli/message.h"

int source_open(struct source *trace, const char *path, bool reads_whole_chunks)
{
    memset(trace, 0, sizeof *trace);
    trace->path = path;
    trace->opened = stamp_of(path);
    struct ttd_input input;
    struct ttd_error error = {.offset = TTD_NOWHERE, .chunk = TTD_NOWHERE, .what = ""};
    enum ttd_status status = input_open(path, &input, &error);
    if (status != TTD_OK)
        return source_fail(trace, status, &error);
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = true;
    options.event_batches = heap_prefetch_batches();
    options.stored_stacks = true;
    options.whole_chunks = reads_whole_chunks;
    status = ttd_reader_open(&input, &options, NULL, &trace->reader, &error);
    if (status != TTD_OK)
        return source_fail(trace, status, &error);
    trace->size = ttd_reader_size(trace->reader);
    trace->is_closed = ttd_reader_end(trace->reader, &trace->end) == TTD_OK;
    if (!source_has_times(trace))
        message("warning: %s: the first chunk is lost: wall times are not known", path);
    progress_begin(&trace->progress);
    return STATUS_OK;
}

void source_close(struct source *trace)
{
    progress_end(&trace->progress);
    clock_free(&trace->clock);
    if (trace->has_keyframes)
        heap_keyframes_close(&trace->keyframes);
    ttd_reader_close(trace->reader);
    trace->reader = NULL;
}

int source_fail(struct source *trace, enum ttd_status status, const struct ttd_error *error)
{
    progress_end(&trace->progress);
    return input_fail(trace->path, status, error);
}

int source_fail_times(const struct source *trace)
{
    message("%s: wall times are not known", trace->path);
    return exit_for(TTD_ERROR_CORRUPT);
}

void source_truncated(struct source *trace, const struct ttd_error *error)
{
    if (!trace->is_truncated && !trace->is_given_up)
        message_error("warning: ", trace->path, error);
    trace->is_given_up |= error->status == TTD_ERROR_LIMIT;
    trace->is_truncated |= error->status != TTD_ERROR_LIMIT;
}

void source_damaged(struct source *trace, const struct ttd_error *error)
{
    for (size_t i = 0; i < trace->reported_count; i++) {
        if (trace->reported[i] == error->offset)
            return;
    }
    if (trace->reported_more)
        return;
    progress_end(&trace->progress);
    if (trace->reported_count < SOURCE_REPORTED_MAX) {
        trace->reported[trace->reported_count++] = error->offset;
        message_error("warning: ", trace->path, error);
        return;
    }
    trace->reported_more = true;
    message("warning: %s: more damage; 'ttdanalyze verify' lists it all", trace->path);
}

static enum ttd_status see_batch(void *context, const struct ttd_batch *batch)
{
    struct source *trace = context;
    clock_see(&trace->clock, batch);
    progress_update(&trace->progress, batch->chunk.offset, trace->size);
    if (batch->kind == TTD_KIND_LOSSES && batch->made_up)
        source_damaged(trace, &batch->error);
    return TTD_OK;
}

struct heap_batch_hook source_hook(struct source *trace)
{
    return (struct heap_batch_hook){.context = trace, .batch = see_batch};
}

static int read_on(struct source *trace, const struct heap_batch_hook *hook, bool takes_unsupported)
{
    struct ttd_error error = {.what = NULL};
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(trace->reader, &batch, &error);
        if (status == TTD_OK)
            status = see_batch(trace, &batch);
        if (status == TTD_OK)
            status = hook->batch(hook->context, &batch);
    }
    progress_end(&trace->progress);
    if (status != TTD_END && heap_is_over(status))
        source_truncated(trace, &error);
    else if (status != TTD_END && !(takes_unsupported && status == TTD_ERROR_UNSUPPORTED))
        return source_fail(trace, status, &error);
    return STATUS_OK;
}

int source_read_on(struct source *trace, const struct heap_batch_hook *hook)
{
    return read_on(trace, hook, false);
}

int source_read(struct source *trace, uint32_t kinds, const struct heap_batch_hook *hook)
{
    struct ttd_error error = {.what = NULL};
    enum ttd_status status =
        ttd_reader_rewind(trace->reader, kinds | TTD_KIND_BIT(TTD_KIND_LOSSES));
    return status == TTD_OK ? read_on(trace, hook, true) : source_fail(trace, status, &error);
}

int source_read_checked(struct source *trace, uint32_t kinds, const struct heap_batch_hook *hook)
{
    struct ttd_error error = {.what = NULL};
    enum ttd_status status =
        ttd_reader_rewind_checked(trace->reader, kinds | TTD_KIND_BIT(TTD_KIND_LOSSES));
    return status == TTD_OK ? source_read_on(trace, hook) : source_fail(trace, status, &error);
}

/* Reads everything, to check it. */
static void check_all(struct source *trace)
{
    struct ttd_error error;
    enum ttd_status status = ttd_reader_rewind_checked(trace->reader, 0);
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(trace->reader, &batch, &error);
        if (status == TTD_OK)
            see_batch(trace, &batch);
    }
    progress_end(&trace->progress);
    if (status != TTD_END && heap_is_over(status))
        source_truncated(trace, &error);
}

bool source_is_intact(struct source *trace)
{
    if (trace->is_judged)
        return trace->is_intact;
    trace->is_judged = true;
    bool has_damage = trace->is_truncated || trace->is_given_up || trace->reported_count;
    if (!trace->is_closed || has_damage)
        return false;
    if (!trace->has_keyframes && !ttd_reader_is_intact(trace->reader))
        check_all(trace);
    struct stamp now = stamp_of(trace->path);
    trace->is_intact = (trace->has_keyframes || ttd_reader_is_intact(trace->reader)) &&
                       (!trace->opened.text[0] || stamp_is_same(&trace->opened, &now));
    return trace->is_intact;
}

static enum ttd_status define(void *context, const struct ttd_batch *batch)
{
    return definitions_add(context, batch);
}

int source_define(struct source *trace, uint32_t kinds, struct definitions *all)
{
    struct heap_batch_hook hook = {.context = all, .batch = define};
    return source_read(trace, kinds, &hook);
}
