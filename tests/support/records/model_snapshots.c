/* SPDX-License-Identifier: MIT */
/* The records of a model that are snapshots and their parts. */
#include "support/records/model_any.h"

#include <ttdtrace/advanced.h>

#define RECORDS_MAX 5

/** The snapshot that a part belongs to: mostly the one that was begun. */
static uint32_t begun(struct model *model)
{
    if (!model->snapshot_is_open || entropy_below(&model->entropy, 16) == 0) {
        model->lists++;
        model->snapshot_is_open = true;
        model->regions = 0;
        model->references = 0;
        model->reference = (struct ttd_reference){.region = 0};
    }
    return model->lists;
}

static size_t some(struct model *model)
{
    return 1 + (size_t)entropy_below(&model->entropy, RECORDS_MAX);
}

enum ttd_status model_write_snapshot(struct model *model, struct ttd_writer *writer)
{
    struct ttd_snapshot record = {.number = begun(model),
                                  .position = model_any_position(model),
                                  .wall_time = entropy_value(&model->entropy),
                                  .duration = entropy_value(&model->entropy),
                                  .contents = 1 + (uint32_t)entropy_below(&model->entropy, 7),
                                  .reason = (uint32_t)entropy_below(&model->entropy, 1u << 31),
                                  .flags = (uint32_t)entropy_below(&model->entropy, 4),
                                  .missing = entropy_value(&model->entropy),
                                  .thread = model_any(model, model->threads),
                                  .regions = model->regions,
                                  .references = model->references};
    model->snapshot_is_open = false;
    return model_note(
        model, ttd_writer_snapshot(writer, &record),
        &(struct ttd_batch){.kind = TTD_KIND_SNAPSHOTS, .count = 1, .u.snapshots = &record});
}

enum ttd_status model_write_regions(struct model *model, struct ttd_writer *writer)
{
    struct ttd_region regions[RECORDS_MAX];
    size_t count = some(model);
    for (size_t i = 0; i < count; i++) {
        struct ttd_region *region = &regions[i];
        *region = (struct ttd_region){
            .kind = (enum ttd_region_kind)(1 + entropy_below(&model->entropy, 7)),
            .thread = model_any(model, model->threads),
            .module = model_any(model, model->modules),
            .name = model_any(model, model->strings)};
        if (region->kind != TTD_REGION_REGISTERS)
            region->begin = entropy_value(&model->entropy);
        uint64_t most = UINT64_MAX - region->begin;
        region->size = 1 + (most ? entropy_below(&model->entropy, most) : 0);
    }
    struct ttd_regions record = {
        .snapshot = begun(model), .first = model->regions + 1, .regions = regions, .count = count};
    model->regions += (uint32_t)count;
    return model_note(
        model, ttd_writer_regions(writer, &record),
        &(struct ttd_batch){.kind = TTD_KIND_REGIONS, .count = 1, .u.regions = &record});
}

/** Writes references by a pack. */
static enum ttd_status write_pack(struct ttd_writer *writer, const struct ttd_references *record)
{
    struct ttd_reference_pack *pack;
    enum ttd_status status = ttd_reference_pack_create(NULL, &pack);
    if (status != TTD_OK)
        return status;
    status = ttd_reference_pack_add(pack, record);
    if (status == TTD_OK)
        status = ttd_writer_reference_pack(writer, pack);
    ttd_reference_pack_free(pack);
    return status;
}

enum ttd_status model_write_references(struct model *model, struct ttd_writer *writer)
{
    struct ttd_reference references[RECORDS_MAX];
    uint32_t snapshot = begun(model);
    size_t count = model->regions ? some(model) : 0;
    for (size_t i = 0; i < count; i++) {
        struct ttd_reference *last = &model->reference;
        uint64_t distance = entropy_value(&model->entropy);
        uint32_t left = model->regions - last->region;
        if (last->region == 0 || (left && entropy_below(&model->entropy, 4) == 0)) {
            last->region += 1 + (uint32_t)entropy_below(&model->entropy, left);
            last->offset = distance;
        } else if (last->offset < UINT64_MAX) {
            uint64_t most = UINT64_MAX - last->offset;
            last->offset += distance && distance < most ? distance : 1;
        } else {
            count = i;
            break;
        }
        last->value = 1 + entropy_below(&model->entropy, UINT64_MAX);
        references[i] = *last;
    }
    struct ttd_references record = {.snapshot = snapshot, .references = references, .count = count};
    enum ttd_status status = entropy_below(&model->entropy, 2) == 0
                                 ? write_pack(writer, &record)
                                 : ttd_writer_references(writer, &record);
    model->references += count;
    return count == 0
               ? status
               : model_note(model, status,
                            &(struct ttd_batch){
                                .kind = TTD_KIND_REFERENCES, .count = 1, .u.references = &record});
}

enum ttd_status model_write_variable(struct model *model, struct ttd_writer *writer)
{
    struct ttd_variable record = {.module = model_any(model, model->modules),
                                  .offset = entropy_value(&model->entropy),
                                  .size = entropy_value(&model->entropy),
                                  .name = model_any(model, model->strings)};
    if (record.module == TTD_NONE)
        return TTD_OK;
    return model_note(
        model, ttd_writer_variable(writer, &record),
        &(struct ttd_batch){.kind = TTD_KIND_VARIABLES, .count = 1, .u.variables = &record});
}

enum ttd_status model_write_frames(struct model *model, struct ttd_writer *writer)
{
    uint64_t addresses[RECORDS_MAX];
    struct ttd_frames record = {.snapshot = begun(model),
                                .thread = model_any(model, model->threads),
                                .stack = model_any(model, model->stacks),
                                .addresses = addresses,
                                .count = some(model) - 1};
    for (size_t i = 0; i < record.count; i++)
        addresses[i] = entropy_value(&model->entropy);
    return model_note(
        model, ttd_writer_frames(writer, &record),
        &(struct ttd_batch){.kind = TTD_KIND_FRAMES, .count = 1, .u.frames = &record});
}

enum ttd_status model_write_classes(struct model *model, struct ttd_writer *writer)
{
    struct ttd_class classes[RECORDS_MAX];
    struct ttd_classes record = {
        .snapshot = begun(model), .classes = classes, .count = some(model)};
    for (size_t i = 0; i < record.count; i++)
        classes[i] =
            (struct ttd_class){entropy_value(&model->entropy), model_any(model, model->strings)};
    return model_note(
        model, ttd_writer_classes(writer, &record),
        &(struct ttd_batch){.kind = TTD_KIND_CLASSES, .count = 1, .u.classes = &record});
}

enum ttd_status model_write_block_headers(struct model *model, struct ttd_writer *writer)
{
    static const uint32_t flags[] = {0, 1, 2, 3, 5, 7};
    uint64_t headers[RECORDS_MAX];
    struct ttd_block_headers record = {.snapshot = begun(model),
                                       .flags = flags[entropy_below(&model->entropy, 6)],
                                       .begin = entropy_below(&model->entropy, UINT64_C(1) << 60),
                                       .headers = headers,
                                       .count = some(model)};
    for (size_t i = 0; i < record.count; i++)
        headers[i] = 16 + entropy_below(&model->entropy, 1 << 20);
    headers[record.count - 1] = entropy_value(&model->entropy);
    return model_note(model, ttd_writer_block_headers(writer, &record),
                      &(struct ttd_batch){
                          .kind = TTD_KIND_BLOCK_HEADERS, .count = 1, .u.block_headers = &record});
}

enum ttd_status model_write_fatal_signal(struct model *model, struct ttd_writer *writer)
{
    struct ttd_register registers[RECORDS_MAX];
    struct ttd_fatal_signal record = {.position = model_any_position(model),
                                      .wall_time = entropy_value(&model->entropy),
                                      .thread = model_any(model, model->threads),
                                      .stack = model_any(model, model->stacks),
                                      .signal =
                                          1 + (uint32_t)entropy_below(&model->entropy, INT32_MAX),
                                      .code = (int64_t)entropy_value(&model->entropy),
                                      .address = entropy_value(&model->entropy),
                                      .snapshot = (uint32_t)entropy_value(&model->entropy),
                                      .registers = registers,
                                      .count = some(model) - 1};
    for (size_t i = 0; i < record.count; i++)
        registers[i] = (struct ttd_register){(uint32_t)entropy_value(&model->entropy),
                                             entropy_value(&model->entropy)};
    return model_note(model, ttd_writer_fatal_signal(writer, &record),
                      &(struct ttd_batch){
                          .kind = TTD_KIND_FATAL_SIGNALS, .count = 1, .u.fatal_signals = &record});
}
