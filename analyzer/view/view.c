/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "symbols/trace_definitions.h"
#include "symbols/frames.h"
#include "view/function_names.h"

/** Finds a fact about a stack from the one about its caller, like stack_memo_finder.find. */
typedef enum ttd_status view_fact_finder(void *context, const struct ttd_stack *stack,
                                         uint32_t above, uint32_t *fact);

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
    stack_memo_free(&view->reaches);
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

static enum label_kind view_kind_of_frames(enum view_key key)
{
    return key == VIEW_BY_FILE ? LABEL_FILE : key == VIEW_BY_MODULE ? LABEL_MODULE : LABEL_FUNCTION;
}

static bool view_is_named(const struct view *view, const struct frame *frame)
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

/** Whether a frame is of an allocation function, or of one that view_options.skip adds to these. */
static bool view_is_skipped(const struct view *view, const struct frame *frame)
{
    return allocators_have(frame->function) || view_is_named(view, frame);
}

/** Whether a frame may name a group: see view_frame.is_own. */
static bool view_has_own(const struct view *view, const struct frame *frame)
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

static enum ttd_status view_add_frame(struct view *view, const struct frame *frame)
{
    struct view_frame view_frame = {
        .allocates = view_is_skipped(view, frame),
        .is_own = view_has_own(view, frame),
        .is_included = view_matches_frame(&view->options.include, frame),
        .is_excluded = view_matches_frame(&view->options.exclude, frame),
        .traits = (unsigned char)runtime_traits(frame)};
    struct view_label label = label_of_frame(view_kind_of_frames(view->options.by), frame);
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
static enum ttd_status view_meet_stack(void *context, const struct ttd_stack *stack, uint32_t *fact)
{
    struct view_site site;
    (void)fact;
    return view_find_site(context, stack, &site);
}

/** Finds a fact about a stack, once. @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT, or the
 * finder's status. */
static enum ttd_status view_find_fact(struct view *view, struct stack_memo *memo, ttd_id stack,
                                      view_fact_finder *find, uint32_t *fact)
{
    struct stack_memo_finder finder = {.context = view, .meet = view_meet_stack, .find = find};
    return stack_memo_find(memo, &view->definitions->stacks, stack, &finder, fact);
}

/* Finds the number of labels plus 1; UINT32_MAX stands for that and more. */
static enum ttd_status view_find_label_count(void *context, const struct ttd_stack *stack,
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
        view_find_fact(view, &view->label_counts, stack, view_find_label_count, &fact);
    if (status == TTD_OK && !fact)
        return TTD_END;
    if (status == TTD_OK)
        *count = fact - 1;
    return status;
}

static enum ttd_status view_find_reach(void *context, const struct ttd_stack *stack,
                                       uint32_t caller_fact, uint32_t *fact)
{
    struct view *view = context;
    struct view_site site;
    enum runtime_reach reach = (enum runtime_reach)caller_fact;
    enum ttd_status status = view_go_through(view, stack, &site);
    if (status != TTD_OK)
        return status;
    for (size_t i = site.count; i-- > 0;)
        reach = runtime_reach_next(reach, view->frames[site.first + i].traits);
    *fact = reach == RUNTIME_NO_FRAME ? RUNTIME_WHOLE : reach;
    return TTD_OK;
}

enum ttd_status view_stack_is_cut(struct view *view, ttd_id stack, bool *is_cut)
{
    uint32_t fact;
    *is_cut = false;
    if (!view->knows_beginning)
        view->has_beginning = runtime_has_beginning(view->definitions);
    view->knows_beginning = true;
    if (!view->has_beginning)
        return TTD_OK;
    enum ttd_status status = view_find_fact(view, &view->reaches, stack, view_find_reach, &fact);
    if (status == TTD_OK)
        *is_cut = fact && fact != RUNTIME_WHOLE;
    return status;
}

enum ttd_status view_label_unknown_callers(struct view *view, uint32_t *label)
{
    static const char name[] = "(callers unknown)";
    static const struct view_label unknown = {.kind = LABEL_FUNCTION,
                                              .name = {name, sizeof name - 1}};
    return labels_add(&view->labels, &unknown, label);
}

/* Callers: the last call of a stack that is not of an allocation function or a wrapper. */

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

static bool view_allocates(const struct view_frame *frame)
{
    return frame->allocates;
}

static bool view_is_foreign(const struct view_frame *frame)
{
    return !frame->is_own;
}

/* Sets `fact` to the identifier of the stack plus 1 if it has a frame that is not left out. */
static enum ttd_status view_meet_frames(struct view *view, const struct ttd_stack *stack,
                                        bool (*is_left_out)(const struct view_frame *),
                                        uint32_t *fact)
{
    struct view_site site;
    enum ttd_status status = view_go_through(view, stack, &site);
    for (size_t i = 0; i < site.count && status == TTD_OK; i++) {
        if (!is_left_out(&view->frames[site.first + i]) && stack->id < NO_CALLER - 1)
            *fact = stack->id + 1;
    }
    return status;
}

static enum ttd_status view_meet_caller(void *context, const struct ttd_stack *stack,
                                        uint32_t *fact)
{
    return view_meet_frames(context, stack, view_allocates, fact);
}

static enum ttd_status view_meet_own_caller(void *context, const struct ttd_stack *stack,
                                            uint32_t *fact)
{
    return view_meet_frames(context, stack, view_is_foreign, fact);
}

/* All frames of the stack are left out, so the fact is its caller's. */
static enum ttd_status view_take_callers_fact(void *context, const struct ttd_stack *stack,
                                              uint32_t caller_fact, uint32_t *fact)
{
    (void)context;
    (void)stack;
    *fact = caller_fact ? caller_fact : NO_CALLER;
    return TTD_OK;
}

/* Finds the innermost stack, as its identifier plus 1, with a frame that is not left out. */
static enum ttd_status view_callers_find_last(
    struct view *view, struct stack_memo *memo, ttd_id stack,
    enum ttd_status (*meet)(void *context, const struct ttd_stack *stack, uint32_t *fact),
    uint32_t *fact)
{
    struct stack_memo_finder finder = {
        .context = view, .meet = meet, .find = view_take_callers_fact};
    return stack_memo_find(memo, &view->definitions->stacks, stack, &finder, fact);
}

/* Sets `caller` and `site` by a fact: the stack, and its frames from the first that is not left
 * out. */
static enum ttd_status view_set_caller(struct view *view, ttd_id id,
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
    enum ttd_status status =
        view_callers_find_last(view, &view->callers, stack, view_meet_caller, &fact);
    if (status != TTD_OK || !fact)
        return status == TTD_OK ? TTD_END : status;
    /* A stack of such frames only was cut: all of it is kept. */
    if (fact == NO_CALLER)
        return view_set_caller(view, stack, NULL, caller, site);
    return view_set_caller(view, fact - 1, view_allocates, caller, site);
}

enum ttd_status view_find_own_caller(struct view *view, ttd_id stack, struct ttd_stack *caller,
                                     struct view_site *site)
{
    uint32_t fact;
    enum ttd_status status =
        view_callers_find_last(view, &view->own_callers, stack, view_meet_own_caller, &fact);
    if (status != TTD_OK || !fact)
        return status == TTD_OK ? TTD_END : status;
    if (fact == NO_CALLER)
        return view_find_caller(view, stack, caller, site);
    return view_set_caller(view, fact - 1, view_is_foreign, caller, site);
}

/* Filters of a view: patterns that the names in a stack must match, or must not. */

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

static enum ttd_status view_find_verdict(void *context, const struct ttd_stack *stack,
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
    enum ttd_status status = view_find_fact(view, &view->verdicts, stack, view_find_verdict, &fact);
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

/* Groups of a view: records with the same key are merged. */

/* Classes of one name are one: a class has several tables of virtual functions if its bases have.
 */
static struct view_label view_class_label(const struct view *view, ttd_id number)
{
    struct view_label label = {.kind = LABEL_CLASS};
    if (!number)
        return label;
    const struct ttd_class *class = &view->classes->classes[number - 1];
    label.name = definitions_class(view->definitions, class->name);
    label.number = label.name.size ? 0 : class->address;
    return label;
}

struct view_label view_record_label(const struct view *view, struct heap_key key)
{
    static const enum label_kind kinds[] = {LABEL_NONE,   LABEL_NONE,   LABEL_FILE,
                                            LABEL_MODULE, LABEL_THREAD, LABEL_HEAP};
    if (view->options.by == VIEW_BY_CLASS)
        return view_class_label(view, key.property);
    return (struct view_label){.kind = kinds[view->options.by], .number = key.property};
}

/* Finds the label that a record is grouped by. */
static enum ttd_status view_label_of_key(struct view *view, struct heap_key key, uint32_t *index)
{
    struct view_label label = view_record_label(view, key);
    if (view_is_by_property(&view->options))
        return labels_add(&view->labels, &label, index);
    struct ttd_stack caller;
    struct view_site site;
    enum ttd_status status = view_find_own_caller(view, key.stack, &caller, &site);
    if (status == TTD_OK)
        *index = view->frames[site.first].label;
    return status == TTD_END ? labels_add(&view->labels, &label, index) : status;
}

enum ttd_status view_has_same(struct view *view, bool *has_any)
{
    return same_stacks_are_there(&view->same, view->definitions, has_any);
}

enum ttd_status view_find_same(void *context, ttd_id stack, ttd_id *first)
{
    struct view *view = context;
    bool has_any;
    enum ttd_status status = view_has_same(view, &has_any);
    *first = stack;
    return status == TTD_OK && has_any ? same_stacks_find(&view->same, stack, first) : status;
}

enum ttd_status view_find_key(struct view *view, struct heap_key *key)
{
    if (view->options.by != VIEW_BY_STACK) {
        uint32_t label;
        enum ttd_status status = view_label_of_key(view, *key, &label);
        if (status == TTD_OK)
            *key = (struct heap_key){TTD_NONE, label};
        return status;
    }
    struct ttd_stack caller;
    struct view_site site;
    enum ttd_status status = view_find_caller(view, key->stack, &caller, &site);
    if (status == TTD_OK)
        key->stack = caller.id;
    return status == TTD_OK || status == TTD_END ? view_find_same(view, key->stack, &key->stack)
                                                 : status;
}

static enum ttd_status view_merge_records(struct view *view, const struct heap_site_table *sites,
                                          struct hash_map *groups)
{
    size_t count = 0;
    for (size_t i = 0; i < *sites->count; i++) {
        struct heap_key key = *heap_site_record(sites, i);
        bool is_whole = view->options.by == VIEW_BY_STACK && !view->options.skip.count;
        enum ttd_status status =
            is_whole ? view_find_same(view, key.stack, &key.stack) : view_find_key(view, &key);
        if (status != TTD_OK)
            return status;
        uint32_t group = map_get(groups, key.stack, key.property);
        if (group != MAP_NONE) {
            sites->merge(heap_site_record(sites, group), heap_site_record(sites, i));
            continue;
        }
        status = map_set(groups, key.stack, key.property, (uint32_t)count);
        if (status != TTD_OK)
            return status;
        memmove(heap_site_record(sites, count), heap_site_record(sites, i), sites->size);
        *heap_site_record(sites, count++) = key;
    }
    *sites->count = count;
    return TTD_OK;
}

enum ttd_status view_group(struct view *view, const struct heap_site_table *sites)
{
    bool has_same;
    enum ttd_status status = view_has_same(view, &has_same);
    if (status != TTD_OK ||
        (view->options.by == VIEW_BY_STACK && !view->options.skip.count && !has_same))
        return status;
    struct hash_map groups;
    map_init(&groups);
    status = view_merge_records(view, sites, &groups);
    map_free(&groups);
    if (status == TTD_OK && *sites->count)
        qsort(sites->records, *sites->count, sites->size, sites->compare);
    return status;
}

const struct view_label *view_find_label(const struct view *view, struct heap_key key)
{
    return &view->labels.labels[key.property];
}
