/* SPDX-License-Identifier: MIT */
/*
 * Reports the heap of Boehm's collector to the recorder. A library to be loaded before libgc:
 *
 *     cc -shared -fPIC -D_GNU_SOURCE -o collected.so gc.c
 *     ttdrecord -o trace.bin -- env LD_PRELOAD=$PWD/collected.so program
 *
 * A block is released when its finalizer runs: the collector has found that nothing leads to it. A
 * program with finalizers of its own loses these reports for the objects that have them. While the
 * collector has stopped the other threads, the heap is locked.
 */
#include <gc.h>

#include "report.h"

static const char heap;

/* Set while the collector allocates and frees on its own behalf. */
static __thread bool is_within;

static void report_collection(GC_EventType event)
{
    if (event == GC_EVENT_PRE_STOP_WORLD)
        ttd_live_heap_lock(client, &heap);
    else if (event == GC_EVENT_POST_START_WORLD)
        ttd_live_heap_unlock(client, &heap);
}

void GC_init(void)
{
    REAL(GC_init);
    static bool is_known;
    real();
    if (!client || is_known)
        return;
    is_known = true;
    ttd_live_heap_create_sized(client, &heap, TTD_LIVE_HEAP_SYSTEM, "Boehm's collector", 0,
                               GC_get_heap_size());
    GC_set_on_collection_event(report_collection);
}

static void report_end(void *block, void *unused)
{
    (void)unused;
    ttd_live_heap_free(client, &heap, block);
}

static void *report_new(void *block, size_t size)
{
    if (!client || !block || is_within)
        return block;
    GC_init();
    ttd_live_heap_alloc(client, &heap, block, size);
    GC_register_finalizer_no_order(block, report_end, NULL, NULL, NULL);
    return block;
}

void *GC_malloc(size_t size)
{
    REAL(GC_malloc);
    return report_new(real(size), size);
}

void *GC_malloc_atomic(size_t size)
{
    REAL(GC_malloc_atomic);
    return report_new(real(size), size);
}

void *GC_realloc(void *old, size_t size)
{
    REAL(GC_realloc);
    if (!old)
        return GC_malloc(size);
    is_within = true;
    void *block = real(old, size);
    is_within = false;
    ttd_live_heap_realloc(client, &heap, old, block, size);
    if (client && block && block != old)
        GC_register_finalizer_no_order(block, report_end, NULL, NULL, NULL);
    return block;
}

void GC_free(void *block)
{
    REAL(GC_free);
    if (client && block) {
        GC_register_finalizer_no_order(block, NULL, NULL, NULL, NULL);
        if (!is_within)
            ttd_live_heap_free(client, &heap, block);
    }
    real(block);
}
