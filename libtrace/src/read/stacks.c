/* SPDX-License-Identifier: MIT */
#include <ttdtrace/stacks.h>

#include "base/memory.h"
#include "base/status.h"
#include "codec/payload.h"
#include "read/internal.h"

/** A payload that was compressed further than most is not kept: it is decoded as a whole. */
#define KEPT_RATIO 8

struct ttd_stacks {
    ttd_allocator allocator;
    ttd_chunk chunk;
    /** Empty once all is decoded, or no more can be. */
    ttd_buffer stored;
    /** The same, decompressed, from when a stack is asked for. */
    ttd_buffer raw;
    ttd_stacks_decoder decoder;
    /** Those decoded so far. */
    ttd_stack_link *links;
    size_t count;
    size_t capacity;
    /** The first damage that was met; its `what` is NULL before. */
    ttd_error damage;
};

ttd_status ttd_stacks_open(const ttd_batch *batch, const ttd_allocator *allocator,
                           ttd_stacks **stacks)
{
    if (!batch || !batch->stored || !ttd_payload_is_known(batch->chunk.codec) || !stacks ||
        !ttd_allocator_is_valid(allocator))
        return TTD_ERROR_ARGUMENT;
    ttd_allocator table = ttd_allocator_or_default(allocator);
    ttd_stacks *kept = ttd_allocate_zeroed(&table, sizeof *kept);
    if (!kept)
        return TTD_ERROR_NO_MEMORY;
    kept->allocator = table;
    kept->chunk = batch->chunk;
    ttd_buffer_init(&kept->stored, &kept->allocator);
    ttd_buffer_init(&kept->raw, &kept->allocator);
    ttd_stacks_decoder_init(&kept->decoder, &kept->allocator);
    ttd_buffer_put(&kept->stored, batch->stored, batch->chunk.stored_size);
    if (kept->stored.failed) {
        ttd_stacks_close(kept);
        return TTD_ERROR_NO_MEMORY;
    }
    *stacks = kept;
    return TTD_OK;
}

void ttd_stacks_close(ttd_stacks *stacks)
{
    if (!stacks)
        return;
    ttd_allocator allocator = stacks->allocator;
    ttd_buffer_free(&stacks->stored);
    ttd_buffer_free(&stacks->raw);
    ttd_stacks_decoder_free(&stacks->decoder);
    ttd_release(&allocator, stacks->links);
    ttd_release(&allocator, stacks);
}

static ttd_status no_memory(const ttd_stacks *stacks, ttd_error *error)
{
    return ttd_fail(error, TTD_ERROR_NO_MEMORY, "memory", stacks->chunk.offset,
                    stacks->chunk.number);
}

/** What is decoded is all that is needed from now on. */
static void drop_payload(ttd_stacks *stacks)
{
    ttd_buffer_free(&stacks->stored);
    ttd_buffer_free(&stacks->raw);
}

/** Notes damage, which stays. */
static ttd_status damaged(ttd_stacks *stacks, const char *what, ttd_error *error)
{
    ttd_fail(&stacks->damage, TTD_ERROR_CORRUPT, what, stacks->chunk.offset, stacks->chunk.number);
    if (error)
        *error = stacks->damage;
    drop_payload(stacks);
    return TTD_ERROR_CORRUPT;
}

/** Gets ready to decode the first ones. */
static ttd_status begin(ttd_stacks *stacks, ttd_error *error)
{
    const ttd_chunk *chunk = &stacks->chunk;
    ttd_buffer_clear(&stacks->raw);
    stacks->raw.failed = false;
    if (!ttd_buffer_reserve(&stacks->raw, chunk->raw_size + 1u))
        return no_memory(stacks, error);
    const char *what = NULL;
    if (ttd_payload_decompress(chunk->codec, stacks->stored.data, chunk->stored_size,
                               stacks->raw.data, chunk->raw_size, &what) != TTD_OK)
        return damaged(stacks, what, error);
    ttd_cursor payload = ttd_cursor_of(stacks->raw.data, chunk->raw_size);
    ttd_stacks_decoder_begin(&stacks->decoder, &payload, (ttd_id)chunk->first_item);
    return payload.error ? damaged(stacks, payload.error, error) : TTD_OK;
}

/** Decodes as many as a reader does at a time, or those that are left; all of them or none. */
static ttd_status decode_more(ttd_stacks *stacks, ttd_error *error)
{
    size_t left = stacks->chunk.item_count - stacks->count;
    size_t count = left < TTD_ROW_BATCH ? left : TTD_ROW_BATCH;
    void *links = stacks->links;
    if (ttd_grow_array(&stacks->allocator, &links, &stacks->capacity, stacks->chunk.item_count,
                       sizeof *stacks->links))
        return no_memory(stacks, error);
    stacks->links = links;
    const char *what = NULL;
    if (!ttd_stacks_decoder_next(&stacks->decoder, stacks->links + stacks->count, count, &what)) {
        /* The decoder has stopped anywhere: from the beginning, if it is asked again. */
        stacks->count = 0;
        return no_memory(stacks, error);
    }
    if (!what && count == left)
        what = ttd_stacks_decoder_finish(&stacks->decoder);
    if (what)
        return damaged(stacks, what, error);
    stacks->count += count;
    if (count == left)
        drop_payload(stacks);
    return TTD_OK;
}

/** Whether the payload, as long as it is kept, takes little more memory than it did in the file. */
static bool is_kept(const ttd_chunk *chunk)
{
    return chunk->raw_size / KEPT_RATIO <= chunk->stored_size;
}

static ttd_status decode_until(ttd_stacks *stacks, size_t count, ttd_error *error)
{
    if (stacks->damage.what) {
        if (error)
            *error = stacks->damage;
        return TTD_ERROR_CORRUPT;
    }
    if (!is_kept(&stacks->chunk))
        count = stacks->chunk.item_count;
    ttd_status status = stacks->count ? TTD_OK : begin(stacks, error);
    while (status == TTD_OK && stacks->count < count)
        status = decode_more(stacks, error);
    return status;
}

ttd_status ttd_stacks_get(ttd_stacks *stacks, ttd_id id, ttd_stack *stack, ttd_error *error)
{
    uint64_t index = id - stacks->chunk.first_item;
    if (index >= stacks->chunk.item_count)
        return TTD_END;
    if (index >= stacks->count) {
        ttd_status status = decode_until(stacks, (size_t)index + 1, error);
        if (status != TTD_OK)
            return status;
    }
    *stack = ttd_stacks_decoder_stack(&stacks->decoder, id, stacks->links[index]);
    return TTD_OK;
}
