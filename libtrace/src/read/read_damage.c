/* SPDX-License-Identifier: MIT */
/* Damage of a chunk. Its header is good, so that the reader knows which events are missing with it:
 * a tolerant reader passes over the chunk and returns a synthetic loss in its place. */
#include <string.h>

#include "read/read_internal.h"

void ttd_reader_synthesize_loss(struct ttd_reader *reader, const struct ttd_header *header,
                                uint64_t event, struct ttd_batch *batch)
{
    const struct ttd_gap *gap = &reader->gap;
    bool events = header && header->kind == TTD_KIND_EVENTS;
    bool is_known = event != TTD_UNKNOWN && event >= gap->event && !gap->is_endless;
    reader->synthetic =
        (struct ttd_loss){.reason = TTD_LOSS_DAMAGE,
                          .count = is_known ? event - gap->event : TTD_UNKNOWN,
                          .last_good = gap->last_good,
                          .first_good = events ? header->first_position : ttd_position_invalid()};
    memset(batch, 0, sizeof *batch);
    batch->kind = TTD_KIND_LOSSES;
    batch->count = 1;
    batch->synthetic = true;
    batch->u.losses = &reader->synthetic;
    batch->error = gap->error;
    if (header)
        batch->chunk = ttd_chunk_of(header);
    reader->gap.pending = false;
    reader->rest_is_lost = !header;
    if (reader->checks)
        ttd_check_lost(reader, &reader->synthetic);
}

/** Notes that the chunk at hand is damaged and passes over it. TTD_END to go on behind it. */
static enum ttd_status pass_damaged(struct ttd_reader *reader, const struct ttd_error *damage,
                                    struct ttd_error *error)
{
    const struct ttd_header *header = &reader->header;
    reader->records_left = 0;
    reader->next_event = reader->event_before;
    reader->position = reader->position_before;
    enum ttd_status status = ttd_reader_damage(reader, damage, error);
    if (status != TTD_OK)
        return status;
    /* Its header is good, and says which events are lost with it. */
    ttd_reader_pass(reader, header, true);
    reader->has_ended = false;
    if (reader->checks)
        ttd_check_damage(reader, damage, ttd_chunk_size(header), 1);
    return TTD_END;
}

enum ttd_status ttd_reader_end_unsupported(struct ttd_reader *reader,
                                           const struct ttd_error *detail, struct ttd_batch *batch,
                                           struct ttd_error *error)
{
    reader->records_left = 0;
    enum ttd_status status = ttd_reader_damage(reader, detail, error);
    if (status != TTD_OK)
        return status;
    reader->failed = true;
    reader->error = *detail;
    if (reader->checks)
        ttd_check_damage(reader, detail, reader->source.size - reader->offset, TTD_UNKNOWN);
    ttd_reader_synthesize_loss(reader, NULL, TTD_UNKNOWN, batch);
    return TTD_OK;
}

enum ttd_status ttd_reader_fail_chunk(struct ttd_reader *reader, const struct ttd_error *detail,
                                      struct ttd_batch *batch, struct ttd_error *error)
{
    if (detail->status == TTD_ERROR_CORRUPT)
        return pass_damaged(reader, detail, error);
    if (detail->status == TTD_ERROR_UNSUPPORTED)
        return ttd_reader_end_unsupported(reader, detail, batch, error);
    reader->records_left = 0;
    return ttd_reader_stop(reader, detail, error);
}
