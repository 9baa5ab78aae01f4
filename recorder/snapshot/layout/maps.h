/* SPDX-License-Identifier: MIT */
/** The mappings of another process, from /proc, and the memory, files or devices behind them; and
 * the regions that they are divided into. The attacher reads the mappings too, and nothing else of
 * layout/. */
#ifndef RECORDER_SNAPSHOT_LAYOUT_MAPS_H
#define RECORDER_SNAPSHOT_LAYOUT_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/snapshot.h>

/* Regions: memory that is to be searched, by address, and the type of each part. */

/** A part of memory that is not searched: the recorder's own, or dead. */
enum { REGION_SKIPPED = 0 };

enum { REGION_PAGE = 4096 };

/** The pages of a region that the process has not touched. */
enum region_untouched {
    UNTOUCHED_EMPTY,    /* there is nothing in them */
    UNTOUCHED_SEARCHED, /* others may have written them */
    UNTOUCHED_RESIDENT, /* the same, if they are in memory; else there is nothing in them */
    UNTOUCHED_MISSING   /* the same, but they cannot be read without harm */
};

struct region {
    uint64_t begin, end;
    unsigned char untouched; /* enum region_untouched */
    bool is_device;          /* nothing but plain memory is read of it */
    unsigned kind;           /* enum ttd_region_kind, or REGION_SKIPPED */
    uint32_t tid;            /* of stacks and thread-local storage; or 0 */
    ttd_id module;
    const char *name; /* NULL if none */
    /** The word that points behind the first entry of a thread's vector of thread-local storage, or
       0: it counts as a pointer to the vector itself. */
    uint64_t vector;
    /** Memory that others may share: its device and inode, 0 for none, and the difference from an
       address to the offset in it. */
    uint64_t shared_device, shared_inode, shared_shift;
};

/** All zero when empty. */
struct regions {
    struct region *items;
    size_t count, capacity;
    bool is_short; /* memory ran out, and some are missing */
};

void regions_free(struct regions *regions);

/** Adds a region; an empty one is ignored. */
void regions_add(struct regions *regions, const struct region *region);

/** Returns the region that has an address; NULL if there is none. `regions` must be sorted and
 * without overlaps. */
const struct region *regions_at(const struct regions *regions, uint64_t address);

/**
 * Cuts regions by others; those describe parts of them: `regions` keeps its extent, and takes its
 * type from `refined` where that has one. Sorts `refined` and frees it. `regions` must be sorted
 * and without overlaps, and stays so; of overlapping parts of `refined` the first one counts.
 */
void regions_refine(struct regions *regions, struct regions *refined);

/* Mappings. */

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

/** Threads may have a table of open files of their own: unshare(CLONE_FILES). */
enum { KERNEL_TABLES_MAX = 16 };

/** Open files of a process that may have its pointers. */
struct kernel_files {
    size_t count;                       /* of files of any kind: a thread that has ended has none */
    uint32_t tables[KERNEL_TABLES_MAX]; /* a thread of each table */
    size_t table_count;
    size_t listed; /* files of threads whose tables the system does not compare */
    /** A ring of io_uring: it need not be among the mappings, since the program may have unmapped
     * it, or given the memory of the ring itself. */
    bool has_ring;
    struct kernel_epoll {
        uint32_t tid, number;
    } * epolls; /* by table */
    size_t epoll_count;
    size_t epoll_capacity;
};

/** Words that the system keeps for a process, and gives back to it. */
struct kernel_words {
    uint64_t *items;
    size_t count;
    size_t capacity;
};

/** Finds the files of a thread's table. Returns false if some may be missing. Release with
 * kernel_files_free(). */
bool kernel_files_find(struct kernel_files *files, uint32_t pid, uint32_t tid);
void kernel_files_free(struct kernel_files *files);

/** Adds the files of another thread's table, if that is none of those found. Returns false if some
 * may be missing. */
bool kernel_files_add(struct kernel_files *files, uint32_t pid, uint32_t tid);

/** Whether a thread's table has the same files of epoll and rings as the first one when it was
 * found. */
bool kernel_files_stay(const struct kernel_files *files, uint32_t pid, uint32_t tid);

/** Adds the words that the process has given to epoll, or to POSIX timers. Returns false if some
 * may be missing. The caller frees the items. */
bool kernel_words_of_epoll(struct kernel_words *words, const struct kernel_files *files,
                           uint32_t pid);
bool kernel_words_of_timers(struct kernel_words *words, uint32_t pid);

/** The memory, file or device behind a mapping. Decides whether a pointer of the program may be in
 * a mapping that it cannot write to, and the permitted ways to read it. */
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
    uint64_t last_size; /* in bytes; UINT64_MAX if it is not known */
};

enum backing_kind backing_of(struct backing *backing, const struct mapping *mapping);

/** Returns where a mapping ends whose kind is BACKING_FILE or BACKING_REMOTE by the last call of
 * backing_of(): behind the last page of the file there is nothing. */
uint64_t backing_end(const struct backing *backing, const struct mapping *mapping);

/** The contents of pages that the process has not touched, in a mapping that is searched. */
enum region_untouched backing_untouched(enum backing_kind kind);

void backing_free(struct backing *backing);

#endif
