/* SPDX-License-Identifier: MIT */
#include "heaps.h"

#include <stdlib.h>
#include <string.h>

#include <ttdtrace/live_heap.h>

/* Heaps that exist at a time, at most: the program is not to use up the collector's memory. */
enum { HEAPS_MAX = 1 << 20, FIRST_BUCKETS = 64 };

/* A heap, in the chain of its bucket, in the list of its siblings, and in the list of all heaps,
 * which has parents before what lies within them. */
struct custom_heap {
    uint64_t handle;
    uint64_t sequence; /* when it was defined */
    ttd_id id, name;
    struct custom_heap *chained;
    struct custom_heap *parent; /* NULL for that of malloc, or none, or if the parent has gone */
    bool is_outer;              /* it has none */
    struct custom_heap *child, *sibling, *sibling_before;
    struct custom_heap *before, *after;
    char text[]; /* its name */
};

static size_t bucket_of(const struct process *process, uint64_t handle)
{
    uint64_t key = process->trace->stacks.key; /* a program cannot cause collisions */
    __uint128_t product = (__uint128_t)(handle ^ key) * (key | 1);
    return ((uint64_t)(product >> 64) ^ (uint64_t)product) & (process->heaps.bucket_count - 1);
}

static struct custom_heap *find(const struct process *process, uint64_t handle)
{
    if (process->heaps.bucket_count == 0)
        return NULL;
    struct custom_heap *heap = process->heaps.buckets[bucket_of(process, handle)];
    while (heap != NULL && heap->handle != handle)
        heap = heap->chained;
    return heap;
}

static void chain(struct process *process, struct custom_heap *heap)
{
    struct custom_heap **bucket = &process->heaps.buckets[bucket_of(process, heap->handle)];
    heap->chained = *bucket;
    *bucket = heap;
}

/* Makes the table larger when it is full. False if it cannot take another heap. */
static bool reserve(struct process *process)
{
    struct custom_heaps *heaps = &process->heaps;
    if (heaps->count < heaps->bucket_count)
        return true;
    size_t count = heaps->bucket_count != 0 ? heaps->bucket_count * 2 : FIRST_BUCKETS;
    struct custom_heap **buckets =
        count <= HEAPS_MAX ? calloc(count, sizeof(struct custom_heap *)) : NULL;
    if (buckets == NULL)
        return false;
    free(heaps->buckets);
    heaps->buckets = buckets;
    heaps->bucket_count = count;
    for (struct custom_heap *heap = heaps->first; heap != NULL; heap = heap->after)
        chain(process, heap);
    return true;
}

static void link_heap(struct process *process, struct custom_heap *heap)
{
    struct custom_heaps *heaps = &process->heaps;
    if (heap->parent != NULL) {
        heap->sibling = heap->parent->child;
        if (heap->sibling != NULL)
            heap->sibling->sibling_before = heap;
        heap->parent->child = heap;
    }
    heap->before = heaps->last;
    *(heaps->last != NULL ? &heaps->last->after : &heaps->first) = heap;
    heaps->last = heap;
    heaps->count++;
    chain(process, heap);
}

/* Adds a heap, and defines it in the trace. NULL if there is no room. */
static struct custom_heap *add(struct process *process, const struct heap_definition *definition)
{
    const struct custom_heap *last = process->heaps.last;
    size_t size =
        definition->size < TTD_LIVE_HEAP_NAME_MAX ? definition->size : TTD_LIVE_HEAP_NAME_MAX;
    struct custom_heap *heap = reserve(process) ? calloc(1, sizeof *heap + size + 1) : NULL;
    if (heap == NULL)
        return NULL;
    heap->handle = definition->handle;
    heap->sequence = definition->sequence;
    heap->is_outer = definition->parent == HEAP_OUTER;
    heap->parent = heap->is_outer ? NULL : find(process, definition->parent);
    if (size != 0)
        memcpy(heap->text, definition->name, size);
    bool is_same = last != NULL && strcmp(last->text, heap->text) == 0;
    heap->name = is_same ? last->name : trace_text(process->trace, heap->text);
    ttd_id parent = heap->parent != NULL ? heap->parent->id : process->trace->heap;
    heap->id =
        trace_heap(process->trace, &(struct ttd_heap){.handle = heap->handle, .name = heap->name},
                   heap->is_outer ? TTD_NONE : parent);
    link_heap(process, heap);
    return heap;
}

/* Forgets a heap. Those within it stay, without a parent. */
static void drop(struct process *process, struct custom_heap *heap)
{
    struct custom_heaps *heaps = &process->heaps;
    struct custom_heap **link = &heaps->buckets[bucket_of(process, heap->handle)];
    while (*link != heap)
        link = &(*link)->chained;
    *link = heap->chained;
    if (heap->sibling_before != NULL)
        heap->sibling_before->sibling = heap->sibling;
    else if (heap->parent != NULL)
        heap->parent->child = heap->sibling;
    if (heap->sibling != NULL)
        heap->sibling->sibling_before = heap->sibling_before;
    for (struct custom_heap *child = heap->child; child != NULL; child = child->sibling)
        child->parent = NULL;
    *(heap->before != NULL ? &heap->before->after : &heaps->first) = heap->after;
    *(heap->after != NULL ? &heap->after->before : &heaps->last) = heap->before;
    heaps->count--;
    free(heap);
}

void heaps_define(struct process *process, const struct heap_definition *definition)
{
    struct custom_heap *old = find(process, definition->handle);
    if (old != NULL)
        drop(process, old);
    add(process, definition);
}

/* Destroys all heaps within `top`, the innermost first, and forgets them. */
static void destroy_within(struct process *process, struct custom_heap *top,
                           struct ttd_event *destroy)
{
    struct custom_heap *heap = top;
    while (heap != top || top->child != NULL) {
        while (heap->child != NULL)
            heap = heap->child;
        struct custom_heap *parent = heap->parent;
        destroy->heap = heap->id;
        trace_event(process->trace, destroy, destroy->time_start);
        drop(process, heap);
        heap = parent;
    }
}

void heaps_complete(struct process *process, const struct thread_stream *thread,
                    struct ttd_event *event)
{
    const uint64_t *operands = thread->operands;
    event->wall_time = thread->wall_time;
    struct custom_heap *heap = find(process, operands[0]);
    if (heap == NULL)
        heap = add(process, &(struct heap_definition){.handle = operands[0],
                                                      .sequence = event->time_start.sequence});
    event->heap = heap != NULL ? heap->id : TTD_NONE;
    event->parameters = NULL; /* the rest of the event gives them */
    if (event->action == TTD_ACTION_CREATE) {
        event->result = 1;
        event->reserve_size = operands[1];
        event->commit_size = operands[2];
    } else if (event->action == TTD_ACTION_PROTECT) {
        event->make_read_only = operands[1];
    } else if (event->action == TTD_ACTION_DESTROY && heap != NULL) {
        struct ttd_event within = *event;
        within.time_end = within.time_start;
        destroy_within(process, heap, &within);
        drop(process, heap);
    }
}

static uint64_t parent_of(const struct custom_heap *heap)
{
    if (heap->is_outer)
        return HEAP_OUTER;
    return heap->parent != NULL ? heap->parent->handle : 0;
}

void heaps_inherit(struct process *child, const struct process *parent, uint64_t sequence)
{
    for (const struct custom_heap *heap = parent->heaps.first; heap != NULL; heap = heap->after)
        if (heap->sequence <= sequence)
            add(child, &(struct heap_definition){.handle = heap->handle,
                                                 .parent = parent_of(heap),
                                                 .sequence = heap->sequence,
                                                 .name = heap->text,
                                                 .size = strlen(heap->text)});
}

void heaps_end(struct process *process, struct ttd_position position)
{
    struct ttd_event destroy = {.action = TTD_ACTION_DESTROY,
                                .api = TTD_API_OTHER,
                                .result = 1,
                                .wall_time = process->trace->clock,
                                .time_start = position,
                                .time_end = position};
    while (process->heaps.last != NULL) {
        destroy.heap = process->heaps.last->id;
        trace_event(process->trace, &destroy, position);
        drop(process, process->heaps.last);
    }
}

void heaps_free(struct process *process)
{
    while (process->heaps.last != NULL)
        drop(process, process->heaps.last);
    free(process->heaps.buckets);
}
