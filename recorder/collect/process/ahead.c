/* SPDX-License-Identifier: MIT */
#include "collect/process/ahead.h"

/* The next word of a thread's chain of chunks. Unlike a stream it frees no chunk that it leaves. */
struct stream_cursor {
    uint32_t index; /* of the chunk */
    const struct chunk *chunk;
    uint32_t word;
};

/* Returns the committed words of the chunk, as far as they can be believed. */
static uint32_t committed(const struct stream_cursor *cursor)
{
    uint32_t words = atomic_load_explicit(&cursor->chunk->committed, memory_order_acquire) / 8;
    return words <= channel_chunk_words(cursor->index) ? words : cursor->word;
}

/* Goes to a chunk. Returns false if there is none. */
static bool ahead_go_to(struct stream_cursor *cursor, struct host *host, uint32_t index)
{
    cursor->index = index;
    cursor->word = 0;
    cursor->chunk =
        index != CHANNEL_NONE && index <= CHANNEL_CHUNKS ? channel_chunk(&host->view, index) : NULL;
    return cursor->chunk != NULL;
}

/* Adds the block that a record acquires. `size` is that of the reallocation under way. */
static void add_block(struct heap_pages *pages, const volatile uint64_t *words, uint64_t *size)
{
    uint64_t head = words[0], operands[CALL_OPERANDS] = {[OPERAND_ONE] = 1};
    const struct call_shape *shape = &call_shapes[record_operation(head)];
    unsigned skip = 1u + record_changes(head);
    struct ttd_event event;
    if (shape->kind == CALL_UNKNOWN || skip + shape->operands > record_words(head))
        return;
    for (unsigned i = 0; i < shape->operands; i++)
        operands[i] = words[skip + i];
    if (shape->kind == CALL_END) {
        if (operands[0] != 0)
            heap_pages_add(pages, operands[0], *size);
        return;
    }
    translate_call(shape, operands, &event);
    *size = event.size;
    if (shape->kind == CALL_ACQUISITION && event.address != 0)
        heap_pages_add(pages, event.address, event.size);
}

static void look_ahead(const struct thread_stream *thread, struct heap_pages *pages,
                       struct host *host)
{
    struct stream_cursor cursor = {thread->stream.index, thread->stream.chunk, thread->stream.word};
    uint64_t size = thread->has_held ? thread->held.size : 0;
    if (thread->stream.is_broken)
        return;
    if (cursor.chunk == NULL &&
        !ahead_go_to(&cursor, host,
                     atomic_load_explicit(&thread->shared->first, memory_order_acquire)))
        return;
    /* The limit ends the loop if a program has linked the chain into a ring. */
    for (int hop = 0; hop < CHANNEL_BACKLOG + 2; hop++) {
        uint32_t next = atomic_load_explicit(&cursor.chunk->next, memory_order_acquire);
        uint32_t end = committed(&cursor);
        while (cursor.word < end) {
            const volatile uint64_t *words = cursor.chunk->data + cursor.word;
            uint32_t count = record_words(words[0]);
            if (count == 0 || count > end - cursor.word)
                return;
            add_block(pages, words, &size);
            cursor.word += count;
        }
        if (!ahead_go_to(&cursor, host, next))
            return;
    }
}

void ahead_add_blocks(const struct process *process, struct host *host)
{
    for (size_t i = 0; i < process->thread_count; i++)
        look_ahead(process->threads[i], &process->trace->pages, host);
}
