/* SPDX-License-Identifier: MIT */
/** Memory that is to be searched, by address: the type of each part. */
#ifndef RECORDER_SNAPSHOT_LAYOUT_REGIONS_H
#define RECORDER_SNAPSHOT_LAYOUT_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/snapshot.h>

/** A part of memory that is not searched: the recorder's own, or dead. */
enum { REGION_SKIPPED = 0 };

enum { REGION_PAGE = 4096 };

/** The pages of a region that the process has not touched. */
enum region_untouched {
    UNTOUCHED_EMPTY,    /* there is nothing in them */
    UNTOUCHED_SEARCHED, /* others may have written them */
    UNTOUCHED_RESIDENT, /* the same, if they are in memory; else there is nothing in them */
    UNTOUCHED_MISSING   /* the same, but they cannot be read without harm */
};

struct region {
    uint64_t begin, end;
    unsigned char untouched; /* enum region_untouched */
    bool is_device;          /* nothing but plain memory is read of it */
    unsigned kind;           /* enum ttd_region_kind, or REGION_SKIPPED */
    uint32_t tid;            /* of stacks and thread-local storage; or 0 */
    ttd_id module;
    const char *name; /* NULL if none */
    /** The word that points behind the first entry of a thread's vector of thread-local storage, or
       0: it counts as a pointer to the vector itself. */
    uint64_t vector;
    /** Memory that others may share: its device and inode, 0 for none, and the difference from an
       address to the offset in it. */
    uint64_t shared_device, shared_inode, shared_shift;
};

/** All zero when empty. */
struct regions {
    struct region *items;
    size_t count, capacity;
    bool is_short; /* memory ran out, and some are missing */
};

void regions_free(struct regions *regions);

/** Adds a region; an empty one is ignored. */
void regions_add(struct regions *regions, const struct region *region);

/** Returns the region that has an address; NULL if there is none. `regions` must be sorted and
 * without overlaps. */
const struct region *regions_at(const struct regions *regions, uint64_t address);

/**
 * Cuts regions by others; those describe parts of them: `regions` keeps its extent, and takes its
 * type from `refined` where that has one. Sorts `refined` and frees it. `regions` must be sorted
 * and without overlaps, and stays so; of overlapping parts of `refined` the first one counts.
 */
void regions_refine(struct regions *regions, struct regions *refined);

#endif
