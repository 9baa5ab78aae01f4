/* SPDX-License-Identifier: MIT */
#include "codec/snapshots/snapshots.h"

#include <string.h>

#include "codec/columns.h"
#include "layout.h"

/** The number of the snapshot that a part belongs to. */
static uint32_t snapshots_check_number(struct ttd_cursor *cursor, uint32_t number)
{
    if (number == 0)
        ttd_cursor_fail(cursor, "number of a snapshot");
    return number;
}

/* ---- Snapshots ---- */

void ttd_encode_snapshot(struct ttd_buffer *buffer, const struct ttd_snapshot *snapshot)
{
    ttd_buffer_put_varint(buffer, snapshot->number);
    ttd_encode_position(buffer, snapshot->position);
    ttd_buffer_put_varint(buffer, snapshot->wall_time);
    ttd_buffer_put_varint(buffer, snapshot->duration);
    ttd_buffer_put_varint(buffer, snapshot->contents);
    ttd_buffer_put_varint(buffer, snapshot->reason);
    ttd_buffer_put_varint(buffer, snapshot->flags);
    ttd_buffer_put_varint(buffer, snapshot->missing);
    ttd_buffer_put_varint(buffer, snapshot->thread);
    ttd_buffer_put_varint(buffer, snapshot->regions);
    ttd_buffer_put_varint(buffer, snapshot->references);
}

void ttd_decode_snapshot(struct ttd_cursor *cursor, struct ttd_snapshot *snapshot)
{
    memset(snapshot, 0, sizeof *snapshot);
    snapshot->number = ttd_cursor_varint32(cursor);
    snapshot->position = ttd_decode_position(cursor);
    snapshot->wall_time = ttd_cursor_varint(cursor);
    snapshot->duration = ttd_cursor_varint(cursor);
    snapshot->contents = ttd_cursor_varint32(cursor);
    snapshot->reason = ttd_cursor_varint32(cursor);
    snapshot->flags = ttd_cursor_varint32(cursor);
    snapshot->missing = ttd_cursor_varint(cursor);
    snapshot->thread = ttd_cursor_varint32(cursor);
    snapshot->regions = ttd_cursor_varint(cursor);
    snapshot->references = ttd_cursor_varint(cursor);
    ttd_cursor_check(cursor, ttd_check_snapshot(snapshot));
}

const char *ttd_check_snapshot(const struct ttd_snapshot *snapshot)
{
    if (snapshot->number == 0)
        return "number of a snapshot";
    if (!ttd_position_is_valid(snapshot->position))
        return "invalid position";
    if (snapshot->contents == 0 || snapshot->contents & ~TTD_SNAPSHOT_CONTENTS_MASK)
        return "contents of a snapshot";
    if (snapshot->reason > INT32_MAX)
        return "reason of a snapshot";
    return snapshot->flags & ~TTD_SNAPSHOT_FLAGS_MASK ? "unknown flags of a snapshot" : NULL;
}

/* ---- Regions ---- */

void ttd_encode_regions(struct ttd_buffer *buffer, const struct ttd_regions *regions)
{
    ttd_buffer_put32(buffer, regions->snapshot);
    ttd_buffer_put32(buffer, regions->first);
    /* Many regions are adjacent: each begin is coded from the end before. */
    uint64_t end = 0;
    for (size_t i = 0; i < regions->count; i++) {
        const struct ttd_region *region = &regions->regions[i];
        ttd_buffer_put_varint(buffer, region->kind);
        ttd_buffer_put_varint(buffer, ttd_zigzag(region->begin - end));
        ttd_buffer_put_varint(buffer, region->size);
        ttd_buffer_put_varint(buffer, region->thread);
        ttd_buffer_put_varint(buffer, region->module);
        ttd_buffer_put_varint(buffer, region->name);
        end = region->begin + region->size;
    }
}

void ttd_decode_regions(struct ttd_cursor *cursor, struct ttd_regions *list,
                        struct ttd_region *regions)
{
    list->snapshot = ttd_cursor_get32(cursor);
    list->first = ttd_cursor_get32(cursor);
    list->regions = regions;
    uint64_t end = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct ttd_region *region = &regions[i];
        region->kind = (enum ttd_region_kind)ttd_cursor_varint_max(cursor, TTD_REGION_FILE);
        region->begin = end + ttd_unzigzag(ttd_cursor_varint(cursor));
        region->size = ttd_cursor_varint(cursor);
        region->thread = ttd_cursor_varint32(cursor);
        region->module = ttd_cursor_varint32(cursor);
        region->name = ttd_cursor_varint32(cursor);
        end = region->begin + region->size;
    }
    ttd_cursor_check(cursor, ttd_check_regions(list));
    ttd_cursor_finish(cursor);
}

static const char *snapshots_check_region(const struct ttd_region *region)
{
    if (region->kind < TTD_REGION_HEAP || region->kind > TTD_REGION_FILE)
        return "kind of a region";
    if (region->size == 0 || region->size - 1 > UINT64_MAX - region->begin)
        return "size of a region";
    if (region->kind == TTD_REGION_REGISTERS && region->begin != 0)
        return "begin of registers";
    return NULL;
}

const char *ttd_check_regions(const struct ttd_regions *regions)
{
    if (regions->snapshot == 0)
        return "number of a snapshot";
    if (regions->first == 0 || regions->count - 1 > UINT32_MAX - regions->first)
        return "number of a region";
    const char *violation = NULL;
    for (size_t i = 0; i < regions->count && !violation; i++)
        violation = snapshots_check_region(&regions->regions[i]);
    return violation;
}

/* ---- Variables ---- */

void ttd_encode_variable(struct ttd_buffer *buffer, const struct ttd_variable *variable,
                         uint64_t *offset)
{
    ttd_buffer_put_varint(buffer, variable->module);
    ttd_buffer_put_varint(buffer, ttd_zigzag(variable->offset - *offset));
    ttd_buffer_put_varint(buffer, variable->size);
    ttd_buffer_put_varint(buffer, variable->name);
    *offset = variable->offset;
}

void ttd_decode_variable(struct ttd_cursor *cursor, struct ttd_variable *variable, uint64_t *offset)
{
    variable->module = ttd_cursor_varint32(cursor);
    if (variable->module == TTD_NONE)
        ttd_cursor_fail(cursor, "module of a variable");
    *offset += ttd_unzigzag(ttd_cursor_varint(cursor));
    variable->offset = *offset;
    variable->size = ttd_cursor_varint(cursor);
    variable->name = ttd_cursor_varint32(cursor);
}

/* ---- Frames ---- */

void ttd_encode_frames(struct ttd_buffer *buffer, const struct ttd_frames *frames)
{
    ttd_buffer_put_varint(buffer, frames->snapshot);
    ttd_buffer_put_varint(buffer, frames->thread);
    ttd_buffer_put_varint(buffer, frames->stack);
    ttd_buffer_put_varint(buffer, frames->count);
    for (size_t i = 0; i < frames->count; i++)
        ttd_buffer_put_varint(
            buffer, ttd_zigzag(frames->addresses[i] - (i ? frames->addresses[i - 1] : 0)));
}

void ttd_decode_frames(struct ttd_cursor *cursor, struct ttd_frames *frames)
{
    memset(frames, 0, sizeof *frames);
    frames->snapshot = snapshots_check_number(cursor, ttd_cursor_varint32(cursor));
    frames->thread = ttd_cursor_varint32(cursor);
    frames->stack = ttd_cursor_varint32(cursor);
    frames->count = (size_t)ttd_cursor_varint_max(cursor, TTD_FRAMES_MAX);
}

void ttd_decode_frame_addresses(struct ttd_cursor *cursor, uint64_t *addresses, size_t count)
{
    uint64_t address = 0;
    for (size_t i = 0; i < count; i++) {
        address += ttd_unzigzag(ttd_cursor_varint(cursor));
        addresses[i] = address;
    }
}

/* ---- Classes ---- */

void ttd_encode_classes(struct ttd_buffer *buffer, const struct ttd_classes *classes)
{
    ttd_buffer_put32(buffer, classes->snapshot);
    ttd_buffer_put32(buffer, 0);
    uint64_t last = 0;
    for (size_t i = 0; i < classes->count; i++) {
        ttd_buffer_put_varint(buffer, ttd_zigzag(classes->classes[i].address - last));
        ttd_buffer_put_varint(buffer, classes->classes[i].name);
        last = classes->classes[i].address;
    }
}

void ttd_decode_classes(struct ttd_cursor *cursor, struct ttd_classes *list,
                        struct ttd_class *classes)
{
    list->snapshot = snapshots_check_number(cursor, ttd_cursor_get32(cursor));
    ttd_cursor_reserved32(cursor);
    list->classes = classes;
    uint64_t address = 0;
    for (size_t i = 0; i < list->count; i++) {
        address += ttd_unzigzag(ttd_cursor_varint(cursor));
        classes[i].address = address;
        classes[i].name = ttd_cursor_varint32(cursor);
    }
    ttd_cursor_finish(cursor);
}

/* ---- Block headers ---- */

void ttd_encode_block_headers(struct ttd_buffer *buffer, const struct ttd_block_headers *list)
{
    ttd_buffer_put32(buffer, list->snapshot);
    ttd_buffer_put32(buffer, list->flags);
    ttd_buffer_put64(buffer, list->begin);
    for (size_t i = 0; i < list->count; i++)
        ttd_buffer_put_varint(buffer, list->headers[i]);
}

void ttd_decode_block_headers(struct ttd_cursor *cursor, struct ttd_block_headers *list,
                              uint64_t *headers)
{
    list->snapshot = ttd_cursor_get32(cursor);
    list->flags = ttd_cursor_get32(cursor);
    list->begin = ttd_cursor_get64(cursor);
    list->headers = headers;
    for (size_t i = 0; i < list->count; i++)
        headers[i] = ttd_cursor_varint(cursor);
    ttd_cursor_check(cursor, ttd_check_block_headers(list));
    ttd_cursor_finish(cursor);
}

const char *ttd_check_block_headers(const struct ttd_block_headers *list)
{
    if (list->snapshot == 0)
        return "number of a snapshot";
    if (list->flags & ~TTD_HEADERS_FLAGS_MASK ||
        (list->flags & (TTD_HEADERS_BROKEN | TTD_HEADERS_DERIVED)) == TTD_HEADERS_DERIVED)
        return "flags of block headers";
    uint64_t address = list->begin;
    for (size_t i = 0; i + 1 < list->count; i++) {
        uint64_t size = TTD_BLOCK_HEADER_SIZE(list->headers[i]);
        if (size == 0 || size > UINT64_MAX - address)
            return "size in a block header";
        address += size;
    }
    return NULL;
}

/* ---- Fatal signals ---- */

void ttd_encode_fatal_signal(struct ttd_buffer *buffer, const struct ttd_fatal_signal *signal)
{
    ttd_encode_position(buffer, signal->position);
    ttd_buffer_put_varint(buffer, signal->wall_time);
    ttd_buffer_put_varint(buffer, signal->thread);
    ttd_buffer_put_varint(buffer, signal->stack);
    ttd_buffer_put_varint(buffer, signal->signal);
    /* si_code may be negative, such as SI_TKILL of a signal from a thread. */
    ttd_buffer_put_varint(buffer, ttd_zigzag((uint64_t)signal->code));
    ttd_buffer_put_varint(buffer, signal->address);
    ttd_buffer_put_varint(buffer, signal->snapshot);
    ttd_buffer_put_varint(buffer, signal->count);
    for (size_t i = 0; i < signal->count; i++) {
        ttd_buffer_put_varint(buffer, signal->registers[i].number);
        ttd_buffer_put_varint(buffer, signal->registers[i].value);
    }
}

void ttd_decode_fatal_signal(struct ttd_cursor *cursor, struct ttd_fatal_signal *signal)
{
    memset(signal, 0, sizeof *signal);
    signal->position = ttd_decode_valid_position(cursor);
    signal->wall_time = ttd_cursor_varint(cursor);
    signal->thread = ttd_cursor_varint32(cursor);
    signal->stack = ttd_cursor_varint32(cursor);
    signal->signal = (uint32_t)ttd_cursor_varint_max(cursor, INT32_MAX);
    if (signal->signal == 0)
        ttd_cursor_fail(cursor, "number of a signal");
    signal->code = (int64_t)ttd_unzigzag(ttd_cursor_varint(cursor));
    signal->address = ttd_cursor_varint(cursor);
    signal->snapshot = ttd_cursor_varint32(cursor);
    signal->count = (size_t)ttd_cursor_varint_max(cursor, TTD_REGISTERS_MAX);
}

void ttd_decode_registers(struct ttd_cursor *cursor, struct ttd_register *registers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        registers[i].number = ttd_cursor_varint32(cursor);
        registers[i].value = ttd_cursor_varint(cursor);
    }
}

const char *ttd_snapshot_order_part(struct ttd_snapshot_order *order, uint32_t number)
{
    if (number <= order->finished)
        return "part of a snapshot behind its end";
    if (number < order->number)
        return "order of snapshots";
    /* A new number begins the next snapshot, even if the one before has no end: it was cut short.
     */
    if (number > order->number)
        *order = (struct ttd_snapshot_order){.finished = order->finished, .number = number};
    return NULL;
}

const char *ttd_snapshot_order_regions(struct ttd_snapshot_order *order,
                                       const struct ttd_regions *regions, bool *redefines)
{
    const char *violation = ttd_snapshot_order_part(order, regions->snapshot);
    *redefines = violation || regions->first <= order->regions;
    if (violation)
        return violation;
    bool is_next = regions->first == order->regions + 1;
    uint32_t last = regions->first + (uint32_t)(regions->count - 1);
    /* Taken in even if it is wrong, so that one gap is reported once. */
    if (last > order->regions)
        order->regions = last;
    return is_next ? NULL : "order of regions";
}

const char *ttd_snapshot_order_references(struct ttd_snapshot_order *order,
                                          const struct ttd_reference_range *range)
{
    const char *violation = ttd_snapshot_order_part(order, range->snapshot);
    if (violation)
        return violation;
    const struct ttd_reference *first = range->first;
    const struct ttd_reference *last = range->last;
    bool goes_on = first->region > order->region ||
                   (first->region == order->region && first->offset > order->offset);
    /* Within a chunk the order was checked: the ends of chunks are left to compare. */
    order->region = last->region;
    order->offset = last->offset;
    order->references += range->count;
    if (!goes_on)
        return "order of references";
    return last->region > order->regions ? "undefined region of a reference" : NULL;
}

const char *ttd_snapshot_order_finish(struct ttd_snapshot_order *order, uint32_t number,
                                      bool *redefines)
{
    *redefines = number <= order->finished;
    if (*redefines)
        return "number of a snapshot";
    const char *violation = ttd_snapshot_order_part(order, number);
    if (!violation)
        order->finished = number;
    return violation;
}
