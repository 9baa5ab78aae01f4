/* SPDX-License-Identifier: MIT */
/* The records of a model that are no events. */
#include "support/model.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX       300
#define FRAMES_MAX     4
#define LIST_MAX       5
#define PAGE_SIZE_USED 512

static ttd_id any(struct model *m, ttd_id count)
{
    return (ttd_id)entropy_below(&m->from, (uint64_t)count + 1);
}

static struct ttd_position any_position(struct model *m)
{
    struct ttd_position position = {entropy_value(&m->from), entropy_value(&m->from)};
    if (position.sequence == TTD_SEQUENCE_INVALID)
        position.sequence--;
    return position;
}

/** Notes what was written. A wrong id, or a status other than TTD_OK, is no record. */
static enum ttd_status note(struct model *m, enum ttd_status status, const struct ttd_batch *batch)
{
    if (status == TTD_OK)
        text_of_batch(text_table_at(&m->expected, batch->kind), batch);
    return status;
}

/** Takes the id that the writer gave. */
static void take(ttd_id id, ttd_id *count)
{
    if (id != *count + 1)
        abort();
    *count = id;
}

static size_t fill(struct model *m, char *data)
{
    size_t size = (size_t)entropy_below(&m->from, TEXT_MAX);
    memset(data, (int)entropy_below(&m->from, 256), size);
    if (size > 8)
        data[8] = (char)entropy_below(&m->from, 256);
    return size;
}

static enum ttd_status write_string(struct model *m, struct ttd_writer *writer)
{
    char data[TEXT_MAX];
    size_t size = fill(m, data);
    ttd_id id;
    enum ttd_status status = ttd_writer_string(writer, size ? data : NULL, size, &id);
    if (status != TTD_OK)
        return status;
    take(id, &m->strings);
    struct ttd_string_definition record = {id, {data, size}};
    return note(m, status,
                &(struct ttd_batch){.kind = TTD_KIND_STRINGS, .count = 1, .u.strings = &record});
}

static enum ttd_status write_stack(struct model *m, struct ttd_writer *writer)
{
    struct ttd_stack record = {0, any(m, m->stacks), any(m, m->modules), entropy_value(&m->from)};
    enum ttd_status status =
        ttd_writer_stack(writer, record.parent, record.module, record.offset, &record.id);
    if (status != TTD_OK)
        return status;
    take(record.id, &m->stacks);
    return note(m, status,
                &(struct ttd_batch){.kind = TTD_KIND_STACKS, .count = 1, .u.stacks = &record});
}

static enum ttd_status write_module(struct model *m, struct ttd_writer *writer)
{
    struct ttd_module record = {.action = TTD_MODULE_UNLOAD, .position = any_position(m)};
    record.id = any(m, m->modules);
    if (record.id == TTD_NONE || entropy_below(&m->from, 2)) {
        record.action = TTD_MODULE_LOAD;
        record.path = any(m, m->strings);
        record.bias = entropy_value(&m->from);
        record.begin = entropy_value(&m->from);
        record.end = entropy_value(&m->from);
        if (record.end < record.begin)
            record.end = record.begin;
        record.build_id_size = (uint32_t)entropy_below(&m->from, TTD_BUILD_ID_MAX + 1);
        memset(record.build_id, (int)entropy_below(&m->from, 256), record.build_id_size);
    }
    ttd_id id;
    enum ttd_status status = ttd_writer_module(writer, &record, &id);
    if (status == TTD_OK && record.action == TTD_MODULE_LOAD)
        take(id, &m->modules);
    record.id = id;
    return note(m, status,
                &(struct ttd_batch){.kind = TTD_KIND_MODULES, .count = 1, .u.modules = &record});
}

static enum ttd_status write_thread(struct model *m, struct ttd_writer *writer)
{
    struct ttd_thread record = {.action = TTD_THREAD_END, .position = any_position(m)};
    record.id = any(m, m->threads);
    record.name = any(m, m->strings);
    if (record.id == TTD_NONE || entropy_below(&m->from, 2)) {
        record.action = TTD_THREAD_BEGIN;
        record.os_id = entropy_value(&m->from);
    }
    ttd_id id;
    enum ttd_status status = ttd_writer_thread(writer, &record, &id);
    if (status == TTD_OK && record.action == TTD_THREAD_BEGIN)
        take(id, &m->threads);
    record.id = id;
    return note(m, status,
                &(struct ttd_batch){.kind = TTD_KIND_THREADS, .count = 1, .u.threads = &record});
}

static enum ttd_status write_heap(struct model *m, struct ttd_writer *writer)
{
    struct ttd_heap record = {0, entropy_value(&m->from), any(m, m->strings)};
    enum ttd_status status = ttd_writer_heap(writer, &record, &record.id);
    if (status == TTD_OK)
        take(record.id, &m->heaps);
    return note(m, status,
                &(struct ttd_batch){.kind = TTD_KIND_HEAPS, .count = 1, .u.heaps = &record});
}

static enum ttd_status write_symbol(struct model *m, struct ttd_writer *writer)
{
    struct ttd_symbol_frame frames[FRAMES_MAX];
    struct ttd_symbol record = {any(m, m->modules), entropy_value(&m->from), frames,
                                (uint32_t)entropy_below(&m->from, FRAMES_MAX + 1)};
    for (uint32_t i = 0; i < record.frame_count; i++)
        frames[i] = (struct ttd_symbol_frame){any(m, m->strings), any(m, m->strings),
                                              (uint32_t)entropy_value(&m->from)};
    return note(m, ttd_writer_symbol(writer, &record),
                &(struct ttd_batch){.kind = TTD_KIND_SYMBOLS, .count = 1, .u.symbols = &record});
}

static enum ttd_status write_loss(struct model *m, struct ttd_writer *writer)
{
    struct ttd_loss record = {(enum ttd_loss_reason)entropy_below(&m->from, 6), any(m, m->threads),
                              entropy_value(&m->from), any_position(m), any_position(m)};
    if (entropy_below(&m->from, 4) == 0)
        record.first_good = ttd_position_invalid();
    else if (ttd_position_compare(record.first_good, record.last_good) < 0)
        record.first_good = record.last_good;
    return note(m, ttd_writer_loss(writer, &record),
                &(struct ttd_batch){.kind = TTD_KIND_LOSSES, .count = 1, .u.losses = &record});
}

static enum ttd_status write_user_event(struct model *m, struct ttd_writer *writer)
{
    char data[TEXT_MAX];
    struct ttd_user_event record = {.position = any_position(m),
                                    .wall_time = entropy_value(&m->from),
                                    .thread = any(m, m->threads),
                                    .flags = (uint32_t)entropy_below(&m->from, 2),
                                    .data = (const uint8_t *)data,
                                    .size = fill(m, data)};
    record.client[7] = (uint8_t)entropy_below(&m->from, 256);
    return note(
        m, ttd_writer_user_event(writer, &record),
        &(struct ttd_batch){.kind = TTD_KIND_USER_EVENTS, .count = 1, .u.user_events = &record});
}

static enum ttd_status write_state(struct model *m, struct ttd_writer *writer)
{
    struct ttd_state record = {.form = (enum ttd_state_form)(1 + entropy_below(&m->from, 3)),
                               .position = any_position(m),
                               .blocks = entropy_value(&m->from)};
    if (record.form == TTD_STATE_PEAK) {
        record.bytes = entropy_value(&m->from);
        record.bytes_high = entropy_value(&m->from);
    } else {
        record.next_event = entropy_value(&m->from);
        record.events = entropy_value(&m->from);
        record.overlaps = entropy_below(&m->from, 2) ? record.events : 0;
        for (size_t i = 0; i < TTD_STATE_ACTIONS; i++)
            record.actions[i] = entropy_value(&m->from);
    }
    if (record.form == TTD_STATE_SUMMARY) {
        record.sums = entropy_value(&m->from);
        record.end = ttd_position_invalid();
    }
    return note(m, ttd_writer_state(writer, &record),
                &(struct ttd_batch){.kind = TTD_KIND_STATES, .count = 1, .u.states = &record});
}

static enum ttd_status write_sum(struct model *m, struct ttd_writer *writer)
{
    struct ttd_sum record = {.table = (enum ttd_sum_table)entropy_below(&m->from, 4),
                             .key = (uint32_t)entropy_below(&m->from, 65),
                             .api = (uint8_t)entropy_below(&m->from, 256),
                             .blocks = 1 + entropy_below(&m->from, 1000),
                             .bytes = entropy_value(&m->from)};
    if (record.table == TTD_SUMS_BY_STACK) {
        record.first = any_position(m);
        record.last = record.first;
    }
    return note(m, ttd_writer_sum(writer, &record),
                &(struct ttd_batch){.kind = TTD_KIND_SUMS, .count = 1, .u.sums = &record});
}

static enum ttd_status write_metadata(struct model *m, struct ttd_writer *writer)
{
    char key[TEXT_MAX];
    char value[TEXT_MAX];
    struct ttd_metadata record = {{key, fill(m, key)}, {value, fill(m, value)}};
    return note(m, ttd_writer_metadata(writer, &record),
                &(struct ttd_batch){.kind = TTD_KIND_METADATA, .count = 1, .u.metadata = &record});
}

static enum ttd_status write_blocks(struct model *m, struct ttd_writer *writer)
{
    struct ttd_block blocks[LIST_MAX];
    uint64_t address = 0;
    size_t count = (size_t)entropy_below(&m->from, LIST_MAX + 1);
    for (size_t i = 0; i < count; i++) {
        address += 1 + entropy_below(&m->from, UINT64_C(1) << 60);
        blocks[i] = (struct ttd_block){.address = address,
                                       .size = entropy_value(&m->from),
                                       .event = entropy_value(&m->from),
                                       .allocated = any_position(m),
                                       .thread = any(m, m->threads),
                                       .heap = any(m, m->heaps),
                                       .stack = any(m, m->stacks),
                                       .api = (uint8_t)entropy_below(&m->from, 256)};
    }
    struct ttd_live_blocks record = {entropy_below(&m->from, 2) ? TTD_BLOCKS_SNAPSHOT
                                                                : TTD_BLOCKS_RUNTIME,
                                     ++m->lists,
                                     true,
                                     any_position(m),
                                     blocks,
                                     count};
    return note(
        m, ttd_writer_live_blocks(writer, &record),
        &(struct ttd_batch){.kind = TTD_KIND_LIVE_BLOCKS, .count = 1, .u.live_blocks = &record});
}

static enum ttd_status write_pages(struct model *m, struct ttd_writer *writer)
{
    static uint8_t data[3 * PAGE_SIZE_USED];
    memset(data, (int)entropy_below(&m->from, 256), sizeof data);
    data[PAGE_SIZE_USED + 1] = 1;
    struct ttd_pages record = {0, PAGE_SIZE_USED, 1 + (uint32_t)entropy_below(&m->from, 3), data};
    enum ttd_status status = ttd_writer_pages(writer, &record, &record.first_page);
    if (status != TTD_OK)
        return status;
    if (record.first_page != m->pages)
        abort();
    m->pages += record.count;
    return note(m, status,
                &(struct ttd_batch){.kind = TTD_KIND_PAGES, .count = 1, .u.pages = &record});
}

static enum ttd_status write_map(struct model *m, struct ttd_writer *writer)
{
    struct ttd_memory_run runs[LIST_MAX];
    uint64_t next = entropy_below(&m->from, UINT64_C(1) << 40);
    size_t count = (size_t)entropy_below(&m->from, LIST_MAX + 1);
    for (size_t i = 0; i < count; i++) {
        uint64_t page = entropy_below(&m->from, m->pages);
        uint64_t most = page < TTD_PAGE_FIRST ? UINT64_C(1) << 40 : m->pages - page;
        runs[i] = (struct ttd_memory_run){next * PAGE_SIZE_USED, 1 + entropy_below(&m->from, most),
                                          (uint32_t)entropy_below(&m->from, 16), page};
        next += runs[i].page_count + entropy_below(&m->from, 2);
    }
    struct ttd_memory_map record = {++m->lists, true, any_position(m), PAGE_SIZE_USED, runs, count};
    return note(
        m, ttd_writer_memory_map(writer, &record),
        &(struct ttd_batch){.kind = TTD_KIND_MEMORY_MAP, .count = 1, .u.memory_map = &record});
}

static enum ttd_status write_flush(struct model *m, struct ttd_writer *writer)
{
    (void)m;
    return ttd_writer_flush(writer);
}

enum ttd_status model_step(struct model *m, struct ttd_writer *writer)
{
    /* Those at the end are for derived files: no recorder writes them. */
    static enum ttd_status (*const others[])(struct model *, struct ttd_writer *) = {
        write_string,   write_stack, write_stack,  write_module, write_thread, write_heap,
        write_symbol,   write_loss,  write_blocks, write_pages,  write_map,    write_user_event,
        write_metadata, write_flush, write_state,  write_sum};
    size_t count = sizeof others / sizeof *others - (m->style == MODEL_ANYTHING ? 0 : 2);
    if (m->events + m->strings > 3 && entropy_below(&m->from, 16) != 0)
        return model_event(m, writer);
    return others[entropy_below(&m->from, count)](m, writer);
}

enum ttd_status model_read(struct ttd_reader *reader, struct text_table *found)
{
    for (;;) {
        struct ttd_batch batch;
        enum ttd_status status = ttd_reader_next(reader, &batch, NULL);
        if (status != TTD_OK)
            return status;
        if (batch.kind != TTD_KIND_END)
            text_of_batch(text_table_at(found, batch.kind), &batch);
    }
}
