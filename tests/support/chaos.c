/* SPDX-License-Identifier: MIT */
#include "support/chaos.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/** Bytes in front of each block: its size, padded so that the block stays aligned. */
#define BLOCK_HEADER 16

static int fails(struct chaos_counter *counter)
{
    uint64_t call = counter->calls++;
    return counter->forever ? call >= counter->fail_at : call == counter->fail_at;
}

void chaos_memory_init(struct chaos_memory *memory, uint64_t fail_at)
{
    *memory = (struct chaos_memory){.counter = {.fail_at = fail_at}};
}

static uint64_t size_of(const uint8_t *block)
{
    uint64_t size;
    memcpy(&size, block - BLOCK_HEADER, sizeof size);
    return size;
}

static void release(void *context, void *block)
{
    struct chaos_memory *memory = context;
    if (!block)
        return;
    memory->blocks--;
    memory->bytes -= size_of(block);
    free((uint8_t *)block - BLOCK_HEADER);
}

/* Always moves the block, so that sanitizers detect the use of a pointer to the old one. */
static void *resize(void *context, void *block, size_t size)
{
    struct chaos_memory *memory = context;
    if (size == 0)
        abort();
    if (fails(&memory->counter))
        return NULL;
    uint8_t *result = malloc(size + BLOCK_HEADER);
    if (!result)
        return NULL;
    uint64_t stored_size = size;
    memcpy(result, &stored_size, sizeof stored_size);
    result += BLOCK_HEADER;
    memset(result, 0xA5, size);
    if (block) {
        uint64_t old_size = size_of(block);
        memcpy(result, block, old_size < size ? (size_t)old_size : size);
        release(memory, block);
    }
    memory->blocks++;
    memory->bytes += size;
    if (memory->bytes > memory->peak)
        memory->peak = memory->bytes;
    return result;
}

struct ttd_allocator chaos_allocator(struct chaos_memory *memory)
{
    return (struct ttd_allocator){.context = memory, .resize = resize, .release = release};
}

static int read_at(void *context, uint64_t offset, void *data, size_t size, size_t *got)
{
    struct chaos_input *input = context;
    if (fails(&input->counter))
        return EIO;
    *got = 0;
    if (offset >= input->size)
        return 0;
    size_t left = input->size - (size_t)offset;
    *got = size < left ? size : left;
    if (input->at_once && *got > input->at_once)
        *got = input->at_once;
    memcpy(data, input->data + offset, *got);
    return 0;
}

static int get_size(void *context, uint64_t *size)
{
    struct chaos_input *input = context;
    if (fails(&input->counter))
        return EIO;
    *size = input->size;
    return 0;
}

static void close_input(void *context)
{
    struct chaos_input *input = context;
    input->closed++;
}

struct ttd_input chaos_input_table(struct chaos_input *input)
{
    return (struct ttd_input){input, read_at, get_size, close_input};
}

static int write_all(void *context, const void *data, size_t size)
{
    struct chaos_output *output = context;
    if (output->counter.calls > output->counter.fail_at)
        output->calls_after++;
    if (fails(&output->counter))
        return ENOSPC;
    if (size > output->capacity - output->size) {
        output->capacity = (output->size + size) * 2;
        output->data = realloc(output->data, output->capacity);
        if (!output->data)
            abort();
    }
    memcpy(output->data + output->size, data, size);
    output->size += size;
    return 0;
}

static int close_output(void *context)
{
    struct chaos_output *output = context;
    output->closed++;
    return fails(&output->counter) ? ENOSPC : 0;
}

struct ttd_output chaos_output_table(struct chaos_output *output)
{
    return (struct ttd_output){output, write_all, close_output};
}
