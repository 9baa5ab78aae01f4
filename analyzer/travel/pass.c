/* SPDX-License-Identifier: MIT */
#include "travel/pass.h"

static enum ttd_status see_effect(void *context, const struct heap_effect *effect)
{
    const struct heap_pass *pass = context;
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < pass->count && status == TTD_OK; i++) {
        const struct heap_observer *observer = &pass->watchers[i].observer;
        if (!(observer->unwanted & HEAP_EFFECT_BIT(effect->kind)))
            status = observer->effect(observer->context, effect);
    }
    return status;
}

static enum ttd_status see_call(void *context, const struct ttd_event *event)
{
    const struct heap_pass *pass = context;
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < pass->count && status == TTD_OK; i++) {
        const struct heap_observer *observer = &pass->watchers[i].observer;
        if (observer->call)
            status = observer->call(observer->context, event);
    }
    return status;
}

/* Blocks of destroyed heaps are told of before anybody finishes. */
static enum ttd_status finish(const struct heap_pass *pass, struct heap_replay *replay)
{
    heap_live_sweep(&replay->live);
    enum ttd_status status = replay->observer_status;
    for (size_t i = 0; i < pass->count && status == TTD_OK; i++) {
        const struct heap_watcher *watcher = &pass->watchers[i];
        if (watcher->finish)
            status = watcher->finish(watcher->observer.context, replay);
    }
    return status;
}

enum ttd_status heap_pass_run(struct heap_pass *pass, const struct heap_trace *trace,
                              const struct heap_route *route, struct heap_outcome *outcome,
                              struct ttd_error *error)
{
    struct heap_observer distributor = {.context = pass, .effect = see_effect, .call = see_call};
    struct heap_route watched = *route;
    struct heap_arrival arrival = {.has_losses = false};
    watched.observer = pass->count == 1 ? &pass->watchers[0].observer : &distributor;
    for (size_t i = 0; i < pass->count; i++) {
        const struct heap_watcher *watcher = &pass->watchers[i];
        if (watcher->begin)
            watcher->begin(watcher->observer.context, &arrival.cursor.replay);
    }
    enum ttd_status status = heap_replay_to(&arrival, trace, &watched, error);
    if (status == TTD_OK)
        status = finish(pass, &arrival.cursor.replay);
    heap_arrival_end(&arrival, outcome);
    return status;
}
