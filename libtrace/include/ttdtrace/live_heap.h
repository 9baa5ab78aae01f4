/* SPDX-License-Identifier: MIT */
/**
 * Custom heaps: a program tells its recorder of its pools, arenas and collected heaps, which no
 * hook of malloc can see (spec, "Events"). Part of the live API; ttdtrace/live.h includes it.
 *
 * A heap is known by its *handle*: an address that no other heap of the process has as long as the
 * heap exists, such as that of the pool's own structure. A heap lies within its *parent*, another
 * heap or that of malloc: its blocks are parts of what the parent has given out, and not counted a
 * second time. A heap whose memory goes back to its parent is destroyed before: with blocks left
 * that lie in no block of a parent, nothing in the trace is certain.
 *
 * A call is recorded with its thread, its stack and its position, like one of malloc. It belongs
 * behind what creates or allocates, and before what frees, destroys or protects: then no other
 * thread can have been given an address that it has not been told to be free. In a thread that does
 * not record, a call is missing in the trace like one of malloc. A call about a heap that has been
 * destroyed is an error of the program, until the handle is told of anew.
 *
 * Each function returns whether its call was recorded. Without a client, or with one that is closed
 * or a handle of NULL, it does nothing. It never reads the memory behind a handle or a block. The
 * child of a fork has the heaps of its parent, unless that has ended before the child's first call:
 * then nothing in the child's trace is certain.
 *
 * Threads: all functions may be called by any threads at once, and in signal handlers. None
 * allocates memory from the heap, sets errno, or is a cancellation point.
 */
#ifndef TTDTRACE_LIVE_HEAP_H
#define TTDTRACE_LIVE_HEAP_H

#include <ttdtrace/live.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of a heap's name, at most: longer ones are cut off. */
#define TTD_LIVE_HEAP_NAME_MAX 256u

/** Parent of a heap that takes its memory from the system, and not from malloc. */
#define TTD_LIVE_HEAP_SYSTEM ((const void *)UINTPTR_MAX)

/** Functions of the recorder. Programs call those below instead. */
struct ttd_live_heap_functions {
    uint32_t size; /* of this struct: a later minor version appends members */
    bool (*create)(struct ttd_live *, const void *, const void *, const char *, const uint64_t *);
    bool (*alloc)(struct ttd_live *, const void *, const void *, size_t);
    bool (*realloc)(struct ttd_live *, const void *, const void *, const void *, size_t);
    bool (*free)(struct ttd_live *, const void *, const void *);
    bool (*protect)(struct ttd_live *, const void *, bool);
    bool (*lock)(struct ttd_live *, const void *);
    bool (*unlock)(struct ttd_live *, const void *);
    bool (*destroy)(struct ttd_live *, const void *);
};

/**
 * Tells of a new heap.
 *
 * @param handle   the heap; one that the same handle still has is destroyed by this call
 * @param parent   handle of the heap around it, NULL for that of malloc, or TTD_LIVE_HEAP_SYSTEM
 * @param name     copied, as UTF-8; NULL for none
 * @param reserve  bytes of address space that the heap has reserved, 0 if unknown
 * @param commit   bytes of memory that it has taken at once, 0 if unknown
 */
static inline bool ttd_live_heap_create_sized(struct ttd_live *client, const void *handle,
                                              const void *parent, const char *name,
                                              uint64_t reserve, uint64_t commit)
{
    const uint64_t sizes[2] = {reserve, commit};
    return client != NULL && client->functions->heaps->create(client, handle, parent, name, sizes);
}

/** Tells of a new heap of which no sizes are known. */
static inline bool ttd_live_heap_create(struct ttd_live *client, const void *handle,
                                        const void *parent, const char *name)
{
    return ttd_live_heap_create_sized(client, handle, parent, name, 0, 0);
}

/** Tells that the heap has given out `size` bytes at `block`; NULL if it could not. */
static inline bool ttd_live_heap_alloc(struct ttd_live *client, const void *handle,
                                       const void *block, size_t size)
{
    return client != NULL && client->functions->heaps->alloc(client, handle, block, size);
}

/**
 * Tells that a block has become `size` bytes at `block`, which may be the address that it had; NULL
 * if it could not, and is as it was. The old address must not have been given out again: a heap of
 * several threads calls this before it unlocks itself.
 */
static inline bool ttd_live_heap_realloc(struct ttd_live *client, const void *handle,
                                         const void *old, const void *block, size_t size)
{
    return client != NULL && client->functions->heaps->realloc(client, handle, old, block, size);
}

/** Tells that a block is about to be released. */
static inline bool ttd_live_heap_free(struct ttd_live *client, const void *handle,
                                      const void *block)
{
    return client != NULL && client->functions->heaps->free(client, handle, block);
}

/** Tells that the memory of the heap becomes read-only, or writable again. */
static inline bool ttd_live_heap_protect(struct ttd_live *client, const void *handle,
                                         bool is_read_only)
{
    return client != NULL && client->functions->heaps->protect(client, handle, is_read_only);
}

/** Tells that the calling thread has locked the heap against other threads. */
static inline bool ttd_live_heap_lock(struct ttd_live *client, const void *handle)
{
    return client != NULL && client->functions->heaps->lock(client, handle);
}

/** Tells that the calling thread is about to unlock the heap. */
static inline bool ttd_live_heap_unlock(struct ttd_live *client, const void *handle)
{
    return client != NULL && client->functions->heaps->unlock(client, handle);
}

/** Tells that the heap is about to be destroyed. Its blocks are released with it, and the heaps
 * within it are destroyed likewise. */
static inline bool ttd_live_heap_destroy(struct ttd_live *client, const void *handle)
{
    return client != NULL && client->functions->heaps->destroy(client, handle);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
