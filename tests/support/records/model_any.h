/* SPDX-License-Identifier: MIT */
/** Helpers that the files of the model share: values drawn from it, and the noting of records. */
#ifndef SUPPORT_MODEL_ANY_H
#define SUPPORT_MODEL_ANY_H

#include "support/records/model.h"

/** An id of which `count` are defined, or 0. */
static inline ttd_id model_any(struct model *model, ttd_id count)
{
    return (ttd_id)entropy_below(&model->entropy, (uint64_t)count + 1);
}

/** A valid position. */
static inline struct ttd_position model_any_position(struct model *model)
{
    struct ttd_position position = {entropy_value(&model->entropy), entropy_value(&model->entropy)};
    if (position.sequence == TTD_SEQUENCE_INVALID)
        position.sequence--;
    return position;
}

/** Notes what was written. A status other than TTD_OK is no record. */
static inline enum ttd_status model_note(struct model *model, enum ttd_status status,
                                         const struct ttd_batch *batch)
{
    if (status == TTD_OK)
        text_of_batch(text_table_at(&model->expected, batch->kind), batch);
    return status;
}

enum ttd_status model_write_blocks(struct model *model, struct ttd_writer *writer);
enum ttd_status model_write_pages(struct model *model, struct ttd_writer *writer);
enum ttd_status model_write_map(struct model *model, struct ttd_writer *writer);
enum ttd_status model_write_state(struct model *model, struct ttd_writer *writer);
enum ttd_status model_write_sum(struct model *model, struct ttd_writer *writer);
enum ttd_status model_write_snapshot(struct model *model, struct ttd_writer *writer);
enum ttd_status model_write_regions(struct model *model, struct ttd_writer *writer);
enum ttd_status model_write_references(struct model *model, struct ttd_writer *writer);
enum ttd_status model_write_variable(struct model *model, struct ttd_writer *writer);
enum ttd_status model_write_frames(struct model *model, struct ttd_writer *writer);
enum ttd_status model_write_classes(struct model *model, struct ttd_writer *writer);
enum ttd_status model_write_block_headers(struct model *model, struct ttd_writer *writer);
enum ttd_status model_write_fatal_signal(struct model *model, struct ttd_writer *writer);

#endif
