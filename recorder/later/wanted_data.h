/* SPDX-License-Identifier: MIT */
/* The words of modules' data that held references in snapshots. */
#ifndef RECORDER_LATER_WANTED_DATA_H
#define RECORDER_LATER_WANTED_DATA_H

#include "later/wanted.h"

/* Everything but modules, which are read before. */
#define WANTED_KINDS                                                                               \
    (TTD_KIND_BIT(TTD_KIND_STRINGS) | TTD_KIND_BIT(TTD_KIND_STACKS) |                              \
     TTD_KIND_BIT(TTD_KIND_SYMBOLS) | TTD_KIND_BIT(TTD_KIND_REGIONS) |                             \
     TTD_KIND_BIT(TTD_KIND_REFERENCES) | TTD_KIND_BIT(TTD_KIND_VARIABLES))

/* A region of a module's data; module 0 for any other region. */
struct wanted_region {
    ttd_id module;
    uint64_t offset; /* of its begin, as in ttd_variable */
};

/* The regions of one snapshot, by number - 1. All zero when empty. */
struct wanted_data {
    uint32_t snapshot;
    struct wanted_region *regions;
    size_t count, capacity;
    size_t sorted; /* number of words in wanted->variables when they were sorted last */
};

/* Handles a batch of regions, references or variables. Returns TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status wanted_data_add(struct wanted *wanted, struct wanted_data *data,
                                const struct ttd_batch *batch);

/* Returns the number of a module, 0 if the trace does not define it. */
ttd_id wanted_module_number(const struct wanted *wanted, ttd_id id);

#endif
