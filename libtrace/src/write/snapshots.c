/* SPDX-License-Identifier: MIT */
#include "write/internal.h"

#include "codec/snapshots/references.h"
#include "codec/snapshots/snapshots.h"

/** How many of `left` records go into the next chunk. */
static size_t chunk_count(size_t left)
{
    return left < TTD_RECORDS_MAX ? left : TTD_RECORDS_MAX;
}

/** Writes writer->payload as a chunk of `count` records of a part of a snapshot. */
static enum ttd_status put_part(struct ttd_writer *writer, enum ttd_kind kind, size_t count)
{
    struct ttd_record_buffer *records = &writer->records[kind];
    enum ttd_status status = ttd_writer_put_payload(writer, kind, records->next_record,
                                                    (uint32_t)count, writer->position);
    if (status == TTD_OK)
        records->next_record += count;
    return status;
}

/* ---- Regions ---- */

static const char *check_regions(const struct ttd_writer *writer, const struct ttd_regions *regions)
{
    if (!regions->regions)
        return "regions";
    const char *wrong = ttd_check_regions(regions);
    for (size_t i = 0; i < regions->count && !wrong; i++) {
        const struct ttd_region *region = &regions->regions[i];
        if (!ttd_writer_knows(writer, region->thread, writer->threads) ||
            !ttd_writer_knows(writer, region->module, writer->modules) ||
            !ttd_writer_knows(writer, region->name, writer->strings))
            wrong = "identifier in a region";
    }
    return wrong;
}

enum ttd_status ttd_writer_regions(struct ttd_writer *writer, const struct ttd_regions *regions)
{
    if (writer->failed)
        return TTD_ERROR_MISUSE;
    if (regions->count == 0)
        return TTD_OK;
    struct ttd_snapshot_order order = writer->snapshots;
    bool redefines;
    const char *wrong = check_regions(writer, regions);
    if (!wrong)
        wrong = ttd_snapshot_order_regions(&order, regions, &redefines);
    if (wrong)
        return ttd_writer_refuse(writer, wrong);
    enum ttd_status status = ttd_writer_flush_records(writer);
    writer->snapshots = order;
    struct ttd_regions part = *regions;
    for (size_t left = regions->count; left != 0 && status == TTD_OK; left -= part.count) {
        part.count = chunk_count(left);
        ttd_encode_regions(&writer->payload, &part);
        status = put_part(writer, TTD_KIND_REGIONS, part.count);
        part.first += (uint32_t)part.count;
        part.regions += part.count;
    }
    return status;
}

/* ---- References ---- */

enum ttd_status ttd_writer_references(struct ttd_writer *writer,
                                      const struct ttd_references *references)
{
    if (writer->failed)
        return TTD_ERROR_MISUSE;
    if (references->count == 0)
        return TTD_OK;
    struct ttd_snapshot_order order = writer->snapshots;
    const char *wrong = references->references ? ttd_check_references(references) : "references";
    if (!wrong)
        wrong = ttd_snapshot_order_references(&order, references);
    if (wrong)
        return ttd_writer_refuse(writer, wrong);
    enum ttd_status status = ttd_writer_flush_records(writer);
    writer->snapshots = order;
    struct ttd_references part = *references;
    for (size_t left = references->count; left != 0 && status == TTD_OK; left -= part.count) {
        part.count = chunk_count(left);
        ttd_encode_references(&writer->payload, &part, writer->columns);
        status = put_part(writer, TTD_KIND_REFERENCES, part.count);
        part.references += part.count;
    }
    return status;
}

/* ---- Classes ---- */

static const char *check_classes(const struct ttd_writer *writer, const struct ttd_classes *classes)
{
    if (!classes->classes)
        return "classes";
    for (size_t i = 0; i < classes->count; i++)
        if (!ttd_writer_knows(writer, classes->classes[i].name, writer->strings))
            return "name of a class";
    return NULL;
}

enum ttd_status ttd_writer_classes(struct ttd_writer *writer, const struct ttd_classes *classes)
{
    if (writer->failed)
        return TTD_ERROR_MISUSE;
    if (classes->count == 0)
        return TTD_OK;
    struct ttd_snapshot_order order = writer->snapshots;
    const char *wrong = check_classes(writer, classes);
    if (!wrong)
        wrong = ttd_snapshot_order_part(&order, classes->snapshot);
    if (wrong)
        return ttd_writer_refuse(writer, wrong);
    enum ttd_status status = ttd_writer_flush_records(writer);
    writer->snapshots = order;
    struct ttd_classes part = *classes;
    for (size_t left = classes->count; left != 0 && status == TTD_OK; left -= part.count) {
        part.count = chunk_count(left);
        ttd_encode_classes(&writer->payload, &part);
        status = put_part(writer, TTD_KIND_CLASSES, part.count);
        part.classes += part.count;
    }
    return status;
}

/* ---- Records that are buffered ---- */

enum ttd_status ttd_writer_variable(struct ttd_writer *writer, const struct ttd_variable *variable)
{
    if (variable->module == TTD_NONE ||
        !ttd_writer_knows(writer, variable->module, writer->modules) ||
        !ttd_writer_knows(writer, variable->name, writer->strings))
        return ttd_writer_refuse(writer, "variable");
    enum ttd_status status = ttd_writer_begin_record(writer, TTD_KIND_VARIABLES);
    if (status != TTD_OK)
        return status;
    struct ttd_record_buffer *records = &writer->records[TTD_KIND_VARIABLES];
    if (records->count == 0)
        writer->variable_offset = 0;
    ttd_encode_variable(&records->payload, variable, &writer->variable_offset);
    return ttd_writer_end_record(writer, TTD_KIND_VARIABLES);
}

enum ttd_status ttd_writer_frames(struct ttd_writer *writer, const struct ttd_frames *frames)
{
    struct ttd_snapshot_order order = writer->snapshots;
    if ((!frames->addresses && frames->count != 0) || frames->count > TTD_FRAMES_MAX)
        return ttd_writer_refuse(writer, "number of frames");
    if (!ttd_writer_knows(writer, frames->thread, writer->threads) ||
        !ttd_writer_knows(writer, frames->stack, writer->stack_count))
        return ttd_writer_refuse(writer, "identifier in frames");
    const char *wrong = ttd_snapshot_order_part(&order, frames->snapshot);
    if (wrong)
        return ttd_writer_refuse(writer, wrong);
    enum ttd_status status = ttd_writer_begin_record(writer, TTD_KIND_FRAMES);
    if (status != TTD_OK)
        return status;
    writer->snapshots = order;
    ttd_encode_frames(&writer->records[TTD_KIND_FRAMES].payload, frames);
    return ttd_writer_end_record(writer, TTD_KIND_FRAMES);
}

enum ttd_status ttd_writer_snapshot(struct ttd_writer *writer, const struct ttd_snapshot *snapshot)
{
    if (writer->failed)
        return TTD_ERROR_MISUSE;
    struct ttd_snapshot_order order = writer->snapshots;
    bool redefines;
    const char *wrong = ttd_check_snapshot(snapshot);
    if (!wrong && !ttd_writer_knows(writer, snapshot->thread, writer->threads))
        wrong = "thread of a snapshot";
    if (!wrong)
        wrong = ttd_snapshot_order_finish(&order, snapshot->number, &redefines);
    if (wrong)
        return ttd_writer_refuse(writer, wrong);
    enum ttd_status status = ttd_writer_flush(writer);
    if (status != TTD_OK)
        return status;
    writer->snapshots = order;
    struct ttd_snapshot whole = *snapshot;
    whole.regions = order.regions;
    whole.references = order.references;
    ttd_encode_snapshot(&writer->records[TTD_KIND_SNAPSHOTS].payload, &whole);
    ttd_writer_touch(writer, TTD_KIND_SNAPSHOTS, snapshot->position);
    status = ttd_writer_end_record(writer, TTD_KIND_SNAPSHOTS);
    return status == TTD_OK ? ttd_writer_flush_records(writer) : status;
}

static const char *check_signal(const struct ttd_writer *writer,
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
    const char *wrong = check_signal(writer, signal);
    if (wrong)
        return ttd_writer_refuse(writer, wrong);
    enum ttd_status status = ttd_writer_begin_record(writer, TTD_KIND_FATAL_SIGNALS);
    if (status != TTD_OK)
        return status;
    ttd_encode_fatal_signal(&writer->records[TTD_KIND_FATAL_SIGNALS].payload, signal);
    ttd_writer_touch(writer, TTD_KIND_FATAL_SIGNALS, signal->position);
    return ttd_writer_end_record(writer, TTD_KIND_FATAL_SIGNALS);
}
