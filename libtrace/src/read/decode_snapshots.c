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
static enum ttd_status snapshots_make_room(struct ttd_reader *reader, size_t count, size_t size,
                                           struct ttd_error *error)
{
    if (!ttd_grow_array(&reader->allocator, &reader->items, &reader->items_capacity,
                        (count + 1) * size, 1))
        return TTD_OK;
    return ttd_reader_fail(reader, TTD_ERROR_NO_MEMORY, "memory", error);
}

/** The sizes of the records of a part of a snapshot. */
struct part_sizes {
    size_t bytes_min; /* in the payload */
    size_t item;      /* in memory */
};

static struct part_sizes part_sizes(unsigned kind)
{
    switch (kind) {
    case TTD_KIND_REGIONS:
        return (struct part_sizes){TTD_REGION_BYTES_MIN, sizeof(struct ttd_region)};
    case TTD_KIND_REFERENCES:
        return (struct part_sizes){TTD_REFERENCE_COLUMN_COUNT, sizeof(struct ttd_reference)};
    case TTD_KIND_PACKED_REFERENCES:
        return (struct part_sizes){TTD_PACKED_REFERENCE_BYTES_MIN, sizeof(struct ttd_reference)};
    case TTD_KIND_BLOCK_HEADERS:
        return (struct part_sizes){TTD_BLOCK_HEADER_BYTES_MIN, sizeof(uint64_t)};
    default:
        return (struct part_sizes){TTD_CLASS_BYTES_MIN, sizeof(struct ttd_class)};
    }
}

enum ttd_status ttd_reader_decode_part(struct ttd_reader *reader, struct ttd_error *error)
{
    struct ttd_cursor *cursor = &reader->payload;
    size_t count = reader->header.record_count;
    struct part_sizes sizes = part_sizes(reader->header.kind);
    /* Before there is room for them: memory is in proportion to the bytes that are there. */
    if (count > ttd_cursor_left(cursor) / sizes.bytes_min) {
        ttd_cursor_fail(cursor, "number of records");
        return TTD_OK;
    }
    enum ttd_status status = snapshots_make_room(reader, count, sizes.item, error);
    if (status != TTD_OK)
        return status;
    switch (reader->header.kind) {
    case TTD_KIND_REGIONS:
        reader->records.regions = (struct ttd_regions){.count = count};
        ttd_decode_regions(cursor, &reader->records.regions, reader->items);
        break;
    case TTD_KIND_REFERENCES:
        reader->records.references = (struct ttd_references){.count = count};
        ttd_decode_references(cursor, &reader->records.references, reader->items);
        break;
    case TTD_KIND_PACKED_REFERENCES:
        reader->records.references = (struct ttd_references){.count = count};
        ttd_decode_packed_references(cursor, &reader->records.references, reader->items);
        break;
    case TTD_KIND_BLOCK_HEADERS:
        reader->records.block_headers = (struct ttd_block_headers){.count = count};
        ttd_decode_block_headers(cursor, &reader->records.block_headers, reader->items);
        break;
    default:
        reader->records.classes = (struct ttd_classes){.count = count};
        ttd_decode_classes(cursor, &reader->records.classes, reader->items);
        break;
    }
    return TTD_OK;
}

enum ttd_status ttd_reader_decode_frames(struct ttd_reader *reader, size_t *count,
                                         struct ttd_error *error)
{
    struct ttd_cursor *cursor = &reader->payload;
    struct ttd_frames *records = reader->records.frames;
    size_t items = 0;
    size_t n = 0;
    for (; n < *count && items < ITEMS_ENOUGH; n++) {
        ttd_decode_frames(cursor, &records[n]);
        enum ttd_status status =
            snapshots_make_room(reader, items + records[n].count, sizeof(uint64_t), error);
        if (status != TTD_OK)
            return status;
        ttd_decode_frame_addresses(cursor, (uint64_t *)reader->items + items, records[n].count);
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
    struct ttd_cursor *cursor = &reader->payload;
    struct ttd_fatal_signal *records = reader->records.fatal_signals;
    size_t items = 0;
    size_t n = 0;
    for (; n < *count && items < ITEMS_ENOUGH; n++) {
        ttd_decode_fatal_signal(cursor, &records[n]);
        enum ttd_status status = snapshots_make_room(reader, items + records[n].count,
                                                     sizeof(struct ttd_register), error);
        if (status != TTD_OK)
            return status;
        ttd_decode_registers(cursor, (struct ttd_register *)reader->items + items,
                             records[n].count);
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
