/* SPDX-License-Identifier: MIT */
/**
 * Facts that only the GNU C library knows: where its threads have their stacks and their
 * thread-local storage, the stacks of ended threads that it keeps, and where its allocator has
 * arenas. Found without symbols, by structures that refer to themselves. With another C library
 * nothing is found.
 */
#ifndef RECORDER_SNAPSHOT_LAYOUT_GLIBC_H
#define RECORDER_SNAPSHOT_LAYOUT_GLIBC_H

#include <elf.h>

#include "snapshot/layout/maps.h"
#include "snapshot/process_memory.h"

struct glibc_thread {
    uint64_t pointer; /* of the thread; its own structure begins here */
    uint32_t tid;     /* 0 if it has ended */
    bool is_joinable; /* it may have ended, but is in the list of those that can still be joined */
    /** The mapping of its stack, with its thread-local storage at the end. Empty for the main
     * thread. */
    uint64_t block_begin, block_end;
    uint64_t tls_begin; /* of the static thread-local storage; it ends at `tls_end` */
    uint64_t tls_end;
};

/** Reads the structures of the thread with this thread pointer (any number). Returns false if there
 * is no thread of this library. */
bool glibc_thread_read(const struct memory *memory, uint64_t pointer, struct glibc_thread *thread);

/** The functions that a search for threads calls. */
struct glibc_calls {
    /** Whether a thread's structure may be at an address: it is data, but not of a module. */
    bool (*may_be)(void *context, uint64_t address);
    void (*found)(void *context, const struct glibc_thread *thread);
    void *context;
    /** The data are those of a program that the library is linked into: linkers put its lists in
     * either order. */
    bool is_static;
};

/** Finds the threads that the library keeps lists of, whose heads lie in data of the loader or the
 * library. */
void glibc_threads_find(const struct memory *memory, struct memory_span data,
                        const struct glibc_calls *calls);

/** Within the structure of an arena; it begins with its lock: the address of the last chunk. And
 * its size. */
enum { GLIBC_ARENA_TOP = 96, GLIBC_ARENA_SIZE = 2200 };

struct glibc_arena {
    /** All of it. In data of the library: lists of addresses of free memory, and of the ends of
     * blocks. */
    struct memory_span lists;
    /** End of the memory that the arena has of the program break: behind it, memory is the
       program's own. UINT64_MAX if that is not known. */
    uint64_t end;
    uint64_t top; /* the last chunk; 0 if it is not known */
};

/** Finds the allocator's main arena in data of the library. Returns false if there is none, or no
 * block was ever allocated there. */
bool glibc_arena_find(const struct memory *memory, struct memory_span data,
                      struct glibc_arena *arena);

/** Alignment of the heaps of arenas other than the main one: they are as large, or larger. The
 * smallest one counts, for huge pages. */
enum { GLIBC_HEAP_ALIGNMENT = 8 << 20 };

/** Finds the extent of the heap of an arena at an address, a multiple of GLIBC_HEAP_ALIGNMENT.
 * Returns false if there is none. */
bool glibc_heap_find(const struct memory *memory, uint64_t address, struct memory_span *heap);

/**
 * Finds the extent of a part of the main arena that begins with a page, whose first words are
 * given, and ends before `end`: memory that the allocator has mapped, because it could not move the
 * program break. Its chunks follow each other up to the arena's last one, or to two that mark the
 * end. Returns false if there is none.
 */
bool glibc_segment_find(const struct memory *memory, uint64_t begin, const uint64_t words[2],
                        uint64_t end, const struct glibc_arena *arena, struct memory_span *segment);

/** A part of an arena: chunks that follow each other in memory. */
struct glibc_chunks {
    uint64_t begin; /* the first chunk */
    uint64_t end;   /* of the memory that the chunks may take */
    uint64_t top;   /* the arena's last chunk, here or in another part */
    uint64_t arena; /* address of its structure */
    bool is_main;
};

/** Finds the chunks of the main arena in the memory of the program break. Returns false if there
 * are none, or if that cannot be said. */
bool glibc_chunks_of_break(const struct memory *memory, struct memory_span span,
                           const struct glibc_arena *arena, struct glibc_chunks *chunks);

/** Finds the chunks in the heap of another arena, by the heap's address (any number); likewise.
 */
bool glibc_chunks_of_heap(const struct memory *memory, uint64_t heap, struct glibc_chunks *chunks);

/** Gets the address and the value of a header. Returns false to end the list. */
typedef bool glibc_header_function(void *context, uint64_t address, uint64_t header);

enum glibc_chunks_end {
    GLIBC_CHUNKS_WHOLE,
    GLIBC_CHUNKS_BROKEN,  /* the allocator cannot have written the last header */
    GLIBC_CHUNKS_DERIVED, /* it may have, by another one that is wrong: the last chunk of the arena
                             does not end with a page, or is missed */
    GLIBC_CHUNKS_UNKNOWN  /* memory could not be read, or the list was ended */
};

/** Lists the headers of chunks: the words in front of blocks. The process must stand still. */
enum glibc_chunks_end glibc_chunks_list(const struct memory *memory,
                                        const struct glibc_chunks *chunks,
                                        glibc_header_function *found, void *context);

enum glibc_mapped {
    GLIBC_MAPPED_UNKNOWN, /* memory could not be read, or may be of an arena */
    GLIBC_MAPPED_BEGIN,   /* a block with a mapping of its own */
    GLIBC_MAPPED_RIGHT,   /* the same, if the memory before it is such a block */
    GLIBC_MAPPED_WRONG,   /* no such block, or one with an overwritten header */
};

/** Looks at the head of a block that may have a mapping of its own, at the begin of a page. */
enum glibc_mapped glibc_mapped_look(const struct memory *memory, uint64_t chunk, uint64_t end,
                                    uint64_t *head);

/** Returns the size of a block with a mapping of its own that begins with these words; 0 if there
 * is none. */
uint64_t glibc_mapped_size(const uint64_t words[2]);

/*
 * Finds the GNU C library's static blocks of thread-local variables: blocks of modules that are
 * loaded when the program starts lie at the same distance before each thread's pointer. No
 * interface shows it. The program's own block comes first, by a rule; a library's is found by the
 * value that the loader has written for the library's own code.
 */

enum { TLS_BLOCKS_MAX = 256 };

/** A module in memory. */
struct tls_module {
    ttd_id id;
    uint64_t bias, begin;
    const Elf64_Phdr *segments;
    size_t segment_count;
    bool is_library; /* of the C library: it has an interpreter, as programs have */
};

/** The blocks of modules that are at the same place in all threads. All zero when empty. */
struct tls_blocks {
    struct tls_block {
        ttd_id module;
        uint64_t distance; /* of its begin, before the thread pointer */
        uint64_t size;
    } items[TLS_BLOCKS_MAX];
    size_t count;
    bool has_program; /* the module that was started was added */
};

/** Adds the block of a module, if it has one and its place is known. `pointer` is the thread
 * pointer of any thread. Modules are added in load order. */
void tls_blocks_add(struct tls_blocks *blocks, const struct memory *memory,
                    const struct tls_module *module, uint64_t pointer);

/** Cuts the regions of thread-local storage that have a thread's vector by the blocks. */
void tls_blocks_cut(const struct tls_blocks *blocks, struct regions *regions);

#endif
