/* SPDX-License-Identifier: MIT */
/** A snapshot that is being taken; private to take*.c. */
#ifndef RECORDER_SNAPSHOT_TAKING_H
#define RECORDER_SNAPSHOT_TAKING_H

#include "snapshot/stop/copy.h"
#include "snapshot/search/scan.h"
#include "snapshot/take.h"
#include "snapshot/stop/threads.h"

/** The parts of the system that keep words of a process. */
enum { KERNEL_EPOLL, KERNEL_TIMERS, KERNEL_KINDS };

/** A stack, and the registers of its thread: these are gone once the thread goes on. */
struct held_stack {
    uint32_t tid;
    uint64_t registers[THREAD_REGISTERS];
    struct memory_span span; /* its used part */
};

struct taking {
    const struct snapshot_order *order;
    struct ttd_snapshot *snapshot;
    bool is_alone; /* the thread that waits is the only one */
    struct threads threads;
    struct memory memory; /* of the process, later perhaps of its copy */
    struct snapshot_subject subject;
    struct layout_thread *living; /* sorted by tid */
    size_t living_count;
    struct layout layout;
    struct tables tables;
    ttd_id data_name, bss_name, usable_name; /* of the names that most regions have */
    struct ttd_region *regions;              /* as they are written: registers first */
    const struct region **sources;           /* of each region; NULL for registers */
    size_t count;
    size_t held_count; /* the first ones: they must be searched while the process is held */
    uint64_t begin;    /* when the process was stopped */
    /** Times of holding the threads, kept by the thread that waits for the reader. */
    uint64_t held_since; /* 0: the threads are not held */
    uint64_t held_time;  /* once they were let go before the reader was done */
    bool has_let_go;
    bool has_stalled;
    struct kernel_files files;
    struct kernel_words kernel_words[KERNEL_KINDS]; /* those that may point to blocks */
    bool lacks_kernel_words;
    bool is_left;   /* the reader was left behind */
    bool is_copied; /* result of making a copy */
    uint64_t deadline;
    enum take_result result;
    /** A copy of the process, if it is large. */
    bool is_copy_due;
    struct copy_gaps gaps;
    struct copy copy;
    struct heap_pages pages;   /* the subject's, as they were when the copy was made */
    bool is_in_call;           /* a thread may be in a call of the allocator */
    bool may_have_lock;        /* one that has failed there, and may have a lock */
    struct held_stack *stacks; /* of the threads that were stopped */
    size_t stack_count;
    int process;       /* shows when the process ends, once the copy is there; or -1 */
    uint64_t followed; /* when the process was last followed */
};

/** Searches the regions of the layout, and copies their contents if wanted. Releases the process if
 * it can. */
bool taking_search(struct taking *taking);

/** Lets the process go on if a copy of it can be made, and reads the copy from then on. */
void taking_release(struct taking *taking);

/** Notes the stacks of the threads that are stopped. */
void taking_note_stacks(struct taking *taking);

/** Notes whether threads that are stopped are in calls of the allocator. */
void taking_note_calls(struct taking *taking);

/** Writes the headers of blocks that the C library's allocator has, if the process stands still.
 * Returns false if they cannot be written. */
bool taking_write_headers(struct taking *taking);

/** Follows these stacks, and writes their frames, as far as time suffices. Returns false if they
 * cannot be written. */
bool taking_write_frames(struct taking *taking);

/** Ends the copy, if there is one; in the thread that traces the process. `context` is a struct
 * taking. */
void taking_end_copy(void *context);

/** Whether a region must be searched while the process is held, since a copy does not have it as it
 * is then. */
bool taking_is_apart(const struct taking *taking, const struct region *region);

/** Finds the pages of a span that are in memory: see struct scan_job. `context` is a struct
 * taking. */
bool taking_resident(void *context, struct memory_span span, unsigned char *pages);

/** Shows that the collector is alive, and follows a process that has been let go. `context` is a
 * struct taking. */
void taking_tick(void *context);

uint64_t taking_now_ns(void);

#endif
