/* SPDX-License-Identifier: MIT */
#include "collect/snapshot_calls.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "collect/process/processes.h"

/* Looks ahead at records that are published but cannot be written yet, because their order is not
 * known. */

/* The next word of a thread's chain of chunks. Unlike a stream it frees no chunk that it leaves. */
struct stream_cursor {
    uint32_t index; /* of the chunk */
    const struct chunk *chunk;
    uint32_t word;
};

/* Returns the committed words of the chunk, as far as they can be believed. */
static uint32_t snapshot_calls_committed(const struct stream_cursor *cursor)
{
    uint32_t words = atomic_load_explicit(&cursor->chunk->committed, memory_order_acquire) / 8;
    return words <= channel_chunk_words(cursor->index) ? words : cursor->word;
}

/* Goes to a chunk. Returns false if there is none. */
static bool snapshot_calls_ahead_go_to(struct stream_cursor *cursor, struct host *host,
                                       uint32_t index)
{
    cursor->index = index;
    cursor->word = 0;
    cursor->chunk =
        index != CHANNEL_NONE && index <= CHANNEL_CHUNKS ? channel_chunk(&host->view, index) : NULL;
    return cursor->chunk != NULL;
}

/* Adds the block that a record acquires. `size` is the size of the reallocation under way. */
static void snapshot_calls_add_block(struct heap_pages *pages, const volatile uint64_t *words,
                                     uint64_t *size)
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

static void snapshot_calls_look_ahead(const struct thread_stream *thread, struct heap_pages *pages,
                                      struct host *host)
{
    struct stream_cursor cursor = {thread->stream.index, thread->stream.chunk, thread->stream.word};
    uint64_t size = thread->has_held ? thread->held.size : 0;
    if (thread->stream.is_broken)
        return;
    if (!cursor.chunk &&
        !snapshot_calls_ahead_go_to(
            &cursor, host, atomic_load_explicit(&thread->shared->first, memory_order_acquire)))
        return;
    /* The limit ends the loop if a program has linked the chain into a ring. */
    for (int hop = 0; hop < CHANNEL_BACKLOG + 2; hop++) {
        uint32_t next = atomic_load_explicit(&cursor.chunk->next, memory_order_acquire);
        uint32_t end = snapshot_calls_committed(&cursor);
        while (cursor.word < end) {
            const volatile uint64_t *words = cursor.chunk->data + cursor.word;
            uint32_t count = record_words(words[0]);
            if (count == 0 || count > end - cursor.word)
                return;
            snapshot_calls_add_block(pages, words, &size);
            cursor.word += count;
        }
        if (!snapshot_calls_ahead_go_to(&cursor, host, next))
            return;
    }
}

/* Lists the modules that are loaded. Returns false if memory ran out. */
static bool snapshot_calls_taking_list_modules(struct snapshot_taking *taking,
                                               struct snapshot_subject *subject)
{
    const struct modules *modules = &taking->trace->modules;
    taking->modules = calloc(modules->count + 1, sizeof *taking->modules);
    if (!taking->modules)
        return false;
    for (size_t i = 0; i < modules->count; i++) {
        const struct module *module = &modules->items[i];
        if (module->is_loaded)
            taking->modules[subject->module_count++] =
                (struct snapshot_module){.id = (ttd_id)(i + 1),
                                         .path = module->path,
                                         .bias = module->bias,
                                         .begin = module->begin,
                                         .end = module->end,
                                         .device = module->file.device,
                                         .inode = module->file.inode,
                                         .changed = module->file.changed};
    }
    subject->modules = taking->modules;
    return true;
}

bool snapshot_settle(void *context, struct snapshot_subject *subject)
{
    struct snapshot_taking *taking = context;
    struct host *host = &taking->collector->host;
    struct stat channel;
    user_events_memory(taking->process, host);
    uint64_t sequence = atomic_fetch_add(&host->channel->sequence, 1) + 1;
    if (sequence > TTD_SEQUENCE_MAX || fstat(host->memfd, &channel) != 0)
        return false;
    taking->snapshot.position = (struct ttd_position){sequence, 0};
    collector_collect(taking->collector);
    /* Adds the blocks that these records acquire to the heap pages of the process's trace, so that
     * a snapshot finds references to them. */
    for (size_t i = 0; i < taking->process->thread_count; i++)
        snapshot_calls_look_ahead(taking->process->threads[i], &taking->process->trace->pages,
                                  host);
    uint32_t notes = atomic_load(&channel_process(&host->view, taking->process->slot)->notes);
    *subject = (struct snapshot_subject){.pages = &taking->trace->pages,
                                         .asks_usable_sizes = notes & NOTE_USABLE_SIZES,
                                         .channel_inode = channel.st_ino,
                                         .own_memory = taking->own_memory,
                                         .has_other_malloc =
                                             (notes & (NOTE_FOREIGN_MALLOC | NOTE_PATCHED)) != 0,
                                         .moves_break = (notes & NOTE_BREAK) != 0};
    return taking->trace->writer && snapshot_calls_taking_list_modules(taking, subject);
}

ttd_id snapshot_thread(const struct snapshot_taking *taking, uint32_t tid)
{
    return process_thread_id(taking->process, taking->snapshot.position, tid);
}

static ttd_id snapshot_calls_taking_find_thread(void *context, uint32_t tid)
{
    struct snapshot_taking *taking = context;
    reference_writer_lock(&taking->references);
    ttd_id id = snapshot_thread(taking, tid);
    reference_writer_unlock(&taking->references);
    return id;
}

static ttd_id snapshot_calls_write_text(void *context, const char *text)
{
    struct snapshot_taking *taking = context;
    reference_writer_lock(&taking->references);
    ttd_id id = trace_text(taking->trace, text);
    reference_writer_unlock(&taking->references);
    return id;
}

static bool snapshot_calls_write_regions(void *context, const struct ttd_regions *regions)
{
    struct snapshot_taking *taking = context;
    reference_writer_lock(&taking->references);
    bool is_written = trace_regions(taking->trace, regions);
    reference_writer_unlock(&taking->references);
    return is_written;
}

static bool snapshot_calls_write_references(void *context, const struct ttd_reference *references,
                                            size_t count)
{
    return reference_writer_add(&((struct snapshot_taking *)context)->references, references,
                                count);
}

static bool snapshot_calls_taking_write_classes(void *context, const struct ttd_classes *classes)
{
    struct snapshot_taking *taking = context;
    reference_writer_lock(&taking->references);
    bool is_written = trace_classes(taking->trace, classes);
    reference_writer_unlock(&taking->references);
    return is_written;
}

static bool snapshot_calls_write_headers(void *context, const struct ttd_block_headers *headers)
{
    struct snapshot_taking *taking = context;
    reference_writer_lock(&taking->references);
    bool is_written = trace_block_headers(taking->trace, headers);
    reference_writer_unlock(&taking->references);
    return is_written;
}

static void snapshot_calls_note_variable(void *context, const struct region *region,
                                         uint64_t offset)
{
    struct trace *trace = ((const struct snapshot_taking *)context)->trace;
    uint64_t begin = region->kind == TTD_REGION_TLS
                         ? TTD_THREAD_LOCAL
                         : region->begin - trace->modules.items[region->module - 1].bias;
    variables_add(&trace->variables, region->module, begin + offset);
}

static bool snapshot_calls_write_frames(void *context, uint32_t tid,
                                        const struct stack_frames *frames)
{
    struct snapshot_taking *taking = context;
    reference_writer_lock(&taking->references);
    bool is_written =
        trace_frames(taking->trace, taking->snapshot.number, snapshot_thread(taking, tid), frames);
    reference_writer_unlock(&taking->references);
    return is_written;
}

static void snapshot_calls_note_missing_frames(void *context, size_t threads)
{
    ((const struct snapshot_taking *)context)->collector->stacks_missing += threads;
}

static void snapshot_calls_taking_on_tick(void *context)
{
    host_tick(&((const struct snapshot_taking *)context)->collector->host);
}

static void snapshot_calls_taking_follow(void *context)
{
    struct snapshot_taking *taking = context;
    reference_writer_lock(&taking->references);
    collector_collect(taking->collector);
    reference_writer_unlock(&taking->references);
}

struct snapshot_calls snapshot_calls_of(struct snapshot_taking *taking)
{
    return (struct snapshot_calls){
        .settle = snapshot_settle,
        .thread = snapshot_calls_taking_find_thread,
        .text = snapshot_calls_write_text,
        .regions = snapshot_calls_write_regions,
        .references = snapshot_calls_write_references,
        .classes = snapshot_calls_taking_write_classes,
        .headers = snapshot_calls_write_headers,
        .frames = snapshot_calls_write_frames,
        .frames_missing = snapshot_calls_note_missing_frames,
        .variable = snapshot_calls_note_variable,
        .tick = snapshot_calls_taking_on_tick,
        .follow = snapshot_calls_taking_follow,
        .context = taking,
    };
}
