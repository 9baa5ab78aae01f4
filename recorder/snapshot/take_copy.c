/* SPDX-License-Identifier: MIT */
/* The part of taking a snapshot that lets the process go on early. */
#include "snapshot/taking.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "snapshot/reader.h"

/* Time to read a copy, in units of that for which a process may be held: less than a process at its
 * end waits. */
enum { COPY_PATIENCE = 8 };

#define FOLLOW_NS UINT64_C(2000000)

/* Returns the mapping that an address lies in; NULL if there is none. */
static const struct mapping *mapping_at(const struct maps *maps, uint64_t address)
{
    size_t low = 0, high = maps->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (maps->items[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_in = low < maps->count && maps->items[low].begin <= address;
    return is_in ? &maps->items[low] : NULL;
}

static bool is_in_gap(const struct copy_gaps *gaps, uint64_t begin, uint64_t end)
{
    for (size_t i = 0; i < gaps->count; i++)
        if (begin < gaps->items[i].end && end > gaps->items[i].begin)
            return true;
    return false;
}

/* Whether others may write the memory of a region. */
static bool is_shared(const struct taking *taking, const struct region *region)
{
    const struct mapping *mapping = mapping_at(&taking->layout.maps, region->begin);
    return mapping != NULL && mapping->is_shared;
}

bool taking_is_apart(const struct taking *taking, const struct region *region)
{
    return taking->is_copy_due && region->kind != TTD_REGION_HEAP &&
           (region->untouched != UNTOUCHED_EMPTY || is_shared(taking, region) ||
            is_in_gap(&taking->gaps, region->begin, region->end));
}

/* Whether memory that blocks come from is in a gap. */
static bool has_heap_in_gap(const struct taking *taking)
{
    for (size_t i = 0; i < taking->gaps.count; i++)
        if (heap_pages_touch(taking->subject.pages, taking->gaps.items[i].begin,
                             taking->gaps.items[i].end))
            return true;
    return false;
}

/* Whether the copy has all that the process has, but for what is shared and the gaps. */
static bool is_whole(const struct taking *taking)
{
    struct maps maps;
    bool is_whole = maps_read(&maps, taking->copy.pid, taking->copy.pid);
    for (size_t i = 0; is_whole && i < taking->layout.maps.count; i++) {
        const struct mapping *mapping = &taking->layout.maps.items[i];
        const struct mapping *counterpart = mapping_at(&maps, mapping->begin);
        is_whole = mapping->is_shared || is_in_gap(&taking->gaps, mapping->begin, mapping->end) ||
                   (counterpart != NULL && counterpart->begin == mapping->begin &&
                    counterpart->end == mapping->end);
    }
    maps_free(&maps);
    return is_whole;
}

/* Whether the program has marked memory to be empty in copies since the gaps were found. */
static bool has_new_gap(const struct taking *taking)
{
    struct copy_gaps now;
    bool is_new = !copy_is_due(taking->copy.pid, 0, &now);
    for (size_t i = 0; i < now.count; i++)
        is_new |= !is_in_gap(&taking->gaps, now.items[i].begin, now.items[i].end);
    copy_gaps_free(&now);
    return is_new;
}

void taking_end_copy(void *context)
{
    struct taking *taking = context;
    const struct snapshot_order *order = taking->order;
    taking->snapshot->duration += copy_end(&taking->copy, order->borrowed, order->copies,
                                           order->pid, order->child, order->interrupted);
    if (taking->process >= 0)
        close(taking->process);
    taking->process = -1;
    heap_pages_free(&taking->pages);
}

/* The thread that traces the process makes a copy, ends it again, or lets the process go. */
static void taking_make_copy(void *context)
{
    struct taking *taking = context;
    const struct snapshot_order *order = taking->order;
    taking->is_copied = !taking->has_let_go &&
                        copy_make(&taking->copy, &taking->threads, order->borrowed, order->copies);
}

static void taking_drop_copy(void *context)
{
    struct taking *taking = context;
    const struct snapshot_order *order = taking->order;
    if (taking->has_let_go)
        taking_end_copy(taking);
    else
        copy_drop(&taking->copy, &taking->threads, order->borrowed, order->copies);
}

static void taking_let_threads_go(void *context)
{
    struct taking *taking = context;
    if (!taking->has_let_go)
        threads_release(&taking->threads);
    taking->held_since = 0;
}

/* Makes a copy, and opens its memory. */
static bool has_copy(struct taking *taking, struct memory *memory)
{
    if (!taking->is_copy_due || has_heap_in_gap(taking))
        return false;
    reader_ask(taking_make_copy, taking);
    if (!taking->is_copied)
        return false;
    if (is_whole(taking) && memory_open_copy(memory, taking->copy.pid))
        return true;
    reader_ask(taking_drop_copy, taking);
    return false;
}

void taking_release(struct taking *taking)
{
    const struct snapshot_order *order = taking->order;
    struct memory memory;
    if (!has_copy(taking, &memory)) {
        if (!taking->threads.are_stopped) /* one has not come back, and goes on */
            taking->snapshot->flags &= ~TTD_SNAPSHOT_STOPPED;
        return;
    }
    memory_close(&taking->memory);
    taking->memory = memory;
    taking->process = (int)syscall(SYS_pidfd_open, (pid_t)order->pid, 0);
    reader_ask(taking_let_threads_go, taking);
    taking->snapshot->flags |= TTD_SNAPSHOT_COPIED;
    taking->snapshot->duration = taking_now_ns() - taking->begin;
    taking->deadline = taking_now_ns() + COPY_PATIENCE * order->time_limit;
    taking->memory.deadline = taking->deadline;
    if (has_new_gap(taking))
        taking->snapshot->flags |= TTD_SNAPSHOT_INCOMPLETE;
}

void taking_tick(void *context)
{
    struct taking *taking = context;
    const struct snapshot_calls *calls = &taking->order->calls;
    calls->tick(calls->context);
    if (taking->copy.pid == 0 || taking_now_ns() - taking->followed < FOLLOW_NS)
        return;
    calls->follow(calls->context);
    taking->followed = taking_now_ns();
    /* The copy would keep open what an ended process had open. */
    struct pollfd process = {.fd = taking->process, .events = POLLIN};
    if (taking->process >= 0 && poll(&process, 1, 0) > 0)
        taking->memory.deadline = 1;
}
