/* SPDX-License-Identifier: MIT */
#include "collect/process/heap_table.h"

#include <stdlib.h>

/* Bounds of the remembered heaps, and of the destroyed ones among them: the program is not to use
 * up the collector's memory. */
enum { HEAPS_MAX = 1 << 20, ENDED_MAX = 1024, FIRST_BUCKETS = 64 };

static struct custom_heap **bucket_of(const struct custom_heaps *heaps, uint64_t handle)
{
    __uint128_t product = (__uint128_t)(handle ^ heaps->key) * (heaps->key | 1);
    return &heaps->buckets[((uint64_t)(product >> 64) ^ (uint64_t)product) &
                           (heaps->bucket_count - 1)];
}

struct custom_heap *heap_table_find(const struct custom_heaps *heaps, uint64_t handle)
{
    struct custom_heap *heap = heaps->bucket_count != 0 ? *bucket_of(heaps, handle) : NULL;
    while (heap && heap->handle != handle)
        heap = heap->chained;
    return heap;
}

static void chain(struct custom_heaps *heaps, struct custom_heap *heap)
{
    struct custom_heap **bucket = bucket_of(heaps, heap->handle);
    heap->chained = *bucket;
    *bucket = heap;
}

struct custom_heap *heap_table_find_live(const struct custom_heaps *heaps, uint64_t handle)
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
        chain(heaps, heap);
    for (struct custom_heap *heap = heaps->live.first; heap; heap = heap->after)
        chain(heaps, heap);
    return true;
}

static void heap_list_append(struct heap_list *list, struct custom_heap *heap)
{
    heap->before = list->last;
    heap->after = NULL;
    *(list->last ? &list->last->after : &list->first) = heap;
    list->last = heap;
}

static void take_out(struct heap_list *list, struct custom_heap *heap)
{
    *(heap->before ? &heap->before->after : &list->first) = heap->after;
    *(heap->after ? &heap->after->before : &list->last) = heap->before;
}

/* Takes a heap from its siblings, and from those within it, which stay without a parent. */
static void leave_family(struct custom_heap *heap)
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

void heap_table_forget(struct custom_heaps *heaps)
{
    struct custom_heap *heap = heaps->destroyed.first;
    struct custom_heap **link = bucket_of(heaps, heap->handle);
    while (*link != heap)
        link = &(*link)->chained;
    *link = heap->chained;
    take_out(&heaps->destroyed, heap);
    heaps->forgotten = heap->end;
    heaps->ended_count--;
    heaps->count--;
    free(heap);
}

void heap_table_end(struct custom_heaps *heaps, struct custom_heap *heap, uint64_t sequence)
{
    leave_family(heap);
    take_out(&heaps->live, heap);
    heap->has_ended = true;
    heap->end = sequence;
    heap_list_append(&heaps->destroyed, heap);
    if (++heaps->ended_count > ENDED_MAX)
        heap_table_forget(heaps);
}

struct custom_heap *heap_table_new(struct custom_heaps *heaps, size_t size)
{
    return heap_table_reserve(heaps) ? calloc(1, sizeof(struct custom_heap) + size + 1) : NULL;
}

void heap_table_add(struct custom_heaps *heaps, struct custom_heap *heap)
{
    if (heap->parent) {
        heap->sibling = heap->parent->child;
        if (heap->sibling)
            heap->sibling->sibling_before = heap;
        heap->parent->child = heap;
    }
    heap_list_append(&heaps->live, heap);
    heaps->count++;
    chain(heaps, heap);
}

static int compare_sequences(const void *left, const void *right)
{
    const struct custom_heap *a = *(struct custom_heap *const *)left;
    const struct custom_heap *b = *(struct custom_heap *const *)right;
    return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

struct custom_heap **heap_table_list(const struct custom_heaps *heaps, uint64_t sequence,
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
        qsort(list, *count, sizeof *list, compare_sequences);
    return list;
}

static void free_list(struct heap_list *list)
{
    for (struct custom_heap *heap = list->first, *after; heap; heap = after) {
        after = heap->after;
        free(heap);
    }
}

void heap_table_free(struct custom_heaps *heaps)
{
    free_list(&heaps->live);
    free_list(&heaps->destroyed);
    free(heaps->buckets);
}
