/* SPDX-License-Identifier: MIT */
/* Filters of a view: patterns that the names in a stack must match, or must not. */
#include <string.h>

#include "symbols/names.h"
#include "view/glob.h"
#include "view/view_parts.h"

static bool view_matches_name(const void *context, struct ttd_string name)
{
    const struct ttd_string *pattern = context;
    return glob_find(*pattern, name);
}

enum ttd_status view_knows(const struct view *view, const struct ttd_string *pattern,
                           bool *is_known)
{
    struct names_matcher matcher = {pattern, view_matches_name, .takes_files = true};
    return names_find(view->definitions, &matcher, is_known);
}

/* Facts about a stack for filters. Bits only accumulate from caller to callee. */
#define STACK_IS_SEEN     UINT32_C(1)
#define STACK_IS_INCLUDED UINT32_C(2)
#define STACK_IS_EXCLUDED UINT32_C(4)

static enum ttd_status find_verdict(void *context, const struct ttd_stack *stack,
                                    uint32_t caller_fact, uint32_t *fact)
{
    struct view *view = context;
    struct view_site site;
    enum ttd_status status = view_go_through(view, stack, &site);
    if (status != TTD_OK)
        return status;
    *fact = caller_fact | STACK_IS_SEEN;
    for (size_t i = 0; i < site.count; i++) {
        const struct view_frame *frame = &view->frames[site.first + i];
        *fact |= (frame->is_included ? STACK_IS_INCLUDED : 0) |
                 (frame->is_excluded ? STACK_IS_EXCLUDED : 0);
    }
    return TTD_OK;
}

enum ttd_status view_wants(struct view *view, ttd_id stack, bool *is_wanted)
{
    uint32_t fact;
    enum ttd_status status = view_find_fact(view, &view->verdicts, stack, find_verdict, &fact);
    if (status == TTD_OK)
        *is_wanted = !(fact & STACK_IS_EXCLUDED) &&
                     (fact & STACK_IS_INCLUDED || !view->options.include.count);
    return status;
}

enum ttd_status view_filter(struct view *view, const struct heap_site_table *sites)
{
    if (!view_has_filter(&view->options))
        return TTD_OK;
    size_t kept_count = 0;
    for (size_t i = 0; i < *sites->count; i++) {
        bool is_wanted;
        enum ttd_status status = view_wants(view, heap_site_record(sites, i)->stack, &is_wanted);
        if (status != TTD_OK)
            return status;
        if (is_wanted)
            memmove(heap_site_record(sites, kept_count++), heap_site_record(sites, i), sites->size);
    }
    *sites->count = kept_count;
    sites->recount(sites->owner);
    return TTD_OK;
}
