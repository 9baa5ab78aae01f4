/* SPDX-License-Identifier: MIT */
#include "travel/heap_cursor.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <ttdtrace/advanced.h>

#include "base/task.h"

/* Number of batches that the caller reads itself before a thread is started. Shorter ways are
 * replayed before the thread would have decoded anything. */
#define LONG_WAY 64

#define SLOTS HEAP_PREFETCH_BATCHES

uint32_t heap_prefetch_batches(void)
{
    return task_has_processor() ? HEAP_PREFETCH_BATCHES : 1;
}

/* Has the reader keep batches: one, or SLOTS if it was opened with as many. */
static void prefetcher_keep(struct heap_prefetcher *prefetcher, uint32_t batches)
{
    enum ttd_status status = ttd_reader_keep_batches(prefetcher->reader, batches);
    assert(status == TTD_OK);
    (void)status;
}

void heap_prefetcher_init(struct heap_prefetcher *prefetcher, struct ttd_reader *reader)
{
    memset(prefetcher, 0, sizeof *prefetcher);
    prefetcher->reader = reader;
    prefetcher_keep(prefetcher, 1);
    ring_init(&prefetcher->ring, SLOTS);
}

void heap_prefetcher_free(struct heap_prefetcher *prefetcher)
{
    if (!prefetcher->reader)
        return;
    heap_prefetcher_pause(prefetcher);
    free(prefetcher->slots);
    ring_destroy(&prefetcher->ring);
    prefetcher->reader = NULL;
}

static struct ttd_batch *prefetcher_slot(const struct heap_prefetcher *prefetcher, uint64_t number)
{
    return &prefetcher->slots[number % SLOTS];
}

/* ---- The thread ---- */

/*
 * A batch of events stays valid while the reader decodes SLOTS - 1 more, so one slot of the ring
 * stays empty. Any other batch is valid only until the reader is called again: the thread waits
 * until the caller has used it.
 */
static uint64_t cursor_tolerated(const struct ttd_batch *batch)
{
    return batch->kind == TTD_KIND_EVENTS ? SLOTS - 1 : 0;
}

static void *prefetcher_read_ahead(void *argument)
{
    struct heap_prefetcher *prefetcher = argument;
    bool go_on = true;
    while (go_on) {
        struct ttd_batch *slot = prefetcher_slot(prefetcher, prefetcher->ring.head);
        prefetcher->status = ttd_reader_next(prefetcher->reader, slot, &prefetcher->error);
        if (prefetcher->status != TTD_OK) {
            ring_end_filling(&prefetcher->ring);
            break;
        }
        go_on = ring_fill(&prefetcher->ring, cursor_tolerated(slot));
    }
    return NULL;
}

/* ---- The caller ---- */

/* Starts the thread if the way is long. Failures are ignored: the caller reads by itself then. */
static void prefetcher_start(struct heap_prefetcher *prefetcher)
{
    if (prefetcher->passed < LONG_WAY || prefetcher->is_off)
        return;
    prefetcher->passed = 0;
    if (ttd_reader_event_batches(prefetcher->reader) < SLOTS)
        return;
    if (!prefetcher->slots)
        prefetcher->slots = malloc(SLOTS * sizeof *prefetcher->slots);
    prefetcher_keep(prefetcher, SLOTS);
    prefetcher->is_running =
        prefetcher->slots &&
        pthread_create(&prefetcher->thread, NULL, prefetcher_read_ahead, prefetcher) == 0;
}

void heap_prefetcher_pause(struct heap_prefetcher *prefetcher)
{
    if (!prefetcher->is_running)
        return;
    ring_end_taking(&prefetcher->ring);
    pthread_join(prefetcher->thread, NULL);
    prefetcher->is_running = false;
    prefetcher_keep(prefetcher, 1);
    atomic_store(&prefetcher->ring.taker_ended, false);
}

void heap_prefetcher_forget(struct heap_prefetcher *prefetcher)
{
    heap_prefetcher_pause(prefetcher);
    ring_destroy(&prefetcher->ring);
    ring_init(&prefetcher->ring, SLOTS);
    prefetcher->passed = 0;
    prefetcher->holds = false;
}

/* Gives back the slot in use, and takes the next one. Returns NULL if no slot is filled and no
 * thread runs that would fill one. */
static const struct ttd_batch *prefetcher_take_slot(struct heap_prefetcher *prefetcher)
{
    struct ring *ring = &prefetcher->ring;
    if (prefetcher->holds)
        ring_empty(ring);
    prefetcher->holds = prefetcher->is_running ? ring_wait_filled(ring) : ring_count(ring) != 0;
    return prefetcher->holds ? prefetcher_slot(prefetcher, ring->tail) : NULL;
}

enum ttd_status heap_prefetcher_next(struct heap_prefetcher *prefetcher, struct ttd_batch *batch,
                                     struct ttd_error *error)
{
    _Atomic bool *has_ended = &prefetcher->ring.filler_ended;
    if (!prefetcher->is_running && !ring_count(&prefetcher->ring) && !atomic_load(has_ended))
        prefetcher_start(prefetcher);
    const struct ttd_batch *slot = prefetcher_take_slot(prefetcher);
    if (slot) {
        *batch = *slot;
        return TTD_OK;
    }
    heap_prefetcher_pause(prefetcher);
    if (!atomic_load(has_ended)) {
        enum ttd_status status = ttd_reader_next(prefetcher->reader, batch, error);
        /* A chunk that is returned without its events has been a long way. */
        prefetcher->passed += status == TTD_OK && !batch->count ? LONG_WAY : 1;
        return status;
    }
    atomic_store(has_ended, false);
    if (prefetcher->status != TTD_END)
        *error = prefetcher->error;
    return prefetcher->status;
}

enum ttd_status heap_cursor_init(struct heap_cursor *cursor, const struct heap_trace *trace,
                                 uint32_t kinds, const struct heap_observer *observer)
{
    *cursor = (struct heap_cursor){.reader = trace->reader,
                                   .kinds = kinds,
                                   .keyframes = trace->keyframes,
                                   .hook = trace->hook};
    heap_prefetcher_init(&cursor->ahead, trace->reader);
    enum ttd_status status = heap_replay_init(&cursor->replay, observer);
    if (status != TTD_OK)
        return status;
    cursor->ahead.is_off = trace->is_one_of_two || heap_replay_has_runs(&cursor->replay);
    return trace->is_checked ? ttd_reader_rewind(trace->reader, kinds)
                             : ttd_reader_rewind_checked(trace->reader, kinds);
}

void heap_cursor_free(struct heap_cursor *cursor)
{
    heap_prefetcher_free(&cursor->ahead);
    heap_replay_free(&cursor->replay);
}

/* Drops everything that depends on the present position, before the replay starts elsewhere. */
static void cursor_forget_state(struct heap_cursor *cursor)
{
    cursor->start = NULL;
    if (cursor->sums)
        heap_tables_clear(cursor->sums);
    heap_prefetcher_forget(&cursor->ahead);
    cursor->batch.count = 0;
    cursor->at_end = false;
}

static enum ttd_status cursor_start_over(struct heap_cursor *cursor)
{
    cursor_forget_state(cursor);
    enum ttd_status status = heap_replay_reset(&cursor->replay);
    return status == TTD_OK ? ttd_reader_rewind_checked(cursor->reader, cursor->kinds) : status;
}

/* Whether a batch can be the first one after a keyframe. Nothing vouches for the sidecar, so the
 * keyframe must name the very event that comes next in the trace. A loss made up by the reader
 * means that this event is damaged. */
static bool cursor_may_follow(const struct ttd_batch *batch, const struct heap_keyframe *keyframe)
{
    if (batch->kind == TTD_KIND_LOSSES)
        return !batch->synthetic;
    return batch->kind != TTD_KIND_EVENTS ||
           (batch->u.events[0].number == keyframe->next &&
            ttd_position_compare(ttd_event_position(&batch->u.events[0]), keyframe->position) >= 0);
}

static enum ttd_status cursor_call_hook(struct heap_cursor *cursor, const struct ttd_batch *batch)
{
    if (cursor->hook.batch)
        cursor->hook_status = cursor->hook.batch(cursor->hook.context, batch);
    return cursor->hook_status;
}

/* Reads until there are events to apply, or the trace ends. Unless `keyframe` is NULL, batches must
 * fit that keyframe. One that does not is kept from the hook: the replay starts over, and the hook
 * would see it twice. */
static enum ttd_status cursor_refill(struct heap_cursor *cursor,
                                     const struct heap_keyframe *keyframe, struct ttd_error *error)
{
    while (!cursor->batch.count && !cursor->at_end) {
        struct ttd_batch batch;
        enum ttd_status status = heap_prefetcher_next(&cursor->ahead, &batch, error);
        if (status != TTD_END && heap_is_over(status)) {
            cursor->truncated = true;
            cursor->error = *error;
        }
        if (heap_is_over(status)) {
            cursor->at_end = true;
            return TTD_OK;
        }
        if (status == TTD_OK && keyframe && !cursor_may_follow(&batch, keyframe))
            status = TTD_ERROR_CORRUPT;
        if (status == TTD_OK)
            status = cursor_call_hook(cursor, &batch);
        if (status == TTD_OK)
            status = heap_parents_add(&cursor->replay.live.parents, &batch);
        if (status != TTD_OK)
            return status;
        if (batch.kind == TTD_KIND_EVENTS)
            cursor->batch = batch;
    }
    return TTD_OK;
}

/* Returns the keyframe that is nearer to `target` than the cursor's position; NULL if there is
 * none. */
static const struct heap_keyframe *cursor_find_keyframe(const struct heap_cursor *cursor,
                                                        struct ttd_position target, bool goes_back)
{
    if (!cursor->keyframes)
        return NULL;
    const struct heap_keyframe *keyframe =
        heap_keyframes_before(cursor->keyframes, target, cursor->sums != NULL);
    uint64_t replayed = goes_back ? 0 : cursor->replay.counts.events;
    /* Reading a block costs about as much as replaying an event. */
    return keyframe && keyframe->counts.events > replayed + keyframe->blocks ? keyframe : NULL;
}

/* Reads the parents of all heaps, because a jump passes over the records of parents that stand
 * before the keyframe, and keyframes do not have them. */
static enum ttd_status cursor_read_parents(struct heap_cursor *cursor, struct ttd_error *error)
{
    enum ttd_status status = TTD_OK;
    if (!cursor->has_parents)
        status = ttd_reader_rewind(cursor->reader, TTD_KIND_BIT(TTD_KIND_HEAP_PARENTS));
    while (status == TTD_OK && !cursor->has_parents) {
        struct ttd_batch batch;
        status = ttd_reader_next(cursor->reader, &batch, error);
        cursor->has_parents = heap_is_over(status);
        if (status == TTD_OK)
            status = heap_parents_add(&cursor->replay.live.parents, &batch);
    }
    return cursor->has_parents ? TTD_OK : status;
}

/* Continues at a keyframe: restores its blocks, then reads from the event that comes next. A
 * keyframe with no events behind it proves nothing about itself, hence the last line. */
static enum ttd_status cursor_jump(struct heap_cursor *cursor, const struct heap_keyframe *keyframe,
                                   struct ttd_error *error)
{
    cursor_forget_state(cursor);
    enum ttd_status status = cursor_read_parents(cursor, error);
    if (status == TTD_OK)
        status = heap_keyframes_restore(cursor->keyframes, keyframe, &cursor->replay, cursor->sums);
    cursor->start = keyframe;
    if (status == TTD_OK)
        status = ttd_reader_rewind(cursor->reader, cursor->kinds);
    if (status == TTD_OK)
        status = ttd_reader_seek_event(cursor->reader, keyframe->next, error);
    if (status == TTD_OK)
        status = cursor_refill(cursor, keyframe, error);
    return status == TTD_OK && !cursor->batch.count ? TTD_ERROR_CORRUPT : status;
}

static bool cursor_is_in_summary(const struct heap_cursor *cursor)
{
    return cursor->start && cursor->start->is_summary;
}

/* Moves the cursor to a position at or before `target`; replaying from there reaches it. */
static enum ttd_status cursor_approach(struct heap_cursor *cursor, struct ttd_position target,
                                       struct ttd_error *error)
{
    bool goes_back =
        ttd_position_compare(target, cursor->target) < 0 ||
        (cursor_is_in_summary(cursor) && ttd_position_compare(target, cursor->start->end) >= 0);
    const struct heap_keyframe *keyframe = cursor_find_keyframe(cursor, target, goes_back);
    if (!keyframe)
        return goes_back ? cursor_start_over(cursor) : TTD_OK;
    enum ttd_status status = cursor_jump(cursor, keyframe, error);
    if (status == TTD_OK || cursor->hook_status != TTD_OK)
        return status;
    /* The index is damaged, or needs more memory than there is. The replay works without it. */
    cursor->keyframes = NULL;
    return cursor_start_over(cursor);
}

/* Whether the replay met the destruction of a heap within a summary: then the index is wrong,
 * because a summary spans none. */
static bool cursor_is_refuted(const struct heap_cursor *cursor)
{
    return cursor_is_in_summary(cursor) && cursor->replay.counts.actions[TTD_ACTION_DESTROY] !=
                                               cursor->start->counts.actions[TTD_ACTION_DESTROY];
}

enum ttd_status heap_cursor_seek(struct heap_cursor *cursor, struct ttd_position target,
                                 struct ttd_error *error)
{
    enum ttd_status status = cursor_approach(cursor, target, error);
    cursor->target = target;
    while (status == TTD_OK) {
        status = cursor_refill(cursor, NULL, error);
        if (status != TTD_OK || !cursor->batch.count)
            break;
        size_t applied = 0;
        status = heap_replay_apply(&cursor->replay, &cursor->batch, target, &applied);
        cursor->batch.u.events += applied;
        cursor->batch.count -= applied;
        if (status == TTD_OK && cursor_is_refuted(cursor)) {
            cursor->keyframes = NULL;
            status = cursor_start_over(cursor);
        } else if (cursor->batch.count) {
            break;
        }
    }
    heap_prefetcher_pause(&cursor->ahead);
    return status == TTD_OK ? heap_replay_settle(&cursor->replay, target) : status;
}
