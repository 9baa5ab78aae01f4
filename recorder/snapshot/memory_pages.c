/* SPDX-License-Identifier: MIT */
/* The part of reading a process's memory that finds its present pages. */
#include "snapshot/process_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "snapshot/process_image.h"
#include "snapshot/process_reader.h"
#include "arrays.h"

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

enum { SCAN_FILE = 1 << 2, SCAN_PRESENT = 1 << 3, SCAN_SWAPPED = 1 << 4, SCAN_ZERO = 1 << 5 };

/* Entries of the page map. */
#define ENTRY_TOUCHED (UINT64_C(3) << 62)
#define ENTRY_FILE    (UINT64_C(1) << 61)
enum { ENTRIES = 4096 };

/* Addresses of programs end here, but for those that ask for more. */
#define ADDRESS_END ((UINT64_C(1) << 47) - MEMORY_PAGE)

/* Pages that the system looks at in one call, at most: it is not interrupted meanwhile. */
enum { PAGES_AT_ONCE = 1 << 18 };

/* Asks the system for regions of pages without any of the categories in `without`, at most
 * MEMORY_SPANS of them, and moves `*begin` on to where it ended. Returns their number; 0 and no
 * `has_scan` any more if the system does not know. */
static size_t pages_ask_system(struct memory *memory, uint64_t *begin, uint64_t end,
                               uint64_t without, struct scan_region regions[MEMORY_SPANS])
{
    struct scan_arguments arguments = {
        .size = sizeof arguments,
        .start = *begin,
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
    if (count < 0 || arguments.walk_end <= *begin || arguments.walk_end > end) {
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
    *begin = arguments.walk_end > *begin ? arguments.walk_end : *begin;
    return kept;
}

/* Adds a span to those before it. Returns the new number. */
static size_t pages_add_span(struct memory_span spans[MEMORY_SPANS], size_t count, uint64_t begin,
                             uint64_t end)
{
    if (count != 0 && spans[count - 1].end == begin) {
        spans[count - 1].end = end;
        return count;
    }
    spans[count] = (struct memory_span){begin, end};
    return count + 1;
}

/* Finds spans of pages without any of the categories in `without`. */
static size_t pages_scan(struct memory *memory, uint64_t *begin, uint64_t end, uint64_t without,
                         struct memory_span spans[MEMORY_SPANS])
{
    struct scan_region regions[MEMORY_SPANS];
    size_t kept = 0, count = pages_ask_system(memory, begin, end, without, regions);
    for (size_t i = 0; i < count; i++)
        kept = pages_add_span(spans, kept, regions[i].begin, regions[i].end);
    return kept;
}

/* Finds spans in the image: of all pages, or of those that were written. */
static size_t pages_find(const struct memory_image *image, uint64_t *begin, uint64_t end,
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
        count = pages_add_span(spans, count, first, *begin);
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
        count = pages_add_span(spans, count, offset, offset + MEMORY_PAGE);
    }
    *begin = offset;
    return count;
}

/* Finds pages with one of the ways that there are: the image if it has them, else the system. */
static size_t find_pages(struct memory *memory, uint64_t *begin, uint64_t end, bool is_for_written,
                         struct memory_span spans[MEMORY_SPANS])
{
    const struct memory_image *image = memory->image;
    uint64_t first = *begin;
    if (image && first < image->known_end)
        return pages_find(image, begin, end < image->known_end ? end : image->known_end,
                          is_for_written, spans);
    if (memory->has_scan) {
        size_t count =
            pages_scan(memory, begin, end, SCAN_ZERO | (is_for_written ? SCAN_FILE : 0), spans);
        if (memory->has_scan)
            return count;
        *begin = first;
    }
    return memory_pages_look(memory, begin, end, is_for_written ? ENTRY_FILE : 0, spans);
}

size_t memory_touched(struct memory *memory, uint64_t *begin, uint64_t end,
                      struct memory_span spans[MEMORY_SPANS])
{
    return find_pages(memory, begin, end, false, spans);
}

size_t memory_written(const struct memory *memory, uint64_t *begin, uint64_t end,
                      struct memory_span spans[MEMORY_SPANS])
{
    struct memory asked = *memory;
    return find_pages(&asked, begin, end, true, spans);
}

/* Lists the spans of the image, up to a limit. Returns false if the system does not know, or if
 * memory ran out. */
static bool memory_pages_list_spans(struct memory *memory, struct memory_image *image)
{
    struct scan_region regions[MEMORY_SPANS];
    size_t capacity = 0;
    while (image->known_end < ADDRESS_END && image->span_count < IMAGE_SPANS) {
        size_t count = pages_ask_system(memory, &image->known_end, ADDRESS_END, SCAN_ZERO, regions);
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
