/* SPDX-License-Identifier: MIT */
/**
 * Custom heaps: a program reports its pools, arenas and garbage-collected heaps (no hook of malloc
 * can see them) to its recorder (spec, "Events"). Part of the live API; ttdtrace/live.h includes
 * it.
 *
 * A recorder sees one large block of malloc() where a program divides it by an allocator of its
 * own. With these calls the parts are blocks of their own.
 *
 *     static const struct ttd_live_guid mine = {{0x7a, 0x13}};
 *     static char pool[4096];
 *     struct ttd_live *client = ttd_live_open(&mine, NULL, 0);
 *     ttd_live_heap_create(client, pool, NULL, "pool");
 *     ttd_live_heap_alloc(client, pool, pool + 64, 24);
 *     ttd_live_heap_free(client, pool, pool + 64);
 *     ttd_live_heap_destroy(client, pool);
 *     printf("%s\n", client ? "recorded" : "not recorded");
 *
 * A heap is identified by its *handle*: an address that no other heap of the process has while the
 * heap exists, such as the call for the pool's own structure. A heap lies within its *parent*,
 * another heap or malloc's: its blocks are parts of blocks of the parent and are not counted twice.
 * Destroy a heap before its memory goes back to its parent: blocks that remain outside any block of
 * the parent make everything in the trace uncertain.
 *
 * A call is recorded with its thread, its stack and its position, like one of malloc. Make it after
 * the operation that creates or allocates, and before the one that frees, destroys or protects:
 * then no other thread can get an address before its release is recorded. Calls in a thread that is
 * not being recorded are missing in the trace, like calls of malloc. A call on a destroyed heap is
 * an error of the program, until a heap with the same handle is created.
 *
 * Each function returns whether its call was recorded. Without a client, with a closed one, or with
 * a handle of NULL it does nothing. It never reads the memory behind a handle or a block. The child
 * of a fork has the heaps of its parent; if the parent ended before the child's first call, nothing
 * in the child's trace is certain.
 *
 * Threads: any threads may call all functions at once, also in signal handlers. None allocates
 * memory from the heap, sets errno, or is a cancellation point.
 */
#ifndef TTDTRACE_LIVE_HEAP_H
#define TTDTRACE_LIVE_HEAP_H

#include <ttdtrace/live.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Largest length of a heap's name in bytes: longer ones are cut off. */
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
 * Reports a new heap.
 *
 * @param handle   the heap; an existing heap with the same handle is destroyed by this call
 * @param parent   handle of the parent, NULL for the heap of malloc, or TTD_LIVE_HEAP_SYSTEM
 * @param name     copied, as UTF-8; NULL for none
 * @param reserve  bytes of address space reserved, 0 if unknown
 * @param commit   bytes of memory committed at once, 0 if unknown
 */
static inline bool ttd_live_heap_create_sized(struct ttd_live *client, const void *handle,
                                              const void *parent, const char *name,
                                              uint64_t reserve, uint64_t commit)
{
    const uint64_t sizes[2] = {reserve, commit};
    return client && client->functions->heaps->create(client, handle, parent, name, sizes);
}

/** Reports a new heap of unknown size. */
static inline bool ttd_live_heap_create(struct ttd_live *client, const void *handle,
                                        const void *parent, const char *name)
{
    return ttd_live_heap_create_sized(client, handle, parent, name, 0, 0);
}

/** Reports an allocation of `size` bytes at `block` (NULL if it failed). */
static inline bool ttd_live_heap_alloc(struct ttd_live *client, const void *handle,
                                       const void *block, size_t size)
{
    return client && client->functions->heaps->alloc(client, handle, block, size);
}

/**
 * Reports a reallocation: the block at `old` has become `size` bytes at `block`, perhaps the same
 * address; NULL if it failed and the block is unchanged. The old address must not have been
 * allocated again: a heap that several threads share calls this before it releases its lock.
 */
static inline bool ttd_live_heap_realloc(struct ttd_live *client, const void *handle,
                                         const void *old, const void *block, size_t size)
{
    return client && client->functions->heaps->realloc(client, handle, old, block, size);
}

/** Reports that a block is about to be released. */
static inline bool ttd_live_heap_free(struct ttd_live *client, const void *handle,
                                      const void *block)
{
    return client && client->functions->heaps->free(client, handle, block);
}

/** Reports that the memory of the heap becomes read-only, or writable again. */
static inline bool ttd_live_heap_protect(struct ttd_live *client, const void *handle,
                                         bool is_read_only)
{
    return client && client->functions->heaps->protect(client, handle, is_read_only);
}

/** Reports that the calling thread has locked the heap against other threads. */
static inline bool ttd_live_heap_lock(struct ttd_live *client, const void *handle)
{
    return client && client->functions->heaps->lock(client, handle);
}

/** Reports that the calling thread is about to unlock the heap. */
static inline bool ttd_live_heap_unlock(struct ttd_live *client, const void *handle)
{
    return client && client->functions->heaps->unlock(client, handle);
}

/** Reports that the heap is about to be destroyed. Its blocks are released with it, and the heaps
 * within it are destroyed as well. */
static inline bool ttd_live_heap_destroy(struct ttd_live *client, const void *handle)
{
    return client && client->functions->heaps->destroy(client, handle);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
