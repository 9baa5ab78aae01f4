/* SPDX-License-Identifier: MIT */
/** The classes of blocks that begin with the address of a vtable, from a snapshot. */
#ifndef ANALYZER_HEAP_BLOCK_CLASSES_H
#define ANALYZER_HEAP_BLOCK_CLASSES_H

#include <ttdtrace/snapshot.h>

#include "base/hash_map.h"
#include "heap/heap_live.h"

/** All zero when empty. */
struct heap_block_classes {
    /** The snapshot that the classes come from; number 0 if there is none. */
    struct ttd_snapshot snapshot;
    /** References of the snapshot that lie in none of its regions. */
    uint64_t misplaced;
    struct ttd_class *classes;
    size_t count;
    /** By the address of a block and the number of the event that acquired it: the number of its
     * class, which is 1 more than the index in `classes`. */
    struct hash_map numbers;
};

void heap_block_classes_free(struct heap_block_classes *classes);

/** Returns the number of a block's class; TTD_NONE if it is not known, because the block was not
 * live at the snapshot or begins with something else. */
static inline ttd_id heap_block_classes_get(const struct heap_block_classes *classes,
                                            const struct heap_block *block)
{
    uint32_t number = map_get(&classes->numbers, block->address, block->event);
    return number == MAP_NONE ? TTD_NONE : number;
}

#endif
