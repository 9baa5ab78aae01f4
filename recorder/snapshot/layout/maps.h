/* SPDX-License-Identifier: MIT */
/* The mappings of another process, from /proc. */
#ifndef TTD_SNAPSHOT_MAPS_H
#define TTD_SNAPSHOT_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapping {
    uint64_t begin, end;
    bool is_writable;
    bool is_executable;
    bool is_shared;
    bool is_file;
    uint64_t inode;
    const char *name; /* "" if it has none; NULL if it was not asked for: see maps_name() */
};

struct maps_text;

/* All zero when empty. */
struct maps {
    struct mapping *items; /* by address: what can be read, and private memory, which can
                              be protected and allowed again */
    size_t count, capacity;
    struct maps_text *texts; /* the names */
    bool is_whole;
    bool has_file; /* of the system, which is asked for names */
    int file;
};

/* Reads the mappings of a process; `tid` is one of its living threads: once the main thread has
 * ended, only others' lists have them. Returns false if that is not permitted, or memory ran out.
 */
bool maps_read(struct maps *maps, uint32_t pid, uint32_t tid);

/* Does the same with the text that every system has, which takes several times as long. */
bool maps_read_text(struct maps *maps, uint32_t pid, uint32_t tid);

/* Returns the name of a mapping, which is asked for if it is not known: as long as the process
 * stands still. */
const char *maps_name(struct maps *maps, struct mapping *mapping);

void maps_free(struct maps *maps);

#endif
