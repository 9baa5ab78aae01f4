/* SPDX-License-Identifier: MIT */
/* The records of a model that are states of the heap and contents of memory. */
#include "support/records/model_any.h"

#include <stdlib.h>
#include <string.h>

#define LIST_MAX       5
#define PAGE_SIZE_USED 512

enum ttd_status model_write_state(struct model *model, struct ttd_writer *writer)
{
    struct ttd_state record = {.form = (enum ttd_state_form)(1 + entropy_below(&model->entropy, 3)),
                               .position = model_any_position(model),
                               .blocks = entropy_value(&model->entropy)};
    if (record.form == TTD_STATE_PEAK) {
        record.bytes = entropy_value(&model->entropy);
        record.bytes_high = entropy_value(&model->entropy);
    } else {
        record.next_event = entropy_value(&model->entropy);
        record.events = entropy_value(&model->entropy);
        record.overlaps = entropy_below(&model->entropy, 2) ? record.events : 0;
        for (size_t i = 0; i < TTD_STATE_ACTIONS; i++)
            record.actions[i] = entropy_value(&model->entropy);
    }
    if (record.form == TTD_STATE_SUMMARY) {
        record.sums = entropy_value(&model->entropy);
        record.end = ttd_position_invalid();
    }
    return model_note(
        model, ttd_writer_state(writer, &record),
        &(struct ttd_batch){.kind = TTD_KIND_STATES, .count = 1, .u.states = &record});
}

enum ttd_status model_write_sum(struct model *model, struct ttd_writer *writer)
{
    struct ttd_sum record = {.table = (enum ttd_sum_table)entropy_below(&model->entropy, 4),
                             .key = (uint32_t)entropy_below(&model->entropy, 65),
                             .api = (uint8_t)entropy_below(&model->entropy, 256),
                             .blocks = 1 + entropy_below(&model->entropy, 1000),
                             .bytes = entropy_value(&model->entropy)};
    if (record.table == TTD_SUMS_BY_STACK) {
        record.first = model_any_position(model);
        record.last = record.first;
    }
    return model_note(model, ttd_writer_sum(writer, &record),
                      &(struct ttd_batch){.kind = TTD_KIND_SUMS, .count = 1, .u.sums = &record});
}

enum ttd_status model_write_blocks(struct model *model, struct ttd_writer *writer)
{
    struct ttd_block blocks[LIST_MAX];
    uint64_t address = 0;
    size_t count = (size_t)entropy_below(&model->entropy, LIST_MAX + 1);
    for (size_t i = 0; i < count; i++) {
        address += 1 + entropy_below(&model->entropy, UINT64_C(1) << 60);
        blocks[i] = (struct ttd_block){.address = address,
                                       .size = entropy_value(&model->entropy),
                                       .event = entropy_value(&model->entropy),
                                       .allocated = model_any_position(model),
                                       .thread = model_any(model, model->threads),
                                       .heap = model_any(model, model->heaps),
                                       .stack = model_any(model, model->stacks),
                                       .api = (uint8_t)entropy_below(&model->entropy, 256)};
    }
    model->snapshot_is_open = false;
    struct ttd_live_blocks record = {.list = entropy_below(&model->entropy, 2) ? TTD_BLOCKS_SNAPSHOT
                                                                               : TTD_BLOCKS_RUNTIME,
                                     .list_id = ++model->lists,
                                     .last = true,
                                     .position = model_any_position(model),
                                     .blocks = blocks,
                                     .count = count};
    return model_note(
        model, ttd_writer_live_blocks(writer, &record),
        &(struct ttd_batch){.kind = TTD_KIND_LIVE_BLOCKS, .count = 1, .u.live_blocks = &record});
}

enum ttd_status model_write_pages(struct model *model, struct ttd_writer *writer)
{
    static uint8_t data[3 * PAGE_SIZE_USED];
    memset(data, (int)entropy_below(&model->entropy, 256), sizeof data);
    data[PAGE_SIZE_USED + 1] = 1;
    struct ttd_pages record = {.page_size = PAGE_SIZE_USED,
                               .count = 1 + (uint32_t)entropy_below(&model->entropy, 3),
                               .data = data};
    enum ttd_status status = ttd_writer_pages(writer, &record, &record.first_page);
    if (status != TTD_OK)
        return status;
    if (record.first_page != model->pages)
        abort();
    model->pages += record.count;
    return model_note(model, status,
                      &(struct ttd_batch){.kind = TTD_KIND_PAGES, .count = 1, .u.pages = &record});
}

enum ttd_status model_write_map(struct model *model, struct ttd_writer *writer)
{
    struct ttd_memory_run runs[LIST_MAX];
    uint64_t next = entropy_below(&model->entropy, UINT64_C(1) << 40);
    size_t count = (size_t)entropy_below(&model->entropy, LIST_MAX + 1);
    for (size_t i = 0; i < count; i++) {
        uint64_t page = entropy_below(&model->entropy, model->pages);
        uint64_t most = page < TTD_PAGE_FIRST ? UINT64_C(1) << 40 : model->pages - page;
        runs[i] = (struct ttd_memory_run){.address = next * PAGE_SIZE_USED, .page = page};
        runs[i].page_count = 1 + entropy_below(&model->entropy, most);
        runs[i].protection = (uint32_t)entropy_below(&model->entropy, 16);
        next += runs[i].page_count + entropy_below(&model->entropy, 2);
    }
    model->snapshot_is_open = false;
    struct ttd_memory_map record = {.snapshot = ++model->lists,
                                    .last = true,
                                    .position = model_any_position(model),
                                    .page_size = PAGE_SIZE_USED,
                                    .runs = runs,
                                    .count = count};
    return model_note(
        model, ttd_writer_memory_map(writer, &record),
        &(struct ttd_batch){.kind = TTD_KIND_MEMORY_MAP, .count = 1, .u.memory_map = &record});
}
