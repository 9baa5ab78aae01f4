/* SPDX-License-Identifier: MIT */
/*
 * The layout of the channel's file, and a process's view of it: the windows that it has mapped, and
 * the entries of the tables within them.
 */
#ifndef TTD_RECORDER_CHANNEL_VIEW_H
#define TTD_RECORDER_CHANNEL_VIEW_H

#include "channel.h"

/* The layout of the file. No entry lies across the border of two windows. */
#define CHANNEL_PAGE              4096
#define CHANNEL_WINDOW            (256 * 1024)
#define CHANNEL_NEAR_PROCESSES_AT UINT64_C(4096)
#define CHANNEL_NEAR_THREADS_AT                                                                    \
    (CHANNEL_NEAR_PROCESSES_AT + CHANNEL_NEAR_PROCESSES * UINT64_C(4096))
#define CHANNEL_NEAR_CHUNKS_AT (CHANNEL_WINDOW - CHANNEL_NEAR_CHUNKS * (uint64_t)CHANNEL_SMALL_SIZE)
/* These have room for all entries; the room of the near ones is left unused. */
#define CHANNEL_PROCESSES_AT (uint64_t) CHANNEL_WINDOW /* a page for each, with its copy */
#define CHANNEL_THREADS_AT                                                                         \
    CHANNEL_WINDOWS_UP(CHANNEL_PROCESSES_AT + CHANNEL_PROCESSES * UINT64_C(4096))
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
_Static_assert(2 * sizeof(struct process_slot) <= CHANNEL_PAGE, "a process and its copy");
_Static_assert(CHANNEL_WINDOW % sizeof(struct thread_slot) == 0, "slots tile the windows");

/* The file as one process sees it: its windows, NULL where they are not mapped yet. */
struct channel_view {
    _Atomic(char *) windows[CHANNEL_WINDOWS];
};

/* Maps a window, as each side does it; NULL if that cannot be done. */
char *channel_map(struct channel_view *view, uint32_t index);

/* Returns the address of an offset in the file, and maps its window if needed. NULL if that cannot
   be done. */
static inline void *channel_at(struct channel_view *view, uint64_t offset)
{
    uint32_t index = (uint32_t)(offset / CHANNEL_WINDOW);
    char *window = atomic_load_explicit(&view->windows[index], memory_order_acquire);
    if (__builtin_expect(window == NULL, 0) && (window = channel_map(view, index)) == NULL)
        return NULL;
    return window + offset % CHANNEL_WINDOW;
}

/* Returns the slot for the copy of a process. A copy records nothing: it only tells which of its
   parent's blocks the runtimes would release. */
static inline uint32_t channel_copy(uint32_t process)
{
    return CHANNEL_PROCESSES + process;
}

/* Return an entry by its index, which counts from 1 and was checked by the caller. NULL if its
   window cannot be mapped. */
static inline struct process_slot *channel_process(struct channel_view *view, uint32_t index)
{
    bool is_copy = index > CHANNEL_PROCESSES;
    uint64_t page = is_copy ? index - CHANNEL_PROCESSES - 1 : index - 1;
    uint64_t table =
        page < CHANNEL_NEAR_PROCESSES ? CHANNEL_NEAR_PROCESSES_AT : CHANNEL_PROCESSES_AT;
    return (struct process_slot *)channel_at(view, table + page * CHANNEL_PAGE +
                                                       is_copy * sizeof(struct process_slot));
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

/* Returns the words of data that a chunk has room for. */
static inline uint32_t channel_chunk_words(uint32_t index)
{
    uint32_t size = channel_chunk_is_small(index) ? CHANNEL_SMALL_SIZE : CHANNEL_CHUNK_SIZE;
    return (size - (uint32_t)offsetof(struct chunk, data)) / 8;
}

#endif
