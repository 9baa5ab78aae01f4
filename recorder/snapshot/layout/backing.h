/* SPDX-License-Identifier: MIT */
/**
 * The files and memory behind the mappings of a process: memory, files or devices. Decides whether
 * a pointer of the program may be in a mapping that it cannot write to, and the permitted ways to
 * read it.
 */
#ifndef RECORDER_SNAPSHOT_LAYOUT_BACKING_H
#define RECORDER_SNAPSHOT_LAYOUT_BACKING_H

#include "snapshot/layout/maps.h"
#include "snapshot/layout/regions.h"

enum backing_kind {
    BACKING_ANONYMOUS, /* memory of the process alone */
    BACKING_MEMORY,    /* shared memory, or a file that is nothing but memory */
    BACKING_HUGE,      /* the same in huge pages: those are not made by looking */
    BACKING_FILE,      /* written since the process began, or perhaps */
    BACKING_REMOTE,    /* the same, and others provide its pages */
    BACKING_OLD,       /* a file that was not written since: it has no pointer of the process */
    BACKING_DEVICE     /* or another object of the system; reading it may do anything */
};

/** The process whose mappings are looked at. All zero but for its number, and the number of a
 * living thread, at first: a main thread that has ended sees no files any more. */
struct backing {
    uint32_t pid, tid;
    char *mounts;   /* text of its list of mounts, once it was needed */
    uint64_t start; /* of the process, in seconds since 1970, likewise; 0 if unknown */
    bool has_looked;
    uint64_t last_device, last_inode; /* the last file that was looked at, and its type */
    enum backing_kind last_kind;
};

enum backing_kind backing_of(struct backing *backing, const struct mapping *mapping);

/** The contents of pages that the process has not touched, in a mapping that is searched. */
enum region_untouched backing_untouched(enum backing_kind kind);

void backing_free(struct backing *backing);

#endif
