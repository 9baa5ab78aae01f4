/* SPDX-License-Identifier: MIT */
#include "base/packed_table.h"

#include <stdbool.h>

#include "base/table.h"

/* Behind the last row: a field is read and written with the seven bytes that follow it. */
#define SLACK sizeof(uint64_t)

static uint64_t mask_of(uint64_t difference)
{
    uint64_t mask = 0;
    while (difference & ~mask)
        mask = mask << 8 | 0xff;
    return mask;
}

enum ttd_status packed_table_init(struct packed_table *table, size_t count,
                                  const struct value_range *ranges, unsigned fields)
{
    struct packed_table made = {.row_size = 0};
    for (unsigned i = 0; i < fields; i++) {
        bool is_empty = ranges[i].lowest > ranges[i].highest;
        uint64_t difference = is_empty ? 0 : ranges[i].highest - ranges[i].lowest;
        made.fields[i] = (struct packed_field){.lowest = is_empty ? 0 : ranges[i].lowest,
                                               .mask = mask_of(difference),
                                               .offset = made.row_size};
        made.row_size += (uint32_t)__builtin_popcountll(made.fields[i].mask) / 8;
    }
    if (made.row_size && count > (SIZE_MAX - SLACK) / made.row_size)
        return TTD_ERROR_NO_MEMORY;
    made.size = count * made.row_size + SLACK;
    made.bytes = table_resize(NULL, 0, made.size);
    if (!made.bytes)
        return TTD_ERROR_NO_MEMORY;
    *table = made;
    return TTD_OK;
}

void packed_table_free(struct packed_table *table)
{
    if (table->bytes)
        table_free(table->bytes, table->size);
    *table = (struct packed_table){.row_size = 0};
}

void packed_table_fill_last(struct packed_table *table, size_t row, const uint64_t *values,
                            unsigned fields)
{
    unsigned char *bytes = table->bytes + row * table->row_size;
    for (unsigned i = 0; i < fields; i++) {
        const struct packed_field *field = &table->fields[i];
        unsigned char word[sizeof(uint64_t)];
        packed_store(word, values[i] - field->lowest);
        memcpy(bytes + field->offset, word, (size_t)__builtin_popcountll(field->mask) / 8);
    }
}
