/* SPDX-License-Identifier: MIT */
#include "travel/losses.h"

#include "heap/site_table.h"
#include "travel/trace.h"

void heap_losses_add(struct heap_losses *losses, const struct ttd_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_loss *loss = &batch->u.losses[i];
        losses->records++;
        if (batch->synthetic || loss->reason == TTD_LOSS_DAMAGE)
            losses->damaged++;
        if (loss->count == TTD_UNKNOWN)
            losses->unknown++;
        else
            losses->events = heap_add(losses->events, loss->count);
        if (losses->kept_count == HEAP_LOSSES_KEPT)
            continue;
        struct ttd_loss *added_loss = &losses->kept[losses->kept_count++];
        *added_loss = *loss;
        if ((unsigned)added_loss->reason > HEAP_LOSS_LAST)
            added_loss->reason = TTD_LOSS_UNKNOWN;
    }
}

enum ttd_status heap_losses_read(struct ttd_reader *reader,
                                 enum ttd_status (*add)(void *context,
                                                        const struct ttd_batch *batch),
                                 void *context, struct ttd_error *error)
{
    enum ttd_status status = ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_LOSSES));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(reader, &batch, error);
        if (status == TTD_OK && batch.kind == TTD_KIND_LOSSES && !batch.synthetic)
            status = add(context, &batch);
    }
    return heap_is_over(status) ? TTD_OK : status;
}

uint64_t heap_losses_between(const struct heap_losses *losses, struct ttd_position from,
                             struct ttd_position to)
{
    uint64_t count = losses->records - losses->kept_count;
    for (size_t i = 0; i < losses->kept_count; i++) {
        const struct ttd_loss *loss = &losses->kept[i];
        if (loss->count != 0 && ttd_position_compare(loss->last_good, to) < 0 &&
            ttd_position_compare(loss->first_good, from) > 0)
            count++;
    }
    return count;
}

const char *heap_loss_text(enum ttd_loss_reason reason)
{
    switch (reason) {
    case TTD_LOSS_OVERFLOW:
        return "the recorder's buffers were full";
    case TTD_LOSS_REENTRANT:
        return "a signal handler interrupted the recorder";
    case TTD_LOSS_NOT_RECORDING:
        return "not all calls are recorded";
    case TTD_LOSS_DAMAGE:
        return "a part of the file is damaged or missing";
    case TTD_LOSS_LATE:
        return "the recorder could not put events in order";
    case TTD_LOSS_LIMIT:
        return "the trace had the size that it was allowed";
    case TTD_LOSS_UNKNOWN:
        break;
    }
    return "for an unknown reason";
}
