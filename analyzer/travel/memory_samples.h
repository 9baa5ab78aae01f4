/* SPDX-License-Identifier: MIT */
/** Samples of the memory of the process, heap or not, which the recorder takes now and then. */
#ifndef ANALYZER_TRAVEL_MEMORY_SAMPLES_H
#define ANALYZER_TRAVEL_MEMORY_SAMPLES_H

#include "travel/islands.h"

struct heap_memory_sample {
    struct ttd_position position;
    uint64_t wall_time;
    /** Bytes. */
    uint64_t resident;
    uint64_t mapped;
};

/** All zero when empty. */
struct heap_memory_samples {
    /** In the order of the trace. */
    struct heap_memory_sample *items;
    size_t count;
    size_t capacity;
    /** The most of all samples, and of the times between them where the system knows it. */
    uint64_t most_resident;
    uint64_t most_mapped;
};

/** Adds a mark of the kind HEAP_MARK_MEMORY. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_memory_samples_add(struct heap_memory_samples *samples,
                                        const struct heap_mark *mark);

/**
 * Reads the samples of a trace, and leaves the reader at the end.
 *
 * @param samples  set on TTD_OK; release with heap_memory_samples_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and others of a reader.
 */
enum ttd_status heap_memory_samples_read(const struct heap_trace *trace,
                                         struct heap_memory_samples *samples,
                                         struct ttd_error *error);
void heap_memory_samples_free(struct heap_memory_samples *samples);

#endif
