/* SPDX-License-Identifier: MIT */
#include "library/named_groups.h"

#include <stdlib.h>

#include "base/grow.h"

/* ---- Names ---- */

static void named_note_damage(void *context, const struct ttd_error *error)
{
    (void)error;
    ((struct ttdheap *)context)->is_damaged = true;
}

static void named_free(struct handle_names *names)
{
    runtime_judge_free(&names->judge);
    definitions_free(&names->definitions);
    free(names);
}

static struct handle_names *named_make(struct ttdheap *heap)
{
    struct handle_names *names = calloc(1, sizeof *names);
    if (!names)
        return NULL;
    definitions_init(&names->definitions);
    names->definitions.stacks.damage = (struct stack_damage){heap, named_note_damage};
    names->definitions.stacks.steps = &names->steps;
    /* No process is started for long names: a library must not fork its program. */
    names->definitions.demangler.process.failures = DEMANGLE_FAILURES_MAX;
    names->steps = heap->options.steps_max;
    runtime_judge_init(&names->judge, &names->definitions);
    return names;
}

static enum ttd_status named_read(struct ttdheap *heap, struct definitions *definitions,
                                  struct ttd_error *why)
{
    struct heap_trace trace = handle_trace(heap);
    enum ttd_status status =
        ttd_reader_rewind(heap->reader, TTD_KINDS_DEFINITIONS | TTD_KIND_BIT(TTD_KIND_LOSSES));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(heap->reader, &batch, why);
        if (status == TTD_OK)
            status = trace.hook.batch(trace.hook.context, &batch);
        if (status == TTD_OK)
            status = definitions_add(definitions, &batch);
    }
    /* The query that follows meets the same end, and its outcome has it. */
    return heap_is_over(status) || status == TTD_ERROR_UNSUPPORTED ? TTD_OK : status;
}

enum ttd_status named_need(struct ttdheap *heap, struct ttd_error *why)
{
    if (heap->names)
        return TTD_OK;
    struct handle_names *names = named_make(heap);
    enum ttd_status status =
        names ? named_read(heap, &names->definitions, why) : TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK) {
        heap->names = names;
        heap->free_names = named_free;
    } else if (names) {
        named_free(names);
    }
    return status;
}

struct heap_trace named_trace(struct ttdheap *heap, struct ttd_position position)
{
    struct heap_trace trace = handle_trace_to(heap, position);
    runtime_judge_attach(&heap->names->judge, &trace);
    return trace;
}

enum ttd_status named_judged(struct ttdheap *heap)
{
    enum ttd_status status = heap->names->judge.status;
    heap->names->judge.status = TTD_OK;
    return status;
}

/* ---- Groups ---- */

bool named_view_key(enum ttdheap_by by, enum view_key *key)
{
    static const enum view_key keys[] = {
        [TTDHEAP_BY_STACK] = VIEW_BY_STACK,   [TTDHEAP_BY_FUNCTION] = VIEW_BY_FUNCTION,
        [TTDHEAP_BY_FILE] = VIEW_BY_FILE,     [TTDHEAP_BY_MODULE] = VIEW_BY_MODULE,
        [TTDHEAP_BY_THREAD] = VIEW_BY_THREAD, [TTDHEAP_BY_HEAP] = VIEW_BY_HEAP,
        [TTDHEAP_BY_CLASS] = VIEW_BY_CLASS};
    if ((size_t)by >= sizeof keys / sizeof keys[0])
        return false;
    *key = keys[by];
    return true;
}

/* Sets the members that identify a group by its label. */
static void named_set_label(const struct definitions *definitions, struct ttdheap_group *record,
                            const struct view_label *label)
{
    record->name = label->name;
    record->module = label->module;
    record->number = label->number;
    if (label->kind == LABEL_THREAD) {
        const struct definition_thread *thread =
            definitions_thread(definitions, (ttd_id)label->number);
        record->name = definitions_text(definitions, thread ? thread->name : TTD_NONE);
    } else if (label->kind == LABEL_HEAP) {
        const struct definition_heap *heap = definitions_heap(definitions, (ttd_id)label->number);
        record->name = definitions_text(definitions, heap ? heap->name : TTD_NONE);
    }
}

/* Adds a group without its name; NULL without memory. */
static struct ttdheap_group *named_add_group(struct group_list *list,
                                             const struct heap_group *group, uint32_t kind)
{
    if (grow_array((void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items) !=
        TTD_OK)
        return NULL;
    struct ttdheap_group *record = &list->items[list->count++];
    *record = (struct ttdheap_group){.name = {"", 0},
                                     .module = {"", 0},
                                     .blocks = group->blocks,
                                     .bytes = group->bytes,
                                     .nested_blocks = group->nested_blocks,
                                     .nested_bytes = group->nested_bytes,
                                     .first = group->first,
                                     .last = group->last,
                                     .kind = kind};
    list->blocks += group->blocks;
    list->bytes = heap_add(list->bytes, group->bytes);
    return record;
}

enum ttd_status named_add_groups(struct group_list *list, struct view *view,
                                 struct heap_groups *groups, uint32_t kind)
{
    bool is_by_stack = view->options.by == VIEW_BY_STACK;
    struct view_options by_function = {.by = VIEW_BY_FUNCTION};
    struct view functions;
    struct heap_site_table sites = heap_groups_site_table(groups);
    view_init(&functions, &by_function, view->definitions);
    enum ttd_status status = view_group(view, &sites);
    for (size_t i = 0; i < groups->count && status == TTD_OK; i++) {
        struct heap_key key = groups->items[i].key;
        struct ttdheap_group *record = named_add_group(list, &groups->items[i], kind);
        status = record ? TTD_OK : TTD_ERROR_NO_MEMORY;
        if (status == TTD_OK && is_by_stack) {
            record->stack = key.stack;
            status = view_find_key(&functions, &key);
        }
        if (status == TTD_OK)
            named_set_label(view->definitions, record,
                            view_find_label(is_by_stack ? &functions : view, key));
    }
    view_free(&functions);
    return status;
}

enum ttd_status named_add_sizes(struct group_list *list, const struct heap_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++) {
        uint64_t first, last;
        struct ttdheap_group *record = named_add_group(list, &groups->items[i], 0);
        if (!record)
            return TTD_ERROR_NO_MEMORY;
        heap_class_range(groups->items[i].key.property, &first, &last);
        record->number = first;
    }
    return TTD_OK;
}

enum ttd_status named_answer(struct ttdheap_groups *answer, struct group_list *list,
                             const struct certainty *certainty, struct ttd_position position,
                             const struct heap_runtime *runtime)
{
    enum ttd_status status = handle_answer(&answer->answer, certainty, position, list->items);
    if (status != TTD_OK)
        return status;
    answer->count = list->count;
    answer->items = list->items;
    answer->blocks = list->blocks;
    answer->bytes = list->bytes;
    answer->runtime_blocks = runtime->groups.blocks;
    answer->runtime_bytes = runtime->groups.bytes;
    return TTD_OK;
}
