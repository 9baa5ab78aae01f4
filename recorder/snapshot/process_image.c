/* SPDX-License-Identifier: MIT */
#include "snapshot/process_memory.h"

#include <stdlib.h>
#include <string.h>

#include "arrays.h"

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

static int image_compare_begins(const void *left, const void *right)
{
    uint64_t a = ((const struct image_part *)left)->begin;
    uint64_t b = ((const struct image_part *)right)->begin;
    return a < b ? -1 : a > b;
}

/* Adds a part if there is room for it. */
static void image_add_part(struct memory_image *image, uint64_t begin, uint64_t end,
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
            image_add_part(image, page, page + MEMORY_PAGE, &byte_count);
    }
    for (size_t i = 0; i < image->span_count; i++)
        if (image->spans[i].is_written)
            image_add_part(image, image->spans[i].begin, image->spans[i].end, &byte_count);
    qsort(image->parts, image->part_count, sizeof *image->parts, image_compare_begins);
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
