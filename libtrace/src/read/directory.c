/* SPDX-License-Identifier: MIT */
#include "read/directory.h"

#include <string.h>

#include "base/memory.h"

void ttd_directory_free(struct ttd_directory *directory, const struct ttd_allocator *allocator)
{
    ttd_release(allocator, directory->headers);
    *directory = (struct ttd_directory){.headers = NULL};
}

/** Offset at which the chunks that are known end. */
static uint64_t directory_end(const struct ttd_directory *directory)
{
    if (directory->count == 0)
        return 0;
    const struct ttd_header *last = &directory->headers[directory->count - 1];
    return last->offset + ttd_chunk_size(last);
}

/** Returns the index of the first header at `offset` or behind; the count if there is none. */
static size_t directory_lower_bound(const struct ttd_directory *directory, uint64_t offset)
{
    size_t low = 0;
    size_t high = directory->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (directory->headers[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct ttd_header *ttd_directory_find(struct ttd_directory *directory, uint64_t offset)
{
    size_t i = directory->next;
    if (i >= directory->count || directory->headers[i].offset != offset)
        i = directory_lower_bound(directory, offset);
    if (i == directory->count || directory->headers[i].offset != offset)
        return NULL;
    directory->next = i + 1;
    return &directory->headers[i];
}

/** Compares two headers as they are in a file: a struct may have padding. */
static bool directory_is_same(const struct ttd_header *a, const struct ttd_header *b)
{
    uint8_t bytes[2][TTD_HEADER_SIZE];
    ttd_header_encode(a, bytes[0]);
    ttd_header_encode(b, bytes[1]);
    return memcmp(bytes[0], bytes[1], TTD_HEADER_SIZE) == 0;
}

bool ttd_directory_add(struct ttd_directory *directory, const struct ttd_allocator *allocator,
                       const struct ttd_header *header)
{
    const struct ttd_header *known = ttd_directory_find(directory, header->offset);
    if (known && directory_is_same(known, header))
        return true;
    ttd_directory_cut(directory, header->offset);
    if (header->offset != directory_end(directory) || directory->count == TTD_DIRECTORY_MAX)
        return true;
    void *headers = directory->headers;
    if (ttd_grow_array(allocator, &headers, &directory->capacity, directory->count + 1,
                       sizeof *directory->headers))
        return false;
    directory->headers = headers;
    directory->headers[directory->count++] = *header;
    directory->next = directory->count;
    return true;
}

void ttd_directory_cut(struct ttd_directory *directory, uint64_t offset)
{
    directory->count = directory_lower_bound(directory, offset);
    if (directory_end(directory) > offset)
        directory->count--;
}
