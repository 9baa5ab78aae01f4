/* SPDX-License-Identifier: MIT */
/* Findings of a session that are told apart: blocks that the runtimes keep, and known findings. */
#include "cli/process/exit.h"
#include "cli/session/session.h"
#include "symbols/runtime.h"
#include "view/allocators.h"

/* Frames in which a block of thread-local storage is recognized: those of an allocator's caller in
 * the dynamic linker. */
#define JUDGED_FRAMES 4

/* Frames among which the allocating functions are, behind wrappers of allocators. */
#define CALLER_FRAMES 16

/* GLib's header before a closure. */
#define CLOSURE_HEADER 32

static bool was_killed(const struct session *session)
{
    return session->source.is_closed && session->source.end.reason == TTD_END_REASON_SIGNALED;
}

/* Whether blocks of the runtimes may be among the leaks. A trace without a list of these blocks may
 * come from a writer that knows no runtimes; the recorder omits the list only if the program was
 * killed. */
static bool counts_runtime(const struct session *session, enum heap_runtime_list list)
{
    return list == HEAP_RUNTIME_CUT_SHORT || (list == HEAP_RUNTIME_UNKNOWN && was_killed(session));
}

static bool keeps_stack(void *context, ttd_id stack)
{
    struct session *session = context;
    struct frame_list *frames = &session->report.frames;
    uint32_t judged = map_get(&session->judged, stack, 0);
    if (judged != MAP_NONE)
        return judged;
    enum ttd_status status = frame_list_begin(frames, &session->definitions, stack, JUDGED_FRAMES);
    bool keeps = status == TTD_OK && runtime_is_thread_storage(frames);
    if (status == TTD_OK)
        status = map_set(&session->judged, stack, 0, keeps);
    if (status != TTD_OK)
        session->report.status = status;
    return keeps;
}

static bool wraps_allocator(struct session *session, const struct frame *frame)
{
    if (!frame->function.size)
        return false;
    uint32_t wraps = map_get(&session->wrappers, frame->name, 0);
    if (wraps != MAP_NONE)
        return wraps;
    wraps = allocators_have(frame->function) ||
            allocators_wrap(definitions_canonical(&session->definitions, frame->name));
    enum ttd_status status = map_set(&session->wrappers, frame->name, 0, wraps);
    if (status != TTD_OK)
        session->report.status = status;
    return wraps;
}

static bool has_part(struct ttd_string name, const char *part)
{
    return name.size && memmem(name.data, name.size, part, strlen(part));
}

/* A list is shorter, or empty, if memory or steps are short: then less is inferred from it. */
static void list_callers(void *context, ttd_id stack, struct heap_callers *callers)
{
    struct session *session = context;
    struct frame_list *frames = &session->report.frames;
    if (frame_list_begin(frames, &session->definitions, stack, CALLER_FRAMES) != TTD_OK)
        return;
    size_t first = 0;
    while (first < frames->count && wraps_allocator(session, &frames->frames[first]))
        first++;
    for (size_t i = first; i < frames->count && callers->count < HEAP_CALLERS; i++) {
        const struct frame *frame = &frames->frames[i];
        callers->items[callers->count++] =
            (struct heap_caller){frame->module_id, frame->offset, frame->name};
    }
    if (callers->count) {
        struct ttd_string symbol = frames->frames[first].symbol;
        callers->is_sds = has_part(symbol, "sdsnew") || has_part(symbol, "sdsMakeRoomFor");
        callers->is_hash_table = has_part(symbol, "hashbrown");
        callers->header = has_part(symbol, "g_closure_new_simple") ? CLOSURE_HEADER : 0;
    }
}

int session_trace(struct session *session, struct heap_trace *trace)
{
    int status = session_names(session, true);
    *trace = source_trace(&session->source);
    trace->hook.callers = (struct heap_stack_callers){session, list_callers};
    if (runtime_has_thread_storage(&session->definitions))
        trace->hook.judge = (struct heap_stack_judge){session, keeps_stack};
    return status;
}

int session_runtime(struct session *session, struct heap_runtime *runtime, bool is_shown)
{
    session->report.runtime =
        (struct report_runtime){.groups = &runtime->groups,
                                .is_shown = is_shown,
                                .has_option = !session_has_tree(session),
                                .is_counted = counts_runtime(session, runtime->list),
                                .was_killed = was_killed(session)};
    struct heap_site_table sites = heap_groups_site_table(&runtime->groups);
    return session_has_tree(session) ? session_filter(session, &sites)
                                     : session_view(session, &sites);
}

int session_judge(struct session *session, const struct finding *finding, bool *is_new)
{
    int status = session_names(session, true);
    if (status != STATUS_OK)
        return status;
    return session_check(session, known_findings_judge(&session->known_findings,
                                                       &session->definitions, finding, is_new));
}

int session_end_known_findings(struct session *session)
{
    int status = session_check(session, known_findings_find_growth(&session->known_findings));
    if (status != STATUS_OK)
        return status;
    return known_findings_write(&session->known_findings, &session->definitions,
                                session->source.path);
}
