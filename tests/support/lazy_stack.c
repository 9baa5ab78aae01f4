/* SPDX-License-Identifier: MIT */
#include "support/lazy_stack.h"

#include <string.h>

/* spec, "Stacks": the lengths of the columns, and the columns. */
#define COLUMNS 4

static size_t put_varint(uint8_t *to, uint64_t value)
{
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        to[size++] = (uint8_t)(value | 0x80);
    to[size++] = (uint8_t)value;
    return size;
}

struct ttd_batch lazy_stack(const struct ttd_stack *stack, uint8_t payload[STORED_STACK_SIZE_MAX])
{
    uint64_t zigzag = stack->offset << 1 ^ (0 - (stack->offset >> 63));
    const uint64_t columns[COLUMNS] = {stack->parent ? stack->id - stack->parent : 0, 0,
                                       stack->module, zigzag};
    memset(payload, 0, STORED_STACK_SIZE_MAX);
    size_t size = sizeof(uint32_t) * COLUMNS;
    for (size_t i = 0; i < COLUMNS; i++) {
        size_t added = put_varint(payload + size, columns[i]);
        payload[sizeof(uint32_t) * i] = (uint8_t)added;
        size += added;
    }
    return (struct ttd_batch){.kind = TTD_KIND_STACKS,
                              .count = 1,
                              .chunk = {.kind = TTD_KIND_STACKS,
                                        .codec = TTD_CODEC_RAW,
                                        .stored_size = (uint32_t)size,
                                        .raw_size = (uint32_t)size,
                                        .first_record = stack->id,
                                        .record_count = 1},
                              .stored = payload};
}
