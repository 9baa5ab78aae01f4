/* SPDX-License-Identifier: MIT */
/** Parts of snapshots, written by the writer of refusals.h. */
#ifndef TESTS_API_SNAPSHOTS_H
#define TESTS_API_SNAPSHOTS_H

#include <stdlib.h>

#include "api/refusals.h"

static inline enum ttd_status write_regions(uint32_t snapshot, uint32_t first, size_t count)
{
    struct ttd_region *regions = calloc(count, sizeof *regions);
    for (size_t i = 0; i < count; i++)
        regions[i] =
            (struct ttd_region){.kind = TTD_REGION_HEAP, .begin = 0x1000 * i, .size = 0x1000};
    enum ttd_status status = ttd_writer_regions(
        writer, &(struct ttd_regions){
                    .snapshot = snapshot, .first = first, .regions = regions, .count = count});
    free(regions);
    return status;
}

static inline enum ttd_status write_reference(uint32_t snapshot, uint32_t region, uint64_t offset)
{
    struct ttd_reference reference = {.region = region, .offset = offset, .value = 0x1010};
    return ttd_writer_references(
        writer,
        &(struct ttd_references){.snapshot = snapshot, .references = &reference, .count = 1});
}

static inline enum ttd_status write_snapshot(uint32_t number)
{
    struct ttd_snapshot snapshot = {.number = number,
                                    .position = {1, 0},
                                    .contents = TTD_SNAPSHOT_REFERENCES,
                                    .flags = TTD_SNAPSHOT_STOPPED};
    return ttd_writer_snapshot(writer, &snapshot);
}

#endif
