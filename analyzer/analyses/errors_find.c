/* SPDX-License-Identifier: MIT */
/* Judges each call by the state just before it. */
#include <string.h>

#include "analyses/errors.h"
#include "analyses/last_calls.h"
#include "heap/locate.h"
#include "analyses/api_match.h"

/* Blocks that may be looked through for addresses inside them: at first, and for each call. */
#define SEARCH_FIRST    (UINT64_C(1) << 28)
#define SEARCH_PER_CALL 16

struct error_finder {
    struct heap_errors *errors;
    const struct heap_arrival *arrival;
    const struct heap_live *live;
    struct heap_freed freed;
    struct heap_status_table conditions;
    /** The process had blocks before the trace began; addresses that no block can have. */
    bool has_early_blocks;
    uint64_t misaligned;
    uint64_t searched;
    struct heap_last_calls last;
};

static struct heap_finding finding_of(enum heap_error_kind kind, const struct ttd_event *event)
{
    bool allocates = event->action == TTD_ACTION_ALLOC;
    return (struct heap_finding){.kind = kind,
                                 .place = heap_call_of_event(event),
                                 .address = allocates ? event->address : event->base_address,
                                 .size = event->size,
                                 .heap = event->heap,
                                 .allocated = heap_call_none(),
                                 .released = heap_call_none(),
                                 .conflict = heap_call_none(),
                                 .is_certain = true};
}

/* A call that may be the last one of its thread is a finding of its own. */
static enum ttd_status add(struct error_finder *finder, const struct heap_finding *finding)
{
    struct heap_finding added = *finding;
    added.signal = finding->place.is_unfinished ? finder->last.signal : 0;
    return heap_errors_add(finder->errors, &added);
}

static void set_block(struct heap_finding *finding, const struct heap_block *block)
{
    finding->block_address = block->address;
    finding->block_size = block->size;
    finding->block_heap = block->heap;
    finding->allocated = heap_call_of_block(block);
}

/* A live block is given to the call: does the call fit it? */
static enum ttd_status check_known(struct error_finder *finder, const struct ttd_event *event,
                                   const struct heap_block *block, bool *found)
{
    enum heap_error_kind kind;
    bool tells_size = event->action == TTD_ACTION_FREE && heap_release_is_sized(event->api);
    if (block->heap != event->heap)
        kind = HEAP_ERROR_WRONG_HEAP;
    else if (!heap_api_matches(block->api, event->api))
        kind = HEAP_ERROR_MISMATCHED_FREE;
    else if (tells_size && event->size != block->size)
        kind = HEAP_ERROR_MISMATCHED_SIZE;
    else
        return TTD_OK;
    struct heap_finding finding = finding_of(kind, event);
    set_block(&finding, block);
    *found = true;
    return add(finder, &finding);
}

/* Whether `count` more blocks may be looked through. */
static bool may_search(struct error_finder *finder, uint64_t count)
{
    uint64_t allowed =
        SEARCH_FIRST + SEARCH_PER_CALL * finder->arrival->cursor.replay.counts.events;
    if (finder->searched > allowed) {
        finder->errors->unexamined++;
        return false;
    }
    finder->searched += count;
    return true;
}

/* Finds the live or released block that an address lies in, at which no block begins. */
static void find_enclosing(struct error_finder *finder, struct heap_finding *finding)
{
    const struct heap_block *block = heap_live_containing(finder->live, finding->address);
    if (block) {
        finding->kind = HEAP_ERROR_INTERIOR_FREE;
        set_block(finding, block);
        return;
    }
    const struct heap_freed_block *freed = heap_freed_containing(&finder->freed, finding->address);
    if (freed) {
        finding->block_address = freed->address;
        finding->block_size = freed->size;
        finding->block_heap = finding->heap;
        finding->allocated = freed->allocated;
        finding->released = freed->released;
    }
}

/* No block begins at the address, and none was released there lately. */
static enum ttd_status check_unknown(struct error_finder *finder, const struct ttd_event *event,
                                     bool *found)
{
    struct heap_finding finding = finding_of(HEAP_ERROR_INVALID_FREE, event);
    bool searched = may_search(finder, finder->live->block_count + finder->freed.capacity);
    if (searched)
        find_enclosing(finder, &finding);
    bool is_interior = finding.kind == HEAP_ERROR_INTERIOR_FREE;
    if (!is_interior && finder->has_early_blocks && !(event->base_address & finder->misaligned)) {
        finder->errors->early_releases++;
        struct heap_freed_block freed = {.address = event->base_address,
                                         .allocated = heap_call_none(),
                                         .released = finding.place};
        if (event->result || (event->action == TTD_ACTION_FREE && !ttd_event_returned(event)))
            heap_freed_add(&finder->freed, &freed);
        return TTD_OK;
    }
    finding.is_certain = searched && (is_interior || !finder->freed.forgotten);
    *found = true;
    return add(finder, &finding);
}

static enum ttd_status check_release(struct error_finder *finder, const struct ttd_event *event,
                                     bool *found)
{
    if (!event->base_address)
        return TTD_OK;
    const struct heap_block *block = heap_live_find(finder->live, event->base_address);
    if (block)
        return check_known(finder, event, block, found);
    struct heap_freed_block *freed = heap_freed_find(&finder->freed, event->base_address);
    if (!freed)
        return check_unknown(finder, event, found);
    bool reallocates = event->action == TTD_ACTION_REALLOC;
    struct heap_finding finding =
        finding_of(reallocates ? HEAP_ERROR_REALLOC_OF_FREED : HEAP_ERROR_DOUBLE_FREE, event);
    finding.block_address = freed->address;
    finding.block_size = freed->size;
    finding.block_heap = event->heap;
    finding.allocated = freed->allocated;
    finding.released = freed->released;
    freed->released = finding.place;
    *found = true;
    return add(finder, &finding);
}

/* Destroyed and read-only heaps. A call that was under way when that happened is not to blame. */
static enum ttd_status check_heap(struct error_finder *finder, const struct ttd_event *event,
                                  bool *found)
{
    const struct heap_status *condition = heap_status_table_of(&finder->conditions, event->heap);
    if (!condition || event->action == TTD_ACTION_CREATE)
        return TTD_OK;
    enum heap_error_kind kind = HEAP_ERROR_USE_OF_DESTROYED_HEAP;
    const struct heap_call *conflict = &condition->destroyed;
    bool changes = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC ||
                   event->action == TTD_ACTION_FREE;
    if (!heap_call_is_known(conflict) && changes) {
        kind = HEAP_ERROR_USE_OF_READ_ONLY_HEAP;
        conflict = &condition->read_only;
    }
    if (!heap_call_is_known(conflict) ||
        ttd_position_compare(event->time_start, conflict->position) <= 0)
        return TTD_OK;
    struct heap_finding finding = finding_of(kind, event);
    finding.conflict = *conflict;
    *found = true;
    return add(finder, &finding);
}

static enum ttd_status check_lock(struct error_finder *finder, const struct ttd_event *event,
                                  bool *found)
{
    if (!event->result)
        return TTD_OK;
    if (event->action == TTD_ACTION_LOCK)
        return heap_status_table_lock(&finder->conditions, event);
    if (heap_status_table_unlock(&finder->conditions, event))
        return TTD_OK;
    struct heap_finding finding = finding_of(HEAP_ERROR_UNBALANCED_LOCK, event);
    const struct heap_hold *hold = heap_status_table_held(&finder->conditions, event->heap);
    if (hold)
        finding.conflict = hold->locked;
    *found = true;
    return add(finder, &finding);
}

static enum ttd_status check_action(struct error_finder *finder, const struct ttd_event *event,
                                    bool *found)
{
    switch (event->action) {
    case TTD_ACTION_FREE:
    case TTD_ACTION_REALLOC:
        return check_release(finder, event, found);
    case TTD_ACTION_LOCK:
    case TTD_ACTION_UNLOCK:
        return check_lock(finder, event, found);
    case TTD_ACTION_CREATE:
    case TTD_ACTION_PROTECT:
    case TTD_ACTION_DESTROY:
        if (!event->result)
            return TTD_OK;
        return heap_status_table_change(&finder->conditions, event);
    default:
        return TTD_OK;
    }
}

/* Nothing to give for no bytes is no failure. */
static bool is_failure(const struct ttd_event *event)
{
    bool allocates = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC;
    return ttd_event_returned(event) && !event->result && !(allocates && !event->size);
}

/* The call may be the one in which the process died. */
static void add_last_call(struct error_finder *finder, const struct ttd_event *event)
{
    struct heap_finding finding = finding_of(HEAP_ERROR_DIED_IN_CALL, event);
    const struct heap_block *block = heap_live_find(finder->live, event->base_address);
    if (block)
        set_block(&finding, block);
    bool searches = finding.address && may_search(finder, finder->live->block_count);
    heap_last_calls_add(&finder->last, &finding, searches ? finder->live : NULL);
}

static enum ttd_status see_call(void *context, const struct ttd_event *event)
{
    struct error_finder *finder = context;
    bool found = false;
    if (heap_last_calls_see(&finder->last, event))
        add_last_call(finder, event);
    enum ttd_status status = check_heap(finder, event, &found);
    if (status == TTD_OK && !found)
        status = check_action(finder, event, &found);
    if (status != TTD_OK || found || !is_failure(event))
        return status;
    struct heap_finding finding = finding_of(HEAP_ERROR_FAILED_CALL, event);
    return add(finder, &finding);
}

static enum ttd_status overlap(struct error_finder *finder, const struct heap_effect *effect)
{
    struct heap_finding finding = {.kind = HEAP_ERROR_TRACE_INCONSISTENCY,
                                   .place = heap_call_of_effect(effect),
                                   .address = effect->address,
                                   .heap = effect->heap,
                                   .released = heap_call_none(),
                                   .conflict = heap_call_none(),
                                   .is_certain = true};
    set_block(&finding, effect->block);
    return add(finder, &finding);
}

static enum ttd_status see_effect(void *context, const struct heap_effect *effect)
{
    struct error_finder *finder = context;
    if (effect->kind == HEAP_ACQUIRED)
        heap_freed_remove(&finder->freed, effect->address);
    if (effect->kind == HEAP_RELEASED) {
        struct heap_freed_block freed = {.address = effect->address,
                                         .size = effect->block->size,
                                         .allocated = heap_call_of_block(effect->block),
                                         .released = heap_call_of_effect(effect)};
        heap_freed_add(&finder->freed, &freed);
    }
    return effect->kind == HEAP_OVERLAPPED ? overlap(finder, effect) : TTD_OK;
}

/* Locks that were held when the program exited. */
static enum ttd_status find_held(struct error_finder *finder, struct ttd_reader *reader)
{
    struct ttd_end end;
    enum ttd_status status = TTD_OK;
    if (ttd_reader_end(reader, &end) != TTD_OK || end.reason != TTD_END_REASON_EXITED)
        return TTD_OK;
    for (size_t i = 0; i < finder->conditions.hold_count && status == TTD_OK; i++) {
        const struct heap_hold *hold = &finder->conditions.holds[i];
        if (!heap_hold_is_active(&finder->conditions, hold))
            continue;
        struct heap_finding finding = {.kind = HEAP_ERROR_UNBALANCED_LOCK,
                                       .place = hold->locked,
                                       .heap = hold->heap,
                                       .allocated = heap_call_none(),
                                       .released = heap_call_none(),
                                       .conflict = heap_call_none(),
                                       .is_certain = true};
        status = add(finder, &finding);
    }
    return status;
}

/* A finding rests on what happened since the block was allocated or released, or on everything. */
static void judge(struct heap_errors *errors)
{
    for (size_t i = 0; i < errors->count; i++) {
        struct heap_finding *finding = &errors->findings[i];
        struct ttd_position from = ttd_position_min();
        if (heap_call_is_known(&finding->allocated))
            from = finding->allocated.position;
        if (heap_call_is_known(&finding->released))
            from = finding->released.position;
        if (heap_call_is_known(&finding->conflict))
            from = finding->conflict.position;
        /* The return of a last call may be among the events that are missing. */
        struct ttd_position to = finding->signal ? ttd_position_max() : finding->place.position;
        bool rests_on_itself = finding->kind == HEAP_ERROR_FAILED_CALL;
        if (!rests_on_itself && heap_losses_between(&errors->outcome.losses, from, to))
            finding->is_certain = false;
    }
}

bool heap_has_early_blocks(const struct ttd_reader *reader)
{
    return ttd_reader_trace(reader)->flags & (TTD_TRACE_INHERITS | TTD_TRACE_ATTACHED);
}

static enum ttd_status begin(struct error_finder *finder, struct ttd_reader *reader,
                             const struct heap_errors_options *options)
{
    const struct ttd_trace *trace = ttd_reader_trace(reader);
    memset(finder->errors, 0, sizeof *finder->errors);
    map_init(&finder->errors->index);
    finder->live = &finder->arrival->cursor.replay.live;
    finder->has_early_blocks = heap_has_early_blocks(reader);
    finder->misaligned = trace->pointer_size ? trace->pointer_size - 1 : 0;
    heap_status_table_init(&finder->conditions);
    heap_last_calls_begin(&finder->last, reader);
    return heap_freed_init(&finder->freed, options->remembered);
}

/* What can be said only when the whole trace was seen. */
static enum ttd_status finish(struct error_finder *finder, struct ttd_reader *reader)
{
    enum ttd_status status = find_held(finder, reader);
    if (status == TTD_OK)
        status = heap_last_calls_report(&finder->last, finder->errors);
    finder->errors->forgotten = finder->freed.forgotten;
    judge(finder->errors);
    return status;
}

enum ttd_status heap_errors_find(const struct heap_trace *trace,
                                 const struct heap_errors_options *options,
                                 struct heap_errors *errors, struct ttd_error *error)
{
    struct heap_arrival arrival = {.has_losses = false};
    struct error_finder finder = {.errors = errors, .arrival = &arrival};
    struct heap_observer observer = {.context = &finder, .effect = see_effect, .call = see_call};
    struct heap_route route = {.to = ttd_position_max(), .observer = &observer};
    enum ttd_status status = begin(&finder, trace->reader, options);
    if (status == TTD_OK)
        status = heap_replay_to(&arrival, trace, &route, error);
    heap_arrival_end(&arrival, &errors->outcome);
    if (status == TTD_OK)
        status = finish(&finder, trace->reader);
    heap_freed_free(&finder.freed);
    heap_status_table_free(&finder.conditions);
    if (status != TTD_OK)
        heap_errors_free(errors);
    return status;
}
