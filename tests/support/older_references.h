/* SPDX-License-Identifier: MIT */
/** Chunks of references of the older kind, which libtrace reads and does not write (spec,
 * "References"). */
#ifndef SUPPORT_OLDER_REFERENCES_H
#define SUPPORT_OLDER_REFERENCES_H

#include <ttdtrace/snapshot.h>

#include "base/bytes.h"
#include "layout.h"

/** The most bytes of so many references. */
#define OLDER_REFERENCES_SIZE(count)                                                               \
    (TTD_REFERENCES_COLUMNS + (count)*TTD_REFERENCE_COLUMN_COUNT * TTD_VARINT_MAX)

/** Writes the payload; the references need not be valid. Returns its size. */
static inline size_t older_references(const struct ttd_references *list, uint8_t *to)
{
    uint8_t *begin = to + TTD_REFERENCES_COLUMNS, *end = begin;
    ttd_put32(to + TTD_REFERENCES_SNAPSHOT, list->snapshot);
    ttd_put32(to + TTD_REFERENCES_RESERVED, 0);
    for (unsigned column = 0; column < TTD_REFERENCE_COLUMN_COUNT; column++) {
        struct ttd_reference last = {.region = 0};
        for (size_t i = 0; i < list->count; i++) {
            struct ttd_reference reference = list->references[i];
            bool goes_on = reference.region == last.region;
            uint64_t next = goes_on ? last.offset + TTD_REFERENCE_SIZE : 0;
            uint64_t entries[TTD_REFERENCE_COLUMN_COUNT] = {
                reference.region - last.region,
                ttd_rotate_right(reference.offset - next, TTD_REFERENCE_ROTATION),
                ttd_zigzag(ttd_rotate_right(reference.value, TTD_REFERENCE_ROTATION) -
                           ttd_rotate_right(last.value, TTD_REFERENCE_ROTATION))};
            end = ttd_put_varint(end, entries[column]);
            last = reference;
        }
        ttd_put32(to + TTD_REFERENCES_LENGTHS + 4 * column, (uint32_t)(end - begin));
        begin = end;
    }
    return (size_t)(end - to);
}

#endif
