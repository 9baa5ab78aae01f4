/* SPDX-License-Identifier: MIT */
/** Allocators that are linked into programs under names of their own: their malloc(). The preload
 * library, the collector and the attacher share the list, and nothing else that this belongs to. */
#ifndef RECORDER_ALLOCATOR_NAMES_H
#define RECORDER_ALLOCATOR_NAMES_H

/** Every name ends like this, so one search of the names of a file finds them all. A prefix of this
 * one is a prefix of their other functions too. */
#define ALLOCATOR_NAMES_ENDING "malloc"

static const char *const allocator_names[] = {
    "_rjem_malloc",
    "je_malloc",
    "rpmalloc",
    "sn_malloc",
    "scalable_malloc",
    "hoardmalloc",
    "nedmalloc",
    "ltmalloc",
    /** Hooked in the libraries of these allocators (entries.c of the preload library), and in
       others that define malloc() as well: they pass such calls on, as heaptrack's does. */
    "mi_malloc",
    "tc_malloc",
};

enum {
    ALLOCATOR_NAMES = sizeof allocator_names / sizeof *allocator_names,
    ALLOCATOR_NAMES_HOOKED = 2
};

#endif
