/* SPDX-License-Identifier: MIT */
/**
 * Finds the GNU C library's static blocks of thread-local variables: blocks of modules that are
 * loaded when the program starts lie at the same distance before each thread's pointer. No
 * interface shows it. The program's own block comes first, by a rule; a library's is found by the
 * value that the loader has written for the library's own code.
 */
#ifndef RECORDER_SNAPSHOT_LAYOUT_TLS_H
#define RECORDER_SNAPSHOT_LAYOUT_TLS_H

#include <elf.h>

#include "snapshot/process_memory.h"
#include "snapshot/layout/regions.h"

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
