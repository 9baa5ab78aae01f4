/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "symbols/names.h"
#include "view/glob.h"
#include "view/view_parts.h"

void view_init(struct view *shown, const struct view_options *options, struct definitions *names)
{
    memset(shown, 0, sizeof *shown);
    shown->options = *options;
    shown->names = names;
    labels_init(&shown->labels);
    map_init(&shown->site_index);
}

void view_free(struct view *shown)
{
    labels_free(&shown->labels);
    map_free(&shown->site_index);
    stack_memo_free(&shown->verdicts);
    stack_memo_free(&shown->callers);
    stack_memo_free(&shown->own_callers);
    stack_memo_free(&shown->label_counts);
    frame_list_free(&shown->scratch);
    free(shown->sites);
    free(shown->frames);
    memset(shown, 0, sizeof *shown);
}

enum heap_split view_split(const struct view_options *options)
{
    if (options->by == VIEW_BY_THREAD)
        return HEAP_SPLIT_THREAD;
    return options->by == VIEW_BY_HEAP ? HEAP_SPLIT_HEAP : HEAP_SPLIT_NONE;
}

const char *view_key_name(enum view_key key)
{
    static const char *const names[] = {"stack", "function", "file", "module", "thread", "heap"};
    return names[key];
}

static bool matches(const struct view_patterns *patterns, const struct frame *item)
{
    for (size_t i = 0; i < patterns->count; i++) {
        struct ttd_string pattern = patterns->items[i];
        if (glob_find(pattern, item->function) || glob_find(pattern, item->file) ||
            glob_find(pattern, item->module))
            return true;
    }
    return false;
}

static bool matches_name(const void *context, struct ttd_string name)
{
    const struct ttd_string *pattern = context;
    return glob_find(*pattern, name);
}

enum ttd_status view_knows(const struct view *shown, const struct ttd_string *pattern,
                           bool *is_known)
{
    struct names_matcher matcher = {pattern, matches_name, .takes_files = true};
    return names_find(shown->names, &matcher, is_known);
}

static enum label_kind kind_of_frames(enum view_key by)
{
    return by == VIEW_BY_FILE ? LABEL_FILE : by == VIEW_BY_MODULE ? LABEL_MODULE : LABEL_FUNCTION;
}

static enum ttd_status add_frame(struct view *shown, const struct frame *item)
{
    struct view_frame added = {.allocates = view_is_skipped(shown, item),
                               .is_own = view_has_own(shown, item),
                               .is_included = matches(&shown->options.include, item),
                               .is_excluded = matches(&shown->options.exclude, item)};
    struct view_label name = label_of_frame(kind_of_frames(shown->options.by), item);
    enum ttd_status status = labels_add(&shown->labels, &name, &added.label);
    if (status == TTD_OK)
        status = grow_array((void **)&shown->frames, &shown->frame_capacity, shown->frame_count + 1,
                            sizeof *shown->frames);
    if (status == TTD_OK)
        shown->frames[shown->frame_count++] = added;
    return status;
}

/* What is found out of an address is kept: there are far fewer addresses than stacks. */
enum ttd_status view_find_site(struct view *shown, const struct ttd_stack *stack,
                               struct view_site *site)
{
    uint32_t index = map_get(&shown->site_index, stack->module, stack->offset);
    if (index != MAP_NONE) {
        *site = shown->sites[index];
        return TTD_OK;
    }
    shown->scratch.count = 0;
    site->first = shown->frame_count;
    enum ttd_status status = frame_list_add(&shown->scratch, shown->names, stack);
    for (size_t i = 0; i < shown->scratch.count && status == TTD_OK; i++)
        status = add_frame(shown, &shown->scratch.items[i]);
    site->count = shown->frame_count - site->first;
    if (status == TTD_OK)
        status = grow_array((void **)&shown->sites, &shown->site_capacity, shown->site_count + 1,
                            sizeof *shown->sites);
    if (status == TTD_OK)
        status =
            map_set(&shown->site_index, stack->module, stack->offset, (uint32_t)shown->site_count);
    if (status == TTD_OK)
        shown->sites[shown->site_count++] = *site;
    return status;
}

enum ttd_status view_go_through(struct view *shown, const struct ttd_stack *stack,
                                struct view_site *site)
{
    enum ttd_status status = view_find_site(shown, stack, site);
    return status == TTD_OK ? stack_table_spend(&shown->names->stacks, site->count) : status;
}

/* Labels are numbered as they are met. */
static enum ttd_status meet(void *context, const struct ttd_stack *stack)
{
    struct view_site site;
    return view_find_site(context, stack, &site);
}

enum ttd_status view_find_fact(struct view *shown, struct stack_memo *memo, ttd_id stack,
                               view_fact_finder *find, uint32_t *fact)
{
    struct stack_memo_finder finder = {.context = shown, .meet = meet, .find = find};
    return stack_memo_find(memo, &shown->names->stacks, stack, &finder, fact);
}

/* Facts about a stack that filters ask for. */
#define STACK_IS_SEEN     UINT32_C(1)
#define STACK_IS_INCLUDED UINT32_C(2)
#define STACK_IS_EXCLUDED UINT32_C(4)

static enum ttd_status find_verdict(void *context, const struct ttd_stack *stack, uint32_t above,
                                    uint32_t *fact)
{
    struct view *shown = context;
    struct view_site site;
    enum ttd_status status = view_go_through(shown, stack, &site);
    if (status != TTD_OK)
        return status;
    *fact = above | STACK_IS_SEEN;
    for (size_t i = 0; i < site.count; i++) {
        const struct view_frame *item = &shown->frames[site.first + i];
        *fact |= (item->is_included ? STACK_IS_INCLUDED : 0) |
                 (item->is_excluded ? STACK_IS_EXCLUDED : 0);
    }
    return TTD_OK;
}

enum ttd_status view_wants(struct view *shown, ttd_id stack, bool *is_wanted)
{
    uint32_t fact;
    enum ttd_status status = view_find_fact(shown, &shown->verdicts, stack, find_verdict, &fact);
    if (status == TTD_OK)
        *is_wanted = !(fact & STACK_IS_EXCLUDED) &&
                     (fact & STACK_IS_INCLUDED || !shown->options.include.count);
    return status;
}

enum ttd_status view_filter(struct view *shown, const struct heap_rows *rows)
{
    if (!view_has_filter(&shown->options))
        return TTD_OK;
    size_t kept = 0;
    for (size_t i = 0; i < *rows->count; i++) {
        bool is_wanted;
        enum ttd_status status = view_wants(shown, heap_row(rows, i)->stack, &is_wanted);
        if (status != TTD_OK)
            return status;
        if (is_wanted)
            memmove(heap_row(rows, kept++), heap_row(rows, i), rows->size);
    }
    *rows->count = kept;
    rows->recount(rows->owner);
    return TTD_OK;
}

struct view_label view_row_label(const struct view *shown, struct heap_key key)
{
    static const enum label_kind kinds[] = {LABEL_NONE,   LABEL_NONE,   LABEL_FILE,
                                            LABEL_MODULE, LABEL_THREAD, LABEL_HEAP};
    return (struct view_label){.kind = kinds[shown->options.by], .number = key.other};
}

/* The number plus 1; UINT32_MAX for that and more. */
static enum ttd_status find_label_count(void *context, const struct ttd_stack *stack,
                                        uint32_t above, uint32_t *fact)
{
    struct view *shown = context;
    struct view_site site;
    uint32_t last = MAP_NONE;
    uint64_t count = 0;
    enum ttd_status status = view_go_through(shown, stack, &site);
    if (status != TTD_OK)
        return status;
    for (size_t i = 0; i < site.count; i++) {
        count += !view_merges(shown) || shown->frames[site.first + i].label != last;
        last = shown->frames[site.first + i].label;
    }
    struct ttd_stack parent;
    if (above && view_merges(shown)) {
        status = definitions_stack(shown->names, stack->parent, &parent);
        if (status == TTD_OK)
            status = view_find_site(shown, &parent, &site);
        if (status == TTD_OK)
            count -= shown->frames[site.first].label == last;
    }
    count += above ? above : 1;
    *fact = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
    return status;
}

enum ttd_status view_count_labels(struct view *shown, ttd_id stack, uint64_t *count)
{
    uint32_t fact;
    enum ttd_status status =
        view_find_fact(shown, &shown->label_counts, stack, find_label_count, &fact);
    if (status == TTD_OK && !fact)
        return TTD_END;
    if (status == TTD_OK)
        *count = fact - 1;
    return status;
}

/* The label of what a row is grouped by. */
static enum ttd_status find_label(struct view *shown, struct heap_key key, uint32_t *index)
{
    struct view_label name = view_row_label(shown, key);
    if (name.kind == LABEL_THREAD || name.kind == LABEL_HEAP)
        return labels_add(&shown->labels, &name, index);
    struct ttd_stack caller;
    struct view_site site;
    enum ttd_status status = view_find_own_caller(shown, key.stack, &caller, &site);
    if (status == TTD_OK)
        *index = shown->frames[site.first].label;
    return status == TTD_END ? labels_add(&shown->labels, &name, index) : status;
}

/* Replaces the key of a row by that of its group: a label, or the stack without what is skipped. */
static enum ttd_status find_key(struct view *shown, struct heap_key *key)
{
    if (shown->options.by != VIEW_BY_STACK) {
        uint32_t label;
        enum ttd_status status = find_label(shown, *key, &label);
        if (status == TTD_OK)
            *key = (struct heap_key){TTD_NONE, label};
        return status;
    }
    struct ttd_stack caller;
    struct view_site site;
    enum ttd_status status = view_find_caller(shown, key->stack, &caller, &site);
    if (status == TTD_OK)
        key->stack = caller.id;
    return status == TTD_END ? TTD_OK : status;
}

static enum ttd_status merge_rows(struct view *shown, const struct heap_rows *rows,
                                  struct hash_map *groups)
{
    size_t count = 0;
    for (size_t i = 0; i < *rows->count; i++) {
        struct heap_key key = *heap_row(rows, i);
        enum ttd_status status = find_key(shown, &key);
        if (status != TTD_OK)
            return status;
        uint32_t group = map_get(groups, key.stack, key.other);
        if (group != MAP_NONE) {
            rows->merge(heap_row(rows, group), heap_row(rows, i));
            continue;
        }
        status = map_set(groups, key.stack, key.other, (uint32_t)count);
        if (status != TTD_OK)
            return status;
        memmove(heap_row(rows, count), heap_row(rows, i), rows->size);
        *heap_row(rows, count++) = key;
    }
    *rows->count = count;
    return TTD_OK;
}

enum ttd_status view_group(struct view *shown, const struct heap_rows *rows)
{
    if (shown->options.by == VIEW_BY_STACK && !shown->options.skip.count)
        return TTD_OK;
    struct hash_map groups;
    map_init(&groups);
    enum ttd_status status = merge_rows(shown, rows, &groups);
    map_free(&groups);
    if (status == TTD_OK && *rows->count)
        qsort(rows->items, *rows->count, rows->size, rows->compare);
    return status;
}

const struct view_label *view_find_label(const struct view *shown, struct heap_key key)
{
    return &shown->labels.items[key.other];
}
