/* SPDX-License-Identifier: MIT */
#include <ttdtrace/advanced.h>

#include "base/memory.h"
#include "base/fail.h"
#include "codec/chunk/header.h"
#include "read/read_internal.h"

/** A payload that was compressed further than most is not kept: it is decoded as a whole. */
#define KEPT_RATIO 8

struct ttd_stacks {
    struct ttd_allocator allocator;
    struct ttd_chunk chunk;
    /** Empty once all is decoded, or no more can be. */
    struct ttd_buffer stored;
    /** The same, decompressed, from when a stack is asked for. */
    struct ttd_buffer raw;
    struct ttd_stacks_decoder decoder;
    /** Those decoded so far. */
    struct ttd_stack_link *links;
    size_t count;
    size_t capacity;
    /** The first damage that was met; its `what` is NULL before. */
    struct ttd_error damage;
};

/** Whether the payload, as long as it is kept, takes little more memory than it did in the file. */
static bool stacks_is_kept(const struct ttd_chunk *chunk)
{
    return chunk->raw_size / KEPT_RATIO <= chunk->stored_size;
}

enum ttd_status ttd_stacks_open(const struct ttd_batch *batch,
                                const struct ttd_allocator *allocator, struct ttd_stacks **stacks)
{
    if (!batch || !batch->stored || !ttd_payload_is_known(batch->chunk.codec) || !stacks ||
        !ttd_allocator_is_valid(allocator))
        return TTD_ERROR_ARGUMENT;
    struct ttd_allocator table = ttd_allocator_or_default(allocator);
    struct ttd_stacks *kept = ttd_allocate_zeroed(&table, sizeof *kept);
    if (!kept)
        return TTD_ERROR_NO_MEMORY;
    kept->allocator = table;
    kept->chunk = batch->chunk;
    ttd_buffer_init(&kept->stored, &kept->allocator);
    ttd_buffer_init(&kept->raw, &kept->allocator);
    ttd_stacks_decoder_init(&kept->decoder, &kept->allocator);
    /* A payload that the reader has decompressed is kept so: doing it again costs as much. */
    if (batch->decompressed && stacks_is_kept(&batch->chunk))
        ttd_buffer_put(&kept->raw, batch->decompressed, batch->chunk.raw_size);
    else
        ttd_buffer_put(&kept->stored, batch->stored, batch->chunk.stored_size);
    if (kept->stored.failed || kept->raw.failed) {
        ttd_stacks_close(kept);
        return TTD_ERROR_NO_MEMORY;
    }
    *stacks = kept;
    return TTD_OK;
}

void ttd_stacks_close(struct ttd_stacks *stacks)
{
    if (!stacks)
        return;
    struct ttd_allocator allocator = stacks->allocator;
    ttd_buffer_free(&stacks->stored);
    ttd_buffer_free(&stacks->raw);
    ttd_stacks_decoder_free(&stacks->decoder);
    ttd_release(&allocator, stacks->links);
    ttd_release(&allocator, stacks);
}

static enum ttd_status stacks_no_memory(const struct ttd_stacks *stacks, struct ttd_error *error)
{
    return ttd_fail(error, TTD_ERROR_NO_MEMORY, "memory", stacks->chunk.offset,
                    stacks->chunk.number);
}

/** Drops the undecoded bytes: everything needed later has been decoded. */
static void stacks_drop_payload(struct ttd_stacks *stacks)
{
    ttd_buffer_free(&stacks->stored);
    ttd_buffer_free(&stacks->raw);
}

/** Notes damage; it stays. */
static enum ttd_status stacks_damaged(struct ttd_stacks *stacks, const char *what,
                                      struct ttd_error *error)
{
    ttd_fail(&stacks->damage, TTD_ERROR_CORRUPT, what, stacks->chunk.offset, stacks->chunk.number);
    if (error)
        *error = stacks->damage;
    stacks_drop_payload(stacks);
    return TTD_ERROR_CORRUPT;
}

/** Decompresses the payload. */
static enum ttd_status stacks_decompress(struct ttd_stacks *stacks, struct ttd_error *error)
{
    const struct ttd_chunk *chunk = &stacks->chunk;
    stacks->raw.failed = false;
    if (!ttd_buffer_reserve(&stacks->raw, chunk->raw_size + 1u))
        return stacks_no_memory(stacks, error);
    const char *what = NULL;
    if (ttd_payload_decompress(chunk->codec, stacks->stored.data, chunk->stored_size,
                               stacks->raw.data, chunk->raw_size, &what) != TTD_OK)
        return stacks_damaged(stacks, what, error);
    stacks->raw.size = chunk->raw_size;
    ttd_buffer_free(&stacks->stored);
    return TTD_OK;
}

/** Gets ready to decode the first ones. */
static enum ttd_status stacks_begin(struct ttd_stacks *stacks, struct ttd_error *error)
{
    const struct ttd_chunk *chunk = &stacks->chunk;
    enum ttd_status status = stacks->raw.size == 0 ? stacks_decompress(stacks, error) : TTD_OK;
    if (status != TTD_OK)
        return status;
    struct ttd_cursor payload = ttd_cursor_of(stacks->raw.data, chunk->raw_size);
    ttd_stacks_decoder_begin(&stacks->decoder, &payload, (ttd_id)chunk->first_record);
    return payload.error ? stacks_damaged(stacks, payload.error, error) : TTD_OK;
}

/** Decodes as many as a reader does at a time, or those that are left; all of them or none. */
static enum ttd_status stacks_decode_more(struct ttd_stacks *stacks, struct ttd_error *error)
{
    size_t remaining = stacks->chunk.record_count - stacks->count;
    size_t count = remaining < TTD_RECORD_BATCH ? remaining : TTD_RECORD_BATCH;
    void *links = stacks->links;
    if (ttd_grow_array(&stacks->allocator, &links, &stacks->capacity, stacks->chunk.record_count,
                       sizeof *stacks->links))
        return stacks_no_memory(stacks, error);
    stacks->links = links;
    const char *what = NULL;
    if (!ttd_stacks_decoder_next(&stacks->decoder, stacks->links + stacks->count, count, &what)) {
        /* The decoder has stopped anywhere: from the beginning, if it is asked again. */
        stacks->count = 0;
        return stacks_no_memory(stacks, error);
    }
    if (!what && count == remaining)
        what = ttd_stacks_decoder_finish(&stacks->decoder);
    if (what)
        return stacks_damaged(stacks, what, error);
    stacks->count += count;
    if (count == remaining)
        stacks_drop_payload(stacks);
    return TTD_OK;
}

static enum ttd_status stacks_decode_until(struct ttd_stacks *stacks, size_t count,
                                           struct ttd_error *error)
{
    if (stacks->damage.what) {
        if (error)
            *error = stacks->damage;
        return TTD_ERROR_CORRUPT;
    }
    if (!stacks_is_kept(&stacks->chunk))
        count = stacks->chunk.record_count;
    enum ttd_status status = stacks->count ? TTD_OK : stacks_begin(stacks, error);
    while (status == TTD_OK && stacks->count < count)
        status = stacks_decode_more(stacks, error);
    return status;
}

enum ttd_status ttd_stacks_get(struct ttd_stacks *stacks, ttd_id id, struct ttd_stack *stack,
                               struct ttd_error *error)
{
    uint64_t index = id - stacks->chunk.first_record;
    if (index >= stacks->chunk.record_count)
        return TTD_END;
    if (index >= stacks->count) {
        enum ttd_status status = stacks_decode_until(stacks, (size_t)index + 1, error);
        if (status != TTD_OK)
            return status;
    }
    *stack = ttd_stacks_decoder_stack(&stacks->decoder, id, stacks->links[index]);
    return TTD_OK;
}
