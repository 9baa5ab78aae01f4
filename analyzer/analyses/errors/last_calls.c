/* SPDX-License-Identifier: MIT */
#include "analyses/errors/last_calls.h"

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

static void remove_call(struct heap_last_calls *last_calls, ttd_id thread)
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
        remove_call(last_calls, event->thread);
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

static bool is_about(const struct heap_finding *finding, const struct heap_finding *call)
{
    return finding->signal && finding->call.thread == call->call.thread &&
           ttd_position_compare(finding->last, call->call.position) == 0;
}

/* A finding that is about this very call already. */
static struct heap_finding *last_calls_find(struct heap_errors *errors,
                                            const struct heap_finding *call)
{
    for (size_t i = 0; i < errors->count; i++) {
        if (is_about(&errors->findings[i], call))
            return &errors->findings[i];
    }
    return NULL;
}

/* After such calls the thread went on. */
static void remove_others(const struct heap_last_calls *last_calls, struct heap_errors *errors)
{
    for (size_t i = 0; i < errors->count; i++) {
        bool is_last = false;
        for (size_t k = 0; k < last_calls->count && !is_last; k++)
            is_last = is_about(&errors->findings[i], &last_calls->calls[k]);
        if (!is_last)
            errors->findings[i].signal = 0;
    }
}

/* Findings keep their order otherwise. */
static void put_first(struct heap_errors *errors)
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
        struct heap_finding *finding = last_calls_find(errors, call);
        call->is_certain &= last_calls->count == 1;
        if (!finding) {
            status = heap_errors_add(errors, call);
            continue;
        }
        finding->neighbours = call->neighbours;
    }
    remove_others(last_calls, errors);
    put_first(errors);
    return status;
}
