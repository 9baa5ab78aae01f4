/* SPDX-License-Identifier: MIT */
#include "snapshot/search/shared_pages.h"

#include <stdlib.h>
#include <time.h>

struct shared_pages {
    struct shared_chunk chunks[SHARED_CHUNKS]; /* by a hash of their identity */
};

struct shared_pages *shared_pages_new(void)
{
    return calloc(1, sizeof(struct shared_pages));
}

void shared_pages_free(struct shared_pages *shared)
{
    free(shared);
}

uint64_t shared_pages_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t shared_chunk_index(const struct region *region, uint64_t address)
{
    return (address + region->shared_shift) / REGION_PAGE / SHARED_CHUNK_PAGES;
}

/* Returns the only place where the chunk of an address may be. */
static struct shared_chunk *shared_chunk_place(struct shared_pages *shared,
                                               const struct region *region, uint64_t address)
{
    uint64_t hash = shared_chunk_index(region, address) + region->shared_inode * 0x9e3779b1;
    return &shared->chunks[hash % SHARED_CHUNKS];
}

static bool shared_chunk_is_of(const struct shared_chunk *chunk, const struct region *region,
                               uint64_t address)
{
    return chunk->since != 0 && chunk->device == region->shared_device &&
           chunk->inode == region->shared_inode &&
           chunk->index == shared_chunk_index(region, address);
}

/* Whether the process already stood still when the chunk was searched. */
static bool shared_chunk_is_fresh(const struct shared_chunk *chunk,
                                  const struct shared_search *search)
{
    return search->still_since != 0 && search->still_since <= chunk->since;
}

static bool shared_chunk_points(const struct shared_chunk *chunk, const struct heap_pages *pages)
{
    if (chunk->value_count > SHARED_CHUNK_VALUES)
        return true;
    for (uint32_t i = 0; i < chunk->value_count; i++)
        if (heap_pages_has(pages, (uint64_t)chunk->values[i] << HEAP_PAGE_BITS))
            return true;
    return false;
}

struct shared_known shared_pages_known(const struct shared_search *search,
                                       const struct region *region, uint64_t address,
                                       const struct heap_pages *pages)
{
    if (!search->shared || search->still_since == 0)
        return (struct shared_known){0, 0};
    const struct shared_chunk *chunk = shared_chunk_place(search->shared, region, address);
    if (!shared_chunk_is_of(chunk, region, address) || !shared_chunk_is_fresh(chunk, search))
        return (struct shared_known){0, 0};
    if (chunk->low > pages->low || shared_chunk_points(chunk, pages))
        return (struct shared_known){chunk->empty, chunk->searched};
    return (struct shared_known){chunk->empty | chunk->searched, 0};
}

struct shared_chunk *shared_pages_note(const struct shared_search *search,
                                       const struct region *region, uint64_t address, uint64_t low)
{
    if (!search->shared || !search->notes)
        return NULL;
    struct shared_chunk *chunk = shared_chunk_place(search->shared, region, address);
    bool is_same = shared_chunk_is_of(chunk, region, address) &&
                   (chunk->since == search->begin || shared_chunk_is_fresh(chunk, search)) &&
                   chunk->low >= low;
    if (!is_same)
        *chunk = (struct shared_chunk){.device = region->shared_device,
                                       .inode = region->shared_inode,
                                       .index = shared_chunk_index(region, address),
                                       .since = search->begin,
                                       .low = low};
    return chunk;
}

void shared_chunk_add_new(struct shared_chunk *chunk, uint32_t page)
{
    uint32_t count = chunk->value_count;
    for (uint32_t i = 0; i < count && i < SHARED_CHUNK_VALUES; i++)
        if (chunk->values[i] == page)
            return;
    if (count < SHARED_CHUNK_VALUES)
        chunk->values[count] = page;
    chunk->value_count = count < SHARED_CHUNK_VALUES ? count + 1 : SHARED_CHUNK_VALUES + 1;
}
