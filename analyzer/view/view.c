/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "view/glob.h"
#include "view/view_parts.h"

void view_init(struct view *view, const struct view_options *options,
               struct definitions *definitions)
{
    memset(view, 0, sizeof *view);
    view->options = *options;
    view->definitions = definitions;
    labels_init(&view->labels);
    map_init(&view->site_index);
}

void view_free(struct view *view)
{
    labels_free(&view->labels);
    map_free(&view->site_index);
    stack_memo_free(&view->verdicts);
    stack_memo_free(&view->callers);
    stack_memo_free(&view->own_callers);
    stack_memo_free(&view->label_counts);
    same_stacks_free(&view->same);
    frame_list_free(&view->scratch);
    free(view->sites);
    free(view->frames);
    memset(view, 0, sizeof *view);
}

enum heap_split view_split(const struct view_options *options)
{
    /* All other keys follow from the stack: groups of stacks are merged when they are shown. */
    static const enum heap_split splits[] = {[VIEW_BY_THREAD] = HEAP_SPLIT_THREAD,
                                             [VIEW_BY_HEAP] = HEAP_SPLIT_HEAP,
                                             [VIEW_BY_CLASS] = HEAP_SPLIT_CLASS};
    return splits[options->by];
}

const char *view_key_name(enum view_key key)
{
    static const char *const names[] = {"stack",  "function", "file", "module",
                                        "thread", "heap",     "class"};
    return names[key];
}

static bool view_matches_frame(const struct view_patterns *patterns, const struct frame *frame)
{
    for (size_t i = 0; i < patterns->count; i++) {
        struct ttd_string pattern = patterns->patterns[i];
        if (glob_find(pattern, frame->function) || glob_find(pattern, frame->file) ||
            glob_find(pattern, frame->module))
            return true;
    }
    return false;
}

static enum label_kind kind_of_frames(enum view_key key)
{
    return key == VIEW_BY_FILE ? LABEL_FILE : key == VIEW_BY_MODULE ? LABEL_MODULE : LABEL_FUNCTION;
}

static enum ttd_status view_add_frame(struct view *view, const struct frame *frame)
{
    struct view_frame view_frame = {
        .allocates = view_is_skipped(view, frame),
        .is_own = view_has_own(view, frame),
        .is_included = view_matches_frame(&view->options.include, frame),
        .is_excluded = view_matches_frame(&view->options.exclude, frame)};
    struct view_label label = label_of_frame(kind_of_frames(view->options.by), frame);
    enum ttd_status status = labels_add(&view->labels, &label, &view_frame.label);
    if (status == TTD_OK)
        status = grow_array((void **)&view->frames, &view->frame_capacity, view->frame_count + 1,
                            sizeof *view->frames);
    if (status == TTD_OK)
        view->frames[view->frame_count++] = view_frame;
    return status;
}

/* Sites are kept by address: there are far fewer addresses than stacks. */
enum ttd_status view_find_site(struct view *view, const struct ttd_stack *stack,
                               struct view_site *site)
{
    uint32_t index = map_get(&view->site_index, stack->module, stack->offset);
    if (index != MAP_NONE) {
        *site = view->sites[index];
        return TTD_OK;
    }
    view->scratch.count = 0;
    site->first = view->frame_count;
    enum ttd_status status = frame_list_add(&view->scratch, view->definitions, stack);
    for (size_t i = 0; i < view->scratch.count && status == TTD_OK; i++)
        status = view_add_frame(view, &view->scratch.frames[i]);
    site->count = view->frame_count - site->first;
    if (status == TTD_OK)
        status = grow_array((void **)&view->sites, &view->site_capacity, view->site_count + 1,
                            sizeof *view->sites);
    if (status == TTD_OK)
        status =
            map_set(&view->site_index, stack->module, stack->offset, (uint32_t)view->site_count);
    if (status == TTD_OK)
        view->sites[view->site_count++] = *site;
    return status;
}

enum ttd_status view_go_through(struct view *view, const struct ttd_stack *stack,
                                struct view_site *site)
{
    enum ttd_status status = view_find_site(view, stack, site);
    return status == TTD_OK ? stack_table_spend(&view->definitions->stacks, site->count) : status;
}

/* Called from the innermost stack outward, so that labels get their numbers in that order. */
static enum ttd_status view_meet_stack(void *context, const struct ttd_stack *stack)
{
    struct view_site site;
    return view_find_site(context, stack, &site);
}

enum ttd_status view_find_fact(struct view *view, struct stack_memo *memo, ttd_id stack,
                               view_fact_finder *find, uint32_t *fact)
{
    struct stack_memo_finder finder = {.context = view, .meet = view_meet_stack, .find = find};
    return stack_memo_find(memo, &view->definitions->stacks, stack, &finder, fact);
}

/* Finds the number of labels plus 1; UINT32_MAX stands for that and more. */
static enum ttd_status find_label_count(void *context, const struct ttd_stack *stack,
                                        uint32_t caller_fact, uint32_t *fact)
{
    struct view *view = context;
    struct view_site site;
    uint32_t last = MAP_NONE;
    uint64_t count = 0;
    enum ttd_status status = view_go_through(view, stack, &site);
    if (status != TTD_OK)
        return status;
    for (size_t i = 0; i < site.count; i++) {
        count += !view_merges(view) || view->frames[site.first + i].label != last;
        last = view->frames[site.first + i].label;
    }
    struct ttd_stack parent;
    /* Frames of one label that follow each other are one, also where one is the caller's. */
    if (caller_fact && view_merges(view)) {
        status = definitions_stack(view->definitions, stack->parent, &parent);
        if (status == TTD_OK)
            status = view_find_site(view, &parent, &site);
        if (status == TTD_OK)
            count -= view->frames[site.first].label == last;
    }
    count += caller_fact ? caller_fact : 1;
    *fact = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
    return status;
}

enum ttd_status view_count_labels(struct view *view, ttd_id stack, uint64_t *count)
{
    uint32_t fact;
    enum ttd_status status =
        view_find_fact(view, &view->label_counts, stack, find_label_count, &fact);
    if (status == TTD_OK && !fact)
        return TTD_END;
    if (status == TTD_OK)
        *count = fact - 1;
    return status;
}
