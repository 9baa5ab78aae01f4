/* SPDX-License-Identifier: MIT */
/*
 * Reports talloc's contexts to the recorder. A library to be loaded before talloc:
 *
 *     cc -shared -fPIC -D_GNU_SOURCE -o contexts.so talloc.c
 *     ttdrecord -o trace.bin -- env LD_PRELOAD=$PWD/contexts.so program
 *
 * A chunk of no bytes, such as talloc_new() makes, is a heap; every other chunk is a block of the
 * nearest such chunk around it. Chunks without one are blocks of a heap called "talloc".
 */
#include <stdarg.h>
#include <stdbool.h>

#include <talloc.h>

#include "report.h"

static const char outermost;

__attribute__((constructor)) static void report_outermost(void)
{
    open_client();
    ttd_live_heap_create(client, &outermost, NULL, "talloc");
}

static bool is_heap(const void *chunk)
{
    return talloc_get_size(chunk) == 0;
}

/* Returns the heap that a chunk is a block of, or lies within. */
static const void *heap_around(const void *chunk)
{
    do
        chunk = talloc_parent(chunk);
    while (chunk && !is_heap(chunk));
    return chunk ? chunk : &outermost;
}

/* Reports a new chunk. Returns it. */
static void *report_new(void *chunk)
{
    if (!client || !chunk)
        return chunk;
    if (is_heap(chunk))
        ttd_live_heap_create(client, chunk, heap_around(chunk), talloc_get_name(chunk));
    else
        ttd_live_heap_alloc(client, heap_around(chunk), chunk, talloc_get_size(chunk));
    return chunk;
}

/* Reports the end of a chunk in a tree, unless that of a heap in the tree says it. `heap` is the
 * one around the tree. */
static void report_end(const void *chunk, int depth, int max_depth, int is_reference, void *heap)
{
    (void)depth, (void)max_depth;
    if (is_reference || heap_around(chunk) != heap)
        return;
    if (is_heap(chunk))
        ttd_live_heap_destroy(client, chunk);
    else
        ttd_live_heap_free(client, heap, chunk);
}

static void report_moved(const void *chunk, int depth, int max_depth, int is_reference, void *heap)
{
    (void)depth, (void)max_depth;
    if (!is_reference && !is_heap(chunk) && heap_around(chunk) == heap)
        ttd_live_heap_alloc(client, heap, chunk, talloc_get_size(chunk));
}

/* Calls a function for a chunk and all within it. */
static void each(const void *chunk, void (*function)(const void *, int, int, int, void *))
{
    if (client && chunk)
        talloc_report_depth_cb((void *)chunk, 0, -1, function, (void *)heap_around(chunk));
}

#define NEW(name, parameters, arguments)                                                           \
    void *name parameters                                                                          \
    {                                                                                              \
        REAL(name);                                                                                \
        return report_new(real arguments);                                                         \
    }

NEW(_talloc, (const void *context, size_t size), (context, size))
NEW(_talloc_zero, (const void *context, size_t size, const char *name), (context, size, name))
NEW(_talloc_array, (const void *context, size_t size, unsigned count, const char *name),
    (context, size, count, name))
NEW(_talloc_zero_array, (const void *context, size_t size, unsigned count, const char *name),
    (context, size, count, name))
NEW(_talloc_memdup, (const void *context, const void *bytes, size_t size, const char *name),
    (context, bytes, size, name))
NEW(talloc_named_const, (const void *context, size_t size, const char *name), (context, size, name))
NEW(talloc_pool, (const void *context, size_t size), (context, size))

#undef talloc_strdup
char *talloc_strdup(const void *context, const char *text)
{
    REAL(talloc_strdup);
    return report_new(real(context, text));
}

char *talloc_strndup(const void *context, const char *text, size_t limit)
{
    REAL(talloc_strndup);
    return report_new(real(context, text, limit));
}

char *talloc_vasprintf(const void *context, const char *format, va_list arguments)
{
    REAL(talloc_vasprintf);
    return report_new(real(context, format, arguments));
}

char *talloc_asprintf(const void *context, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = talloc_vasprintf(context, format, arguments);
    va_end(arguments);
    return text;
}

void *_talloc_realloc(const void *context, void *chunk, size_t size, const char *name)
{
    REAL(_talloc_realloc);
    bool is_block = client && chunk && size != 0 && !is_heap(chunk);
    const void *heap = is_block ? heap_around(chunk) : NULL;
    if (client && chunk && size == 0) /* releases it */
        each(chunk, report_end);
    void *moved = real(context, chunk, size, name);
    if (!chunk)
        return report_new(moved);
    ttd_live_heap_realloc(client, heap, chunk, moved, size);
    return moved;
}

int _talloc_free(void *chunk, const char *location)
{
    REAL(_talloc_free);
    if (chunk && talloc_reference_count(chunk) == 0)
        each(chunk, report_end);
    return real(chunk, location);
}

/* Blocks leave one heap for another. */
void *_talloc_steal_loc(const void *context, const void *chunk, const char *location)
{
    REAL(_talloc_steal_loc);
    bool is_block = client && chunk && !is_heap(chunk);
    if (is_block)
        each(chunk, report_end);
    void *stolen = real(context, chunk, location);
    if (is_block)
        each(stolen ? stolen : chunk, report_moved);
    return stolen;
}
