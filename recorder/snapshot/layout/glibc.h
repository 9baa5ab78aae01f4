/* SPDX-License-Identifier: MIT */
/*
 * Facts that only the GNU C library knows: where its threads have their stacks and their
 * thread-local storage, which stacks it keeps of threads that have ended, and where its allocator
 * has arenas. Found without symbols, by structures that refer to themselves. With another C library
 * nothing is found.
 */
#ifndef TTD_SNAPSHOT_GLIBC_H
#define TTD_SNAPSHOT_GLIBC_H

#include "../memory.h"

struct glibc_thread {
    uint64_t pointer; /* of the thread; its own structure begins here */
    uint32_t tid;     /* 0 if it has ended */
    bool is_joinable; /* it may have ended, but is in the list of those that can still be joined */
    /* The mapping of its stack, which has its thread-local storage at the end. Empty for the main
       thread. */
    uint64_t block_begin, block_end;
    uint64_t tls_begin; /* of the static thread-local storage, which ends at `tls_end` */
    uint64_t tls_end;
};

/* Reads the structures of the thread with this thread pointer, which may be any number. Returns
 * false if there is no thread of this library. */
bool glibc_thread_read(const struct memory *memory, uint64_t pointer, struct glibc_thread *thread);

/* The functions that a search for threads calls. */
struct glibc_calls {
    /* Whether a thread's structure may be at an address: it is data, but not of a module. */
    bool (*may_be)(void *context, uint64_t address);
    void (*found)(void *context, const struct glibc_thread *thread);
    void *context;
};

/* Finds the threads that the library keeps lists of, whose heads lie in data of the loader or the
 * library. */
void glibc_threads_find(const struct memory *memory, struct memory_span data,
                        const struct glibc_calls *calls);

struct glibc_arena {
    /* In data of the library: lists of addresses of free memory, and of the ends of blocks. */
    struct memory_span lists;
    /* End of the memory that the arena has of the program break: behind it, memory is the
       program's own. UINT64_MAX if that is not known. */
    uint64_t end;
};

/* Finds the allocator's main arena in data of the library. Returns false if there is none, or no
 * block was ever allocated there. */
bool glibc_arena_find(const struct memory *memory, struct memory_span data,
                      struct glibc_arena *arena);

enum { GLIBC_HEAP_SIZE = 64 << 20 /* and alignment: heaps of arenas other than the main one */ };

/* Finds the extent of the heap of an arena at an address, a multiple of GLIBC_HEAP_SIZE. Returns
 * false if there is none. */
bool glibc_heap_find(const struct memory *memory, uint64_t address, struct memory_span *heap);

#endif
