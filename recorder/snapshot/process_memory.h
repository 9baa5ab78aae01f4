/* SPDX-License-Identifier: MIT */
/**
 * Reads the memory of another process, as far as it is there: pages that were never touched, or are
 * not mapped any more, are neither read nor made.
 */
#ifndef RECORDER_SNAPSHOT_PROCESS_MEMORY_H
#define RECORDER_SNAPSHOT_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    MEMORY_PAGE = 4096,
    MEMORY_SPANS = 1024,    /* ranges of a read, as many as the system takes at once */
    MEMORY_BATCH = 1 << 18, /* so little that it stays in the cache until it is searched */
};

struct memory_image;

struct memory {
    uint32_t pid;
    uint32_t tid; /* a thread of the process that has its memory still */
    int pagemap;
    int file;        /* of the memory, for reading it; or -1 */
    int direct;      /* the memory as a file: protected pages can be read by it; -1 if it was not
                      * opened yet, or cannot be */
    bool has_scan;   /* PAGEMAP_SCAN works */
    bool has_guards; /* and knows pages that the program has made guards (MADV_GUARD_INSTALL) */
    struct memory_image *image; /* see memory_hold(); NULL if there is none */
    /** CLOCK_MONOTONIC; memory_read() fails from then on, so that no structure that the process has
       in memory, such as a list in a circle, takes more time. 0 for never. */
    uint64_t deadline;
};

struct memory_span {
    uint64_t begin, end;
};

/** Opens the memory of a process; `tid` is one of its living threads. Returns false if that is not
 * permitted (errno is EPERM or EACCES), or if there is no such process. */
bool memory_open(struct memory *memory, uint32_t pid, uint32_t tid);

/** Has the memory read through its file if that can be opened: process_vm_readv() would give a
 * process that shares pages with the one that it was forked from pages of its own, as many as are
 * read. */
void memory_spare(struct memory *memory);

/** Opens the memory of a copy of a process, likewise, and spares it. */
bool memory_open_copy(struct memory *memory, uint32_t pid);

void memory_close(struct memory *memory);

/**
 * Takes an image of the memory; from now on reads come from it where that is possible: the process
 * must stand still until the memory is closed. `pages` are addresses of pages that will be read,
 * although the process may not have written to them. Where the image cannot be taken, all is read
 * as before.
 */
void memory_hold(struct memory *memory, const uint64_t *pages, size_t count);

/** Whether the deadline has passed. */
bool memory_is_late(const struct memory *memory);

/** Reads ranges of the process into as many here, up to the first page that is not there. Returns
 * the number of bytes; negative if there are none. */
ssize_t memory_read_ranges(const struct memory *memory, const struct iovec *local,
                           const struct iovec *remote, size_t count);

/** Reads all of [address, address + size). Returns false if some of it is not there, or the
 * deadline has passed. Untouched pages must not be among it: the system would make them. */
bool memory_read(const struct memory *memory, uint64_t address, void *bytes, size_t size);

/**
 * Finds the next part of [*begin, end) that the process has in memory, or swapped out; both are
 * multiples of the page size. Moves `*begin` on to where the search ended. Returns the number of
 * spans (at most MEMORY_SPANS; may be 0 before the end).
 */
size_t memory_touched(struct memory *memory, uint64_t *begin, uint64_t end,
                      struct memory_span spans[MEMORY_SPANS]);

/** The same for pages of a private mapping that were written, and so are no file's. */
size_t memory_written(const struct memory *memory, uint64_t *begin, uint64_t end,
                      struct memory_span spans[MEMORY_SPANS]);

/** Ranges of memory that are read at once, one behind the other. */
struct memory_batch {
    struct memory_piece {
        uint64_t address;
        uint32_t size;
        uint32_t at;                /* in `bytes` of the batch; it has room there */
        uint32_t tag;               /* the caller's */
        bool is_known;              /* the image has given its bytes */
        const unsigned char *bytes; /* once it is read: there, or in the image */
        bool may_lack;  /* an unreadable part of it does not exist, and is not missing */
        bool is_shared; /* others may share it: no reading gives the process pages of its own */
        bool is_device; /* reading other than plain memory may have an effect */
    } pieces[MEMORY_SPANS];
    size_t count;
    uint32_t used;
    uint64_t missing; /* bytes that could not be read, of all reads: they are 0 */
    bool is_gone;     /* the process is */
    bool may_borrow;  /* bytes may stay in the image, instead of being copied */
    uint64_t holes[MEMORY_BATCH / MEMORY_PAGE / 64]; /* a bit for each page that was not there */
    unsigned char bytes[MEMORY_BATCH];
};

/** Adds as much of a range as there is room for. Returns how much. */
uint64_t memory_batch_add(struct memory_batch *batch, uint64_t address, uint64_t size,
                          uint32_t tag);

/** Reads all pieces. */
void memory_batch_read(struct memory_batch *batch, struct memory *memory);

/** Whether the byte `at` of the batch was not there, and is 0 instead. All pieces of the batch are
 * whole pages. */
static inline bool memory_batch_has_hole(const struct memory_batch *batch, uint32_t at)
{
    uint32_t page = at / MEMORY_PAGE;
    return batch->holes[page / 64] >> page % 64 & 1;
}

/** Removes all pieces. */
void memory_batch_clear(struct memory_batch *batch);

/*
 * The image of a process that stands still: its pages in memory, and the bytes that it has written
 * to them, as far as these are few. It is taken by two or three system calls, and saves one for
 * each mapping and each structure of the C library.
 */

/** Pages side by side that are in memory, or swapped out. */
struct image_span {
    uint64_t begin, end;
    bool is_written; /* private to the process, and so no file's */
};

/** Memory whose contents the image has. */
struct image_part {
    uint64_t begin, end;
    size_t offset; /* in `bytes` */
};

struct memory_image {
    struct image_span *spans; /* by address: all that there are below `known_end` */
    size_t span_count;
    uint64_t known_end;
    struct image_part *parts; /* by address */
    size_t part_count;
    unsigned char *bytes;
};

enum {
    IMAGE_SPANS = 4096, /* no more calls are made once there are so many */
    IMAGE_PARTS = 1024,
    IMAGE_BYTES = 4 << 20
};

/** Reads memory. Returns false if some of it is not in the image. */
bool image_read(const struct memory_image *image, uint64_t address, void *bytes, size_t size);

/** Returns where the image has the bytes of an address; NULL if not all of them are there, side by
 * side. */
const unsigned char *image_find(const struct memory_image *image, uint64_t address, size_t size);

/** Whether a page of a private mapping of a file is known to be as it is in the file. `image` may
 * be NULL. */
bool image_is_clean(const struct memory_image *image, uint64_t address);

/** Returns the first span that ends behind an address; the end of the array if there is none. */
const struct image_span *image_span_from(const struct memory_image *image, uint64_t address);

/** Chooses the parts; there is room for them already: the pages at these addresses that are no part
 * of other parts, then all spans that were written, as far as they fit. Returns the size of
 * `bytes`. */
size_t image_choose(struct memory_image *image, const uint64_t *pages, size_t page_count);

void image_free(struct memory_image *image);

#endif
