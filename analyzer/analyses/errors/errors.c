/* SPDX-License-Identifier: MIT */
#include "analyses/errors/errors.h"

#include <stdlib.h>
#include <string.h>

#include "analyses/errors/errors_parts.h"
#include "base/grow.h"

/* The code of a signal that the thread has sent to itself, as in abort(). */
#define BY_TGKILL (-6)

void heap_last_calls_begin(struct heap_last_calls *last_calls, struct ttd_reader *reader,
                           const struct heap_fatal *fatal)
{
    struct ttd_end end;
    *last_calls = (struct heap_last_calls){.signal = 0};
    if (ttd_reader_end(reader, &end) != TTD_OK || end.reason != TTD_END_REASON_SIGNALED ||
        !heap_fatal_is_fault(end.code))
        return;
    last_calls->signal = end.code;
    if (!fatal || !fatal->count || !ttd_position_is_valid(fatal->signal.position))
        return;
    last_calls->thread = fatal->signal.thread;
    /* Another process, or another thread, has interrupted the call. */
    if (fatal->signal.code <= 0 && fatal->signal.code != BY_TGKILL)
        last_calls->signal = 0;
}

static void errors_remove_call(struct heap_last_calls *last_calls, ttd_id thread)
{
    for (size_t i = 0; i < last_calls->count; i++) {
        if (last_calls->calls[i].call.thread != thread)
            continue;
        last_calls->calls[i] = last_calls->calls[--last_calls->count];
        return;
    }
}

bool heap_last_calls_see(struct heap_last_calls *last_calls, const struct ttd_event *event)
{
    if (!last_calls->signal)
        return false;
    if (last_calls->count)
        errors_remove_call(last_calls, event->thread);
    bool may_die = !last_calls->thread || last_calls->thread == event->thread;
    return may_die && !ttd_event_returned(event) && last_calls->count < HEAP_LAST_CALLS_MAX;
}

void heap_last_calls_add(struct heap_last_calls *last_calls, const struct heap_finding *call,
                         const struct heap_live *live)
{
    struct heap_finding *finding = &last_calls->calls[last_calls->count++];
    *finding = *call;
    finding->signal = last_calls->signal;
    if (!live || !call->address)
        return;
    struct heap_neighbours *neighbours = &finding->neighbours;
    *neighbours = heap_neighbours_find(live, call->address);
    if (call->address - neighbours->before.address > HEAP_FATAL_NEAR_ADDRESS)
        neighbours->before.address = 0;
    if (neighbours->after.address - call->address > HEAP_FATAL_NEAR_ADDRESS)
        neighbours->after.address = 0;
}

static bool errors_is_about(const struct heap_finding *finding, const struct heap_finding *call)
{
    return finding->signal && finding->call.thread == call->call.thread &&
           ttd_position_compare(finding->last, call->call.position) == 0;
}

/* A finding that is about this very call already. */
static struct heap_finding *errors_last_calls_find(struct heap_errors *errors,
                                                   const struct heap_finding *call)
{
    for (size_t i = 0; i < errors->count; i++) {
        if (errors_is_about(&errors->findings[i], call))
            return &errors->findings[i];
    }
    return NULL;
}

/* After such calls the thread went on. */
static void errors_remove_others(const struct heap_last_calls *last_calls,
                                 struct heap_errors *errors)
{
    for (size_t i = 0; i < errors->count; i++) {
        bool is_last = false;
        for (size_t k = 0; k < last_calls->count && !is_last; k++)
            is_last = errors_is_about(&errors->findings[i], &last_calls->calls[k]);
        if (!is_last)
            errors->findings[i].signal = 0;
    }
}

/* Findings keep their order otherwise. */
static void errors_put_first(struct heap_errors *errors)
{
    size_t first = 0;
    for (size_t i = 0; i < errors->count; i++) {
        struct heap_finding finding = errors->findings[i];
        if (!finding.signal)
            continue;
        for (size_t k = i; k > first; k--)
            errors->findings[k] = errors->findings[k - 1];
        errors->findings[first++] = finding;
    }
}

enum ttd_status heap_last_calls_report(struct heap_last_calls *last_calls,
                                       struct heap_errors *errors)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < last_calls->count && status == TTD_OK; i++) {
        struct heap_finding *call = &last_calls->calls[i];
        struct heap_finding *finding = errors_last_calls_find(errors, call);
        call->is_certain &= last_calls->count == 1;
        if (!finding) {
            status = heap_errors_add(errors, call);
            continue;
        }
        finding->neighbours = call->neighbours;
    }
    errors_remove_others(last_calls, errors);
    errors_put_first(errors);
    return status;
}

/* The search for errors in effects and at the end of the trace; errors_call.c judges calls. */

/* A block that lies over a live one cannot be: the trace misses the release of the other, unless a
 * gap, or a reallocation that never returned, explains it. It is no error of the program. */
static enum ttd_status errors_overlap(struct error_finder *finder, const struct heap_effect *effect)
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
    return effect->kind == HEAP_OVERLAPPED ? errors_overlap(finder, effect) : TTD_OK;
}

/* Prefetches the entries that the batch will look at for the blocks released last: except for the
 * newest addresses, they are not in the cache. */
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
static enum ttd_status errors_find_held(struct error_finder *finder, struct ttd_reader *reader)
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

/* Whether calls are missing that may explain a finding which rests on the events of a range: each
 * of its calls needs another one. Behind a past that was cut off, all live blocks are known; locks
 * are not. */
static bool errors_may_lack_calls(const struct heap_losses *losses,
                                  const struct heap_finding *finding, struct ttd_position begin,
                                  struct ttd_position end)
{
    struct ttd_position last = ttd_position_compare(finding->last, end) > 0 ? finding->last : end;
    uint64_t missing = 0;
    for (size_t i = 0; i < losses->kept_count; i++) {
        const struct ttd_loss *loss = &losses->kept[i];
        if (finding->kind != HEAP_ERROR_UNBALANCED_LOCK && heap_loss_is_past(loss, end) &&
            ttd_position_compare(begin, loss->first_good) < 0)
            begin = loss->first_good;
    }
    for (size_t i = 0; i < losses->kept_count; i++) {
        const struct ttd_loss *loss = &losses->kept[i];
        if (ttd_position_compare(loss->last_good, last) < 0 &&
            ttd_position_compare(loss->first_good, begin) > 0)
            missing = heap_add(missing, loss->count);
    }
    return heap_losses_between(losses, begin, end) &&
           (losses->records > losses->kept_count || finding->count <= missing);
}

/* A finding rests on the events since the block was allocated or released, or on all events. */
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
        if (finding->kind == HEAP_ERROR_FAILED_CALL) /* rests on itself */
            continue;
        if (heap_losses_between(&errors->outcome.losses, begin, end))
            finding->is_certain = false;
        finding->may_lack_calls =
            errors_may_lack_calls(&errors->outcome.losses, finding, begin, end);
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

static enum ttd_status errors_find_damage(void *context, struct heap_arrival *arrival,
                                          struct ttd_error *error)
{
    (void)error;
    return heap_damage_find(context, &arrival->cursor.replay.live);
}

/* Damage explains later findings. */
static void errors_put_damage_first(struct heap_errors *errors)
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

/* Adds the findings that only the end of the trace shows, and judges the certainty of all: losses
 * may be recorded long after they happened. */
static enum ttd_status errors_finish(void *context, struct heap_arrival *arrival,
                                     struct ttd_error *error)
{
    struct error_finder *finder = context;
    (void)error;
    finder->errors->outcome = heap_arrival_outcome(arrival);
    enum ttd_status status = errors_find_held(finder, arrival->cursor.reader);
    if (status == TTD_OK)
        status = heap_last_calls_report(&finder->last_calls, finder->errors);
    errors_put_damage_first(finder->errors);
    finder->errors->forgotten = finder->freed.forgotten;
    if (finder->only_screens)
        finder->errors->must_search = heap_error_finder_must_search(finder);
    errors_judge_all(finder->errors);
    return status;
}

/* A screen looks at Frees of the fast path with less work. */
static const struct heap_plain_observer errors_plain = {.released = heap_error_finder_screen_free};

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
    finder->has_early_blocks = options->has_choice || heap_has_early_blocks(reader);
    finder->misaligned = trace->pointer_size ? trace->pointer_size - 1 : 0;
    heap_status_table_init(&finder->statuses);
    if (!options->is_merged)
        heap_last_calls_begin(&finder->last_calls, reader, options->fatal);
    struct heap_watcher watcher = {.observer = {.context = finder,
                                                .effect = errors_see_effect,
                                                .call = heap_error_finder_see_call},
                                   .to = ttd_position_max(),
                                   .batch = errors_see_batch,
                                   .begin = errors_begin,
                                   .finish = errors_finish};
    finder->only_screens = options->only_screens;
    errors->must_search = options->only_screens && finder->last_calls.signal;
    if (options->only_screens) {
        watcher.observer.effect = NULL;
        watcher.observer.call = heap_error_finder_screen_call;
        watcher.observer.plain = &errors_plain;
        watcher.observer.unwanted_calls =
            ~(HEAP_CALL_BIT(TTD_ACTION_FREE) | HEAP_CALL_BIT(TTD_ACTION_REALLOC));
        watcher.batch = NULL;
    }
    heap_pass_add(pass, &watcher);
    enum ttd_status status = heap_headers_read(&finder->headers, reader, error);
    if (finder->headers.run_count)
        heap_pass_add(pass, &(struct heap_watcher){.observer = {.context = finder},
                                                   .to = finder->headers.snapshot.position,
                                                   .finish = errors_find_damage});
    if (status == TTD_OK)
        status = heap_freed_init(&finder->freed, options->only_screens ? 1 : options->remembered);
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

void heap_errors_free(struct heap_errors *errors)
{
    heap_errors_end(errors);
    free(errors->findings);
    map_free(&errors->index);
}

/* The stacks that identify a finding, as one half of a key each. */
static uint64_t errors_call_key(const struct heap_finding *finding)
{
    return (uint64_t)finding->call.stack << 16 | (uint64_t)finding->kind << 8 |
           finding->call.action | (finding->signal ? 0x80 : 0);
}

static uint64_t errors_conflict_key(const struct heap_finding *finding)
{
    ttd_id allocated = heap_call_is_known(&finding->allocated) ? finding->allocated.stack : 0;
    ttd_id second_stack = heap_call_is_known(&finding->released) ? finding->released.stack : 0;
    if (heap_call_is_known(&finding->conflict))
        second_stack = finding->conflict.stack;
    return (uint64_t)allocated << 32 | second_stack;
}

/* A loop makes the same mistake a million times: calls with the same kind and stacks are one
 * finding. */
enum ttd_status heap_errors_add(struct heap_errors *errors, const struct heap_finding *finding)
{
    uint64_t a = errors_call_key(finding);
    uint64_t b = errors_conflict_key(finding);
    uint32_t index = map_get(&errors->index, a, b);
    errors->calls++;
    if (index != MAP_NONE) {
        errors->findings[index].count++;
        errors->findings[index].last = finding->call.position;
        return TTD_OK;
    }
    if (errors->count == HEAP_FINDINGS_MAX) {
        errors->omitted++;
        return TTD_OK;
    }
    enum ttd_status status = grow_array((void **)&errors->findings, &errors->capacity,
                                        errors->count + 1, sizeof *errors->findings);
    if (status == TTD_OK)
        status = map_set(&errors->index, a, b, (uint32_t)errors->count);
    if (status != TTD_OK)
        return status;
    struct heap_finding *kept = &errors->findings[errors->count++];
    *kept = *finding;
    kept->count = 1;
    kept->last = finding->call.position;
    return TTD_OK;
}

/* Adds a finding to the one before it that has the same stacks, if there is one. */
static enum ttd_status errors_merge_finding(struct heap_errors *errors, struct hash_map *index,
                                            const struct heap_finding *finding,
                                            const struct heap_finding *key)
{
    uint64_t a = errors_call_key(key), b = errors_conflict_key(key);
    uint32_t first = map_get(index, a, b);
    if (first == MAP_NONE) {
        enum ttd_status status = map_set(index, a, b, (uint32_t)errors->count);
        errors->findings[errors->count++] = *finding;
        return status;
    }
    struct heap_finding *kept = &errors->findings[first];
    kept->count += finding->count;
    kept->is_certain &= finding->is_certain;
    kept->may_lack_calls &= finding->may_lack_calls;
    if (ttd_position_compare(finding->last, kept->last) > 0)
        kept->last = finding->last;
    return TTD_OK;
}

enum ttd_status heap_errors_merge(struct heap_errors *errors, heap_same_stack *find, void *context)
{
    struct hash_map index;
    size_t count = errors->count;
    enum ttd_status status = TTD_OK;
    map_init(&index);
    errors->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct heap_finding finding = errors->findings[i];
        struct heap_finding key = finding;
        ttd_id *stacks[] = {&key.call.stack, &key.allocated.stack, &key.released.stack,
                            &key.conflict.stack};
        for (size_t k = 0; k < sizeof stacks / sizeof *stacks && status == TTD_OK; k++)
            status = find(context, *stacks[k], stacks[k]);
        if (status == TTD_OK)
            status = errors_merge_finding(errors, &index, &finding, &key);
    }
    map_free(&index);
    return status;
}

const char *heap_error_name(enum heap_error_kind kind)
{
    static const char *const names[HEAP_ERROR_KINDS] = {
        [HEAP_ERROR_HEAP_DAMAGE] = "heap-damage",
        [HEAP_ERROR_DOUBLE_FREE] = "double-free",
        [HEAP_ERROR_REALLOC_OF_FREED] = "realloc-of-freed",
        [HEAP_ERROR_INVALID_FREE] = "invalid-free",
        [HEAP_ERROR_INTERIOR_FREE] = "interior-free",
        [HEAP_ERROR_MISMATCHED_FREE] = "mismatched-free",
        [HEAP_ERROR_MISMATCHED_SIZE] = "mismatched-size",
        [HEAP_ERROR_WRONG_HEAP] = "wrong-heap",
        [HEAP_ERROR_USE_OF_DESTROYED_HEAP] = "use-of-destroyed-heap",
        [HEAP_ERROR_USE_OF_READ_ONLY_HEAP] = "use-of-read-only-heap",
        [HEAP_ERROR_UNBALANCED_LOCK] = "unbalanced-lock",
        [HEAP_ERROR_FAILED_CALL] = "failed-call",
        [HEAP_ERROR_DIED_IN_CALL] = "died-in-call",
        [HEAP_ERROR_TRACE_INCONSISTENCY] = "trace-inconsistency",
    };
    return names[kind];
}
