/* SPDX-License-Identifier: MIT */
/* The search for errors: what effects and the end of the trace tell; errors_call.c judges calls. */
#include <stdlib.h>
#include <string.h>

#include "analyses/errors/errors_parts.h"

/* A block that lies over a live one cannot be: the trace misses the release of the other, unless a
 * gap, or a reallocation that never returned, explains it. It is no error of the program. */
static enum ttd_status overlap(struct error_finder *finder, const struct heap_effect *effect)
{
    if (heap_is_unknown(effect->block->allocated, heap_gaps_end(&finder->gaps, effect->position)) ||
        map_get(&finder->unfinished, effect->block->address, effect->block->heap) == 1)
        return TTD_OK;
    struct heap_finding finding = {.kind = HEAP_ERROR_TRACE_INCONSISTENCY,
                                   .call = heap_call_of_effect(effect),
                                   .address = effect->address,
                                   .heap = effect->heap,
                                   .released = heap_call_none(),
                                   .conflict = heap_call_none(),
                                   .is_certain = true};
    heap_finding_set_block(&finding, effect->block);
    return heap_error_finder_add(finder, &finding);
}

/* The address has an owner again, so releasing it is no double free. */
static enum ttd_status errors_acquire(struct error_finder *finder, const struct heap_effect *effect)
{
    heap_freed_remove(&finder->freed, effect->address, effect->heap);
    return map_get(&finder->unfinished, effect->address, effect->heap) == 1
               ? map_set(&finder->unfinished, effect->address, effect->heap, 0)
               : TTD_OK;
}

static enum ttd_status errors_see_effect(void *context, const struct heap_effect *effect)
{
    struct error_finder *finder = context;
    if (effect->kind == HEAP_ACQUIRED)
        return errors_acquire(finder, effect);
    if (effect->kind == HEAP_RELEASED) {
        struct heap_freed_block *freed =
            heap_freed_add(&finder->freed, effect->address, effect->block->heap);
        freed->size = effect->block->size;
        freed->allocated = heap_call_of_block(effect->block);
        freed->released = heap_call_of_effect(effect);
    }
    return effect->kind == HEAP_OVERLAPPED ? overlap(finder, effect) : TTD_OK;
}

/* Prefetches the entries of the blocks that were released last which the batch will look at: those
 * of other addresses than the newest are not in the cache. */
static enum ttd_status errors_see_batch(void *context, const struct ttd_batch *batch)
{
    const struct heap_freed *freed = &((const struct error_finder *)context)->freed;
    size_t count = batch->kind == TTD_KIND_EVENTS ? batch->count : 0;
    for (size_t i = 0; i < count; i++) {
        const struct ttd_event *event = &batch->u.events[i];
        heap_freed_prefetch_head(freed, event->address ? event->address : event->base_address);
    }
    for (size_t i = 0; i < count; i++) {
        if (batch->u.events[i].address)
            heap_freed_prefetch_key(freed, batch->u.events[i].address);
    }
    return TTD_OK;
}

/* Locks that were held when the program exited. */
static enum ttd_status find_held(struct error_finder *finder, struct ttd_reader *reader)
{
    struct ttd_end end;
    enum ttd_status status = TTD_OK;
    if (ttd_reader_end(reader, &end) != TTD_OK || end.reason != TTD_END_REASON_EXITED)
        return TTD_OK;
    for (size_t i = 0; i < finder->statuses.hold_count && status == TTD_OK; i++) {
        const struct heap_hold *hold = &finder->statuses.holds[i];
        if (!heap_hold_is_active(&finder->statuses, hold))
            continue;
        struct heap_finding finding = {.kind = HEAP_ERROR_UNBALANCED_LOCK,
                                       .call = hold->locked,
                                       .heap = hold->heap,
                                       .allocated = heap_call_none(),
                                       .released = heap_call_none(),
                                       .conflict = heap_call_none(),
                                       .is_certain = true};
        status = heap_error_finder_add(finder, &finding);
    }
    return status;
}

/* A finding rests on what happened since the block was allocated or released, or on everything. */
static void errors_judge_all(struct heap_errors *errors)
{
    for (size_t i = 0; i < errors->count; i++) {
        struct heap_finding *finding = &errors->findings[i];
        struct ttd_position begin = ttd_position_min();
        /* A block of another heap says nothing of the time when the own one may have been there. */
        if (heap_call_is_known(&finding->allocated) && finding->kind != HEAP_ERROR_WRONG_HEAP)
            begin = finding->allocated.position;
        if (finding->kind == HEAP_ERROR_HEAP_DAMAGE)
            begin = finding->call.position;
        if (heap_call_is_known(&finding->released))
            begin = finding->released.position;
        if (heap_call_is_known(&finding->conflict))
            begin = finding->conflict.position;
        /* The return of a last call may be among the events that are missing. */
        struct ttd_position end = finding->signal ? ttd_position_max() : finding->call.position;
        if (finding->kind == HEAP_ERROR_HEAP_DAMAGE)
            end = finding->damage.position;
        bool rests_on_itself = finding->kind == HEAP_ERROR_FAILED_CALL;
        if (!rests_on_itself && heap_losses_between(&errors->outcome.losses, begin, end))
            finding->is_certain = false;
    }
}

bool heap_has_early_blocks(const struct ttd_reader *reader)
{
    return ttd_reader_trace(reader)->flags & (TTD_TRACE_INHERITS | TTD_TRACE_ATTACHED);
}

static void errors_begin(void *context, const struct heap_arrival *arrival)
{
    struct error_finder *finder = context;
    finder->replay = &arrival->cursor.replay;
}

static enum ttd_status find_damage(void *context, struct heap_arrival *arrival,
                                   struct ttd_error *error)
{
    (void)error;
    return heap_damage_find(context, &arrival->cursor.replay.live);
}

/* Damage explains what comes after it. */
static void put_damage_first(struct heap_errors *errors)
{
    size_t first = 0;
    for (size_t i = 0; i < errors->count; i++) {
        struct heap_finding finding = errors->findings[i];
        if (finding.kind != HEAP_ERROR_HEAP_DAMAGE)
            continue;
        memmove(&errors->findings[first + 1], &errors->findings[first],
                (i - first) * sizeof finding);
        errors->findings[first++] = finding;
    }
}

/* Adds the findings that only the end of the trace tells, and judges the certainty of all: losses
 * may be recorded long after they happened. */
static enum ttd_status errors_finish(void *context, struct heap_arrival *arrival,
                                     struct ttd_error *error)
{
    struct error_finder *finder = context;
    (void)error;
    finder->errors->outcome = heap_arrival_outcome(arrival);
    enum ttd_status status = find_held(finder, arrival->cursor.reader);
    if (status == TTD_OK)
        status = heap_last_calls_report(&finder->last_calls, finder->errors);
    put_damage_first(finder->errors);
    finder->errors->forgotten = finder->freed.forgotten;
    errors_judge_all(finder->errors);
    return status;
}

enum ttd_status heap_errors_watch(struct heap_errors *errors,
                                  const struct heap_errors_options *options,
                                  struct ttd_reader *reader, struct heap_pass *pass,
                                  struct ttd_error *error)
{
    const struct ttd_trace *trace = ttd_reader_trace(reader);
    struct error_finder *finder = calloc(1, sizeof *finder);
    *errors = (struct heap_errors){.finder = finder};
    map_init(&errors->index);
    if (!finder)
        return TTD_ERROR_NO_MEMORY;
    finder->errors = errors;
    map_init(&finder->unfinished);
    finder->islands = options->islands;
    finder->has_early_blocks = heap_has_early_blocks(reader);
    finder->misaligned = trace->pointer_size ? trace->pointer_size - 1 : 0;
    heap_status_table_init(&finder->statuses);
    heap_last_calls_begin(&finder->last_calls, reader, options->fatal);
    struct heap_watcher watcher = {.observer = {.context = finder,
                                                .effect = errors_see_effect,
                                                .call = heap_error_finder_see_call},
                                   .to = ttd_position_max(),
                                   .batch = errors_see_batch,
                                   .begin = errors_begin,
                                   .finish = errors_finish};
    heap_pass_add(pass, &watcher);
    enum ttd_status status = heap_headers_read(&finder->headers, reader, error);
    if (finder->headers.run_count)
        heap_pass_add(pass, &(struct heap_watcher){.observer = {.context = finder},
                                                   .to = finder->headers.snapshot.position,
                                                   .finish = find_damage});
    if (status == TTD_OK)
        status = heap_freed_init(&finder->freed, options->remembered);
    return status == TTD_OK ? heap_gaps_read(&finder->gaps, reader, error) : status;
}

void heap_errors_end(struct heap_errors *errors)
{
    struct error_finder *finder = errors->finder;
    if (!finder)
        return;
    heap_freed_free(&finder->freed);
    map_free(&finder->unfinished);
    heap_gaps_free(&finder->gaps);
    heap_status_table_free(&finder->statuses);
    heap_headers_free(&finder->headers);
    free(finder);
    errors->finder = NULL;
}

enum ttd_status heap_errors_find(const struct heap_trace *trace,
                                 const struct heap_errors_options *options,
                                 struct heap_errors *errors, struct ttd_error *error)
{
    struct heap_pass pass = {.count = 0};
    enum ttd_status status = heap_errors_watch(errors, options, trace->reader, &pass, error);
    if (status == TTD_OK)
        status = heap_pass_run(&pass, trace, error);
    heap_errors_end(errors);
    if (status != TTD_OK)
        heap_errors_free(errors);
    return status;
}
