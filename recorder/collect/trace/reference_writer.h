/* SPDX-License-Identifier: MIT */
/**
 * Writes the references of a snapshot in a thread of its own, while the process is searched for
 * more. They are packed where they are found: a pack takes a quarter of their size, and is
 * compressed and written by the other thread. The rest at the end of the search is written when the
 * writer is closed, and the process need not wait for that.
 */
#ifndef RECORDER_COLLECT_TRACE_REFERENCE_WRITER_H
#define RECORDER_COLLECT_TRACE_REFERENCE_WRITER_H

#include <pthread.h>

#include "collect/channel/host.h"
#include "collect/trace/process_trace.h"

/** One pack is filled, while the others wait to be written: the search is so far ahead at most.
 * Each takes memory that is new, so they are few. */
enum { REFERENCE_PACKS = 3 };

struct reference_writer {
    struct trace *trace;
    struct host *host;
    uint32_t snapshot; /* its number */
    bool may_have_thread;
    pthread_mutex_t trace_mutex; /* held by whoever writes to the trace */
    pthread_mutex_t mutex;       /* of all below */
    pthread_cond_t changed;
    struct ttd_reference_pack *packs[REFERENCE_PACKS]; /* a ring; NULL where none was needed yet */
    size_t first, waiting; /* those that are to be written, from packs[first] on */
    bool has_thread;
    bool is_closed;
    bool is_dropped; /* the rest is not wanted */
    bool has_failed;
    pthread_t thread;
};

/** Sets all members. There is no other thread if the snapshot has contents of memory, whose pages
 * are written to the trace as well. The writer must be closed. */
void reference_writer_open(struct reference_writer *writer, struct trace *trace, struct host *host,
                           const struct ttd_snapshot *snapshot);

/** Has references written, at most TTD_REFERENCE_PACK_MAX; see snapshot_calls.references. Waits
 * while all other packs are to be written. The thread starts at the first full pack. Only one
 * thread may call this, and not while it holds the lock. */
bool reference_writer_add(struct reference_writer *writer, const struct ttd_reference *references,
                          size_t count);

/** Keep the thread from writing, while another one does. */
void reference_writer_lock(struct reference_writer *writer);
void reference_writer_unlock(struct reference_writer *writer);

/** Ends the thread and frees everything. If the references are wanted, writes the rest. Returns
 * whether all of them were written. */
bool reference_writer_close(struct reference_writer *writer, bool are_wanted);

#endif
