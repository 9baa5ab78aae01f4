/* SPDX-License-Identifier: MIT */
#include "travel/pass.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Tells of the calls from `*next` up to `end`. */
static inline enum ttd_status pass_tell_calls(const struct heap_notes *notes,
                                              const struct heap_observer *observer, size_t *next,
                                              size_t end)
{
    if (*next >= end || !observer->call)
        return TTD_OK;
    const struct ttd_event *event = &notes->calls[*next];
    const struct ttd_event *behind = &notes->calls[end];
    unsigned unwanted = observer->unwanted_calls;
    enum ttd_status status = TTD_OK;
    *next = end;
    for (; event < behind && status == TTD_OK; event++) {
        if (!(unwanted & HEAP_CALL_BIT(event->action)))
            status = observer->call(observer->context, event);
    }
    return status;
}

enum ttd_status heap_notes_tell(const struct heap_notes *notes,
                                const struct heap_observer *observer)
{
    size_t next = 0;
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < notes->count && status == TTD_OK; i++) {
        const struct heap_note *note = &notes->notes[i];
        status = pass_tell_calls(notes, observer, &next, note->call_count);
        if (status == TTD_OK && observer->effect &&
            !(observer->unwanted & HEAP_EFFECT_BIT(note->effect.kind)))
            status = observer->effect(observer->context, &note->effect);
    }
    return status == TTD_OK ? pass_tell_calls(notes, observer, &next, notes->call_count) : status;
}

void heap_pass_add(struct heap_pass *pass, const struct heap_watcher *watcher)
{
    assert(pass->count < HEAP_PASS_MAX);
    pass->watchers[pass->count++] = *watcher;
}

/* Passes the notes on to the deferred watchers, one after the other. */
static enum ttd_status pass_tell_notes(void *context)
{
    struct heap_pass *pass = context;
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < pass->deferred_count && status == TTD_OK; i++) {
        const struct heap_watcher *watcher = pass->deferred[i];
        if (watcher->prepare)
            watcher->prepare(watcher->observer.context, pass->notes);
        status = heap_notes_tell(pass->notes, &watcher->observer);
    }
    heap_notes_clear(pass->notes);
    return status;
}

static enum ttd_status pass_see_effect(void *context, const struct heap_effect *effect)
{
    struct heap_pass *pass = context;
    const struct heap_told *told = &pass->for_effects[effect->kind];
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < told->count && status == TTD_OK; i++)
        status = told->observers[i]->effect(told->observers[i]->context, effect);
    if (status == TTD_OK && pass->noted_effects & HEAP_EFFECT_BIT(effect->kind))
        status = heap_notes_add(pass->notes) ? pass_tell_notes(pass) : TTD_OK;
    return status;
}

/* For a pass whose watchers of effects are all deferred. */
static enum ttd_status pass_note_effect(void *context, const struct heap_effect *effect)
{
    struct heap_pass *pass = context;
    (void)effect;
    return heap_notes_add(pass->notes) ? pass_tell_notes(pass) : TTD_OK;
}

static enum ttd_status pass_see_call(void *context, const struct ttd_event *event)
{
    const struct heap_pass *pass = context;
    const struct heap_told *told = &pass->for_calls[event->action];
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < told->count && status == TTD_OK; i++)
        status = told->observers[i]->call(told->observers[i]->context, event);
    if (pass->noted_calls & HEAP_CALL_BIT(event->action))
        heap_notes_add_call(pass->notes, event);
    return status;
}

static enum ttd_status pass_see_free(void *context, const struct ttd_event *event,
                                     const struct heap_block *block)
{
    const struct heap_pass *pass = context;
    const struct heap_told *told = &pass->for_calls[TTD_ACTION_FREE];
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < told->count && status == TTD_OK; i++)
        status = told->observers[i]->plain->released(told->observers[i]->context, event, block);
    return status;
}

/* For a pass whose watchers of Frees all get plain ones. */
static const struct heap_plain_observer pass_plain = {.released = pass_see_free};

/* For a pass whose watchers of calls are all deferred. */
static enum ttd_status pass_note_call(void *context, const struct ttd_event *event)
{
    const struct heap_pass *pass = context;
    heap_notes_add_call(pass->notes, event);
    return TTD_OK;
}

static enum ttd_status pass_see_batch(void *context, const struct ttd_batch *batch)
{
    struct heap_pass *pass = context;
    enum ttd_status status = TTD_OK;
    if (pass->hook.batch)
        status = pass->hook.batch(pass->hook.context, batch);
    for (size_t i = 0; i < pass->count && status == TTD_OK; i++) {
        const struct heap_watcher *watcher = &pass->watchers[i];
        if (watcher->batch)
            status = watcher->batch(watcher->observer.context, batch);
    }
    return status;
}

static enum ttd_status pass_see_net(void *context, const struct ttd_chunk *chunk,
                                    const struct ttd_netted *netted)
{
    const struct heap_pass *pass = context;
    return pass->hook.net ? pass->hook.net(pass->hook.context, chunk, netted) : TTD_OK;
}

/* Whether a watcher still waits for its position, when all before `from` were reached. */
static bool pass_is_waiting(const struct heap_watcher *watcher, struct ttd_position from)
{
    return ttd_position_compare(watcher->to, from) >= 0;
}

static void pass_list_observer(struct heap_told *told, size_t count, unsigned unwanted,
                               const struct heap_observer *observer)
{
    for (size_t i = 0; i < count; i++) {
        if (!(unwanted >> i & 1))
            told[i].observers[told[i].count++] = observer;
    }
}

static void pass_defer(struct heap_pass *pass, const struct heap_watcher *watcher)
{
    pass->deferred[pass->deferred_count++] = watcher;
    if (watcher->observer.effect)
        pass->noted_effects |= ~watcher->observer.unwanted;
    if (watcher->observer.call)
        pass->noted_calls |= ~watcher->observer.unwanted_calls;
}

/* Lists the watchers of the events from a position on. */
static void pass_list_observers(struct heap_pass *pass, struct ttd_position from)
{
    memset(pass->for_effects, 0, sizeof pass->for_effects);
    memset(pass->for_calls, 0, sizeof pass->for_calls);
    pass->deferred_count = 0;
    pass->noted_effects = pass->noted_calls = 0;
    for (size_t i = 0; i < pass->count; i++) {
        const struct heap_observer *observer = &pass->watchers[i].observer;
        if (!pass_is_waiting(&pass->watchers[i], from))
            continue;
        if (pass->watchers[i].is_deferred) {
            pass_defer(pass, &pass->watchers[i]);
            continue;
        }
        if (observer->effect)
            pass_list_observer(pass->for_effects, HEAP_EFFECT_KINDS, observer->unwanted, observer);
        if (observer->call)
            pass_list_observer(pass->for_calls, TTD_ACTION_DESTROY + 1, observer->unwanted_calls,
                               observer);
    }
}

/* Returns a bit for each kind that no watcher gets. */
static unsigned pass_unwanted(const struct heap_told *told, size_t count, unsigned noted)
{
    unsigned bits = 0;
    for (size_t i = 0; i < count; i++)
        bits |= (unsigned)!told[i].count << i;
    return bits & ~noted;
}

/* Whether no kind has a watcher that gets it at once. */
static bool pass_is_deferred(const struct heap_told *told, size_t count)
{
    size_t watchers = 0;
    for (size_t i = 0; i < count; i++)
        watchers += told[i].count;
    return watchers == 0;
}

/* Whether a watcher gets Frees, and all that do so take them with their blocks. */
static bool pass_has_plain(const struct heap_pass *pass)
{
    const struct heap_told *told = &pass->for_calls[TTD_ACTION_FREE];
    bool has_all = told->count;
    for (size_t i = 0; i < told->count; i++)
        has_all &= told->observers[i]->plain != NULL;
    return has_all && !pass->notes;
}

/* The observer that passes effects on to all who are listed. */
static struct heap_observer pass_merge_observers(struct heap_pass *pass)
{
    struct heap_observer merged = {
        .context = pass,
        .unwanted = pass_unwanted(pass->for_effects, HEAP_EFFECT_KINDS, pass->noted_effects),
        .unwanted_calls =
            pass_unwanted(pass->for_calls, TTD_ACTION_DESTROY + 1, pass->noted_calls)};
    if (pass->notes) {
        merged.applied = pass_tell_notes;
        merged.place = &pass->notes->place;
    }
    if (merged.unwanted != (1u << HEAP_EFFECT_KINDS) - 1)
        merged.effect = pass_is_deferred(pass->for_effects, HEAP_EFFECT_KINDS) ? pass_note_effect
                                                                               : pass_see_effect;
    if (merged.unwanted_calls != (1u << (TTD_ACTION_DESTROY + 1)) - 1)
        merged.call = pass_is_deferred(pass->for_calls, TTD_ACTION_DESTROY + 1) ? pass_note_call
                                                                                : pass_see_call;
    if (!merged.effect && pass_has_plain(pass))
        merged.plain = &pass_plain;
    return merged;
}

/* Sets `next` to the first position from `from` on that a watcher waits for. */
static bool pass_find_next(const struct heap_pass *pass, struct ttd_position from,
                           struct ttd_position *next)
{
    bool is_found = false;
    for (size_t i = 0; i < pass->count; i++) {
        const struct heap_watcher *watcher = &pass->watchers[i];
        if (!pass_is_waiting(watcher, from) ||
            (is_found && ttd_position_compare(watcher->to, *next) >= 0))
            continue;
        *next = watcher->to;
        is_found = true;
    }
    return is_found;
}

/* Effects of the blocks of destroyed heaps come before anybody finishes. */
static enum ttd_status pass_finish(struct heap_pass *pass, struct heap_arrival *arrival,
                                   struct ttd_position position, struct ttd_error *error)
{
    struct heap_replay *replay = &arrival->cursor.replay;
    enum ttd_status status = TTD_OK;
    if (replay->wanted_effects) {
        heap_live_discard_stale(&replay->live);
        status = replay->observer_status;
    }
    if (status == TTD_OK && pass->notes)
        status = pass_tell_notes(pass);
    /* One of them may go on to the end itself, and the others get the effects on the way. */
    if (!heap_is_end(position))
        pass_list_observers(pass, heap_position_after(position));
    for (size_t i = 0; i < pass->count && status == TTD_OK; i++) {
        const struct heap_watcher *watcher = &pass->watchers[i];
        if (watcher->finish && ttd_position_compare(watcher->to, position) == 0)
            status = watcher->finish(watcher->observer.context, arrival, error);
        if (status == TTD_OK && pass->notes)
            status = pass_tell_notes(pass);
    }
    return status;
}

/* Goes on to a later position, whose watchers then are the next to finish. */
static enum ttd_status pass_go_on(struct heap_arrival *arrival, struct ttd_position position,
                                  struct ttd_error *error)
{
    struct heap_replay *replay = &arrival->cursor.replay;
    /* If nothing is left to be replayed, the index of a large heap would be made for nothing. */
    bool is_over = arrival->reached_end && !replay->queue.count;
    enum ttd_status status = is_over ? TTD_OK : heap_live_make_index(&replay->live);
    return status == TTD_OK ? heap_replay_on(arrival, position, error) : status;
}

/* Sets how the pass goes by sums of chunks. False if it does not: its only watcher needs each call,
 * or there are several. */
static bool pass_goes_forward(const struct heap_pass *pass, struct heap_forward *forward)
{
    const struct heap_watcher *watcher = &pass->watchers[0];
    *forward = (struct heap_forward){.sums = watcher->sums, .observer = watcher->nets};
    return pass->count == 1 && watcher->nets && !pass->keeps_peak && heap_is_end(watcher->to);
}

static enum ttd_status pass_run(struct heap_pass *pass, struct heap_arrival *arrival,
                                const struct heap_trace *trace, struct ttd_error *error)
{
    struct heap_observer merged = pass_merge_observers(pass);
    struct heap_forward forward;
    struct heap_route route = {.keeps_peak = pass->keeps_peak};
    route.forward = pass_goes_forward(pass, &forward) ? &forward : NULL;
    route.wants_blocks_only = true;
    for (size_t i = 0; i < pass->count; i++) {
        route.kinds |= pass->watchers[i].kinds;
        route.wants_blocks_only &= pass->watchers[i].wants_blocks_only;
    }
    struct ttd_position position = ttd_position_min();
    if (merged.effect || merged.call)
        route.observer = pass->count == 1 && !pass->notes ? &pass->watchers[0].observer : &merged;
    if (!pass_find_next(pass, position, &position))
        return TTD_OK;
    route.to = position;
    enum ttd_status status = heap_replay_to(arrival, trace, &route, error);
    while (status == TTD_OK) {
        status = pass_finish(pass, arrival, position, error);
        struct ttd_position from = heap_position_after(position);
        if (status != TTD_OK || heap_is_end(position) || !pass_find_next(pass, from, &position))
            break;
        status = pass_go_on(arrival, position, error);
    }
    return status;
}

enum ttd_status heap_pass_run(struct heap_pass *pass, const struct heap_trace *trace,
                              struct ttd_error *error)
{
    struct heap_arrival arrival = {.has_losses = false};
    struct heap_trace watched = *trace;
    watched.hook.context = pass;
    watched.hook.batch = pass_see_batch;
    watched.hook.net = pass_see_net;
    pass->hook = trace->hook;
    enum ttd_status status = TTD_OK;
    bool is_deferred = false;
    /* Notes cost a lone watcher more than it gains, unless it prefetches by them. */
    if (pass->count == 1 && !pass->watchers[0].prepare)
        pass->watchers[0].is_deferred = false;
    for (size_t i = 0; i < pass->count; i++)
        is_deferred |= pass->watchers[i].is_deferred;
    if (is_deferred) {
        pass->notes = malloc(sizeof *pass->notes);
        status = pass->notes ? TTD_OK : TTD_ERROR_NO_MEMORY;
        if (status == TTD_OK)
            heap_notes_clear(pass->notes);
    }
    pass_list_observers(pass, ttd_position_min());
    for (size_t i = 0; i < pass->count; i++) {
        const struct heap_watcher *watcher = &pass->watchers[i];
        if (watcher->begin)
            watcher->begin(watcher->observer.context, &arrival);
    }
    if (status == TTD_OK)
        status = pass_run(pass, &arrival, &watched, error);
    free(pass->notes);
    pass->notes = NULL;
    heap_arrival_free(&arrival);
    return status;
}
