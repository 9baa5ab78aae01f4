/* SPDX-License-Identifier: MIT */
/* The records of a model that are no events. */
#include "support/records/model_any.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX   300
#define FRAMES_MAX 4

/** Takes the id that the writer gave. */
static void take(ttd_id id, ttd_id *count)
{
    if (id != *count + 1)
        abort();
    *count = id;
}

static size_t fill(struct model *model, char *data)
{
    size_t size = (size_t)entropy_below(&model->entropy, TEXT_MAX);
    memset(data, (int)entropy_below(&model->entropy, 256), size);
    if (size > 8)
        data[8] = (char)entropy_below(&model->entropy, 256);
    return size;
}

static enum ttd_status write_string(struct model *model, struct ttd_writer *writer)
{
    char data[TEXT_MAX];
    size_t size = fill(model, data);
    ttd_id id;
    enum ttd_status status = ttd_writer_string(writer, size ? data : NULL, size, &id);
    if (status != TTD_OK)
        return status;
    take(id, &model->strings);
    struct ttd_string_definition record = {.id = id, .text = {data, size}};
    return model_note(
        model, status,
        &(struct ttd_batch){.kind = TTD_KIND_STRINGS, .count = 1, .u.strings = &record});
}

static enum ttd_status write_stack(struct model *model, struct ttd_writer *writer)
{
    struct ttd_stack record = {.parent = model_any(model, model->stacks)};
    record.module = model_any(model, model->modules);
    record.offset = entropy_value(&model->entropy);
    enum ttd_status status =
        ttd_writer_stack(writer, record.parent, record.module, record.offset, &record.id);
    if (status != TTD_OK)
        return status;
    take(record.id, &model->stacks);
    return model_note(
        model, status,
        &(struct ttd_batch){.kind = TTD_KIND_STACKS, .count = 1, .u.stacks = &record});
}

static enum ttd_status write_module(struct model *model, struct ttd_writer *writer)
{
    struct ttd_module record = {.action = TTD_MODULE_UNLOAD, .position = model_any_position(model)};
    record.id = model_any(model, model->modules);
    if (record.id == TTD_NONE || entropy_below(&model->entropy, 2)) {
        record.action = TTD_MODULE_LOAD;
        record.path = model_any(model, model->strings);
        record.bias = entropy_value(&model->entropy);
        record.begin = entropy_value(&model->entropy);
        record.end = entropy_value(&model->entropy);
        if (record.end < record.begin)
            record.end = record.begin;
        record.build_id_size = (uint32_t)entropy_below(&model->entropy, TTD_BUILD_ID_MAX + 1);
        memset(record.build_id, (int)entropy_below(&model->entropy, 256), record.build_id_size);
    }
    ttd_id id;
    enum ttd_status status = ttd_writer_module(writer, &record, &id);
    if (status == TTD_OK && record.action == TTD_MODULE_LOAD)
        take(id, &model->modules);
    record.id = id;
    return model_note(
        model, status,
        &(struct ttd_batch){.kind = TTD_KIND_MODULES, .count = 1, .u.modules = &record});
}

static enum ttd_status write_thread(struct model *model, struct ttd_writer *writer)
{
    struct ttd_thread record = {.action = TTD_THREAD_END, .position = model_any_position(model)};
    record.id = model_any(model, model->threads);
    record.name = model_any(model, model->strings);
    if (record.id == TTD_NONE || entropy_below(&model->entropy, 2)) {
        record.action = TTD_THREAD_BEGIN;
        record.os_id = entropy_value(&model->entropy);
    }
    ttd_id id;
    enum ttd_status status = ttd_writer_thread(writer, &record, &id);
    if (status == TTD_OK && record.action == TTD_THREAD_BEGIN)
        take(id, &model->threads);
    record.id = id;
    return model_note(
        model, status,
        &(struct ttd_batch){.kind = TTD_KIND_THREADS, .count = 1, .u.threads = &record});
}

static enum ttd_status write_heap_parent(struct model *model, struct ttd_writer *writer,
                                         ttd_id heap)
{
    struct ttd_heap_parent record = {.heap = heap};
    record.parent = 1 + (ttd_id)entropy_below(&model->entropy, heap - 1);
    return model_note(
        model, ttd_writer_heap_parent(writer, &record),
        &(struct ttd_batch){.kind = TTD_KIND_HEAP_PARENTS, .count = 1, .u.heap_parents = &record});
}

static enum ttd_status write_heap(struct model *model, struct ttd_writer *writer)
{
    struct ttd_heap record = {.handle = entropy_value(&model->entropy)};
    record.name = model_any(model, model->strings);
    enum ttd_status status = ttd_writer_heap(writer, &record, &record.id);
    if (status == TTD_OK)
        take(record.id, &model->heaps);
    status = model_note(
        model, status, &(struct ttd_batch){.kind = TTD_KIND_HEAPS, .count = 1, .u.heaps = &record});
    bool has_parent = model->style == MODEL_ANYTHING && record.id > 1;
    if (status == TTD_OK && has_parent && entropy_below(&model->entropy, 2))
        status = write_heap_parent(model, writer, record.id);
    return status;
}

static enum ttd_status write_symbol(struct model *model, struct ttd_writer *writer)
{
    struct ttd_symbol_frame frames[FRAMES_MAX];
    struct ttd_symbol record = {.module = model_any(model, model->modules), .frames = frames};
    record.offset = entropy_value(&model->entropy);
    record.frame_count = (uint32_t)entropy_below(&model->entropy, FRAMES_MAX + 1);
    for (uint32_t i = 0; i < record.frame_count; i++) {
        frames[i].function = model_any(model, model->strings);
        frames[i].file = model_any(model, model->strings);
        frames[i].line = (uint32_t)entropy_value(&model->entropy);
    }
    return model_note(
        model, ttd_writer_symbol(writer, &record),
        &(struct ttd_batch){.kind = TTD_KIND_SYMBOLS, .count = 1, .u.symbols = &record});
}

static enum ttd_status write_loss(struct model *model, struct ttd_writer *writer)
{
    struct ttd_loss record = {.reason = (enum ttd_loss_reason)entropy_below(&model->entropy, 6)};
    record.thread = model_any(model, model->threads);
    record.count = entropy_value(&model->entropy);
    record.last_good = model_any_position(model);
    record.first_good = model_any_position(model);
    if (entropy_below(&model->entropy, 4) == 0)
        record.first_good = ttd_position_invalid();
    else if (ttd_position_compare(record.first_good, record.last_good) < 0)
        record.first_good = record.last_good;
    return model_note(
        model, ttd_writer_loss(writer, &record),
        &(struct ttd_batch){.kind = TTD_KIND_LOSSES, .count = 1, .u.losses = &record});
}

static enum ttd_status write_user_event(struct model *model, struct ttd_writer *writer)
{
    char data[TEXT_MAX];
    struct ttd_user_event record = {.position = model_any_position(model),
                                    .wall_time = entropy_value(&model->entropy),
                                    .thread = model_any(model, model->threads),
                                    .flags = (uint32_t)entropy_below(&model->entropy, 2),
                                    .data = (const uint8_t *)data,
                                    .size = fill(model, data)};
    record.client[7] = (uint8_t)entropy_below(&model->entropy, 256);
    return model_note(
        model, ttd_writer_user_event(writer, &record),
        &(struct ttd_batch){.kind = TTD_KIND_USER_EVENTS, .count = 1, .u.user_events = &record});
}

static enum ttd_status write_metadata(struct model *model, struct ttd_writer *writer)
{
    char key[TEXT_MAX];
    char value[TEXT_MAX];
    struct ttd_metadata record = {.key.data = key, .value.data = value};
    record.key.size = fill(model, key);
    record.value.size = fill(model, value);
    return model_note(
        model, ttd_writer_metadata(writer, &record),
        &(struct ttd_batch){.kind = TTD_KIND_METADATA, .count = 1, .u.metadata = &record});
}

static enum ttd_status write_flush(struct model *model, struct ttd_writer *writer)
{
    (void)model;
    return ttd_writer_flush(writer);
}

typedef enum ttd_status (*step_function)(struct model *, struct ttd_writer *);

/** Records that only a model of anything has. */
#define RARE 9

enum ttd_status model_step(struct model *model, struct ttd_writer *writer)
{
    static const step_function others[] = {write_string,
                                           write_stack,
                                           write_stack,
                                           write_module,
                                           write_thread,
                                           write_heap,
                                           write_symbol,
                                           write_loss,
                                           model_write_blocks,
                                           model_write_pages,
                                           model_write_map,
                                           write_user_event,
                                           write_metadata,
                                           write_flush,
                                           model_write_snapshot,
                                           model_write_regions,
                                           model_write_references,
                                           model_write_variable,
                                           model_write_frames,
                                           model_write_classes,
                                           model_write_block_headers,
                                           model_write_fatal_signal,
                                           model_write_state,
                                           model_write_sum};
    size_t count = sizeof others / sizeof *others - (model->style == MODEL_ANYTHING ? 0 : RARE);
    if (model->events + model->strings > 3 && entropy_below(&model->entropy, 16) != 0)
        return model_event(model, writer);
    return others[entropy_below(&model->entropy, count)](model, writer);
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
