/* SPDX-License-Identifier: MIT */
#include "collect/process/heaps.h"

#include <stdlib.h>
#include <string.h>

#include <ttdtrace/live_heap.h>

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
static struct ttd_event destruction(const struct process *process, struct ttd_position position)
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
        struct ttd_event destroy = destruction(process, position);
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
static void add_inherited(struct process *child, const struct custom_heap *heap, uint64_t sequence)
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
        add_inherited(child, list[i], sequence);
    free(list);
    struct ttd_event destroy = destruction(child, position);
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
    struct ttd_event destroy = destruction(process, position);
    while (process->heaps.live.last)
        destroy_one(process, process->heaps.live.last, &destroy);
    while (process->heaps.destroyed.first)
        heap_table_forget(&process->heaps);
}
