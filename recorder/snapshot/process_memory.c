/* SPDX-License-Identifier: MIT */
#include "snapshot/process_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "arrays.h"
#include "snapshot/process_reader.h"

/* The image of a process. */

const struct image_span *image_span_from(const struct memory_image *image, uint64_t address)
{
    return image->spans + array_count_up_to(image->spans, image->span_count, sizeof *image->spans,
                                            offsetof(struct image_span, end), address);
}

bool image_is_clean(const struct memory_image *image, uint64_t address)
{
    if (!image || address >= image->known_end)
        return false;
    const struct image_span *span = image_span_from(image, address);
    bool is_in = span < image->spans + image->span_count && span->begin <= address;
    return !is_in || !span->is_written;
}

bool image_read(const struct memory_image *image, uint64_t address, void *bytes, size_t size)
{
    size_t i = array_count_up_to(image->parts, image->part_count, sizeof *image->parts,
                                 offsetof(struct image_part, end), address);
    for (size_t copied = 0; copied < size; i++) {
        const struct image_part *part = &image->parts[i];
        if (i == image->part_count || part->begin > address)
            return false;
        size_t room = part->end - address, count = size - copied < room ? size - copied : room;
        memcpy((char *)bytes + copied, image->bytes + part->offset + (address - part->begin),
               count);
        copied += count;
        address += count;
    }
    return true;
}

const unsigned char *image_find(const struct memory_image *image, uint64_t address, size_t size)
{
    size_t i = array_count_up_to(image->parts, image->part_count, sizeof *image->parts,
                                 offsetof(struct image_part, end), address);
    const struct image_part *part = &image->parts[i];
    bool is_there = i < image->part_count && part->begin <= address && size <= part->end - address;
    return is_there ? image->bytes + part->offset + (address - part->begin) : NULL;
}

static int memory_image_compare_begins(const void *left, const void *right)
{
    uint64_t a = ((const struct image_part *)left)->begin;
    uint64_t b = ((const struct image_part *)right)->begin;
    return a < b ? -1 : a > b;
}

/* Adds a part if there is room for it. */
static void memory_image_add_part(struct memory_image *image, uint64_t begin, uint64_t end,
                                  size_t *byte_count)
{
    if (image->part_count == IMAGE_PARTS || end - begin > IMAGE_BYTES - *byte_count)
        return;
    image->parts[image->part_count++] = (struct image_part){begin, end, *byte_count};
    *byte_count += end - begin;
}

size_t image_choose(struct memory_image *image, const uint64_t *pages, size_t page_count)
{
    size_t byte_count = 0;
    for (size_t i = 0; i < page_count; i++) {
        uint64_t page = pages[i] / MEMORY_PAGE * MEMORY_PAGE;
        const struct image_span *span = image_span_from(image, page);
        bool is_there = span < image->spans + image->span_count && span->begin <= page;
        if (is_there && !span->is_written)
            memory_image_add_part(image, page, page + MEMORY_PAGE, &byte_count);
    }
    for (size_t i = 0; i < image->span_count; i++)
        if (image->spans[i].is_written)
            memory_image_add_part(image, image->spans[i].begin, image->spans[i].end, &byte_count);
    qsort(image->parts, image->part_count, sizeof *image->parts, memory_image_compare_begins);
    return byte_count;
}

void image_free(struct memory_image *image)
{
    if (!image)
        return;
    free(image->spans);
    free(image->parts);
    free(image->bytes);
    free(image);
}

/* Memory. */

enum { NOT_OPENED = -1, CANNOT_BE_OPENED = -2 };

/* Opens a file of the process, as its thread sees it. The first thread needs no directory of its
 * own: the system would make it first. */
static int process_memory_open_of(const struct memory *memory, const char *name)
{
    char path[64];
    if (memory->tid == memory->pid)
        snprintf(path, sizeof path, "/proc/%u/%s", memory->pid, name);
    else
        snprintf(path, sizeof path, "/proc/%u/task/%u/%s", memory->pid, memory->tid, name);
    reader_enter();
    int file = open(path, O_RDONLY | O_CLOEXEC);
    reader_leave();
    return file;
}

/* Reads ranges by the system call of that name. */
static ssize_t memory_read_vectors(uint32_t tid, const struct iovec *local,
                                   const struct iovec *remote, size_t count)
{
    reader_enter();
    ssize_t size = process_vm_readv((pid_t)tid, local, count, remote, count, 0);
    reader_leave();
    return size;
}

/* Reads from the file of the memory. */
static ssize_t memory_read_file(int file, uint64_t address, void *bytes, size_t size)
{
    reader_enter();
    ssize_t read_size = pread(file, bytes, size, (off_t)address);
    reader_leave();
    return read_size;
}

bool memory_open(struct memory *memory, uint32_t pid, uint32_t tid)
{
    *memory = (struct memory){.pid = pid,
                              .tid = tid,
                              .file = -1,
                              .direct = NOT_OPENED,
                              .has_scan = true,
                              .has_guards = true};
    memory->pagemap = process_memory_open_of(memory, "pagemap");
    if (memory->pagemap < 0)
        return false;
    /* More is asked for when memory is read than when this file is opened. */
    char byte;
    struct iovec local = {&byte, 1}, remote = {NULL, 1};
    if (memory_read_vectors(tid, &local, &remote, 1) == 1 || errno == EFAULT)
        return true;
    int reason = errno;
    memory_close(memory);
    errno = reason;
    return false;
}

void memory_spare(struct memory *memory)
{
    memory->file = process_memory_open_of(memory, "mem");
}

bool memory_open_copy(struct memory *memory, uint32_t pid)
{
    if (!memory_open(memory, pid, pid))
        return false;
    memory_spare(memory);
    if (memory->file < 0)
        memory_close(memory);
    return memory->file >= 0;
}

void memory_close(struct memory *memory)
{
    if (memory->file >= 0)
        close(memory->file);
    close(memory->pagemap);
    if (memory->direct >= 0)
        close(memory->direct);
    image_free(memory->image);
    memory->image = NULL;
}

bool memory_is_late(const struct memory *memory)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return memory->deadline != 0 &&
           (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec > memory->deadline;
}

ssize_t memory_read_ranges(const struct memory *memory, const struct iovec *local,
                           const struct iovec *remote, size_t count)
{
    if (memory->file < 0)
        return memory_read_vectors(memory->tid, local, remote, count);
    size_t read_size = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t part = 0; part < remote[i].iov_len;) {
            ssize_t size =
                memory_read_file(memory->file, (uintptr_t)remote[i].iov_base + part,
                                 (char *)local[i].iov_base + part, remote[i].iov_len - part);
            if (size == 0) /* the process is gone */
                errno = ESRCH;
            if (size <= 0)
                return read_size != 0 ? (ssize_t)read_size : -1;
            part += (size_t)size;
            read_size += (size_t)size;
        }
    }
    return (ssize_t)read_size;
}

bool memory_read(const struct memory *memory, uint64_t address, void *bytes, size_t size)
{
    if (memory_is_late(memory))
        return false;
    if (memory->image && image_read(memory->image, address, bytes, size))
        return true;
    struct iovec local = {bytes, size}, remote = {(void *)(uintptr_t)address, size};
    return memory_read_ranges(memory, &local, &remote, 1) == (ssize_t)size;
}

uint64_t memory_batch_add(struct memory_batch *batch, uint64_t address, uint64_t size, uint32_t tag)
{
    uint64_t room = MEMORY_BATCH - batch->used;
    size = size < room ? size : room;
    if (batch->count == MEMORY_SPANS || size == 0)
        return 0;
    batch->pieces[batch->count++] = (struct memory_piece){
        .address = address, .size = (uint32_t)size, .at = batch->used, .tag = tag};
    batch->used += (uint32_t)size;
    return size;
}

void memory_batch_clear(struct memory_batch *batch)
{
    batch->count = 0;
    batch->used = 0;
    memset(batch->holes, 0, sizeof batch->holes);
}

/* The next byte to be read of a batch. */
struct piece_cursor {
    size_t piece;
    uint32_t offset; /* in the piece */
};

/* Moves on over bytes that are read, and over pieces that are known. */
static void process_memory_move_on(const struct memory_batch *batch, struct piece_cursor *cursor,
                                   size_t size)
{
    for (; cursor->piece < batch->count; cursor->piece++, cursor->offset = 0) {
        const struct memory_piece *piece = &batch->pieces[cursor->piece];
        if (piece->is_known)
            continue;
        uint32_t remaining = piece->size - cursor->offset;
        if (size < remaining) {
            cursor->offset += (uint32_t)size;
            return;
        }
        size -= remaining;
    }
}

/* Reads pieces that are not known yet and read in the same way, from the cursor on; that moves to
 * where the reading ended. Returns whether all of them were read. */
static bool process_memory_read_from(struct memory_batch *batch, const struct memory *memory,
                                     struct piece_cursor *cursor)
{
    struct iovec local[MEMORY_SPANS], remote[MEMORY_SPANS];
    size_t count = 0;
    ssize_t wanted = 0;
    for (size_t i = cursor->piece; i < batch->count; i++) {
        const struct memory_piece *piece = &batch->pieces[i];
        uint32_t skip = i == cursor->piece ? cursor->offset : 0;
        if (piece->is_known)
            continue;
        if (piece->is_shared != batch->pieces[cursor->piece].is_shared)
            break;
        local[count] = (struct iovec){batch->bytes + piece->at + skip, piece->size - skip};
        remote[count++] =
            (struct iovec){(void *)(uintptr_t)(piece->address + skip), piece->size - skip};
        wanted += piece->size - skip;
    }
    ssize_t size = batch->pieces[cursor->piece].is_shared
                       ? memory_read_vectors(memory->tid, local, remote, count)
                       : memory_read_ranges(memory, local, remote, count);
    if (size < 0 && (errno == ESRCH || errno == EPERM))
        batch->is_gone = true;
    process_memory_move_on(batch, cursor, size > 0 ? (size_t)size : 0);
    return size == wanted;
}

/* Reads memory that the program has protected. */
static ssize_t process_memory_read_protected(struct memory *memory, uint64_t address, void *bytes,
                                             size_t size)
{
    if (memory->direct == NOT_OPENED)
        memory->direct = process_memory_open_of(memory, "mem");
    if (memory->direct < 0)
        memory->direct = CANNOT_BE_OPENED;
    return memory_read_file(memory->direct, address, bytes, size);
}

/* Moves on over a page that could not be read like others. */
static void process_memory_pass_hole(struct memory_batch *batch, struct memory *memory,
                                     struct piece_cursor *cursor)
{
    const struct memory_piece *piece = &batch->pieces[cursor->piece];
    uint32_t remaining = piece->size - cursor->offset, begin = piece->at + cursor->offset;
    uint64_t address = piece->address + cursor->offset;
    uint32_t hole = MEMORY_PAGE - (uint32_t)(address % MEMORY_PAGE);
    hole = batch->is_gone || hole > remaining ? remaining : hole;
    ssize_t size =
        batch->is_gone || piece->is_device
            ? 0
            : process_memory_read_protected(memory, address, batch->bytes + begin, remaining);
    if (size > 0) {
        process_memory_move_on(batch, cursor, (size_t)size);
        return;
    }
    memset(batch->bytes + begin, 0, hole);
    for (uint32_t offset = begin; offset < begin + hole; offset += MEMORY_PAGE)
        batch->holes[offset / MEMORY_PAGE / 64] |= UINT64_C(1) << offset / MEMORY_PAGE % 64;
    batch->missing += piece->may_lack ? 0 : hole;
    process_memory_move_on(batch, cursor, hole);
}

/* Takes the bytes of a piece from the image, if it has them. */
static void process_memory_take_known(struct memory_batch *batch, const struct memory_image *image,
                                      struct memory_piece *piece)
{
    const unsigned char *bytes =
        batch->may_borrow ? image_find(image, piece->address, piece->size) : NULL;
    piece->is_known =
        bytes || image_read(image, piece->address, batch->bytes + piece->at, piece->size);
    if (bytes)
        piece->bytes = bytes;
}

void memory_batch_read(struct memory_batch *batch, struct memory *memory)
{
    struct piece_cursor cursor = {0, 0};
    for (size_t i = 0; i < batch->count; i++) {
        batch->pieces[i].bytes = batch->bytes + batch->pieces[i].at;
        if (memory->image)
            process_memory_take_known(batch, memory->image, &batch->pieces[i]);
    }
    process_memory_move_on(batch, &cursor, 0);
    while (cursor.piece < batch->count) {
        if (batch->is_gone || !process_memory_read_from(batch, memory, &cursor))
            process_memory_pass_hole(batch, memory, &cursor);
    }
}

/* The part of reading a process's memory that finds its present pages. */

/* Linux 6.7; headers may be older. */
struct scan_region {
    uint64_t begin, end, categories;
};

struct scan_arguments {
    uint64_t size, flags;
    uint64_t start, end, walk_end;
    uint64_t regions, region_count;
    uint64_t max_pages;
    uint64_t inverted, all_of, any_of, returned;
};

#define SCAN_IOCTL _IOWR('f', 16, struct scan_arguments)

enum {
    SCAN_FILE = 1 << 2,
    SCAN_PRESENT = 1 << 3,
    SCAN_SWAPPED = 1 << 4,
    SCAN_ZERO = 1 << 5,
    SCAN_GUARD = 1 << 8, /* Linux 6.15: nothing can be there, though it counts as swapped */
};

/* Entries of the page map. */
#define ENTRY_TOUCHED (UINT64_C(3) << 62)
#define ENTRY_FILE    (UINT64_C(1) << 61)
#define ENTRY_GUARD   (UINT64_C(1) << 58)
enum { ENTRIES = 4096 };

/* Addresses of programs end here, but for those that ask for more. */
#define ADDRESS_END ((UINT64_C(1) << 47) - MEMORY_PAGE)

/* Pages that the system looks at in one call, at most: it is not interrupted meanwhile. */
enum { PAGES_AT_ONCE = 1 << 18 };

/* Asks the system for regions of pages with none of the categories in `without`, from *begin on.
 * Returns their number and, in *walk_end, where it ended; a negative number if it does not know. */
static int memory_pages_walk(const struct memory *memory, uint64_t begin, uint64_t end,
                             uint64_t without, struct scan_region regions[MEMORY_SPANS],
                             uint64_t *walk_end)
{
    struct scan_arguments arguments = {
        .size = sizeof arguments,
        .start = begin,
        .end = end,
        .regions = (uintptr_t)regions,
        .region_count = MEMORY_SPANS,
        .max_pages = PAGES_AT_ONCE,
        .inverted = without,
        .all_of = without,
        .any_of = SCAN_PRESENT | SCAN_SWAPPED,
        .returned = SCAN_PRESENT | SCAN_FILE,
    };
    reader_enter();
    int count = ioctl(memory->pagemap, SCAN_IOCTL, &arguments);
    reader_leave();
    *walk_end = arguments.walk_end;
    return count;
}

/* Asks the system for regions of pages without any of the categories in `without`, at most
 * MEMORY_SPANS of them, and moves `*begin` on to where it ended. Returns their number; 0 and no
 * `has_scan` any more if the system does not know. */
static size_t memory_pages_ask(struct memory *memory, uint64_t *begin, uint64_t end,
                               uint64_t without, struct scan_region regions[MEMORY_SPANS])
{
    uint64_t walk_end, guard = memory->has_guards ? SCAN_GUARD : 0;
    int count = memory_pages_walk(memory, *begin, end, without | guard, regions, &walk_end);
    if (count < 0 && guard != 0) {
        memory->has_guards = false;
        count = memory_pages_walk(memory, *begin, end, without, regions, &walk_end);
    }
    if (count < 0 || walk_end <= *begin || walk_end > end) {
        memory->has_scan = false;
        return 0;
    }
    /* Some systems end the walk before the end of the last region; the next walk begins with it. */
    size_t kept = 0;
    for (int i = 0; i < count; i++) {
        struct scan_region region = regions[i];
        region.begin = region.begin > *begin ? region.begin : *begin;
        if (region.begin >= region.end)
            continue;
        regions[kept++] = region;
        *begin = region.end;
    }
    *begin = walk_end > *begin ? walk_end : *begin;
    return kept;
}

/* Adds a span to those before it. Returns the new number. */
static size_t memory_pages_add_span(struct memory_span spans[MEMORY_SPANS], size_t count,
                                    uint64_t begin, uint64_t end)
{
    if (count != 0 && spans[count - 1].end == begin) {
        spans[count - 1].end = end;
        return count;
    }
    spans[count] = (struct memory_span){begin, end};
    return count + 1;
}

/* Finds spans of pages without any of the categories in `without`. */
static size_t memory_pages_scan(struct memory *memory, uint64_t *begin, uint64_t end,
                                uint64_t without, struct memory_span spans[MEMORY_SPANS])
{
    struct scan_region regions[MEMORY_SPANS];
    size_t kept = 0, count = memory_pages_ask(memory, begin, end, without, regions);
    for (size_t i = 0; i < count; i++)
        kept = memory_pages_add_span(spans, kept, regions[i].begin, regions[i].end);
    return kept;
}

/* Finds spans in the image: of all pages, or of those that were written. */
static size_t memory_pages_find(const struct memory_image *image, uint64_t *begin, uint64_t end,
                                bool is_for_written, struct memory_span spans[MEMORY_SPANS])
{
    const struct image_span *span = image_span_from(image, *begin);
    size_t count = 0;
    for (; span < image->spans + image->span_count && span->begin < end; span++) {
        if (is_for_written && !span->is_written)
            continue;
        if (count == MEMORY_SPANS)
            return count;
        uint64_t first = span->begin > *begin ? span->begin : *begin;
        *begin = span->end < end ? span->end : end;
        count = memory_pages_add_span(spans, count, first, *begin);
    }
    *begin = end;
    return count;
}

/* Finds the spans in the page map: pages whose entries have no bit of `without`. */
static size_t memory_pages_look(const struct memory *memory, uint64_t *begin, uint64_t end,
                                uint64_t without, struct memory_span spans[MEMORY_SPANS])
{
    uint64_t entries[ENTRIES];
    size_t count = 0, read_size = (end - *begin) / MEMORY_PAGE;
    read_size = read_size < ENTRIES ? read_size : ENTRIES;
    reader_enter();
    ssize_t size = pread(memory->pagemap, entries, read_size * sizeof *entries,
                         (off_t)(*begin / MEMORY_PAGE * sizeof *entries));
    reader_leave();
    if (size <= 0) { /* the process is gone */
        *begin = end;
        return 0;
    }
    uint64_t offset = *begin;
    for (size_t i = 0; i < (size_t)size / sizeof *entries; i++, offset += MEMORY_PAGE) {
        if ((entries[i] & ENTRY_TOUCHED) == 0 || (entries[i] & without) != 0)
            continue;
        if (count == MEMORY_SPANS && spans[count - 1].end != offset)
            break;
        count = memory_pages_add_span(spans, count, offset, offset + MEMORY_PAGE);
    }
    *begin = offset;
    return count;
}

/* Finds pages with one of the ways that there are: the image if it has them, else the system. */
static size_t memory_find_pages(struct memory *memory, uint64_t *begin, uint64_t end,
                                bool is_for_written, struct memory_span spans[MEMORY_SPANS])
{
    const struct memory_image *image = memory->image;
    uint64_t first = *begin;
    if (image && first < image->known_end)
        return memory_pages_find(image, begin, end < image->known_end ? end : image->known_end,
                                 is_for_written, spans);
    if (memory->has_scan) {
        size_t count = memory_pages_scan(memory, begin, end,
                                         SCAN_ZERO | (is_for_written ? SCAN_FILE : 0), spans);
        if (memory->has_scan)
            return count;
        *begin = first;
    }
    return memory_pages_look(memory, begin, end, ENTRY_GUARD | (is_for_written ? ENTRY_FILE : 0),
                             spans);
}

size_t memory_touched(struct memory *memory, uint64_t *begin, uint64_t end,
                      struct memory_span spans[MEMORY_SPANS])
{
    return memory_find_pages(memory, begin, end, false, spans);
}

size_t memory_written(const struct memory *memory, uint64_t *begin, uint64_t end,
                      struct memory_span spans[MEMORY_SPANS])
{
    struct memory asked = *memory;
    return memory_find_pages(&asked, begin, end, true, spans);
}

/* Lists the spans of the image, up to a limit. Returns false if the system does not know, or if
 * memory ran out. */
static bool memory_pages_list_spans(struct memory *memory, struct memory_image *image)
{
    struct scan_region regions[MEMORY_SPANS];
    size_t capacity = 0;
    while (image->known_end < ADDRESS_END && image->span_count < IMAGE_SPANS) {
        size_t count = memory_pages_ask(memory, &image->known_end, ADDRESS_END, SCAN_ZERO, regions);
        if (!memory->has_scan)
            return false;
        for (size_t i = 0; i < count; i++) {
            void *spans =
                array_grow(image->spans, image->span_count, &capacity, sizeof *image->spans);
            if (!spans)
                return false;
            image->spans = spans;
            image->spans[image->span_count++] = (struct image_span){
                regions[i].begin, regions[i].end, (regions[i].categories & SCAN_FILE) == 0};
        }
    }
    return true;
}

/* Reads the parts, one behind the other, from an existing one on. Returns how many are whole. */
static size_t memory_pages_read_parts(const struct memory *memory, const struct memory_image *image,
                                      size_t first)
{
    struct iovec local[IMAGE_PARTS], remote[IMAGE_PARTS];
    size_t count = 0, whole = 0;
    do {
        const struct image_part *part = &image->parts[first + count];
        size_t size = part->end - part->begin;
        local[count] = (struct iovec){image->bytes + part->offset, size};
        remote[count++] = (struct iovec){(void *)(uintptr_t)part->begin, size};
    } while (first + count < image->part_count);
    ssize_t read_size = memory_read_ranges(memory, local, remote, count);
    for (; whole < count && read_size >= (ssize_t)remote[whole].iov_len; whole++)
        read_size -= (ssize_t)remote[whole].iov_len;
    return whole;
}

/* Reads the parts of the image, and leaves out unreadable ones: such as memory that the program has
 * protected. */
static void memory_pages_fill(const struct memory *memory, struct memory_image *image)
{
    enum { FAILURES_MAX = 16 };
    size_t kept = 0, filled_size = 0;
    for (int failures = 0; filled_size < image->part_count && failures < FAILURES_MAX; failures++) {
        size_t whole = memory_pages_read_parts(memory, image, filled_size);
        memmove(image->parts + kept, image->parts + filled_size, whole * sizeof *image->parts);
        kept += whole;
        filled_size += whole + 1;
    }
    image->part_count = kept;
}

void memory_hold(struct memory *memory, const uint64_t *pages, size_t count)
{
    struct memory_image *image = calloc(1, sizeof *image);
    if (!image || !memory->has_scan || !memory_pages_list_spans(memory, image)) {
        image_free(image);
        return;
    }
    memory->image = image;
    image->parts = calloc(IMAGE_PARTS, sizeof *image->parts);
    size_t size = image->parts ? image_choose(image, pages, count) : 0;
    image->bytes = malloc(size + 1);
    if (image->bytes)
        memory_pages_fill(memory, image);
    else
        image->part_count = 0;
}
