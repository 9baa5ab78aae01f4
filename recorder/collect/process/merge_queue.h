/* SPDX-License-Identifier: MIT */
/* A binary heap of threads, the one whose next record has the least sequence first. */
#ifndef RECORDER_COLLECT_PROCESS_MERGE_QUEUE_H
#define RECORDER_COLLECT_PROCESS_MERGE_QUEUE_H

#include "collect/process/process.h"

struct merge_queue {
    struct merge_entry *entries;
    size_t count;
};

/* Restores the order below index `at`, whose sequence may have grown. */
static inline void merge_queue_sift(struct merge_queue *queue, size_t index)
{
    for (;;) {
        size_t least = index;
        for (size_t child = 2 * index + 1; child <= 2 * index + 2 && child < queue->count; child++)
            if (queue->entries[child].sequence < queue->entries[least].sequence)
                least = child;
        if (least == index)
            return;
        struct merge_entry swap = queue->entries[index];
        queue->entries[index] = queue->entries[least];
        queue->entries[least] = swap;
        index = least;
    }
}

#endif
