/* SPDX-License-Identifier: MIT */
#include "analyses/errors/last_calls.h"

/* Signals that a fault of the program raises, as the recorder's system numbers them: SIGILL,
 * SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS. */
static bool is_fault(uint32_t signal)
{
    const uint32_t faults = 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7 | 1u << 8 | 1u << 11 | 1u << 31;
    return signal < 32 && faults >> signal & 1;
}

void heap_last_calls_begin(struct heap_last_calls *last_calls, struct ttd_reader *reader)
{
    struct ttd_end end;
    *last_calls = (struct heap_last_calls){.signal = 0};
    if (ttd_reader_end(reader, &end) == TTD_OK && end.reason == TTD_END_REASON_SIGNALED &&
        is_fault(end.code))
        last_calls->signal = end.code;
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
    return !ttd_event_returned(event) && last_calls->count < HEAP_LAST_CALLS_MAX;
}

void heap_last_calls_add(struct heap_last_calls *last_calls, const struct heap_finding *call,
                         const struct heap_live *live)
{
    struct heap_finding *finding = &last_calls->calls[last_calls->count++];
    *finding = *call;
    finding->signal = last_calls->signal;
    if (live && call->address)
        finding->neighbours = heap_neighbours_find(live, call->address);
}

static bool is_about(const struct heap_finding *finding, const struct heap_finding *call)
{
    return finding->signal && finding->call.thread == call->call.thread &&
           ttd_position_compare(finding->last, call->call.position) == 0;
}

/* A finding that is about this very call already. */
static struct heap_finding *find(struct heap_errors *errors, const struct heap_finding *call)
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

enum ttd_status heap_last_calls_report(const struct heap_last_calls *last_calls,
                                       struct heap_errors *errors)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < last_calls->count && status == TTD_OK; i++) {
        const struct heap_finding *call = &last_calls->calls[i];
        struct heap_finding *finding = find(errors, call);
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
