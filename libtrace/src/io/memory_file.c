/* SPDX-License-Identifier: MIT */
#include <ttdtrace/io.h>

#include <errno.h>
#include <string.h>

#include "base/memory.h"

struct memory_input {
    const uint8_t *data;
    size_t size;
    struct ttd_allocator allocator;
};

static int memory_read_at(void *context, uint64_t offset, void *data, size_t size, size_t *got)
{
    const struct memory_input *memory = context;
    *got = 0;
    /* Before it is narrowed: size_t may have 32 bits. */
    if (offset >= memory->size)
        return 0;
    size_t remaining = memory->size - (size_t)offset;
    *got = size < remaining ? size : remaining;
    if (*got != 0)
        memcpy(data, memory->data + offset, *got);
    return 0;
}

static int memory_size(void *context, uint64_t *size)
{
    const struct memory_input *memory = context;
    *size = memory->size;
    return 0;
}

static void memory_close_input(void *context)
{
    struct memory_input *memory = context;
    struct ttd_allocator allocator = memory->allocator;
    ttd_release(&allocator, memory);
}

enum ttd_status ttd_input_memory(const void *data, size_t size,
                                 const struct ttd_allocator *allocator, struct ttd_input *input)
{
    if ((!data && size != 0) || !input || !ttd_allocator_is_valid(allocator))
        return TTD_ERROR_ARGUMENT;
    struct ttd_allocator table = ttd_allocator_or_default(allocator);
    struct memory_input *memory = ttd_allocate_zeroed(&table, sizeof *memory);
    if (!memory)
        return TTD_ERROR_NO_MEMORY;
    *memory = (struct memory_input){data, size, table};
    *input = (struct ttd_input){memory, memory_read_at, memory_size, memory_close_input};
    return TTD_OK;
}

static int memory_write(void *context, const void *data, size_t size)
{
    struct ttd_memory_output *memory = context;
    if (size > SIZE_MAX - memory->size)
        return ENOMEM;
    void *block = memory->data;
    if (ttd_grow_array(&memory->allocator, &block, &memory->capacity, memory->size + size, 1))
        return ENOMEM;
    memory->data = block;
    if (size != 0)
        memcpy(memory->data + memory->size, data, size);
    memory->size += size;
    return 0;
}

enum ttd_status ttd_output_memory(struct ttd_memory_output *memory,
                                  const struct ttd_allocator *allocator, struct ttd_output *output)
{
    if (!memory || !output || !ttd_allocator_is_valid(allocator))
        return TTD_ERROR_ARGUMENT;
    *memory = (struct ttd_memory_output){.allocator = ttd_allocator_or_default(allocator)};
    *output = (struct ttd_output){memory, memory_write, NULL};
    return TTD_OK;
}

void ttd_memory_output_free(struct ttd_memory_output *memory)
{
    /* All zero: no output was ever opened on it. */
    if (!memory || !memory->allocator.release)
        return;
    ttd_release(&memory->allocator, memory->data);
    *memory = (struct ttd_memory_output){.allocator = memory->allocator};
}
