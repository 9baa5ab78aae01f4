/* SPDX-License-Identifier: MIT */
/**
 * Takes a snapshot of a process: stops its threads, divides its memory, and reports the words that
 * may point into blocks; and the contents of the heaps, if they are wanted.
 */
#ifndef RECORDER_SNAPSHOT_TAKE_H
#define RECORDER_SNAPSHOT_TAKE_H

#include "channel.h"
#include "snapshot/calls.h"
#include "snapshot/search/shared_pages.h"
#include "snapshot/stop/copy.h"
#include "snapshot/stop/threads.h"
#include "snapshot/pages/page_store.h"

/** Reads of a process's memory that did not end in time, kept from one snapshot to the next. Zeroed
 * at first. */
struct take_stalls {
    unsigned count; /* snapshots with one; after the first no page is read that the system would
                     * have to provide */
    unsigned left;  /* readers that were left behind */
};

enum { READERS_LEFT_MAX = 2 };

struct snapshot_order {
    uint32_t pid;
    uint32_t child; /* a process whose exit status must be left to wait for, or 0 */
    /** A copy of the request of the thread that waits for the snapshot; NULL if none does. */
    const struct snapshot_request *request;
    struct interrupted_calls *interrupted; /* of the process */
    struct copy_history *copies;           /* likewise */
    struct take_stalls *stalls;            /* likewise */
    const struct borrowed_code *borrowed;  /* likewise */
    uint64_t copy_min; /* smallest resident memory of a process that is copied, if nobody waits */
    struct page_store *store;    /* of the trace; needed if memory is among the contents */
    bool is_forked;              /* the process may share pages with the one it was forked from */
    struct shared_search shared; /* its begin is set once it begins */
    bool is_hurried; /* many wait for theirs: no time for memory that the process has not touched
                        itself */
    uint64_t time_limit; /* how long the program is held, at most; nanoseconds */
    struct snapshot_calls calls;
};

#define SNAPSHOT_TIME_LIMIT UINT64_C(2000000000)

enum take_result {
    TAKE_DONE,
    TAKE_DENIED, /* the system does not permit it */
    TAKE_FAILED,
    TAKE_WITHDRAWN, /* the thread that asked has gone on; snapshot_take() does not return it */
};

/**
 * Takes a snapshot, except for its last record: that is `snapshot`, whose number and contents the
 * caller has set, and whose duration, flags and bytes missing are set here. Unless that is
 * done, the trace may have parts of a snapshot that was cut short. The calls may be made by
 * another thread, while this one waits.
 */
enum take_result snapshot_take(const struct snapshot_order *order, struct ttd_snapshot *snapshot);

#endif
