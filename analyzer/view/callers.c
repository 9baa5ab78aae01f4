/* SPDX-License-Identifier: MIT */
/* Callers: the last call of a stack that is not of an allocation function or a wrapper. */
#include "symbols/runtime.h"
#include "view/allocators.h"
#include "view/glob.h"
#include "view/view_parts.h"

static bool is_named(const struct view *view, const struct frame *frame)
{
    const struct view_patterns *skip = &view->options.skip;
    struct ttd_string canonical = {"", 0};
    if (skip->count && frame->function.size)
        canonical = definitions_canonical(view->definitions, frame->name);
    for (size_t i = 0; i < skip->count && frame->function.size; i++) {
        if (glob_match(GLOB_STARS_AND_MARKS, skip->patterns[i], frame->function) ||
            glob_match(GLOB_STARS_AND_MARKS, skip->patterns[i], canonical))
            return true;
    }
    return false;
}

bool view_is_skipped(const struct view *view, const struct frame *frame)
{
    return allocators_have(frame->function) || is_named(view, frame);
}

bool view_has_own(const struct view *view, const struct frame *frame)
{
    enum view_key key = view->options.by;
    bool is_mixed;
    if (key != VIEW_BY_FUNCTION && key != VIEW_BY_FILE && key != VIEW_BY_MODULE)
        return true;
    if (runtime_begins(frame) || runtime_has_module(frame->module) || view_is_skipped(view, frame))
        return false;
    if (!frame->function.size)
        return true;
    struct ttd_string name = definitions_canonical(view->definitions, frame->name);
    return !runtime_has_function(name, &is_mixed) && !runtime_is_rust(frame) &&
           !allocators_wrap(name);
}

size_t view_skipped(const struct view *view, const struct frame_list *list)
{
    size_t count = 0;
    while (view->options.skip.count && count < list->count &&
           view_is_skipped(view, &list->frames[count]))
        count++;
    /* A stack of such frames only was cut: all of it is kept. */
    return count < list->count ? count : 0;
}

/* Fact about a stack whose frames are all left out. */
#define NO_CALLER UINT32_MAX

static bool allocates(const struct view_frame *frame)
{
    return frame->allocates;
}

static bool is_foreign(const struct view_frame *frame)
{
    return !frame->is_own;
}

/* Finds the innermost stack, as its identifier plus 1, with a frame that is not left out. */
static enum ttd_status callers_find_last(struct view *view, const struct ttd_stack *stack,
                                         uint32_t caller_fact,
                                         bool (*is_left_out)(const struct view_frame *),
                                         uint32_t *fact)
{
    struct view_site site;
    enum ttd_status status = view_go_through(view, stack, &site);
    *fact = caller_fact ? caller_fact : NO_CALLER;
    for (size_t i = 0; i < site.count && status == TTD_OK; i++) {
        if (!is_left_out(&view->frames[site.first + i]) && stack->id < NO_CALLER - 1)
            *fact = stack->id + 1;
    }
    return status;
}

static enum ttd_status find_caller(void *context, const struct ttd_stack *stack,
                                   uint32_t caller_fact, uint32_t *fact)
{
    return callers_find_last(context, stack, caller_fact, allocates, fact);
}

static enum ttd_status find_own_caller(void *context, const struct ttd_stack *stack,
                                       uint32_t caller_fact, uint32_t *fact)
{
    return callers_find_last(context, stack, caller_fact, is_foreign, fact);
}

/* Sets `caller` and `site` by a fact: the stack, and its frames from the first that is not left
 * out. */
static enum ttd_status set_caller(struct view *view, ttd_id id,
                                  bool (*is_left_out)(const struct view_frame *),
                                  struct ttd_stack *caller, struct view_site *site)
{
    enum ttd_status status = definitions_stack(view->definitions, id, caller);
    if (status == TTD_OK)
        status = view_find_site(view, caller, site);
    while (status == TTD_OK && is_left_out && is_left_out(&view->frames[site->first])) {
        site->first++;
        site->count--;
    }
    return status;
}

enum ttd_status view_find_caller(struct view *view, ttd_id stack, struct ttd_stack *caller,
                                 struct view_site *site)
{
    uint32_t fact;
    enum ttd_status status = view_find_fact(view, &view->callers, stack, find_caller, &fact);
    if (status != TTD_OK || !fact)
        return status == TTD_OK ? TTD_END : status;
    /* A stack of such frames only was cut: all of it is kept. */
    if (fact == NO_CALLER)
        return set_caller(view, stack, NULL, caller, site);
    return set_caller(view, fact - 1, allocates, caller, site);
}

enum ttd_status view_find_own_caller(struct view *view, ttd_id stack, struct ttd_stack *caller,
                                     struct view_site *site)
{
    uint32_t fact;
    enum ttd_status status =
        view_find_fact(view, &view->own_callers, stack, find_own_caller, &fact);
    if (status != TTD_OK || !fact)
        return status == TTD_OK ? TTD_END : status;
    if (fact == NO_CALLER)
        return view_find_caller(view, stack, caller, site);
    return set_caller(view, fact - 1, is_foreign, caller, site);
}
