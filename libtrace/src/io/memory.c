/* SPDX-License-Identifier: MIT */
#include <ttdtrace/io.h>

#include <errno.h>
#include <string.h>

#include "base/memory.h"

typedef struct memory_input {
    const uint8_t *data;
    size_t size;
    ttd_allocator allocator;
} memory_input;

static int memory_read_at(void *context, uint64_t offset, void *data, size_t size, size_t *got)
{
    const memory_input *memory = context;
    *got = 0;
    if (offset >= memory->size)
        return 0;
    size_t left = memory->size - (size_t)offset;
    *got = size < left ? size : left;
    if (*got != 0)
        memcpy(data, memory->data + offset, *got);
    return 0;
}

static int memory_size(void *context, uint64_t *size)
{
    const memory_input *memory = context;
    *size = memory->size;
    return 0;
}

static void memory_close(void *context)
{
    memory_input *memory = context;
    ttd_allocator allocator = memory->allocator;
    ttd_release(&allocator, memory);
}

ttd_status ttd_input_memory(const void *data, size_t size, const ttd_allocator *allocator,
                            ttd_input *input)
{
    if ((!data && size != 0) || !input || !ttd_allocator_is_valid(allocator))
        return TTD_ERROR_ARGUMENT;
    ttd_allocator table = ttd_allocator_or_default(allocator);
    memory_input *memory = ttd_allocate_zeroed(&table, sizeof *memory);
    if (!memory)
        return TTD_ERROR_NO_MEMORY;
    *memory = (memory_input){data, size, table};
    *input = (ttd_input){memory, memory_read_at, memory_size, memory_close};
    return TTD_OK;
}

static int memory_write(void *context, const void *data, size_t size)
{
    ttd_memory *memory = context;
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

ttd_status ttd_output_memory(ttd_memory *memory, const ttd_allocator *allocator, ttd_output *output)
{
    if (!memory || !output || !ttd_allocator_is_valid(allocator))
        return TTD_ERROR_ARGUMENT;
    *memory = (ttd_memory){.allocator = ttd_allocator_or_default(allocator)};
    *output = (ttd_output){memory, memory_write, NULL};
    return TTD_OK;
}

void ttd_memory_free(ttd_memory *memory)
{
    if (!memory || !memory->allocator.release)
        return;
    ttd_release(&memory->allocator, memory->data);
    *memory = (ttd_memory){.allocator = memory->allocator};
}
