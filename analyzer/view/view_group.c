/* SPDX-License-Identifier: MIT */
/* Groups of a view: records with the same key are merged. */
#include <stdlib.h>
#include <string.h>

#include "view/view_parts.h"

/* Classes of one name are one: a class has several tables of virtual functions if its bases have.
 */
static struct view_label class_label(const struct view *view, ttd_id number)
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
        return class_label(view, key.property);
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

static enum ttd_status merge_records(struct view *view, const struct heap_site_table *sites,
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
    status = merge_records(view, sites, &groups);
    map_free(&groups);
    if (status == TTD_OK && *sites->count)
        qsort(sites->records, *sites->count, sites->size, sites->compare);
    return status;
}

const struct view_label *view_find_label(const struct view *view, struct heap_key key)
{
    return &view->labels.labels[key.property];
}
