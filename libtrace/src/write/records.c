/* SPDX-License-Identifier: MIT */
#include "write/internal.h"

#include "base/checked.h"
#include "codec/heap_state/memory_map.h"
#include "codec/heap_state/pages.h"
#include "codec/records.h"
#include "codec/heap_state/states.h"

/** Raw bytes of a chunk of pages at most, but for one page. */
#define PAGES_SIZE (UINT32_C(1) << 20)

enum ttd_status ttd_writer_loss(struct ttd_writer *writer, const struct ttd_loss *loss)
{
    bool is_known = loss->reason >= 0 && ttd_writer_knows(writer, loss->thread, writer->threads);
    enum ttd_status status =
        ttd_writer_begin_record(writer, TTD_KIND_LOSSES, is_known ? ttd_check_loss(loss) : "loss");
    if (status != TTD_OK)
        return status;
    ttd_encode_loss(&writer->records[TTD_KIND_LOSSES].payload, loss);
    ttd_writer_touch(writer, TTD_KIND_LOSSES, loss->last_good);
    ttd_writer_touch(writer, TTD_KIND_LOSSES, loss->first_good);
    writer->lost_events = ttd_add_count(writer->lost_events, loss->count);
    return ttd_writer_end_record(writer, TTD_KIND_LOSSES);
}

enum ttd_status ttd_writer_user_event(struct ttd_writer *writer, const struct ttd_user_event *event)
{
    if (!ttd_position_is_valid(event->position) || (!event->data && event->size != 0) ||
        (event->flags & ~TTD_USER_EVENT_KEYFRAME) ||
        !ttd_writer_knows(writer, event->thread, writer->threads))
        return ttd_writer_refuse(writer, "user event");
    if (event->size > TTD_STRING_MAX)
        return ttd_writer_limit(writer, "size of a user event");
    enum ttd_status status = ttd_writer_begin_record(writer, TTD_KIND_USER_EVENTS, NULL);
    if (status != TTD_OK)
        return status;
    ttd_encode_user_event(&writer->records[TTD_KIND_USER_EVENTS].payload, event);
    ttd_writer_touch(writer, TTD_KIND_USER_EVENTS, event->position);
    return ttd_writer_end_record(writer, TTD_KIND_USER_EVENTS);
}

enum ttd_status ttd_writer_metadata(struct ttd_writer *writer, const struct ttd_metadata *metadata)
{
    if ((!metadata->key.data && metadata->key.size != 0) ||
        (!metadata->value.data && metadata->value.size != 0))
        return ttd_writer_refuse(writer, "metadata");
    if (metadata->key.size > TTD_STRING_MAX || metadata->value.size > TTD_STRING_MAX)
        return ttd_writer_limit(writer, "size of a string");
    enum ttd_status status = ttd_writer_begin_record(writer, TTD_KIND_METADATA, NULL);
    if (status != TTD_OK)
        return status;
    ttd_encode_metadata(&writer->records[TTD_KIND_METADATA].payload, metadata);
    return ttd_writer_end_record(writer, TTD_KIND_METADATA);
}

enum ttd_status ttd_writer_state(struct ttd_writer *writer, const struct ttd_state *state)
{
    enum ttd_status status =
        ttd_writer_begin_record(writer, TTD_KIND_STATES, ttd_check_state(state));
    if (status != TTD_OK)
        return status;
    ttd_encode_state(&writer->records[TTD_KIND_STATES].payload, state);
    ttd_writer_touch(writer, TTD_KIND_STATES, state->position);
    return ttd_writer_end_record(writer, TTD_KIND_STATES);
}

enum ttd_status ttd_writer_sum(struct ttd_writer *writer, const struct ttd_sum *sum)
{
    enum ttd_status status = ttd_writer_begin_record(writer, TTD_KIND_SUMS, ttd_check_sum(sum));
    if (status != TTD_OK)
        return status;
    ttd_encode_sum(&writer->records[TTD_KIND_SUMS].payload, sum);
    return ttd_writer_end_record(writer, TTD_KIND_SUMS);
}

static const char *records_check_blocks(const struct ttd_writer *writer,
                                        const struct ttd_live_blocks *blocks)
{
    if (blocks->list < TTD_BLOCKS_KEYFRAME || blocks->list > TTD_BLOCKS_RUNTIME)
        return "list of blocks";
    if (blocks->list_id == 0)
        return "number of a list of blocks";
    if (!ttd_position_is_valid(blocks->position))
        return "position of a list of blocks";
    if ((!blocks->blocks && blocks->count != 0) || blocks->count > TTD_RECORDS_MAX)
        return "number of blocks";
    /* Address 0 is no block, so 0 stands before the first. */
    static const struct ttd_block no_block;
    const struct ttd_block *last = &no_block;
    for (size_t i = 0; i < blocks->count; i++) {
        const struct ttd_block *block = &blocks->blocks[i];
        if (!ttd_block_follows(block, last->address, last->heap))
            return "order of blocks";
        last = block;
        if (!ttd_position_is_valid(block->allocated))
            return "position of a block";
        if (!ttd_writer_knows(writer, block->thread, writer->threads) ||
            !ttd_writer_knows(writer, block->heap, writer->heaps) ||
            !ttd_writer_knows(writer, block->stack, writer->stack_count))
            return "identifier in a block";
    }
    return NULL;
}

enum ttd_status ttd_writer_live_blocks(struct ttd_writer *writer,
                                       const struct ttd_live_blocks *blocks)
{
    struct ttd_list_state list = writer->list;
    const char *violation = records_check_blocks(writer, blocks);
    if (!violation)
        violation = ttd_list_take(&list, blocks);
    enum ttd_status status = ttd_writer_begin_chunk(writer, violation);
    if (status != TTD_OK)
        return status;
    /* Taken over once the chunk can be written: a refused one changes nothing. */
    writer->list = list;
    ttd_encode_live_blocks(&writer->payload, blocks, writer->columns);
    return ttd_writer_put_records(writer, TTD_KIND_LIVE_BLOCKS, blocks->count, blocks->position);
}

enum ttd_status ttd_writer_pages(struct ttd_writer *writer, const struct ttd_pages *pages,
                                 uint64_t *first_page)
{
    if (writer->failed)
        return TTD_ERROR_MISUSE;
    if (!ttd_page_size_is_valid(pages->page_size) || !first_page ||
        (!pages->data && pages->count != 0))
        return ttd_writer_refuse(writer, "pages");
    uint64_t first = writer->records[TTD_KIND_PAGES].next_record;
    /* Chunks of limited size: a reader that wants one page decompresses one chunk. */
    uint32_t max_count = PAGES_SIZE / pages->page_size;
    for (uint32_t i = 0; i < pages->count;) {
        uint32_t remaining = pages->count - i;
        struct ttd_pages part = *pages;
        part.count = remaining < max_count ? remaining : max_count;
        part.data = pages->data + (size_t)i * pages->page_size;
        ttd_encode_pages(&writer->payload, &part);
        enum ttd_status status =
            ttd_writer_put_records(writer, TTD_KIND_PAGES, part.count, writer->position);
        if (status != TTD_OK)
            return status;
        i += part.count;
    }
    *first_page = first;
    return TTD_OK;
}

static const char *records_check_map(const struct ttd_writer *writer,
                                     const struct ttd_memory_map *map)
{
    if (!ttd_page_size_is_valid(map->page_size))
        return "page size";
    if (map->snapshot == 0)
        return "number of a snapshot";
    if (!ttd_position_is_valid(map->position))
        return "position of a memory map";
    if ((!map->runs && map->count != 0) || map->count > TTD_RECORDS_MAX)
        return "number of runs";
    /* In pages, so that the end of the address space is a number. */
    uint64_t end = UINT64_MAX / map->page_size + 1;
    uint64_t next = 0;
    uint64_t pages = writer->records[TTD_KIND_PAGES].next_record;
    for (size_t i = 0; i < map->count; i++) {
        const struct ttd_memory_run *run = &map->runs[i];
        uint64_t page = run->address / map->page_size;
        if (run->address % map->page_size != 0 || page < next || run->page_count == 0 ||
            run->page_count > end - page)
            return "order of runs";
        if (run->protection & ~TTD_MEMORY_MASK)
            return "protection of a run";
        if (run->page >= TTD_PAGE_FIRST &&
            (run->page >= pages || run->page_count > pages - run->page))
            return "page of a run";
        next = page + run->page_count;
    }
    return NULL;
}

enum ttd_status ttd_writer_memory_map(struct ttd_writer *writer, const struct ttd_memory_map *map)
{
    struct ttd_snapshot_order order = writer->snapshots;
    const char *violation = records_check_map(writer, map);
    if (!violation)
        violation = ttd_snapshot_order_part(&order, map->snapshot);
    enum ttd_status status = ttd_writer_begin_chunk(writer, violation);
    if (status != TTD_OK)
        return status;
    writer->snapshots = order;
    ttd_encode_memory_map(&writer->payload, map);
    return ttd_writer_put_records(writer, TTD_KIND_MEMORY_MAP, map->count, map->position);
}
