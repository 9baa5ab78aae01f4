/* SPDX-License-Identifier: MIT */
#include "collect/process/heaps.h"

#include <ttdtrace/live_heap.h>

#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "collect/process/processes.h"

/* Bounds of the remembered heaps, and of the destroyed ones among them: the program is not to use
 * up the collector's memory. */
enum { HEAPS_MAX = 1 << 20, ENDED_MAX = 1024, FIRST_BUCKETS = 64 };

static struct custom_heap **heaps_bucket_of(const struct custom_heaps *heaps, uint64_t handle)
{
    return &heaps->buckets[array_hash(handle ^ heaps->key, heaps->key | 1) &
                           (heaps->bucket_count - 1)];
}

/* Returns the newest heap of a handle, perhaps a destroyed one; NULL if there is none. */
static struct custom_heap *heap_table_find(const struct custom_heaps *heaps, uint64_t handle)
{
    struct custom_heap *heap = heaps->bucket_count != 0 ? *heaps_bucket_of(heaps, handle) : NULL;
    while (heap && heap->handle != handle)
        heap = heap->chained;
    return heap;
}

static void heaps_chain(struct custom_heaps *heaps, struct custom_heap *heap)
{
    struct custom_heap **bucket = heaps_bucket_of(heaps, heap->handle);
    heap->chained = *bucket;
    *bucket = heap;
}

/* Returns the heap that has a handle; NULL if none exists. */
static struct custom_heap *heap_table_find_live(const struct custom_heaps *heaps, uint64_t handle)
{
    struct custom_heap *heap = heap_table_find(heaps, handle);
    return heap && !heap->has_ended ? heap : NULL;
}

/* Makes the table larger when it is full. False if it cannot take another heap. */
static bool heap_table_reserve(struct custom_heaps *heaps)
{
    if (heaps->count < heaps->bucket_count)
        return true;
    size_t count = heaps->bucket_count != 0 ? heaps->bucket_count * 2 : FIRST_BUCKETS;
    struct custom_heap **buckets =
        count <= HEAPS_MAX ? calloc(count, sizeof(struct custom_heap *)) : NULL;
    if (!buckets)
        return false;
    free(heaps->buckets);
    heaps->buckets = buckets;
    heaps->bucket_count = count;
    for (struct custom_heap *heap = heaps->destroyed.first; heap; heap = heap->after)
        heaps_chain(heaps, heap);
    for (struct custom_heap *heap = heaps->live.first; heap; heap = heap->after)
        heaps_chain(heaps, heap);
    return true;
}

static void heap_list_append(struct heap_list *list, struct custom_heap *heap)
{
    heap->before = list->last;
    heap->after = NULL;
    *(list->last ? &list->last->after : &list->first) = heap;
    list->last = heap;
}

static void heaps_take_out(struct heap_list *list, struct custom_heap *heap)
{
    *(heap->before ? &heap->before->after : &list->first) = heap->after;
    *(heap->after ? &heap->after->before : &list->last) = heap->before;
}

/* Takes a heap from its siblings, and from those within it; these stay without a parent. */
static void heaps_leave_family(struct custom_heap *heap)
{
    if (heap->sibling_before)
        heap->sibling_before->sibling = heap->sibling;
    else if (heap->parent)
        heap->parent->child = heap->sibling;
    if (heap->sibling)
        heap->sibling->sibling_before = heap->sibling_before;
    for (struct custom_heap *child = heap->child; child; child = child->sibling)
        child->parent = NULL;
    heap->parent = heap->child = heap->sibling = heap->sibling_before = NULL;
}

/* Forgets the heap that was destroyed first. */
static void heap_table_forget(struct custom_heaps *heaps)
{
    struct custom_heap *heap = heaps->destroyed.first;
    struct custom_heap **link = heaps_bucket_of(heaps, heap->handle);
    while (*link != heap)
        link = &(*link)->chained;
    *link = heap->chained;
    heaps_take_out(&heaps->destroyed, heap);
    heaps->forgotten = heap->end;
    heaps->ended_count--;
    heaps->count--;
    free(heap);
}

/* Moves a heap to those that were destroyed. Those within it stay, without a parent. */
static void heap_table_end(struct custom_heaps *heaps, struct custom_heap *heap, uint64_t sequence)
{
    heaps_leave_family(heap);
    heaps_take_out(&heaps->live, heap);
    heap->has_ended = true;
    heap->end = sequence;
    heap_list_append(&heaps->destroyed, heap);
    if (++heaps->ended_count > ENDED_MAX)
        heap_table_forget(heaps);
}

/* Makes a heap with room for a name of `size` bytes; it is in no list yet. NULL if there is no
 * room. */
static struct custom_heap *heap_table_new(struct custom_heaps *heaps, size_t size)
{
    return heap_table_reserve(heaps) ? calloc(1, sizeof(struct custom_heap) + size + 1) : NULL;
}

/* Adds a new heap, whose handle and parent are set. */
static void heap_table_add(struct custom_heaps *heaps, struct custom_heap *heap)
{
    if (heap->parent) {
        heap->sibling = heap->parent->child;
        if (heap->sibling)
            heap->sibling->sibling_before = heap;
        heap->parent->child = heap;
    }
    heap_list_append(&heaps->live, heap);
    heaps->count++;
    heaps_chain(heaps, heap);
}

static int heaps_compare_sequences(const void *left, const void *right)
{
    const struct custom_heap *a = *(struct custom_heap *const *)left;
    const struct custom_heap *b = *(struct custom_heap *const *)right;
    return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

/* Lists the heaps that were defined up to a sequence, in that order. The caller frees the list.
 * NULL if memory ran out. */
static struct custom_heap **heap_table_list(const struct custom_heaps *heaps, uint64_t sequence,
                                            size_t *count)
{
    struct custom_heap **list = calloc(heaps->count + 1, sizeof *list);
    const struct heap_list *lists[] = {&heaps->destroyed, &heaps->live};
    *count = 0;
    for (size_t i = 0; list && i < sizeof lists / sizeof *lists; i++)
        for (struct custom_heap *heap = lists[i]->first; heap; heap = heap->after)
            if (heap->sequence <= sequence)
                list[(*count)++] = heap;
    if (list)
        qsort(list, *count, sizeof *list, heaps_compare_sequences);
    return list;
}

static void heaps_free_list(struct heap_list *list)
{
    for (struct custom_heap *heap = list->first, *after; heap; heap = after) {
        after = heap->after;
        free(heap);
    }
}

void heap_table_free(struct custom_heaps *heaps)
{
    heaps_free_list(&heaps->live);
    heaps_free_list(&heaps->destroyed);
    free(heaps->buckets);
}

/* Adds a heap, and defines it in the trace. NULL if there is no room. */
static struct custom_heap *heaps_add(struct process *process,
                                     const struct heap_definition *definition)
{
    const struct custom_heap *last = process->heaps.live.last;
    size_t size =
        definition->size < TTD_LIVE_HEAP_NAME_MAX ? definition->size : TTD_LIVE_HEAP_NAME_MAX;
    struct custom_heap *heap = heap_table_new(&process->heaps, size);
    if (!heap)
        return NULL;
    heap->handle = definition->handle;
    heap->sequence = definition->sequence;
    bool is_outer = definition->parent == HEAP_OUTER;
    heap->parent = is_outer ? NULL : heap_table_find_live(&process->heaps, definition->parent);
    heap->within = is_outer || heap->parent ? definition->parent : 0;
    if (size != 0)
        memcpy(heap->text, definition->name, size);
    /* Many heaps have the name of the one before. */
    bool is_same = last && strcmp(last->text, heap->text) == 0;
    heap->name = is_same ? last->name : trace_text(process->trace, heap->text);
    ttd_id parent = heap->parent ? heap->parent->id : process->trace->heap;
    heap->id =
        trace_heap(process->trace, &(struct ttd_heap){.handle = heap->handle, .name = heap->name},
                   is_outer ? TTD_NONE : parent);
    heap_table_add(&process->heaps, heap);
    return heap;
}

/* Writes that a heap is destroyed. */
static void destroy_one(struct process *process, struct custom_heap *heap,
                        struct ttd_event *destroy)
{
    destroy->heap = heap->id;
    trace_event(process->trace, destroy, destroy->time_start);
    heap_table_end(&process->heaps, heap, destroy->time_start.sequence);
}

/* Destroys all heaps within `top`, the innermost first. */
static void destroy_within(struct process *process, struct custom_heap *top,
                           struct ttd_event *destroy)
{
    struct custom_heap *heap = top;
    while (heap != top || top->child) {
        while (heap->child)
            heap = heap->child;
        struct custom_heap *parent = heap->parent;
        destroy_one(process, heap, destroy);
        heap = parent;
    }
}

/* Returns the event of a destruction without a call. */
static struct ttd_event heaps_destruction(const struct process *process,
                                          struct ttd_position position)
{
    return (struct ttd_event){.action = TTD_ACTION_DESTROY,
                              .api = TTD_API_OTHER,
                              .result = 1,
                              .wall_time = process->trace->clock,
                              .time_start = position,
                              .time_end = position};
}

void heaps_define(struct process *process, const struct heap_definition *definition,
                  struct ttd_position position)
{
    struct custom_heap *old = heap_table_find_live(&process->heaps, definition->handle);
    if (old) {
        struct ttd_event destroy = heaps_destruction(process, position);
        destroy_within(process, old, &destroy);
        destroy_one(process, old, &destroy);
    }
    heaps_add(process, definition);
}

void heaps_complete(struct process *process, const struct thread_stream *thread,
                    struct ttd_event *event)
{
    const uint64_t *operands = thread->operands;
    event->wall_time = thread->wall_time;
    struct custom_heap *heap = heap_table_find(&process->heaps, operands[0]);
    if (!heap)
        heap =
            heaps_add(process, &(struct heap_definition){.handle = operands[0],
                                                         .sequence = event->time_start.sequence});
    event->heap = heap ? heap->id : TTD_NONE;
    event->parameters = NULL; /* the rest of the event gives them */
    if (event->action == TTD_ACTION_CREATE) {
        event->result = 1;
        event->reserve_size = operands[1];
        event->commit_size = operands[2];
    } else if (event->action == TTD_ACTION_PROTECT) {
        event->make_read_only = operands[1];
    } else if (event->action == TTD_ACTION_DESTROY && heap && !heap->has_ended) {
        struct ttd_event within = *event;
        within.time_end = within.time_start;
        destroy_within(process, heap, &within);
        heap_table_end(&process->heaps, heap, event->time_start.sequence);
    }
}

/* Adds a heap of the parent's, with its end if it was destroyed before the fork. */
static void heaps_add_inherited(struct process *child, const struct custom_heap *heap,
                                uint64_t sequence)
{
    struct custom_heap *inherited =
        heaps_add(child, &(struct heap_definition){.handle = heap->handle,
                                                   .parent = heap->within,
                                                   .sequence = heap->sequence,
                                                   .name = heap->text,
                                                   .size = strlen(heap->text)});
    if (inherited && heap->has_ended && heap->end <= sequence)
        inherited->end = heap->end;
}

bool heaps_inherit(struct process *child, const struct process *parent, uint64_t sequence,
                   struct ttd_position position)
{
    size_t count;
    struct custom_heap **list = heap_table_list(&parent->heaps, sequence, &count);
    for (size_t i = 0; i < count; i++)
        heaps_add_inherited(child, list[i], sequence);
    free(list);
    struct ttd_event destroy = heaps_destruction(child, position);
    for (struct custom_heap *heap = child->heaps.live.last, *before; heap; heap = before) {
        uint64_t end = heap->end;
        before = heap->before;
        if (end == 0)
            continue;
        destroy_one(child, heap, &destroy);
        heap->end = end; /* so that a child of the child has it as this one */
    }
    return list && parent->heaps.forgotten <= sequence;
}

void heaps_end(struct process *process, struct ttd_position position)
{
    struct ttd_event destroy = heaps_destruction(process, position);
    while (process->heaps.live.last)
        destroy_one(process, process->heaps.live.last, &destroy);
    while (process->heaps.destroyed.first)
        heap_table_forget(&process->heaps);
}
