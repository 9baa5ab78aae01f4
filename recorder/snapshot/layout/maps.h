/* SPDX-License-Identifier: MIT */
/** The mappings of another process, from /proc. The attacher reads these too, and nothing else of
 * layout/. */
#ifndef RECORDER_SNAPSHOT_LAYOUT_MAPS_H
#define RECORDER_SNAPSHOT_LAYOUT_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapping {
    uint64_t begin, end;
    bool is_readable;
    bool is_writable;
    bool is_executable;
    bool is_shared;
    bool is_file;                   /* its pages are not the process's own at first */
    uint64_t device, inode, offset; /* the file, and where in it the mapping begins */
    const char *name;               /* "" if it has none */
};

/** All zero when empty. */
struct maps {
    struct mapping *items; /* by address */
    size_t count, capacity;
    char *text; /* has the names */
    bool is_whole;
};

/** Reads the mappings of a process; `tid` is one of its living threads: once the main thread has
 * ended, only others' lists have them. Returns false if that is not permitted, or memory ran out.
 */
bool maps_read(struct maps *maps, uint32_t pid, uint32_t tid);

void maps_free(struct maps *maps);

#endif
