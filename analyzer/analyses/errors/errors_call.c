/* SPDX-License-Identifier: MIT */
/* Judges each call by the state just before it. */
#include <ttdtrace/model.h>

#include "analyses/errors/errors_parts.h"
#include "heap/heap_live.h"

/* The effect and family of each function. */
static const struct errors_api {
    uint8_t effect, family;
} errors_apis[UINT8_MAX + 1] = {
#define API(name, value, text, symbol, template, effect, family, ...)                              \
    [value] = {TTD_EFFECT_##effect, TTD_FAMILY_##family},
    TTD_APIS(API)};

/** Whether the function `release` (enum ttd_api) may release a block that `allocation` returned;
 * true if either function is unknown, or about a custom heap. */
static bool errors_call_heap_api_matches(uint8_t allocation, uint8_t release)
{
    unsigned a = errors_apis[allocation].family, b = errors_apis[release].family;
    return a == b || a == TTD_FAMILY_NONE || b == TTD_FAMILY_NONE || a == TTD_FAMILY_CUSTOM ||
           b == TTD_FAMILY_CUSTOM;
}

/** Whether a function takes the size that was asked for, of the block that it releases, as an
 * argument. */
static bool errors_call_heap_release_is_sized(uint8_t release)
{
    return errors_apis[release].effect == TTD_EFFECT_FREE_SIZED;
}

/* Blocks that may be looked through for addresses inside them: at first, and for each call. */
#define SEARCH_FIRST    (UINT64_C(1) << 28)
#define SEARCH_PER_CALL 16

struct heap_finding heap_finding_of(enum heap_error_kind kind, const struct ttd_event *event)
{
    bool allocates = event->action == TTD_ACTION_ALLOC;
    return (struct heap_finding){.kind = kind,
                                 .call = heap_call_of_event(event),
                                 .address = allocates ? event->address : event->base_address,
                                 .size = event->size,
                                 .heap = event->heap,
                                 .allocated = heap_call_none(),
                                 .released = heap_call_none(),
                                 .conflict = heap_call_none(),
                                 .is_certain = true};
}

/* A call that may be the last one of its thread is a finding of its own: its signal sets it apart
 * from others with the same stacks. */
enum ttd_status heap_error_finder_add(struct error_finder *finder,
                                      const struct heap_finding *finding)
{
    const struct heap_call *call = &finding->call;
    if (finder->islands && !heap_islands_want(finder->islands, call->thread, call->position))
        return TTD_OK;
    struct heap_finding completed = *finding;
    completed.signal = finding->call.is_unfinished ? finder->last_calls.signal : 0;
    return heap_errors_add(finder->errors, &completed);
}

void heap_finding_set_block(struct heap_finding *finding, const struct heap_block *block)
{
    finding->block_address = block->address;
    finding->block_size = block->size;
    finding->block_heap = block->heap;
    finding->allocated = heap_call_of_block(block);
}

/* Whether a gap lies between a position and a call: the facts known at the position need not hold
 * any more. */
static bool errors_has_gap(struct error_finder *finder, struct ttd_position since,
                           const struct ttd_event *event)
{
    return heap_is_unknown(since, heap_gaps_end(&finder->gaps, ttd_event_position(event)));
}

/* Remembers a release of an otherwise unknown block. */
static enum ttd_status errors_call_release_unseen(struct error_finder *finder,
                                                  const struct ttd_event *event)
{
    if (!event->result && (event->action != TTD_ACTION_FREE || ttd_event_returned(event)))
        return TTD_OK;
    struct heap_freed_block *freed =
        heap_freed_add(&finder->freed, event->base_address, event->heap);
    freed->size = 0;
    freed->allocated = heap_call_none();
    freed->released = heap_call_of_event(event);
    return TTD_OK;
}

/* Whether a call fits the live block that is given to it. Sets `kind` if not. */
static inline bool errors_call_fits(const struct ttd_event *event, const struct heap_block *block,
                                    enum heap_error_kind *kind)
{
    /* The size of a block from before the recording is the usable one. */
    bool tells_size = event->action == TTD_ACTION_FREE &&
                      errors_call_heap_release_is_sized(event->api) && block->api != TTD_API_OTHER;
    if (!errors_call_heap_api_matches(block->api, event->api))
        *kind = HEAP_ERROR_MISMATCHED_FREE;
    else if (tells_size && event->size != block->size)
        *kind = HEAP_ERROR_MISMATCHED_SIZE;
    else
        return true;
    return false;
}

/* A live block is given to the call: does the call fit it? */
static enum ttd_status errors_call_check_known(struct error_finder *finder,
                                               const struct ttd_event *event,
                                               const struct heap_block *block, bool *is_error)
{
    enum heap_error_kind kind;
    if (errors_call_fits(event, block, &kind))
        return TTD_OK;
    if (errors_has_gap(finder, block->allocated, event)) {
        finder->errors->gap_releases++;
        return TTD_OK;
    }
    struct heap_finding finding = heap_finding_of(kind, event);
    heap_finding_set_block(&finding, block);
    *is_error = true;
    return heap_error_finder_add(finder, &finding);
}

/* Whether `count` more blocks may be looked through. */
static bool errors_call_may_search(struct error_finder *finder, uint64_t count)
{
    uint64_t allowed = SEARCH_FIRST + SEARCH_PER_CALL * finder->replay->counts.events;
    if (finder->searched > allowed) {
        finder->errors->unexamined++;
        return false;
    }
    finder->searched += count;
    return true;
}

/* Whether a block of another heap than the call's begins at the address. */
static bool errors_call_is_of_other_heap(struct error_finder *finder, struct heap_finding *finding)
{
    const struct heap_block *block =
        heap_live_find(&finder->replay->live, finding->address, TTD_NONE);
    if (!block)
        return false;
    finding->kind = HEAP_ERROR_WRONG_HEAP;
    heap_finding_set_block(finding, block);
    return true;
}

static void errors_call_set_released(struct heap_finding *finding,
                                     const struct heap_freed_block *freed)
{
    finding->block_address = freed->address;
    finding->block_size = freed->size;
    finding->block_heap = freed->heap;
    finding->allocated = freed->allocated;
    finding->released = freed->released;
}

/* Whether the block of another heap than the call's that began at the address was released. */
static bool errors_call_was_of_other_heap(struct error_finder *finder,
                                          const struct ttd_event *event,
                                          struct heap_finding *finding)
{
    const struct heap_freed_block *freed =
        heap_freed_find(&finder->freed, finding->address, TTD_NONE);
    if (!freed)
        return false;
    bool reallocates = event->action == TTD_ACTION_REALLOC;
    finding->kind = reallocates ? HEAP_ERROR_REALLOC_OF_FREED : HEAP_ERROR_DOUBLE_FREE;
    errors_call_set_released(finding, freed);
    return true;
}

/* Whether an allocator can have returned an address: not in the page of NULL, for one. */
static bool errors_may_be_block(const struct error_finder *finder, uint64_t address)
{
    enum { PAGE = 4096 };
    return !(address & finder->misaligned) && address >= PAGE;
}

/* Finds the live or released block around an address where no block begins. */
static void errors_call_find_enclosing(struct error_finder *finder, struct heap_finding *finding)
{
    const struct heap_block *block = heap_live_containing(&finder->replay->live, finding->address);
    if (block) {
        finding->kind = HEAP_ERROR_INTERIOR_FREE;
        heap_finding_set_block(finding, block);
        return;
    }
    const struct heap_freed_block *freed = heap_freed_containing(&finder->freed, finding->address);
    if (freed)
        errors_call_set_released(finding, freed);
}

/* No block of the call's heap begins at the address, and none was released there lately. */
static enum ttd_status errors_call_check_unknown(struct error_finder *finder,
                                                 const struct ttd_event *event, bool *is_error)
{
    struct heap_finding finding = heap_finding_of(HEAP_ERROR_INVALID_FREE, event);
    bool is_known = errors_call_is_of_other_heap(finder, &finding) ||
                    errors_call_was_of_other_heap(finder, event, &finding);
    bool searched = is_known || errors_call_may_search(finder, finder->replay->live.block_count +
                                                                   finder->freed.capacity);
    if (searched && !is_known)
        errors_call_find_enclosing(finder, &finding);
    bool is_interior = finding.kind == HEAP_ERROR_INTERIOR_FREE;
    struct ttd_position since = is_interior ? finding.allocated.position : ttd_position_min();
    /* Blocks of a heap of the program's own may lie anywhere. */
    bool is_possible = errors_apis[event->api].family == TTD_FAMILY_CUSTOM ||
                       errors_may_be_block(finder, event->base_address);
    if (is_possible && errors_has_gap(finder, since, event)) {
        finder->errors->gap_releases++;
        return errors_call_release_unseen(finder, event);
    }
    if (!is_interior && is_possible && finder->has_early_blocks) {
        finder->errors->early_releases++;
        return errors_call_release_unseen(finder, event);
    }
    finding.is_certain = searched && (is_interior || !finder->freed.forgotten);
    *is_error = true;
    return heap_error_finder_add(finder, &finding);
}

/* Checks a release in the order of certainty: the block is live; it was released not long ago;
 * or nothing is known of the address. Releasing NULL is allowed. */
static enum ttd_status errors_call_check_release(struct error_finder *finder,
                                                 const struct ttd_event *event, bool *is_error)
{
    if (!event->base_address)
        return TTD_OK;
    const struct heap_block *block = heap_replay_given(finder->replay, event);
    if (block)
        return errors_call_check_known(finder, event, block, is_error);
    struct heap_freed_block *freed =
        heap_freed_find(&finder->freed, event->base_address, event->heap);
    if (!freed)
        return errors_call_check_unknown(finder, event, is_error);
    if (errors_has_gap(finder, freed->released.position, event)) {
        finder->errors->gap_releases++;
        freed->released = heap_call_of_event(event);
        freed->allocated = heap_call_none();
        return TTD_OK;
    }
    bool reallocates = event->action == TTD_ACTION_REALLOC;
    struct heap_finding finding =
        heap_finding_of(reallocates ? HEAP_ERROR_REALLOC_OF_FREED : HEAP_ERROR_DOUBLE_FREE, event);
    errors_call_set_released(&finding, freed);
    finding.block_heap = event->heap;
    /* No block may have been there the first time either. */
    finding.is_certain = heap_call_is_known(&freed->allocated);
    /* A third release conflicts with the second one, the nearer one to the mistake. */
    freed->released = finding.call;
    *is_error = true;
    return heap_error_finder_add(finder, &finding);
}

/* Destroyed and read-only heaps. A call that was under way when that happened is not to blame. */
static enum ttd_status errors_call_check_heap(struct error_finder *finder,
                                              const struct ttd_event *event, bool *is_error)
{
    const struct heap_status *heap_status = heap_status_table_of(&finder->statuses, event->heap);
    if (!heap_status || event->action == TTD_ACTION_CREATE)
        return TTD_OK;
    enum heap_error_kind kind = HEAP_ERROR_USE_OF_DESTROYED_HEAP;
    const struct heap_call *conflict = &heap_status->destroyed;
    bool changes = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC ||
                   event->action == TTD_ACTION_FREE;
    if (!heap_call_is_known(conflict) && changes) {
        kind = HEAP_ERROR_USE_OF_READ_ONLY_HEAP;
        conflict = &heap_status->read_only;
    }
    if (!heap_call_is_known(conflict) ||
        ttd_position_compare(event->time_start, conflict->position) <= 0)
        return TTD_OK;
    struct heap_finding finding = heap_finding_of(kind, event);
    finding.conflict = *conflict;
    *is_error = true;
    return heap_error_finder_add(finder, &finding);
}

static enum ttd_status errors_call_check_lock(struct error_finder *finder,
                                              const struct ttd_event *event, bool *is_error)
{
    if (!event->result)
        return TTD_OK;
    if (event->action == TTD_ACTION_LOCK)
        return heap_status_table_lock(&finder->statuses, event);
    if (heap_status_table_unlock(&finder->statuses, event))
        return TTD_OK;
    struct heap_finding finding = heap_finding_of(HEAP_ERROR_UNBALANCED_LOCK, event);
    /* Most often another thread holds the lock: its call explains the finding. */
    const struct heap_hold *hold = heap_status_table_held(&finder->statuses, event->heap);
    if (hold)
        finding.conflict = hold->locked;
    *is_error = true;
    return heap_error_finder_add(finder, &finding);
}

static enum ttd_status errors_check_action(struct error_finder *finder,
                                           const struct ttd_event *event, bool *is_error)
{
    switch (event->action) {
    case TTD_ACTION_FREE:
    case TTD_ACTION_REALLOC:
        return errors_call_check_release(finder, event, is_error);
    case TTD_ACTION_LOCK:
    case TTD_ACTION_UNLOCK:
        return errors_call_check_lock(finder, event, is_error);
    case TTD_ACTION_CREATE:
    case TTD_ACTION_PROTECT:
    case TTD_ACTION_DESTROY:
        if (!event->result)
            return TTD_OK;
        return heap_status_table_change(&finder->statuses, event);
    default:
        return TTD_OK;
    }
}

/* Nothing to give for no bytes is no failure, nor is a block that cannot grow where it is. */
static bool errors_call_is_failure(const struct ttd_event *event)
{
    if (errors_apis[event->api].effect == TTD_EFFECT_RESIZE)
        return false;
    bool allocates = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC;
    return ttd_event_returned(event) && !event->result && !(allocates && !event->size);
}

/* The process may have died in this call. */
static void add_last_call(struct error_finder *finder, const struct ttd_event *event)
{
    struct heap_finding finding = heap_finding_of(HEAP_ERROR_DIED_IN_CALL, event);
    const struct heap_block *block =
        heap_live_find(&finder->replay->live, event->base_address, event->heap);
    if (block)
        heap_finding_set_block(&finding, block);
    bool searches =
        finding.address && errors_call_may_search(finder, finder->replay->live.block_count);
    heap_last_calls_add(&finder->last_calls, &finding, searches ? &finder->replay->live : NULL);
}

/* Notes a reallocation that never returned: the process died in it, or a jump left it. */
static enum ttd_status errors_call_note_unfinished(struct error_finder *finder,
                                                   const struct ttd_event *event)
{
    if (event->action != TTD_ACTION_REALLOC || ttd_event_returned(event) ||
        !heap_live_find(&finder->replay->live, event->base_address, event->heap))
        return TTD_OK;
    return map_set(&finder->unfinished, event->base_address, event->heap, 1);
}

enum ttd_status heap_error_finder_screen_call(void *context, const struct ttd_event *event)
{
    struct error_finder *finder = context;
    enum heap_error_kind kind;
    const struct heap_block *block =
        event->base_address ? heap_replay_given(finder->replay, event) : NULL;
    if (block && !errors_call_fits(event, block, &kind))
        finder->errors->must_search = true;
    return TTD_OK;
}

enum ttd_status heap_error_finder_screen_free(void *context, const struct ttd_event *event,
                                              const struct heap_block *block)
{
    struct error_finder *finder = context;
    enum heap_error_kind kind;
    /* Nearly all: the first test spares them the others. */
    bool is_usual = errors_apis[block->api].family == errors_apis[event->api].family &&
                    !errors_call_heap_release_is_sized(event->api);
    if (!is_usual && !errors_call_fits(event, block, &kind))
        finder->errors->must_search = true;
    return TTD_OK;
}

bool heap_error_finder_must_search(const struct error_finder *finder)
{
    const struct heap_counts *counts = &finder->replay->counts;
    uint64_t plain = counts->actions[TTD_ACTION_ALLOC] + counts->actions[TTD_ACTION_FREE] +
                     counts->actions[TTD_ACTION_REALLOC];
    return finder->errors->must_search || finder->errors->calls || counts->events != plain ||
           counts->failed || counts->unfinished || counts->unknown_releases || counts->overlaps;
}

enum ttd_status heap_error_finder_see_call(void *context, const struct ttd_event *event)
{
    struct error_finder *finder = context;
    bool is_error = false;
    /* An allocation with nothing to be checked: no heap was destroyed or made read-only, and no
     * call can be the last one of its thread. */
    if (event->action == TTD_ACTION_ALLOC && event->result && !finder->statuses.count &&
        !finder->last_calls.signal)
        return TTD_OK;
    if (heap_last_calls_see(&finder->last_calls, event))
        add_last_call(finder, event);
    enum ttd_status status = errors_call_note_unfinished(finder, event);
    if (status == TTD_OK)
        status = errors_call_check_heap(finder, event, &is_error);
    if (status == TTD_OK && !is_error)
        status = errors_check_action(finder, event, &is_error);
    /* One finding for a call: a failure is only the consequence of the error. */
    if (status != TTD_OK || is_error || !errors_call_is_failure(event))
        return status;
    struct heap_finding finding = heap_finding_of(HEAP_ERROR_FAILED_CALL, event);
    return heap_error_finder_add(finder, &finding);
}
