/* SPDX-License-Identifier: MIT */
/* Damage: headers of blocks in a snapshot that the GNU C library cannot have written. */
#include <stdlib.h>
#include <string.h>

#include "analyses/errors/errors_parts.h"
#include "base/grow.h"
#include "common/search.h"

/** A header lies this far in front of its block, and memory of blocks ends there. */
#define HEADER_BYTES 8

/** A flag of a header that is never set; and one that all blocks with mappings of their own have.
 */
#define HEADER_NEVER_SET 8
#define HEADER_MAPPED    2

/** The size of these mappings is a multiple of it. */
#define HEADER_MAPPED_UNIT UINT64_C(4096)

/** The least size that a header has; and how much it may exceed its block's need. */
#define HEADER_SIZE_MIN 32
#define HEADER_SLACK    32

/* ---- Reading ---- */

/* Drops the headers of a snapshot that was cut short. */
static void damage_headers_clear(struct heap_headers *headers, uint32_t number)
{
    headers->snapshot = (struct ttd_snapshot){.number = number};
    headers->count = 0;
    headers->run_count = 0;
}

static enum ttd_status damage_add_headers(struct heap_headers *headers,
                                          const struct ttd_block_headers *part)
{
    if (headers->snapshot.number != part->snapshot)
        damage_headers_clear(headers, part->snapshot);
    struct heap_header_run *last =
        headers->run_count ? &headers->runs[headers->run_count - 1] : NULL;
    bool continues = last && last->end == part->begin && !(last->flags & TTD_HEADERS_BROKEN);
    enum ttd_status status = grow_array((void **)&headers->headers, &headers->capacity,
                                        headers->count + part->count, sizeof *headers->headers);
    if (status == TTD_OK && !continues)
        status = grow_array((void **)&headers->runs, &headers->run_capacity, headers->run_count + 1,
                            sizeof *headers->runs);
    if (status != TTD_OK)
        return status;
    if (!continues)
        headers->runs[headers->run_count++] = (struct heap_header_run){
            .begin = part->begin, .end = part->begin, .first = headers->count};
    struct heap_header_run *run = &headers->runs[headers->run_count - 1];
    for (size_t i = 0; i < part->count; i++) {
        headers->headers[headers->count++] = (struct heap_header){run->end, part->headers[i]};
        run->end += TTD_BLOCK_HEADER_SIZE(part->headers[i]);
    }
    run->count += part->count;
    run->flags |= part->flags;
    /* The last one may say anything. */
    if (run->end < headers->headers[headers->count - 1].address ||
        (run->flags & TTD_HEADERS_BROKEN))
        run->end = headers->headers[headers->count - 1].address + HEADER_BYTES;
    return TTD_OK;
}

/* Keeps the headers that were read if their snapshot is complete. */
static void damage_headers_end(struct heap_headers *newest, struct heap_headers *read,
                               const struct ttd_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->u.snapshots[i].number != read->snapshot.number || !read->count)
            continue;
        struct heap_headers kept = *newest;
        *newest = *read;
        newest->snapshot = batch->u.snapshots[i];
        *read = kept;
        damage_headers_clear(read, 0);
    }
}

enum ttd_status heap_headers_read(struct heap_headers *headers, struct ttd_reader *reader,
                                  struct ttd_error *error)
{
    struct heap_headers read = {.count = 0};
    struct ttd_batch batch;
    enum ttd_status status = TTD_OK;
    ttd_reader_rewind(reader,
                      TTD_KIND_BIT(TTD_KIND_BLOCK_HEADERS) | TTD_KIND_BIT(TTD_KIND_SNAPSHOTS));
    while (status == TTD_OK && (status = ttd_reader_next(reader, &batch, error)) == TTD_OK) {
        if (batch.kind == TTD_KIND_BLOCK_HEADERS)
            status = damage_add_headers(&read, batch.u.block_headers);
        else if (batch.kind == TTD_KIND_SNAPSHOTS)
            damage_headers_end(headers, &read, &batch);
    }
    heap_headers_free(&read);
    /* Damage is reported by the replay. */
    return status == TTD_ERROR_NO_MEMORY || status == TTD_ERROR_IO ? status : TTD_OK;
}

void heap_headers_free(struct heap_headers *headers)
{
    free(headers->headers);
    free(headers->runs);
    *headers = (struct heap_headers){.count = 0};
}

/* ---- Comparing ---- */

/** The verdict of the live blocks about a header. */
enum header_state {
    HEADER_UNKNOWN, /* there is no live block behind it */
    HEADER_RIGHT,   /* it is large enough for the live block behind it */
    HEADER_WRONG,   /* it is not */
    HEADER_STATE = 3,
    HEADER_SWALLOWS = 4 /* a bit: another live block lies in the memory that it claims */
};

/** The comparison of one run. */
struct header_search {
    const struct heap_headers *headers;
    const struct heap_header_run *run;
    const struct heap_header *first;
    const struct heap_live *live;
    const struct heap_last_calls *calls;
    const struct heap_freed *freed;
    /** Index of the first header in each 2^shift bytes of the run, and at last the number of
     * headers. */
    uint32_t *buckets;
    unsigned shift;
    /** By header, an enum header_state. */
    uint8_t *states;
};

static uint64_t damage_size_needed(uint64_t size)
{
    uint64_t needed = (size + HEADER_BYTES + 15) & ~UINT64_C(15);
    return needed > HEADER_SIZE_MIN ? needed : HEADER_SIZE_MIN;
}

static bool damage_is_too_small(uint64_t header, uint64_t size)
{
    return (header & HEADER_NEVER_SET) || TTD_BLOCK_HEADER_SIZE(header) < damage_size_needed(size);
}

static bool damage_is_too_large(uint64_t header, uint64_t size)
{
    return TTD_BLOCK_HEADER_SIZE(header) > damage_size_needed(size) + HEADER_SLACK;
}

/* Whether a block is one that the allocator itself has given away. */
static bool damage_is_own(uint8_t api)
{
    return api != TTD_API_OTHER && api < TTD_API_HEAP_ALLOC;
}

static enum ttd_status damage_search_begin(struct header_search *search)
{
    const struct heap_header_run *run = search->run;
    uint64_t extent = run->end - run->begin;
    if (run->count > UINT32_MAX)
        return TTD_ERROR_LIMIT;
    search->first = &search->headers->headers[run->first];
    for (search->shift = 4; extent >> search->shift > run->count; search->shift++)
        ;
    size_t count = (size_t)(extent >> search->shift) + 1;
    search->buckets = malloc((count + 1) * sizeof *search->buckets);
    search->states = calloc(run->count, 1);
    if (!search->buckets || !search->states)
        return TTD_ERROR_NO_MEMORY;
    uint32_t index = 0;
    for (size_t i = 0; i < count; i++) {
        search->buckets[i] = index;
        while (index < run->count &&
               (search->first[index].address - run->begin) >> search->shift == i)
            index++;
    }
    search->buckets[count] = index;
    return TTD_OK;
}

/* Finds the last header at an address or before it. Returns false if the address is not in the run.
 */
static bool damage_find_header(const struct header_search *search, uint64_t address,
                               uint32_t *index)
{
    const struct heap_header_run *run = search->run;
    if (address < run->begin || address >= run->end)
        return false;
    uint64_t bucket = (address - run->begin) >> search->shift;
    uint32_t low = search->buckets[bucket], high = search->buckets[bucket + 1];
    SEARCH_SORTED(low, high, middle, search->first[middle].address <= address);
    *index = low - 1; /* the run begins with a header */
    return true;
}

/* Finds the block at an address: live, or being released by a call that never returned. Its address
 * is 0 if there is none. */
static struct heap_neighbour damage_find_block(const struct header_search *search, uint64_t address)
{
    const struct heap_block *block = heap_live_find(search->live, address, TTD_NONE);
    size_t cursor = 0;
    while (block && (block->address != address || !damage_is_own(block->api)))
        block = heap_live_each(search->live, &cursor);
    if (block)
        return (struct heap_neighbour){block->address, block->size, heap_call_of_block(block)};
    for (size_t i = 0; i < search->calls->count; i++) {
        const struct heap_finding *call = &search->calls->calls[i];
        if (call->block_address == address)
            return (struct heap_neighbour){address, call->block_size, call->allocated};
    }
    return (struct heap_neighbour){.address = 0};
}

/* Compares a live block with its header. A block within another block belongs to an allocator that
 * has its memory from this one. */
static void damage_see_block(const struct header_search *search, const struct heap_block *block)
{
    uint32_t index;
    if (!damage_is_own(block->api) ||
        !damage_find_header(search, block->address - HEADER_BYTES, &index))
        return;
    const struct heap_header *header = &search->first[index];
    uint8_t *state = &search->states[index];
    if (header->address == block->address - HEADER_BYTES) {
        bool is_wrong = damage_is_too_small(header->value, block->size);
        *state = (uint8_t)((*state & ~HEADER_STATE) | (is_wrong ? HEADER_WRONG : HEADER_RIGHT));
        return;
    }
    struct heap_neighbour around = damage_find_block(search, header->address + HEADER_BYTES);
    if (!around.address || block->address - around.address >= around.size)
        *state |= HEADER_SWALLOWS;
}

/* Compares the block of a call that had begun to release it. If other threads were in calls of the
 * allocator, it may have become a part of another one. */
static void damage_see_call(const struct header_search *search, const struct heap_finding *call)
{
    uint32_t index;
    if (!call->block_address || !heap_call_is_known(&call->allocated) ||
        !damage_is_own(call->allocated.api) ||
        !damage_find_header(search, call->block_address - HEADER_BYTES, &index))
        return;
    uint8_t *state = &search->states[index];
    if (search->first[index].address == call->block_address - HEADER_BYTES) {
        bool is_wrong = damage_is_too_small(search->first[index].value, call->block_size);
        if ((*state & HEADER_STATE) == HEADER_UNKNOWN)
            *state |= is_wrong ? HEADER_WRONG : HEADER_RIGHT;
    } else if (!(search->run->flags & TTD_HEADERS_BUSY)) {
        *state |= HEADER_SWALLOWS;
    }
}

/* ---- Judging ---- */

/** The header that is looked at, and the last one before it that its block confirms; NULL if there
 * is none. */
struct header_place {
    uint32_t index;
    const struct heap_header *header;
    const struct heap_header *right;
};

static bool damage_is_broken(const struct header_search *search, uint32_t index)
{
    return (search->run->flags & TTD_HEADERS_BROKEN) && index + 1 == search->run->count;
}

/* Whether the run consists of blocks with mappings of their own. Other memory may follow each. */
static bool damage_is_mapped(const struct header_search *search)
{
    return (search->first->value & HEADER_MAPPED) != 0 && search->run->count > 1;
}

/* Whether a header behind the one with this index is right: the allocator has gone on with the
 * first one's value. */
static bool damage_goes_on(const struct header_search *search, uint32_t index)
{
    for (size_t i = (size_t)index + 1; i < search->run->count; i++) {
        if ((search->states[i] & HEADER_STATE) == HEADER_RIGHT)
            return true;
    }
    return false;
}

/* Whether a header that is large enough for its block is damaged: it is too large, so that it
 * claims other blocks' memory, or leads nowhere; or its flags are wrong. */
static bool damage_is_damaged_right(const struct header_search *search,
                                    const struct header_place *place)
{
    bool swallows = search->states[place->index] & HEADER_SWALLOWS;
    bool breaks = damage_is_broken(search, place->index);
    bool breaks_behind = !damage_is_mapped(search) && damage_is_broken(search, place->index + 1) &&
                         search->states[place->index + 1] == HEADER_UNKNOWN;
    if (swallows || breaks || !breaks_behind)
        return swallows || breaks;
    uint64_t size = damage_find_block(search, place->header->address + HEADER_BYTES).size;
    return damage_is_too_large(place->header->value, size);
}

/* Finds the block that was released last of those whose memory ended right before a header. Returns
 * NULL if the one that had this memory last did not end there. */
static const struct heap_freed_block *damage_find_released(const struct header_search *search,
                                                           uint64_t header)
{
    const struct heap_freed_block *last = NULL;
    for (uint32_t i = 0; i < search->freed->capacity; i++) {
        const struct heap_freed_block *block = &search->freed->records[i];
        if (search->freed->keys[i].address && heap_call_is_known(&block->allocated) &&
            damage_is_own(block->allocated.api) && header >= block->address &&
            header + HEADER_BYTES - block->address <=
                damage_size_needed(block->size) + HEADER_SLACK &&
            ttd_position_compare(block->released.position, search->headers->snapshot.position) <=
                0 &&
            (!last || ttd_position_compare(block->released.position, last->released.position) > 0))
            last = block;
    }
    return last && header + HEADER_BYTES - last->address >= damage_size_needed(last->size) ? last
                                                                                           : NULL;
}

/* The same for the block of the header before this one; that header leads here. */
static const struct heap_freed_block *
damage_find_released_before(const struct header_search *search, const struct header_place *place)
{
    const struct heap_freed_block *block =
        place->index ? damage_find_released(search, place->header->address) : NULL;
    return block && block->address == place->header[-1].address + HEADER_BYTES ? block : NULL;
}

static bool damage_is_damaged(const struct header_search *search, const struct header_place *place)
{
    switch (search->states[place->index] & HEADER_STATE) {
    case HEADER_RIGHT:
        return damage_is_damaged_right(search, place);
    case HEADER_WRONG:
        /* Where the blocks behind it are in order, the trace lacks the release of this one. */
        return !damage_goes_on(search, place->index);
    default:
        if (damage_is_mapped(search))
            return false;
        return damage_is_broken(search, place->index)
                   ? place->right || damage_find_released_before(search, place)
                   : place->right && search->states[place->index] & HEADER_SWALLOWS &&
                         search->headers->snapshot.reason == TTD_SNAPSHOT_SIGNAL;
    }
}

/* Returns the number of low bytes of a header that must have been written: those up to the highest
 * one that it cannot have for a block of this size. */
static unsigned damage_header_bytes(uint64_t header, uint64_t size, bool has_mapping)
{
    static const uint64_t flags[] = {0, 1, 4, 5};
    uint64_t least = UINT64_MAX;
    if (has_mapping) {
        uint64_t mapped = size + 2 * HEADER_BYTES + HEADER_MAPPED_UNIT - 1;
        least = header ^ ((mapped & ~(HEADER_MAPPED_UNIT - 1)) | HEADER_MAPPED);
    }
    for (uint64_t slack = 0; slack <= HEADER_SLACK && !has_mapping; slack += 16) {
        for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
            uint64_t changed = header ^ ((damage_size_needed(size) + slack) | flags[i]);
            least = changed < least ? changed : least;
        }
    }
    return least > 1 ? (unsigned)(71 - __builtin_clzll(least)) / 8 : 1;
}

/* The same where no live block is behind the header: no memory is of as many bytes as the highest
 * three can say. */
static unsigned damage_bytes_written_anyhow(uint64_t header)
{
    return header >> 40 ? (unsigned)(71 - __builtin_clzll(header)) / 8 : 1;
}

/* Whether it is certain that this very header is wrong: a live block's, or else one right behind a
 * live block. Where a thread may have been in a call, it may have been changing the header; and the
 * trace may lack the call, if the process died then. */
static bool damage_is_certain(const struct header_search *search, const struct header_place *place,
                              bool is_of_block, bool is_adjacent)
{
    return (search->headers->snapshot.flags & TTD_SNAPSHOT_STOPPED) &&
           !(search->run->flags & TTD_HEADERS_BUSY) &&
           (is_of_block || (is_adjacent && damage_is_broken(search, place->index)));
}

/* Finds the live block whose memory ends at a header, by the sizes of blocks: the headers before it
 * do not lead there. A header between the two is of a block that is not live. */
static bool damage_find_adjacent(const struct header_search *search,
                                 const struct header_place *place, struct heap_neighbour *before)
{
    uint64_t header = place->header->address;
    struct heap_neighbour nearest = heap_neighbours_find(search->live, header).before;
    uint64_t extent = header + HEADER_BYTES - nearest.address;
    if (!nearest.address || !damage_is_own(nearest.allocated.api) ||
        extent < damage_size_needed(nearest.size) || damage_is_too_large(extent, nearest.size) ||
        (place->index && place->header[-1].address > nearest.address))
        return false;
    *before = nearest;
    return true;
}

/* Adds the released block that ended at a header to a finding about that. If no live block is
 * behind the header, the finding is about the released one. */
static void damage_add_released(struct heap_finding *finding, const struct heap_freed_block *block,
                                bool is_subject)
{
    finding->neighbours.before =
        (struct heap_neighbour){block->address, block->size, block->allocated};
    finding->released = block->released;
    if (!is_subject)
        return;
    finding->call = block->allocated;
    finding->size = block->size;
}

/* Makes the finding: the block that ends at the header was overrun, if there is a live one; else
 * something has written before the block behind it, or beyond the end of one that is not live. */
static struct heap_finding damage_finding_of(const struct header_search *search,
                                             const struct header_place *place)
{
    const struct heap_header *header = place->header;
    struct heap_neighbour behind = damage_find_block(search, header->address + HEADER_BYTES),
                          before = {0};
    bool is_derived = damage_is_broken(search, place->index) && !behind.address &&
                      (search->run->flags & TTD_HEADERS_DERIVED);
    bool is_adjacent = place->right && place->right + 1 == header && !is_derived;
    const struct heap_freed_block *released = is_adjacent || is_derived ? NULL
                                              : behind.address
                                                  ? damage_find_released(search, header->address)
                                                  : damage_find_released_before(search, place);
    if (is_adjacent || (place->right && !behind.address && !released))
        before = damage_find_block(search, place->right->address + HEADER_BYTES);
    if (!before.address)
        is_adjacent = damage_find_adjacent(search, place, &before);
    const struct heap_neighbour *block = before.address ? &before : &behind;
    struct heap_finding finding = {.kind = HEAP_ERROR_HEAP_DAMAGE,
                                   .call = block->allocated,
                                   .address = header->address,
                                   .size = block->size,
                                   .allocated = heap_call_none(),
                                   .released = heap_call_none(),
                                   .conflict = heap_call_none(),
                                   .damage = {.snapshot = search->headers->snapshot.number,
                                              .position = search->headers->snapshot.position,
                                              .header = header->value,
                                              .is_adjacent = is_adjacent}};
    if (before.address) {
        finding.block_address = before.address;
        finding.block_size = before.size;
        finding.allocated = before.allocated;
    }
    if (is_adjacent)
        finding.damage.beyond = header->address - before.address - before.size +
                                (behind.address ? damage_header_bytes(header->value, behind.size,
                                                                      damage_is_mapped(search))
                                                : damage_bytes_written_anyhow(header->value));
    finding.neighbours.after =
        behind.address ? behind : heap_neighbours_find(search->live, header->address).after;
    if (released && !before.address)
        damage_add_released(&finding, released, !behind.address);
    finding.is_certain = damage_is_certain(search, place, behind.address, is_adjacent || released);
    return finding;
}

static enum ttd_status damage_judge_run(const struct header_search *search,
                                        struct error_finder *finder)
{
    struct header_place place = {.right = NULL};
    enum ttd_status status = TTD_OK;
    for (; place.index < search->run->count && status == TTD_OK; place.index++) {
        place.header = &search->first[place.index];
        if (damage_is_damaged(search, &place)) {
            struct heap_finding finding = damage_finding_of(search, &place);
            if (heap_call_is_known(&finding.call))
                status = heap_error_finder_add(finder, &finding);
            place.right = NULL;
        } else if ((search->states[place.index] & HEADER_STATE) == HEADER_RIGHT) {
            place.right = place.header;
        }
    }
    return status;
}

enum ttd_status heap_damage_find(struct error_finder *finder, const struct heap_live *live)
{
    const struct heap_headers *headers = &finder->headers;
    struct ttd_position unknown_before = heap_gaps_end(&finder->gaps, headers->snapshot.position);
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < headers->run_count && status == TTD_OK; i++) {
        struct header_search search = {.headers = headers,
                                       .run = &headers->runs[i],
                                       .live = live,
                                       .calls = &finder->last_calls,
                                       .freed = &finder->freed};
        /* A thread may have been changing headers: only a process that died of a fault in a call of
         * the allocator has more to show than that. */
        if ((search.run->flags & TTD_HEADERS_BUSY) &&
            (!search.calls->signal || !search.calls->count))
            continue;
        const struct heap_block *block;
        size_t cursor = 0;
        status = damage_search_begin(&search);
        while (status == TTD_OK && (block = heap_live_each(live, &cursor)))
            if (!heap_is_unknown(block->allocated, unknown_before))
                damage_see_block(&search, block);
        for (size_t k = 0; k < search.calls->count && status == TTD_OK; k++)
            damage_see_call(&search, &search.calls->calls[k]);
        if (status == TTD_OK)
            status = damage_judge_run(&search, finder);
        free(search.buckets);
        free(search.states);
    }
    return status;
}
