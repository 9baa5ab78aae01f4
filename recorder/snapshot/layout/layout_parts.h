/* SPDX-License-Identifier: MIT */
/** Internals of the search for regions, private to layout*.c. */
#ifndef RECORDER_SNAPSHOT_LAYOUT_LAYOUT_PARTS_H
#define RECORDER_SNAPSHOT_LAYOUT_LAYOUT_PARTS_H

#include "snapshot/layout/backing.h"
#include "snapshot/layout/glibc.h"
#include "snapshot/layout/process_layout.h"
#include "snapshot/layout/tls.h"

/** A search for regions. Each part of it collects regions in `refined`, then cuts `regions` by
 * them. */
struct layout_search {
    const struct memory *memory;
    const struct snapshot_subject *subject;
    const struct layout_thread *threads; /* sorted by tid */
    size_t thread_count;
    uint32_t pid;
    struct regions *regions;
    struct regions refined;
    bool has_arena;           /* blocks come from the allocator of the GNU C library */
    struct glibc_arena arena; /* its main one */
    ttd_id arena_module;      /* the library that has it */
    struct tls_blocks blocks;
    struct backing backing;
};

/** Returns the living thread with a number; NULL if there is none. */
const struct layout_thread *layout_thread_find(const struct layout_search *search, uint32_t tid);

/** Adds memory that is not searched. */
void layout_skip(struct layout_search *search, uint64_t begin, uint64_t end);

/** Whether a module is the C library, a part of it, or the loader. */
bool layout_is_library(const char *path);

/** Cuts out the data of modules, and finds the blocks of their thread-local storage. */
void layout_add_modules(struct layout_search *search);

/** Cuts out stacks and thread-local storage, and the data of the C library's allocator. Needs the
 * modules. */
void layout_add_threads(struct layout_search *search);

/** Cuts out the memory that blocks come from. Needs to know whether there is an arena. */
void layout_add_heaps(struct layout_search *search);

#endif
