/* SPDX-License-Identifier: MIT */
#include <ttdtrace/verify.h>

#include "codec/records.h"
#include "read/copy.h"

/** The new file in the making, and the loss records written to it. */
struct recovery {
    struct ttd_copy copy;
    uint64_t losses;
};

/** Writes a loss record. */
static enum ttd_status record_loss(void *context, struct ttd_reader *reader,
                                   const struct ttd_loss *loss)
{
    struct recovery *r = context;
    enum ttd_status status = ttd_copy_begin(&r->copy, reader);
    if (status != TTD_OK)
        return status;
    ttd_encode_loss(&r->copy.payload, loss);
    struct ttd_emission emission = {TTD_KIND_LOSSES, r->losses++, 1, loss->last_good,
                                    loss->last_good};
    return ttd_copy_put(&r->copy, &emission);
}

static enum ttd_status copy_chunk(void *context, struct ttd_reader *reader,
                                  const struct ttd_header *header, const uint8_t *stored,
                                  bool redefines)
{
    struct recovery *r = context;
    enum ttd_status status = ttd_copy_begin(&r->copy, reader);
    if (status != TTD_OK || ttd_copy_is_made(&r->copy, reader, header))
        return status;
    /* A file in which an id means two things cannot be repaired: the chunk is left out. */
    if (redefines) {
        struct ttd_loss loss = {.reason = TTD_LOSS_DAMAGE,
                                .last_good = reader->position,
                                .first_good = ttd_position_invalid()};
        return record_loss(r, reader, &loss);
    }
    struct ttd_header copy = *header;
    if (header->kind == TTD_KIND_LOSSES) {
        copy.first_record = r->losses;
        r->losses += header->record_count;
    }
    return ttd_copy_stored(&r->copy, &copy, stored);
}

enum ttd_status ttd_recover(const struct ttd_input *input, const struct ttd_output *output,
                            const struct ttd_allocator *allocator,
                            const struct ttd_problem_observer *observer,
                            struct ttd_verdict *verdict, struct ttd_error *error)
{
    struct recovery r = {.copy = {.error = error, .trace_flags = TTD_TRACE_RECOVERED}};
    struct ttd_check check = {.observer = ttd_observer_or_none(observer),
                              .chunk = copy_chunk,
                              .loss = record_loss,
                              .context = &r};
    return ttd_copy_run(&r.copy, &check, input, output, allocator, verdict);
}
