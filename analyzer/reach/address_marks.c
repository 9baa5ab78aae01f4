/* SPDX-License-Identifier: MIT */
#include "reach/address_marks.h"

#include "base/table.h"

_Static_assert(2 * ADDRESS_MARKS_PENDING <= ADDRESS_BATCH,
               "both ends of all are looked up at once");

#define ADDRESS_FIELD 0

static size_t marks_size(const struct address_marks *marks)
{
    return 2 * (size_t)marks->count * sizeof *marks->latest;
}

enum ttd_status address_marks_begin(struct address_marks *marks)
{
    enum ttd_status status =
        address_index_init(&marks->index, &marks->table, ADDRESS_FIELD, marks->count);
    if (status != TTD_OK)
        return status;
    marks->latest = table_resize(NULL, 0, marks_size(marks));
    return marks->latest ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

void address_marks_free(struct address_marks *marks)
{
    if (marks->latest)
        table_free(marks->latest, marks_size(marks));
    address_index_free(&marks->index);
    packed_table_free(&marks->table);
    *marks = (struct address_marks){.count = 0};
}

struct address_span address_marks_find(struct address_marks *marks, uint64_t address, uint64_t size)
{
    struct address_span span = {.first = 0, .end = marks->count};
    if (address)
        span.first = address_index_count(&marks->index, &marks->table, address - 1);
    if (!size)
        span.end = span.first;
    else if (size <= UINT64_MAX - address)
        span.end = address_index_count(&marks->index, &marks->table, address + size - 1);
    return span;
}

static void mark_node(struct address_marks *marks, uint64_t node, struct ttd_position position)
{
    /* Notes come in any order: blocks of a destroyed heap are told of late. */
    if (ttd_position_compare(position, marks->latest[node]) > 0)
        marks->latest[node] = position;
}

/* A segment tree: any number of addresses is marked at a few nodes that cover them. */
static void mark_span(struct address_marks *marks, struct address_span span,
                      struct ttd_position position)
{
    uint64_t low = (uint64_t)span.first + marks->count;
    uint64_t high = (uint64_t)span.end + marks->count;
    for (; low < high; low /= 2, high /= 2) {
        if (low & 1)
            mark_node(marks, low++, position);
        if (high & 1)
            mark_node(marks, --high, position);
    }
}

static void mark_pending(struct address_marks *marks)
{
    /* By note: the addresses before its first byte and of its last one, and the rows up to there.
     */
    uint64_t addresses[2 * ADDRESS_MARKS_PENDING];
    uint32_t counts[2 * ADDRESS_MARKS_PENDING];
    for (size_t i = 0; i < marks->pending_count; i++) {
        const struct address_note *note = &marks->pending[i];
        uint64_t last_offset = note->size - 1, room = UINT64_MAX - note->address;
        addresses[2 * i] = note->address - 1;
        addresses[2 * i + 1] = note->address + (last_offset < room ? last_offset : room);
    }
    address_index_count_batch(&marks->index, &marks->table, addresses, 2 * marks->pending_count,
                              counts);
    for (size_t i = 0; i < 2 * marks->pending_count; i += 2)
        __builtin_prefetch(&marks->latest[(size_t)counts[i] + marks->count], 1);
    for (size_t i = 0; i < marks->pending_count; i++)
        mark_span(marks, (struct address_span){counts[2 * i], counts[2 * i + 1]},
                  marks->pending[i].position);
    marks->pending_count = 0;
}

void address_marks_note(struct address_marks *marks, struct address_note note)
{
    if (!note.size || !marks->count)
        return;
    marks->pending[marks->pending_count++] = note;
    if (marks->pending_count == ADDRESS_MARKS_PENDING)
        mark_pending(marks);
}

void address_marks_settle(struct address_marks *marks)
{
    mark_pending(marks);
    /* From the root down, so that each leaf gets the notes of all nodes above it. */
    for (uint64_t i = 1; i < marks->count; i++) {
        mark_node(marks, 2 * i, marks->latest[i]);
        mark_node(marks, 2 * i + 1, marks->latest[i]);
    }
}
