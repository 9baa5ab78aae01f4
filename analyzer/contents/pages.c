/* SPDX-License-Identifier: MIT */
#include "contents/pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

static int compare_chunks(const void *a, const void *b)
{
    const struct ttd_chunk *x = a;
    const struct ttd_chunk *y = b;
    if (x->first_record != y->first_record)
        return x->first_record < y->first_record ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static enum ttd_status contents_add_chunk(struct contents_pages *pages,
                                          const struct ttd_chunk *chunk)
{
    enum ttd_status status = grow_array((void **)&pages->chunks, &pages->capacity, pages->count + 1,
                                        sizeof *pages->chunks);
    if (status == TTD_OK)
        pages->chunks[pages->count++] = *chunk;
    return status;
}

enum ttd_status contents_pages_find(const struct heap_trace *trace, struct contents_pages *pages,
                                    struct ttd_error *error)
{
    *pages = (struct contents_pages){.reader = trace->reader};
    for (size_t i = 0; i < CONTENTS_KEPT; i++)
        pages->cache[i].index = SIZE_MAX;
    /* Headers only: pages may be gigabytes, and few of them are asked for. */
    enum ttd_status status = ttd_reader_rewind(trace->reader, TTD_KINDS_ALL);
    while (status == TTD_OK) {
        struct ttd_chunk chunk;
        status = ttd_reader_next_chunk(trace->reader, &chunk, error);
        if (status == TTD_OK && chunk.kind == TTD_KIND_PAGES)
            status = contents_add_chunk(pages, &chunk);
    }
    if (!heap_is_over(status) && status != TTD_ERROR_UNSUPPORTED) {
        contents_pages_free(pages);
        return status;
    }
    if (pages->count)
        qsort(pages->chunks, pages->count, sizeof *pages->chunks, compare_chunks);
    return TTD_OK;
}

void contents_pages_free(struct contents_pages *pages)
{
    for (size_t i = 0; i < CONTENTS_KEPT; i++)
        free(pages->cache[i].data);
    free(pages->chunks);
    *pages = (struct contents_pages){.count = 0};
}

/* The chunk that has a page, of several the first in the trace; SIZE_MAX if there is none. */
static size_t contents_find_chunk(const struct contents_pages *pages, uint64_t id)
{
    size_t first = 0;
    size_t end = pages->count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        const struct ttd_chunk *chunk = &pages->chunks[middle];
        if (chunk->first_record + chunk->record_count <= id)
            first = middle + 1;
        else
            end = middle;
    }
    return first < pages->count && pages->chunks[first].first_record <= id ? first : SIZE_MAX;
}

/* Reads a chunk of pages, and keeps a copy. A damaged one is kept as a chunk without pages. */
static enum ttd_status contents_load_chunk(struct contents_pages *pages, size_t index,
                                           struct contents_chunk *chunk, struct ttd_error *error)
{
    struct ttd_pages loaded;
    chunk->index = SIZE_MAX;
    chunk->pages = (struct ttd_pages){.count = 0};
    enum ttd_status status = ttd_reader_pages(pages->reader, &pages->chunks[index], &loaded, error);
    if (status == TTD_ERROR_IO || status == TTD_ERROR_NO_MEMORY)
        return status;
    if (status == TTD_OK) {
        size_t size = (size_t)loaded.count * loaded.page_size;
        status = grow_array((void **)&chunk->data, &chunk->capacity, size, 1);
        if (status != TTD_OK)
            return status;
        memcpy(chunk->data, loaded.data, size);
        chunk->pages = loaded;
    }
    chunk->index = index;
    return TTD_OK;
}

/* Finds a chunk among those that are kept, or reads it in place of the one unused for longest. */
static enum ttd_status need(struct contents_pages *pages, size_t index,
                            struct contents_chunk **chunk, struct ttd_error *error)
{
    struct contents_chunk *oldest = &pages->cache[0];
    enum ttd_status status = TTD_OK;
    *chunk = NULL;
    for (size_t i = 0; i < CONTENTS_KEPT && !*chunk; i++) {
        if (pages->cache[i].index == index)
            *chunk = &pages->cache[i];
        else if (pages->cache[i].last_use < oldest->last_use)
            oldest = &pages->cache[i];
    }
    if (!*chunk) {
        *chunk = oldest;
        status = contents_load_chunk(pages, index, oldest, error);
    }
    (*chunk)->last_use = ++pages->clock;
    return status;
}

enum ttd_status contents_pages_get(struct contents_pages *pages, uint64_t id, uint32_t size,
                                   const uint8_t **data, struct ttd_error *error)
{
    struct contents_chunk *chunk;
    size_t index = contents_find_chunk(pages, id);
    *data = NULL;
    if (index == SIZE_MAX)
        return TTD_OK;
    enum ttd_status status = need(pages, index, &chunk, error);
    if (status == TTD_OK && chunk->pages.count && chunk->pages.page_size == size)
        *data = chunk->data + (size_t)(id - chunk->pages.first_page) * size;
    return status;
}
