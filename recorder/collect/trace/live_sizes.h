/* SPDX-License-Identifier: MIT */
/** The sizes of a process's live blocks, while it is recorded: for the status of a session. */
#ifndef RECORDER_COLLECT_TRACE_LIVE_SIZES_H
#define RECORDER_COLLECT_TRACE_LIVE_SIZES_H

#include <ttdtrace/advanced.h>
#include <ttdtrace/ttdtrace.h>

/** Certainty of the sum of sizes: exact; a lower bound; unknown from LIVE_UNKNOWN on. */
enum live_doubt {
    LIVE_EXACT,
    LIVE_BEFORE,  /* blocks from before, or of the process that forked, are missing */
    LIVE_ABOVE,   /* small blocks are */
    LIVE_NO_ROOM, /* blocks beyond some million are */
    LIVE_UNKNOWN, /* calls were lost, or not recorded */
    LIVE_SAMPLE,
};

/** A table of the live blocks of the heap of malloc, not of custom heaps: these lie in its blocks.
 * All zero but for `key` when it is empty. */
struct live_sizes {
    struct live_size {
        uint64_t address; /* 0 for none */
        uint64_t size;
    } * slots;
    size_t room, count;
    /** Blocks of reallocations whose end is ahead. */
    struct live_flight {
        struct ttd_position end;
        struct live_size block;
    } * flights;
    size_t flight_count, flight_capacity;
    uint64_t key; /* random: addresses come from an untrusted process */
    uint64_t bytes;
    enum live_doubt doubt; /* about `bytes` */
};

/** Makes an empty table, with a first doubt. Returns NULL if memory ran out. */
struct live_sizes *live_sizes_new(enum live_doubt doubt);
void live_sizes_free(struct live_sizes *sizes);

/** Notes an event of the heap. One that destroys it makes the table empty, and certain. */
void live_sizes_event(struct live_sizes *sizes, const struct ttd_event *event);
void live_sizes_calls(struct live_sizes *sizes, const struct ttd_calls *calls);

/** Returns the words for a doubt, without a tab; "" for none. */
const char *live_sizes_reason(enum live_doubt doubt);

/** Notes a doubt. The greatest one counts. */
void live_sizes_doubt(struct live_sizes *sizes, enum live_doubt doubt);

#endif
