/* SPDX-License-Identifier: MIT */
/* Packs of references, which are written by a thread and filled by another. */
#include <ttdtrace/advanced.h>

#include "base/memory.h"
#include "write/internal.h"

struct ttd_reference_pack {
    struct ttd_allocator allocator;
    struct ttd_reference_encoder encoder;
};

_Static_assert(TTD_REFERENCE_PACK_MAX == TTD_RECORDS_MAX, "a pack is a chunk");

enum ttd_status ttd_reference_pack_create(const struct ttd_allocator *allocator,
                                          struct ttd_reference_pack **pack)
{
    if (!pack || !ttd_allocator_is_valid(allocator))
        return TTD_ERROR_ARGUMENT;
    struct ttd_allocator table = ttd_allocator_or_default(allocator);
    struct ttd_reference_pack *result = ttd_allocate_zeroed(&table, sizeof *result);
    if (!result)
        return TTD_ERROR_NO_MEMORY;
    result->allocator = table;
    ttd_reference_encoder_init(&result->encoder, &result->allocator);
    *pack = result;
    return TTD_OK;
}

void ttd_reference_pack_free(struct ttd_reference_pack *pack)
{
    if (!pack)
        return;
    struct ttd_allocator allocator = pack->allocator;
    ttd_reference_encoder_free(&pack->encoder);
    ttd_release(&allocator, pack);
}

size_t ttd_reference_pack_count(const struct ttd_reference_pack *pack)
{
    return pack->encoder.count;
}

enum ttd_status ttd_reference_pack_add(struct ttd_reference_pack *pack,
                                       const struct ttd_references *references)
{
    if (references->count == 0)
        return TTD_OK;
    if (references->count > TTD_REFERENCE_PACK_MAX - pack->encoder.count)
        return TTD_ERROR_LIMIT;
    if (!references->references || ttd_reference_encoder_check(&pack->encoder, references))
        return TTD_ERROR_ARGUMENT;
    return ttd_reference_encoder_add(&pack->encoder, references) ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

enum ttd_status ttd_writer_reference_pack(struct ttd_writer *writer,
                                          struct ttd_reference_pack *pack)
{
    struct ttd_reference_encoder *encoder = &pack->encoder;
    if (writer->failed)
        return TTD_ERROR_MISUSE;
    if (encoder->count == 0)
        return TTD_OK;
    struct ttd_snapshot_order order = writer->snapshots;
    struct ttd_reference_range range = {encoder->snapshot, &encoder->first, &encoder->last,
                                        encoder->count};
    const char *violation = ttd_snapshot_order_references(&order, &range);
    if (violation)
        return ttd_writer_refuse(writer, violation);
    enum ttd_status status = ttd_writer_flush_records(writer);
    writer->snapshots = order;
    if (status == TTD_OK) {
        ttd_reference_encoder_finish(encoder, &writer->payload);
        status = ttd_writer_put_records(writer, TTD_KIND_PACKED_REFERENCES, encoder->count,
                                        writer->position);
    }
    ttd_reference_encoder_clear(encoder);
    return status;
}
