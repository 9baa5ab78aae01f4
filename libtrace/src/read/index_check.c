/* SPDX-License-Identifier: MIT */
#include "read/check.h"

#include <string.h>

#include "base/memory.h"
#include "read/internal.h"

bool ttd_index_check_see(struct ttd_reader *reader, const struct ttd_header *header)
{
    struct ttd_index_check *check = &reader->check.index;
    if (header->kind == TTD_KIND_EVENTS && !check->pending_set) {
        check->pending = (struct ttd_index_link){0, header->first_record, header->first_position};
        check->pending_set = true;
    }
    /* An index has no entries of index chunks: links lead to those. */
    if (header->kind == TTD_KIND_INDEX)
        return true;
    void *hashes = check->hashes;
    if (ttd_grow_array(&reader->allocator, &hashes, &check->hash_capacity, check->hash_count + 1,
                       sizeof *check->hashes))
        return false;
    check->hashes = hashes;
    uint8_t bytes[TTD_HEADER_SIZE];
    ttd_header_encode(header, bytes);
    check->hashes[check->hash_count++] = ttd_hash(bytes, sizeof bytes);
    return true;
}

static bool same_link(const struct ttd_index_link *a, const struct ttd_index_link *b)
{
    return a->offset == b->offset && a->first_event == b->first_event &&
           ttd_position_compare(a->position, b->position) == 0;
}

/** Compares the links with the index chunks seen. */
static bool check_links(const struct ttd_index_check *check, const struct ttd_index_links *links,
                        const struct ttd_index_link *self)
{
    if (!same_link(&links->links[0], self))
        return false;
    size_t i = 1;
    for (size_t distance = 1; distance <= check->seen_count; distance *= 2, i++)
        if (i >= links->count ||
            !same_link(&links->links[i], &check->seen[check->seen_count - distance]))
            return false;
    return i == links->count;
}

/** Compares the entries with the chunks seen since the last index chunk. */
static bool check_entries(const struct ttd_index_check *check, struct ttd_cursor entries)
{
    if (ttd_cursor_left(&entries) != check->hash_count * TTD_HEADER_SIZE)
        return false;
    for (size_t i = 0; i < check->hash_count; i++)
        if (ttd_hash(ttd_cursor_bytes(&entries, TTD_HEADER_SIZE), TTD_HEADER_SIZE) !=
            check->hashes[i])
            return false;
    return true;
}

bool ttd_index_check_chunk(struct ttd_reader *reader, struct ttd_cursor payload, const char **what)
{
    struct ttd_index_check *check = &reader->check.index;
    const struct ttd_header *header = &reader->header;
    bool damaged = reader->check.damaged;
    struct ttd_index_links links;
    ttd_decode_index_links(&payload, &links, header->record_count);
    *what = payload.error;
    struct ttd_index_link self = check->pending;
    /* Without events in what it covers, it stands for the next event to come. */
    if (!check->pending_set)
        self = (struct ttd_index_link){0, reader->next_event, reader->position};
    self.offset = header->offset;
    /* Behind damage it is unknown which chunks the index should have. */
    if (!*what && !damaged && !check_links(check, &links, &self))
        *what = "links of an index";
    if (!*what && !damaged && !check_entries(check, payload))
        *what = "entries of an index";
    void *seen = check->seen;
    if (ttd_grow_array(&reader->allocator, &seen, &check->seen_capacity, check->seen_count + 1,
                       sizeof *check->seen))
        return false;
    check->seen = seen;
    check->seen[check->seen_count++] = self;
    check->hash_count = 0;
    check->pending_set = false;
    return true;
}
