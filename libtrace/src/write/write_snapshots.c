/* SPDX-License-Identifier: MIT */
#include <ttdtrace/advanced.h>

#include "base/memory.h"
#include "codec/snapshots/snapshots.h"
#include "write/write_internal.h"

/** A part of a snapshot that is written at once, in chunks of at most TTD_RECORDS_MAX records. */
struct part {
    enum ttd_kind kind;
    /** The caller's list, such as a struct ttd_regions, and its number of records. */
    const void *list;
    size_t count;
    /** Validates the list (not empty), and takes it in. Returns the first violation, or NULL. */
    const char *(*check)(const struct ttd_writer *writer, const void *list,
                         struct ttd_snapshot_order *order);
    /** Encodes `count` records from the one with index `first` on into writer->payload. */
    void (*encode)(struct ttd_writer *writer, const void *list, size_t first, size_t count);
};

/** Writes a part, after all that is buffered; nothing, and no chunk, if it has no records. */
static enum ttd_status snapshots_put_part(struct ttd_writer *writer, const struct part *part)
{
    if (writer->failed)
        return TTD_ERROR_MISUSE;
    if (part->count == 0)
        return TTD_OK;
    struct ttd_snapshot_order order = writer->snapshots;
    const char *violation = part->check(writer, part->list, &order);
    if (violation)
        return ttd_writer_refuse(writer, violation);
    enum ttd_status status = ttd_writer_flush_records(writer);
    /* Whether that failed or not: after a failure the writer takes no more parts. */
    writer->snapshots = order;
    size_t count;
    for (size_t first = 0; first < part->count && status == TTD_OK; first += count) {
        size_t remaining = part->count - first;
        count = remaining < TTD_RECORDS_MAX ? remaining : TTD_RECORDS_MAX;
        part->encode(writer, part->list, first, count);
        status = ttd_writer_put_records(writer, part->kind, count, writer->position);
    }
    return status;
}

/* ---- Regions ---- */

static const char *snapshots_check_regions(const struct ttd_writer *writer, const void *list,
                                           struct ttd_snapshot_order *order)
{
    const struct ttd_regions *regions = list;
    if (!regions->regions)
        return "regions";
    const char *violation = ttd_check_regions(regions);
    for (size_t i = 0; i < regions->count && !violation; i++) {
        const struct ttd_region *region = &regions->regions[i];
        if (!ttd_writer_knows(writer, region->thread, writer->threads) ||
            !ttd_writer_knows(writer, region->module, writer->modules) ||
            !ttd_writer_knows(writer, region->name, writer->strings))
            violation = "identifier in a region";
    }
    bool redefines;
    return violation ? violation : ttd_snapshot_order_regions(order, regions, &redefines);
}

static void snapshots_encode_regions(struct ttd_writer *writer, const void *list, size_t first,
                                     size_t count)
{
    struct ttd_regions part = *(const struct ttd_regions *)list;
    part.first += (uint32_t)first;
    part.regions += first;
    part.count = count;
    ttd_encode_regions(&writer->payload, &part);
}

enum ttd_status ttd_writer_regions(struct ttd_writer *writer, const struct ttd_regions *regions)
{
    return snapshots_put_part(writer,
                              &(struct part){TTD_KIND_REGIONS, regions, regions->count,
                                             snapshots_check_regions, snapshots_encode_regions});
}

/* ---- References ---- */

static const char *snapshots_check_references(const struct ttd_writer *writer, const void *list,
                                              struct ttd_snapshot_order *order)
{
    const struct ttd_references *references = list;
    if (!references->references)
        return "references";
    struct ttd_reference_range range = {references->snapshot, references->references,
                                        &references->references[references->count - 1],
                                        references->count};
    const char *violation = ttd_reference_encoder_check(&writer->references, references);
    return violation ? violation : ttd_snapshot_order_references(order, &range);
}

static void snapshots_encode_references(struct ttd_writer *writer, const void *list, size_t first,
                                        size_t count)
{
    struct ttd_references part = *(const struct ttd_references *)list;
    part.references += first;
    part.count = count;
    if (ttd_reference_encoder_add(&writer->references, &part))
        ttd_reference_encoder_finish(&writer->references, &writer->payload);
    else
        writer->payload.failed = true;
    ttd_reference_encoder_clear(&writer->references);
}

enum ttd_status ttd_writer_references(struct ttd_writer *writer,
                                      const struct ttd_references *references)
{
    return snapshots_put_part(writer, &(struct part){TTD_KIND_PACKED_REFERENCES, references,
                                                     references->count, snapshots_check_references,
                                                     snapshots_encode_references});
}

/* ---- Classes ---- */

static const char *snapshots_check_classes(const struct ttd_writer *writer, const void *list,
                                           struct ttd_snapshot_order *order)
{
    const struct ttd_classes *classes = list;
    if (!classes->classes)
        return "classes";
    for (size_t i = 0; i < classes->count; i++)
        if (!ttd_writer_knows(writer, classes->classes[i].name, writer->strings))
            return "name of a class";
    return ttd_snapshot_order_part(order, classes->snapshot);
}

static void snapshots_encode_classes(struct ttd_writer *writer, const void *list, size_t first,
                                     size_t count)
{
    struct ttd_classes part = *(const struct ttd_classes *)list;
    part.classes += first;
    part.count = count;
    ttd_encode_classes(&writer->payload, &part);
}

enum ttd_status ttd_writer_classes(struct ttd_writer *writer, const struct ttd_classes *classes)
{
    return snapshots_put_part(writer,
                              &(struct part){TTD_KIND_CLASSES, classes, classes->count,
                                             snapshots_check_classes, snapshots_encode_classes});
}

/* ---- Block headers ---- */

static const char *snapshots_check_block_headers(const struct ttd_writer *writer, const void *list,
                                                 struct ttd_snapshot_order *order)
{
    const struct ttd_block_headers *headers = list;
    (void)writer;
    if (!headers->headers)
        return "block headers";
    const char *violation = ttd_check_block_headers(headers);
    return violation ? violation : ttd_snapshot_order_part(order, headers->snapshot);
}

static void snapshots_encode_block_headers(struct ttd_writer *writer, const void *list,
                                           size_t first, size_t count)
{
    struct ttd_block_headers part = *(const struct ttd_block_headers *)list;
    for (size_t i = 0; i < first; i++)
        part.begin += TTD_BLOCK_HEADER_SIZE(part.headers[i]);
    /* Only the last header of all may be broken. */
    if (first + count < part.count)
        part.flags &= ~(TTD_HEADERS_BROKEN | TTD_HEADERS_DERIVED);
    part.headers += first;
    part.count = count;
    ttd_encode_block_headers(&writer->payload, &part);
}

enum ttd_status ttd_writer_block_headers(struct ttd_writer *writer,
                                         const struct ttd_block_headers *headers)
{
    return snapshots_put_part(writer, &(struct part){TTD_KIND_BLOCK_HEADERS, headers,
                                                     headers->count, snapshots_check_block_headers,
                                                     snapshots_encode_block_headers});
}

/* ---- Records that are buffered ---- */

enum ttd_status ttd_writer_variable(struct ttd_writer *writer, const struct ttd_variable *variable)
{
    bool is_known = variable->module != TTD_NONE &&
                    ttd_writer_knows(writer, variable->module, writer->modules) &&
                    ttd_writer_knows(writer, variable->name, writer->strings);
    enum ttd_status status =
        ttd_writer_begin_record(writer, TTD_KIND_VARIABLES, is_known ? NULL : "variable");
    if (status != TTD_OK)
        return status;
    struct ttd_record_buffer *records = &writer->records[TTD_KIND_VARIABLES];
    /* A chunk is decoded without any other, so differences begin anew. */
    if (records->count == 0)
        writer->variable_offset = 0;
    ttd_encode_variable(&records->payload, variable, &writer->variable_offset);
    return ttd_writer_end_record(writer, TTD_KIND_VARIABLES);
}

static const char *snapshots_check_frames(const struct ttd_writer *writer,
                                          const struct ttd_frames *frames,
                                          struct ttd_snapshot_order *order)
{
    if ((!frames->addresses && frames->count != 0) || frames->count > TTD_FRAMES_MAX)
        return "number of frames";
    if (!ttd_writer_knows(writer, frames->thread, writer->threads) ||
        !ttd_writer_knows(writer, frames->stack, writer->stack_count))
        return "identifier in frames";
    return ttd_snapshot_order_part(order, frames->snapshot);
}

enum ttd_status ttd_writer_frames(struct ttd_writer *writer, const struct ttd_frames *frames)
{
    struct ttd_snapshot_order order = writer->snapshots;
    enum ttd_status status = ttd_writer_begin_record(
        writer, TTD_KIND_FRAMES, snapshots_check_frames(writer, frames, &order));
    if (status != TTD_OK)
        return status;
    writer->snapshots = order;
    ttd_encode_frames(&writer->records[TTD_KIND_FRAMES].payload, frames);
    return ttd_writer_end_record(writer, TTD_KIND_FRAMES);
}

enum ttd_status ttd_writer_snapshot(struct ttd_writer *writer, const struct ttd_snapshot *snapshot)
{
    struct ttd_snapshot_order order = writer->snapshots;
    bool redefines;
    const char *violation = ttd_check_snapshot(snapshot);
    if (!violation && !ttd_writer_knows(writer, snapshot->thread, writer->threads))
        violation = "thread of a snapshot";
    if (!violation)
        violation = ttd_snapshot_order_finish(&order, snapshot->number, &redefines);
    enum ttd_status status = ttd_writer_begin_chunk(writer, violation);
    if (status != TTD_OK)
        return status;
    writer->snapshots = order;
    /* The writer has counted the parts: the caller's values cannot contradict the file. */
    struct ttd_snapshot whole = *snapshot;
    whole.regions = order.regions;
    whole.references = order.references;
    ttd_encode_snapshot(&writer->records[TTD_KIND_SNAPSHOTS].payload, &whole);
    ttd_writer_touch(writer, TTD_KIND_SNAPSHOTS, snapshot->position);
    status = ttd_writer_end_record(writer, TTD_KIND_SNAPSHOTS);
    /* Written out at once: a snapshot exists only once its record is in the file. */
    return status == TTD_OK ? ttd_writer_flush_records(writer) : status;
}

static const char *snapshots_check_signal(const struct ttd_writer *writer,
                                          const struct ttd_fatal_signal *signal)
{
    if (!ttd_position_is_valid(signal->position))
        return "position of a fatal signal";
    if (!ttd_writer_knows(writer, signal->thread, writer->threads) ||
        !ttd_writer_knows(writer, signal->stack, writer->stack_count))
        return "identifier in a fatal signal";
    if (signal->signal == 0 || signal->signal > INT32_MAX)
        return "number of a signal";
    if ((!signal->registers && signal->count != 0) || signal->count > TTD_REGISTERS_MAX)
        return "number of registers";
    return NULL;
}

enum ttd_status ttd_writer_fatal_signal(struct ttd_writer *writer,
                                        const struct ttd_fatal_signal *signal)
{
    enum ttd_status status = ttd_writer_begin_record(writer, TTD_KIND_FATAL_SIGNALS,
                                                     snapshots_check_signal(writer, signal));
    if (status != TTD_OK)
        return status;
    ttd_encode_fatal_signal(&writer->records[TTD_KIND_FATAL_SIGNALS].payload, signal);
    ttd_writer_touch(writer, TTD_KIND_FATAL_SIGNALS, signal->position);
    return ttd_writer_end_record(writer, TTD_KIND_FATAL_SIGNALS);
}

/* Packs of references, written by a thread and filled by another. */

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
