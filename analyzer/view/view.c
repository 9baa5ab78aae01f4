/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "symbols/names.h"
#include "view/allocators.h"
#include "view/glob.h"

void view_init(view *shown, const view_options *options, definitions *names)
{
    memset(shown, 0, sizeof *shown);
    shown->options = *options;
    shown->names = names;
    labels_init(&shown->labels);
    map_init(&shown->site_index);
    map_init(&shown->verdicts);
}

void view_free(view *shown)
{
    labels_free(&shown->labels);
    map_free(&shown->site_index);
    map_free(&shown->verdicts);
    frame_list_free(&shown->scratch);
    free(shown->sites);
    free(shown->frames);
    free(shown->path);
    memset(shown, 0, sizeof *shown);
}

heap_split view_split(const view_options *options)
{
    if (options->by == VIEW_BY_THREAD)
        return HEAP_SPLIT_THREAD;
    return options->by == VIEW_BY_HEAP ? HEAP_SPLIT_HEAP : HEAP_SPLIT_NONE;
}

const char *view_key_name(view_key key)
{
    static const char *const names[] = {"stack", "function", "file", "module", "thread", "heap"};
    return names[key];
}

static bool matches(const view_patterns *patterns, const frame *item)
{
    for (size_t i = 0; i < patterns->count; i++) {
        ttd_string pattern = patterns->items[i];
        if (glob_find(pattern, item->function) || glob_find(pattern, item->file) ||
            glob_find(pattern, item->module))
            return true;
    }
    return false;
}

static bool matches_name(const void *context, ttd_string name)
{
    const ttd_string *pattern = context;
    return glob_find(*pattern, name);
}

ttd_status view_knows(const view *shown, const ttd_string *pattern, bool *is_known)
{
    names_matcher matcher = {pattern, matches_name, .takes_files = true};
    return names_find(shown->names, &matcher, is_known);
}

static label_kind kind_of_frames(view_key by)
{
    return by == VIEW_BY_FILE ? LABEL_FILE : by == VIEW_BY_MODULE ? LABEL_MODULE : LABEL_FUNCTION;
}

static ttd_status add_frame(view *shown, const frame *item)
{
    view_frame added = {.allocates = allocators_have(item->function),
                        .is_included = matches(&shown->options.include, item),
                        .is_excluded = matches(&shown->options.exclude, item)};
    view_label name = label_of_frame(kind_of_frames(shown->options.by), item);
    ttd_status status = labels_add(&shown->labels, &name, &added.label);
    if (status == TTD_OK)
        status = grow_array((void **)&shown->frames, &shown->frame_capacity, shown->frame_count + 1,
                            sizeof *shown->frames);
    if (status == TTD_OK)
        shown->frames[shown->frame_count++] = added;
    return status;
}

/* What is found out of an address is kept: there are far fewer addresses than stacks. */
static ttd_status site_of(view *shown, const ttd_stack *stack, view_site *site)
{
    uint32_t index = map_get(&shown->site_index, stack->module, stack->offset);
    if (index != MAP_NONE) {
        *site = shown->sites[index];
        return TTD_OK;
    }
    shown->scratch.count = 0;
    site->first = shown->frame_count;
    ttd_status status = frame_list_add(&shown->scratch, shown->names, stack);
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

ttd_status view_find_path(view *shown, ttd_id stack)
{
    ttd_status status = TTD_OK;
    shown->path_count = 0;
    while (status == TTD_OK && shown->path_count < FRAME_LIST_MAX) {
        ttd_stack item;
        view_site site = {.count = 0};
        status = definitions_stack(shown->names, stack, &item);
        if (status == TTD_OK)
            status = site_of(shown, &item, &site);
        if (status == TTD_OK)
            status = grow_array((void **)&shown->path, &shown->path_capacity,
                                shown->path_count + site.count, sizeof *shown->path);
        for (size_t i = 0; i < site.count && status == TTD_OK; i++)
            shown->path[shown->path_count++] = (uint32_t)(site.first + i);
        if (status == TTD_OK)
            stack = item.parent;
    }
    return status == TTD_END ? TTD_OK : status;
}

size_t view_allocating(const view *shown)
{
    size_t count = 0;
    while (count < shown->path_count && shown->frames[shown->path[count]].allocates)
        count++;
    /* A stack of nothing else has been cut. */
    return count < shown->path_count ? count : 0;
}

static bool passes(const view *shown)
{
    bool is_included = !shown->options.include.count;
    for (size_t i = 0; i < shown->path_count; i++) {
        if (shown->frames[shown->path[i]].is_excluded)
            return false;
        is_included |= shown->frames[shown->path[i]].is_included;
    }
    return is_included;
}

ttd_status view_filter(view *shown, const heap_rows *rows)
{
    if (!view_has_filter(&shown->options))
        return TTD_OK;
    size_t kept = 0;
    for (size_t i = 0; i < *rows->count; i++) {
        ttd_status status = view_find_path(shown, heap_row(rows, i)->stack);
        if (status != TTD_OK)
            return status;
        if (passes(shown))
            memmove(heap_row(rows, kept++), heap_row(rows, i), rows->size);
    }
    *rows->count = kept;
    rows->recount(rows->owner);
    return TTD_OK;
}

ttd_status view_wants(view *shown, ttd_id stack, bool *is_wanted)
{
    uint32_t verdict = map_get(&shown->verdicts, stack, 0);
    *is_wanted = verdict == true;
    if (verdict != MAP_NONE)
        return TTD_OK;
    ttd_status status = view_find_path(shown, stack);
    if (status != TTD_OK)
        return status;
    *is_wanted = passes(shown);
    return map_set(&shown->verdicts, stack, 0, *is_wanted);
}

view_label view_row_label(const view *shown, heap_key key)
{
    static const label_kind kinds[] = {LABEL_NONE,   LABEL_NONE,   LABEL_FILE,
                                       LABEL_MODULE, LABEL_THREAD, LABEL_HEAP};
    return (view_label){.kind = kinds[shown->options.by], .number = key.other};
}

/* The label of what a row is grouped by. */
static ttd_status find_label(view *shown, heap_key key, uint32_t *index)
{
    view_label name = view_row_label(shown, key);
    if (name.kind == LABEL_THREAD || name.kind == LABEL_HEAP)
        return labels_add(&shown->labels, &name, index);
    ttd_status status = view_find_path(shown, key.stack);
    if (status != TTD_OK)
        return status;
    if (!shown->path_count)
        return labels_add(&shown->labels, &name, index);
    *index = shown->frames[shown->path[view_allocating(shown)]].label;
    return TTD_OK;
}

static ttd_status merge_rows(view *shown, const heap_rows *rows, hash_map *groups)
{
    size_t count = 0;
    for (size_t i = 0; i < *rows->count; i++) {
        uint32_t label;
        ttd_status status = find_label(shown, *heap_row(rows, i), &label);
        if (status != TTD_OK)
            return status;
        uint32_t group = map_get(groups, label, 0);
        if (group != MAP_NONE) {
            rows->merge(heap_row(rows, group), heap_row(rows, i));
            continue;
        }
        status = map_set(groups, label, 0, (uint32_t)count);
        if (status != TTD_OK)
            return status;
        memmove(heap_row(rows, count), heap_row(rows, i), rows->size);
        *heap_row(rows, count++) = (heap_key){TTD_NONE, label};
    }
    *rows->count = count;
    return TTD_OK;
}

ttd_status view_group(view *shown, const heap_rows *rows)
{
    if (shown->options.by == VIEW_BY_STACK)
        return TTD_OK;
    hash_map groups;
    map_init(&groups);
    ttd_status status = merge_rows(shown, rows, &groups);
    map_free(&groups);
    if (status == TTD_OK && *rows->count)
        qsort(rows->items, *rows->count, rows->size, rows->compare);
    return status;
}

const view_label *view_find_label(const view *shown, heap_key key)
{
    return &shown->labels.items[key.other];
}
