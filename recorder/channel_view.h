/* SPDX-License-Identifier: MIT */
/**
 * The layout of the channel's file, and a process's view of it: the windows that it has mapped, and
 * the entries of the tables within them.
 */
#ifndef RECORDER_CHANNEL_VIEW_H
#define RECORDER_CHANNEL_VIEW_H

#include "channel.h"

/** The layout of the file. No entry lies across the border of two windows. */
#define CHANNEL_PAGE   4096
#define CHANNEL_WINDOW (256 * 1024)
/** A process, its copy and its request. */
#define CHANNEL_PROCESS_SIZE      UINT64_C(8192)
#define CHANNEL_NEAR_PROCESSES_AT UINT64_C(4096)
#define CHANNEL_NEAR_THREADS_AT                                                                    \
    (CHANNEL_NEAR_PROCESSES_AT + CHANNEL_NEAR_PROCESSES * CHANNEL_PROCESS_SIZE)
#define CHANNEL_NEAR_CHUNKS_AT (CHANNEL_WINDOW - CHANNEL_NEAR_CHUNKS * (uint64_t)CHANNEL_SMALL_SIZE)
/** These have room for all entries; the room of the near ones is left unused. */
#define CHANNEL_PROCESSES_AT (uint64_t) CHANNEL_WINDOW
#define CHANNEL_THREADS_AT                                                                         \
    CHANNEL_WINDOWS_UP(CHANNEL_PROCESSES_AT + CHANNEL_PROCESSES * CHANNEL_PROCESS_SIZE)
#define CHANNEL_SMALL_AT                                                                           \
    CHANNEL_WINDOWS_UP(CHANNEL_THREADS_AT + CHANNEL_THREADS * sizeof(struct thread_slot))
#define CHANNEL_LARGE_AT                                                                           \
    CHANNEL_WINDOWS_UP(CHANNEL_SMALL_AT + CHANNEL_SMALL_CHUNKS * UINT64_C(4096))
#define CHANNEL_SIZE                                                                               \
    CHANNEL_WINDOWS_UP(CHANNEL_LARGE_AT + CHANNEL_LARGE_CHUNKS * (uint64_t)CHANNEL_CHUNK_SIZE)
#define CHANNEL_WINDOWS_UP(size) (((size) + CHANNEL_WINDOW - 1) / CHANNEL_WINDOW * CHANNEL_WINDOW)
#define CHANNEL_WINDOWS          (CHANNEL_SIZE / CHANNEL_WINDOW)

_Static_assert(sizeof(struct channel) <= CHANNEL_NEAR_PROCESSES_AT,
               "the tables are behind the header");
_Static_assert(CHANNEL_NEAR_THREADS_AT + CHANNEL_NEAR_THREADS * sizeof(struct thread_slot) <=
                   CHANNEL_NEAR_CHUNKS_AT,
               "all that is near has room in a window");
#define CHANNEL_REQUEST_WITHIN (2 * sizeof(struct process_slot))

#define CHANNEL_NAME_WITHIN (CHANNEL_REQUEST_WITHIN + sizeof(struct snapshot_request))

_Static_assert(CHANNEL_NAME_WITHIN + sizeof(struct trace_name) <= CHANNEL_PROCESS_SIZE,
               "a process, its copy, its request and its name");
_Static_assert(CHANNEL_REQUEST_WITHIN < CHANNEL_PAGE, "looking for a request touches no more");
_Static_assert(CHANNEL_WINDOW % CHANNEL_PROCESS_SIZE == 0, "processes tile the windows");
_Static_assert(sizeof(struct own_memory) == CHANNEL_PAGE, "parts of the list are pages");
_Static_assert(CHANNEL_WINDOW % sizeof(struct thread_slot) == 0, "slots tile the windows");

/** The file as one process sees it: its windows, NULL where they are not mapped yet. */
struct channel_view {
    _Atomic(char *) windows[CHANNEL_WINDOWS];
};

/** Maps a window, as each side does it; NULL if that cannot be done. */
char *channel_map(struct channel_view *view, uint32_t index);

/** Returns the address of an offset in the file, and maps its window if needed. NULL if that cannot
   be done. */
static inline void *channel_at(struct channel_view *view, uint64_t offset)
{
    uint32_t index = (uint32_t)(offset / CHANNEL_WINDOW);
    char *window = atomic_load_explicit(&view->windows[index], memory_order_acquire);
    if (__builtin_expect(!window, 0) && !(window = channel_map(view, index)))
        return NULL;
    return window + offset % CHANNEL_WINDOW;
}

/** Returns the slot for the copy of a process. A copy records nothing: it only reports the blocks
 * of its parent that the runtimes would release. */
static inline uint32_t channel_copy(uint32_t process)
{
    return CHANNEL_PROCESSES + process;
}

/** Returns where the entry of a process begins. `number` counts from 0. */
static inline uint64_t channel_process_at(uint32_t number)
{
    uint64_t table =
        number < CHANNEL_NEAR_PROCESSES ? CHANNEL_NEAR_PROCESSES_AT : CHANNEL_PROCESSES_AT;
    return table + number * CHANNEL_PROCESS_SIZE;
}

/** Return an entry by its index (from 1, checked by the caller). NULL if its window cannot be
 * mapped. */
static inline struct process_slot *channel_process(struct channel_view *view, uint32_t index)
{
    bool is_copy = index > CHANNEL_PROCESSES;
    uint64_t entry = channel_process_at(is_copy ? index - CHANNEL_PROCESSES - 1 : index - 1);
    return (struct process_slot *)channel_at(view, entry + is_copy * sizeof(struct process_slot));
}

/** Returns the request of a process that is no copy. */
static inline struct snapshot_request *channel_request(struct channel_view *view, uint32_t index)
{
    uint64_t entry = channel_process_at(index - 1);
    return (struct snapshot_request *)channel_at(view, entry + CHANNEL_REQUEST_WITHIN);
}

/** Returns the name of the trace of a process, likewise. */
static inline struct trace_name *channel_trace_name(struct channel_view *view, uint32_t index)
{
    uint64_t entry = channel_process_at(index - 1);
    return (struct trace_name *)channel_at(view, entry + CHANNEL_NAME_WITHIN);
}

static inline struct thread_slot *channel_thread(struct channel_view *view, uint32_t index)
{
    uint64_t table = index <= CHANNEL_NEAR_THREADS ? CHANNEL_NEAR_THREADS_AT : CHANNEL_THREADS_AT;
    return (struct thread_slot *)channel_at(view, table + (index - 1) * sizeof(struct thread_slot));
}

static inline bool channel_chunk_is_small(uint32_t index)
{
    return index <= CHANNEL_SMALL_CHUNKS;
}

static inline struct chunk *channel_chunk(struct channel_view *view, uint32_t index)
{
    uint64_t table = index <= CHANNEL_NEAR_CHUNKS ? CHANNEL_NEAR_CHUNKS_AT : CHANNEL_SMALL_AT;
    uint64_t small = table + (index - 1) * (uint64_t)CHANNEL_SMALL_SIZE;
    uint64_t large =
        CHANNEL_LARGE_AT + (index - CHANNEL_SMALL_CHUNKS - 1) * (uint64_t)CHANNEL_CHUNK_SIZE;
    return (struct chunk *)channel_at(view, channel_chunk_is_small(index) ? small : large);
}

/** Returns the words of data that a chunk has room for. */
static inline uint32_t channel_chunk_words(uint32_t index)
{
    uint32_t size = channel_chunk_is_small(index) ? CHANNEL_SMALL_SIZE : CHANNEL_CHUNK_SIZE;
    return (size - (uint32_t)offsetof(struct chunk, data)) / 8;
}

#endif
