/* SPDX-License-Identifier: MIT */
/* From payloads to batches: parts of snapshots that are arrays, or have some. */
#include "base/memory.h"
#include "codec/snapshots/references.h"
#include "codec/snapshots/snapshots.h"
#include "read/internal.h"

/** A batch gets no more records once their arrays have this many items. */
#define ITEMS_ENOUGH 1024

/** Makes room in reader->items for `count` items of `size` bytes, and one more, so that the array
 * is never NULL. Keeps the items that are there. */
static enum ttd_status make_room(struct ttd_reader *reader, size_t count, size_t size,
                                 struct ttd_error *error)
{
    if (!ttd_grow_array(&reader->allocator, &reader->items, &reader->items_capacity,
                        (count + 1) * size, 1))
        return TTD_OK;
    return ttd_reader_fail(reader, TTD_ERROR_NO_MEMORY, "memory", error);
}

static enum ttd_status decode_regions(struct ttd_reader *reader, size_t count,
                                      struct ttd_error *error)
{
    struct ttd_regions *list = &reader->records.regions;
    *list = (struct ttd_regions){.count = count};
    enum ttd_status status = make_room(reader, count, sizeof *list->regions, error);
    if (status == TTD_OK)
        ttd_decode_regions(&reader->payload, list, reader->items);
    return status;
}

static enum ttd_status decode_references(struct ttd_reader *reader, size_t count,
                                         struct ttd_error *error)
{
    struct ttd_references *list = &reader->records.references;
    *list = (struct ttd_references){.count = count};
    enum ttd_status status = make_room(reader, count, sizeof *list->references, error);
    if (status == TTD_OK)
        ttd_decode_references(&reader->payload, list, reader->items);
    return status;
}

static enum ttd_status decode_classes(struct ttd_reader *reader, size_t count,
                                      struct ttd_error *error)
{
    struct ttd_classes *list = &reader->records.classes;
    *list = (struct ttd_classes){.count = count};
    enum ttd_status status = make_room(reader, count, sizeof *list->classes, error);
    if (status == TTD_OK)
        ttd_decode_classes(&reader->payload, list, reader->items);
    return status;
}

/** Returns how many bytes a record of the present chunk takes at least. */
static size_t least_size(const struct ttd_reader *reader)
{
    switch (reader->header.kind) {
    case TTD_KIND_REGIONS:
        return TTD_REGION_BYTES_MIN;
    case TTD_KIND_REFERENCES:
        return TTD_REFERENCE_COLUMN_COUNT;
    default:
        return TTD_CLASS_BYTES_MIN;
    }
}

enum ttd_status ttd_reader_decode_part(struct ttd_reader *reader, struct ttd_error *error)
{
    uint32_t count = reader->header.record_count;
    if (count > ttd_cursor_left(&reader->payload) / least_size(reader)) {
        ttd_cursor_fail(&reader->payload, "number of items");
        return TTD_OK;
    }
    switch (reader->header.kind) {
    case TTD_KIND_REGIONS:
        return decode_regions(reader, count, error);
    case TTD_KIND_REFERENCES:
        return decode_references(reader, count, error);
    default:
        return decode_classes(reader, count, error);
    }
}

enum ttd_status ttd_reader_decode_frames(struct ttd_reader *reader, size_t *count,
                                         struct ttd_error *error)
{
    struct ttd_cursor *in = &reader->payload;
    struct ttd_frames *records = reader->records.frames;
    size_t items = 0;
    size_t n = 0;
    for (; n < *count && items < ITEMS_ENOUGH; n++) {
        ttd_decode_frames(in, &records[n]);
        enum ttd_status status =
            make_room(reader, items + records[n].count, sizeof(uint64_t), error);
        if (status != TTD_OK)
            return status;
        ttd_decode_frame_addresses(in, (uint64_t *)reader->items + items, records[n].count);
        items += records[n].count;
    }
    /* Growing has moved the array until now. */
    size_t first = 0;
    for (size_t i = 0; i < n; i++) {
        records[i].addresses = records[i].count ? (uint64_t *)reader->items + first : NULL;
        first += records[i].count;
    }
    *count = n;
    return TTD_OK;
}

enum ttd_status ttd_reader_decode_signals(struct ttd_reader *reader, size_t *count,
                                          struct ttd_error *error)
{
    struct ttd_cursor *in = &reader->payload;
    struct ttd_fatal_signal *records = reader->records.fatal_signals;
    size_t items = 0;
    size_t n = 0;
    for (; n < *count && items < ITEMS_ENOUGH; n++) {
        ttd_decode_fatal_signal(in, &records[n]);
        enum ttd_status status =
            make_room(reader, items + records[n].count, sizeof(struct ttd_register), error);
        if (status != TTD_OK)
            return status;
        ttd_decode_registers(in, (struct ttd_register *)reader->items + items, records[n].count);
        items += records[n].count;
    }
    size_t first = 0;
    for (size_t i = 0; i < n; i++) {
        records[i].registers =
            records[i].count ? (struct ttd_register *)reader->items + first : NULL;
        first += records[i].count;
    }
    *count = n;
    return TTD_OK;
}

void ttd_reader_point_snapshots(const struct ttd_reader *reader, struct ttd_batch *batch)
{
    switch (reader->header.kind) {
    case TTD_KIND_SNAPSHOTS:
        batch->u.snapshots = reader->records.snapshots;
        break;
    case TTD_KIND_REGIONS:
        batch->u.regions = &reader->records.regions;
        break;
    case TTD_KIND_REFERENCES:
        batch->u.references = &reader->records.references;
        break;
    case TTD_KIND_VARIABLES:
        batch->u.variables = reader->records.variables;
        break;
    case TTD_KIND_FRAMES:
        batch->u.frames = reader->records.frames;
        break;
    case TTD_KIND_CLASSES:
        batch->u.classes = &reader->records.classes;
        break;
    default:
        batch->u.fatal_signals = reader->records.fatal_signals;
        break;
    }
}
