/* SPDX-License-Identifier: MIT */
#include "analyses/state/fragmentation.h"

#include <stdlib.h>

#include "analyses/state/state.h"
#include "base/grow.h"
#include "heap/heap_live.h"

/* The page that the sweep is at. */
struct sparse_sweep {
    struct heap_sparse_pages *sparse;
    const struct heap_block *blocks;
    /** The blocks in order of address; NULL if `blocks` are in that order. */
    const struct sort_key *keys;
    uint64_t page;
    /** Bytes of the page in blocks, and the last address that is covered up to now. */
    uint64_t covered;
    uint64_t last;
    /** Index of the first block that may touch the page. */
    size_t first;
    bool has_page;
};

static enum ttd_status sparse_find_site(struct heap_sparse_pages *sparse, ttd_id stack,
                                        struct heap_sparse_site **site)
{
    uint32_t index = map_get(&sparse->by_key, stack, 0);
    if (index == MAP_NONE) {
        enum ttd_status status = grow_array((void **)&sparse->sites, &sparse->capacity,
                                            sparse->count + 1, sizeof *sparse->sites);
        index = (uint32_t)sparse->count;
        if (status == TTD_OK)
            status = map_set(&sparse->by_key, stack, 0, index);
        if (status != TTD_OK)
            return status;
        sparse->sites[sparse->count++] = (struct heap_sparse_site){.key.stack = stack};
    }
    *site = &sparse->sites[index];
    return TTD_OK;
}

static const struct heap_block *sparse_block(const struct sparse_sweep *sweep, size_t index)
{
    return &sweep->blocks[sweep->keys ? sweep->keys[index].index : index];
}

static bool sparse_touches(const struct sparse_sweep *sweep, size_t index)
{
    return heap_block_last(sparse_block(sweep, index)) / HEAP_PAGE >= sweep->page;
}

/* Returns the number of bytes of the page that a block has. */
static uint64_t sparse_part(const struct sparse_sweep *sweep, const struct heap_block *block)
{
    uint64_t begin = sweep->page * HEAP_PAGE, last = begin + (HEAP_PAGE - 1);
    uint64_t from = block->address > begin ? block->address : begin;
    uint64_t to = heap_block_last(block) < last ? heap_block_last(block) : last;
    return block->size ? to - from + 1 : 0;
}

/* Shares the page among the blocks up to `end`, if it is sparse. */
static enum ttd_status sparse_end_page(struct sparse_sweep *sweep, size_t end)
{
    struct heap_sparse_pages *sparse = sweep->sparse;
    uint64_t remaining = 0, kept = HEAP_PAGE - sweep->covered;
    sparse->pages++;
    if (sweep->covered >= HEAP_PAGE_SPARSE)
        return TTD_OK;
    sparse->sparse++;
    for (size_t i = sweep->first; i < end; i++)
        remaining += sparse_touches(sweep, i);
    for (size_t i = sweep->first; i < end; i++) {
        struct heap_sparse_site *site;
        if (!sparse_touches(sweep, i))
            continue;
        const struct heap_block *block = sparse_block(sweep, i);
        enum ttd_status status = sparse_find_site(sparse, block->stack, &site);
        if (status != TTD_OK)
            return status;
        uint64_t share = kept / remaining--;
        kept -= share;
        site->blocks++;
        site->bytes += sparse_part(sweep, block);
        site->kept += share;
    }
    return TTD_OK;
}

static void sparse_begin_page(struct sparse_sweep *sweep, uint64_t page, size_t first)
{
    sweep->page = page;
    sweep->covered = 0;
    sweep->first = first;
    sweep->has_page = true;
}

/* Covers the addresses of a block that no block before it does. */
static enum ttd_status sparse_cover(struct sparse_sweep *sweep, size_t index)
{
    const struct heap_block *block = sparse_block(sweep, index);
    uint64_t last = heap_block_last(block);
    uint64_t from = block->address;
    if (index && from <= sweep->last)
        from = sweep->last + 1;
    /* Another block has all of it, up to the end of the address space perhaps. */
    if (index && (last <= sweep->last || !from))
        return TTD_OK;
    sweep->last = last;
    uint64_t last_page = last / HEAP_PAGE;
    if (last_page > sweep->page) {
        sweep->covered += (sweep->page + 1) * HEAP_PAGE - from;
        enum ttd_status status = sparse_end_page(sweep, index + 1);
        if (status != TTD_OK)
            return status;
        /* The pages between the first and the last are full. */
        sweep->sparse->pages += last_page - sweep->page - 1;
        sparse_begin_page(sweep, last_page, index);
        from = last_page * HEAP_PAGE;
    }
    sweep->covered += block->size ? last - from + 1 : 0;
    return TTD_OK;
}

static enum ttd_status sparse_add(struct sparse_sweep *sweep, size_t index)
{
    uint64_t page = sparse_block(sweep, index)->address / HEAP_PAGE;
    if (!sweep->has_page || page > sweep->page) {
        enum ttd_status status = sweep->has_page ? sparse_end_page(sweep, index) : TTD_OK;
        if (status != TTD_OK)
            return status;
        sparse_begin_page(sweep, page, index);
    }
    return sparse_cover(sweep, index);
}

static void sparse_recount(void *owner)
{
    struct heap_sparse_pages *sparse = owner;
    sparse->total = (struct heap_sparse_site){.blocks = 0};
    for (size_t i = 0; i < sparse->count; i++) {
        sparse->total.blocks += sparse->sites[i].blocks;
        sparse->total.bytes += sparse->sites[i].bytes;
        sparse->total.kept += sparse->sites[i].kept;
    }
}

static int sparse_compare(const void *a, const void *b)
{
    const struct heap_sparse_site *x = a, *y = b;
    if (x->kept != y->kept)
        return x->kept < y->kept ? 1 : -1;
    return heap_key_compare(x->key, y->key);
}

/* Shares the pages of all blocks of a sweep. */
static enum ttd_status sparse_run(struct sparse_sweep *sweep, size_t count)
{
    struct heap_sparse_pages *sparse = sweep->sparse;
    enum ttd_status status = TTD_OK;
    *sparse = (struct heap_sparse_pages){.count = 0};
    map_init(&sparse->by_key);
    for (size_t i = 0; i < count && status == TTD_OK; i++)
        status = sparse_add(sweep, i);
    if (status == TTD_OK && sweep->has_page)
        status = sparse_end_page(sweep, count);
    if (sparse->count)
        qsort(sparse->sites, sparse->count, sizeof *sparse->sites, sparse_compare);
    sparse_recount(sparse);
    return status;
}

enum ttd_status heap_sparse_pages_find(const struct heap_block *blocks, size_t count,
                                       struct heap_sparse_pages *sparse)
{
    struct sparse_sweep sweep = {.sparse = sparse, .blocks = blocks};
    return sparse_run(&sweep, count);
}

/* Sorts keys of the live blocks, because copies of the blocks would take far more memory. */
static enum ttd_status sparse_finish(void *context, struct heap_arrival *arrival,
                                     struct ttd_error *error)
{
    const struct heap_live *live = &arrival->cursor.replay.live;
    size_t most = (size_t)live->count, count = 0, cursor = 0;
    struct sort_key *keys = malloc((2 * most + 1) * sizeof *keys);
    struct sparse_sweep sweep = {.sparse = context, .blocks = live->blocks, .keys = keys};
    const struct heap_block *block;
    (void)error;
    if (!keys)
        return TTD_ERROR_NO_MEMORY;
    while (count < most && (block = heap_live_each(live, &cursor)))
        keys[count++] = heap_block_key(live->blocks, block);
    heap_sort_blocks(live->blocks, keys, keys + most, count);
    enum ttd_status status = sparse_run(&sweep, count);
    free(keys);
    return status;
}

void heap_sparse_pages_watch(struct heap_sparse_pages *sparse, struct ttd_position at,
                             struct heap_pass *pass)
{
    struct heap_watcher watcher = {.observer.context = sparse,
                                   .to = at,
                                   .wants_blocks_only = heap_is_end(at),
                                   .finish = sparse_finish};
    *sparse = (struct heap_sparse_pages){.count = 0};
    heap_pass_add(pass, &watcher);
}

void heap_sparse_pages_free(struct heap_sparse_pages *sparse)
{
    free(sparse->sites);
    map_free(&sparse->by_key);
    *sparse = (struct heap_sparse_pages){.count = 0};
}

static void sparse_merge(void *target, const void *source)
{
    struct heap_sparse_site *sum = target;
    const struct heap_sparse_site *site = source;
    sum->blocks += site->blocks;
    sum->bytes += site->bytes;
    sum->kept += site->kept;
}

static struct heap_amount sparse_amount(const void *record)
{
    const struct heap_sparse_site *site = record;
    return (struct heap_amount){site->kept, site->kept, site->blocks};
}

struct heap_site_table heap_sparse_site_table(struct heap_sparse_pages *sparse)
{
    return (struct heap_site_table){.owner = sparse,
                                    .records = sparse->sites,
                                    .count = &sparse->count,
                                    .size = sizeof *sparse->sites,
                                    .merge = sparse_merge,
                                    .compare = sparse_compare,
                                    .amount_of = sparse_amount,
                                    .recount = sparse_recount};
}

static enum ttd_status fragmentation_begin_region(struct heap_fragmentation *fragmentation,
                                                  const struct heap_block *block)
{
    enum ttd_status status = grow_array((void **)&fragmentation->regions, &fragmentation->capacity,
                                        fragmentation->count + 1, sizeof *fragmentation->regions);
    if (status == TTD_OK)
        fragmentation->regions[fragmentation->count++] =
            (struct heap_region){.begin = block->address,
                                 .last = heap_block_last(block),
                                 .blocks = 1,
                                 .used = heap_block_last(block) - block->address + 1};
    return status;
}

/* Adds a block that begins in or behind a region. Blocks overlap where pools lie in blocks of other
 * heaps, and in a trace with losses. */
static void fragmentation_extend(struct heap_region *region, const struct heap_block *block)
{
    uint64_t last = heap_block_last(block);
    region->blocks++;
    if (block->address > region->last) {
        uint64_t gap = block->address - region->last - 1;
        region->gaps += gap > 0;
        region->unused += gap;
        region->overhead += gap < HEAP_GAP_FREE ? gap : 0;
        region->largest_gap = gap > region->largest_gap ? gap : region->largest_gap;
        region->used += last - block->address + 1;
    } else if (last > region->last) {
        region->used += last - region->last;
    }
    region->last = last > region->last ? last : region->last;
}

enum ttd_status heap_fragmentation_add(struct heap_fragmentation *fragmentation,
                                       const struct heap_block *block, uint64_t separating)
{
    /* Blocks come in order of address, so each belongs to the last region or begins a new one. */
    struct heap_region *region =
        fragmentation->count ? &fragmentation->regions[fragmentation->count - 1] : NULL;
    bool is_near = region && (block->address <= region->last ||
                              block->address - region->last - 1 < separating);
    if (!is_near)
        return fragmentation_begin_region(fragmentation, block);
    fragmentation_extend(region, block);
    return TTD_OK;
}

void heap_fragmentation_sum_up(struct heap_fragmentation *fragmentation)
{
    struct heap_region *total = &fragmentation->total;
    for (size_t i = 0; i < fragmentation->count; i++) {
        const struct heap_region *region = &fragmentation->regions[i];
        total->blocks += region->blocks;
        total->used += region->used;
        total->unused += region->unused;
        total->gaps += region->gaps;
        total->overhead += region->overhead;
        if (region->largest_gap > total->largest_gap)
            total->largest_gap = region->largest_gap;
    }
}

static enum ttd_status fragmentation_find_regions(struct heap_fragmentation *fragmentation,
                                                  const struct heap_state *state,
                                                  uint64_t separating)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < state->block_count && status == TTD_OK; i++)
        status = heap_fragmentation_add(fragmentation, &state->blocks[i], separating);
    heap_fragmentation_sum_up(fragmentation);
    return status;
}

enum ttd_status heap_fragmentation_find(const struct heap_trace *trace,
                                        const struct heap_fragmentation_options *options,
                                        struct heap_fragmentation *fragmentation,
                                        struct ttd_error *error)
{
    struct heap_state state;
    struct heap_state_options blocks = {.at = options->at, .keeps_blocks = true};
    *fragmentation = (struct heap_fragmentation){.count = 0};
    enum ttd_status status = heap_state_find(trace, &blocks, &state, error);
    if (status != TTD_OK)
        return status;
    fragmentation->outcome = state.outcome;
    status = fragmentation_find_regions(fragmentation, &state, options->gap);
    if (status == TTD_OK)
        status = heap_sparse_pages_find(state.blocks, state.block_count, &fragmentation->sparse);
    heap_state_free(&state);
    if (status != TTD_OK)
        heap_fragmentation_free(fragmentation);
    return status;
}

void heap_fragmentation_free(struct heap_fragmentation *fragmentation)
{
    free(fragmentation->regions);
    fragmentation->regions = NULL;
    heap_sparse_pages_free(&fragmentation->sparse);
}
