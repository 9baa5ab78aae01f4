/* SPDX-License-Identifier: MIT */
#include "read/recover.h"

#include <ttdtrace/verify.h>

#include "codec/records.h"

/** Writes a loss record. */
static enum ttd_status record_loss(void *context, struct ttd_reader *reader,
                                   const struct ttd_loss *loss)
{
    struct ttd_recovery *r = context;
    enum ttd_status status = ttd_copy_begin(&r->copy, reader);
    if (status != TTD_OK)
        return status;
    ttd_encode_loss(&r->copy.payload, loss);
    struct ttd_emission emission = {TTD_KIND_LOSSES, r->losses++, 1, loss->last_good,
                                    loss->last_good};
    return ttd_copy_put(&r->copy, &emission);
}

/** Takes in which ids and ordinals are in use. */
static void recover_note(struct ttd_recovery *r, const struct ttd_reader *reader,
                         const struct ttd_header *header)
{
    const struct ttd_id_check *ids = &reader->check.ids;
    r->strings = ids->strings;
    r->modules = ids->modules;
    r->has_gaps |= ids->unknown;
    if (header->kind <= TTD_KIND_LAST)
        r->ordinals[header->kind] = header->first_record + header->record_count;
}

static enum ttd_status recover_copy_chunk(void *context, struct ttd_reader *reader,
                                          const struct ttd_header *header, const uint8_t *stored,
                                          bool redefines)
{
    struct ttd_recovery *r = context;
    enum ttd_status status = ttd_copy_begin(&r->copy, reader);
    recover_note(r, reader, header);
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

enum ttd_status ttd_recovery_run(struct ttd_recovery *recovery, const struct ttd_input *input,
                                 const struct ttd_output *output,
                                 const struct ttd_allocator *allocator,
                                 const struct ttd_problem_observer *observer,
                                 struct ttd_verdict *verdict)
{
    struct ttd_check check = {.observer = ttd_observer_or_none(observer),
                              .chunk = recover_copy_chunk,
                              .loss = record_loss,
                              .context = recovery};
    return ttd_copy_run(&recovery->copy, &check, input, output, allocator, verdict);
}

enum ttd_status ttd_recover(const struct ttd_input *input, const struct ttd_output *output,
                            const struct ttd_allocator *allocator,
                            const struct ttd_problem_observer *observer,
                            struct ttd_verdict *verdict, struct ttd_error *error)
{
    struct ttd_recovery recovery = {.copy = {.error = error, .trace_flags = TTD_TRACE_RECOVERED}};
    return ttd_recovery_run(&recovery, input, output, allocator, observer, verdict);
}
