/* SPDX-License-Identifier: MIT */
#include "codec/records.h"

#include <string.h>

#include "layout.h"

void ttd_encode_string(struct ttd_buffer *buffer, struct ttd_string string)
{
    ttd_buffer_put_varint(buffer, string.size);
    ttd_buffer_put(buffer, string.data, string.size);
}

struct ttd_string ttd_decode_string(struct ttd_cursor *cursor)
{
    size_t size = (size_t)ttd_cursor_varint_max(cursor, TTD_STRING_MAX);
    /* Without bytes the size is 0 as well, so that nobody reads `size` bytes at NULL. */
    const uint8_t *bytes = ttd_cursor_bytes(cursor, size);
    struct ttd_string string = {(const char *)bytes, bytes ? size : 0};
    return string;
}

void ttd_encode_module(struct ttd_buffer *buffer, const struct ttd_module *module)
{
    ttd_buffer_put_varint(buffer, module->action);
    ttd_buffer_put_varint(buffer, module->id);
    ttd_encode_position(buffer, module->position);
    /* An unload refers to its load by the id, and repeats nothing. */
    if (module->action != TTD_MODULE_LOAD)
        return;
    ttd_buffer_put_varint(buffer, module->path);
    ttd_buffer_put_varint(buffer, module->bias);
    ttd_buffer_put_varint(buffer, module->begin);
    ttd_buffer_put_varint(buffer, module->end);
    ttd_buffer_put_varint(buffer, module->build_id_size);
    ttd_buffer_put(buffer, module->build_id, module->build_id_size);
}

void ttd_decode_module(struct ttd_cursor *cursor, struct ttd_module *module)
{
    memset(module, 0, sizeof *module);
    /* Compared before it becomes an enum: that would cut a large value to a valid one. */
    uint64_t action = ttd_cursor_varint(cursor);
    if (action != TTD_MODULE_LOAD && action != TTD_MODULE_UNLOAD)
        ttd_cursor_fail(cursor, "action of a module");
    module->action = (enum ttd_module_action)action;
    module->id = ttd_cursor_varint32(cursor);
    if (module->id == TTD_NONE)
        ttd_cursor_fail(cursor, "id of a module");
    module->position = ttd_decode_valid_position(cursor);
    if (action != TTD_MODULE_LOAD)
        return;
    module->path = ttd_cursor_varint32(cursor);
    module->bias = ttd_cursor_varint(cursor);
    module->begin = ttd_cursor_varint(cursor);
    module->end = ttd_cursor_varint(cursor);
    if (module->end < module->begin)
        ttd_cursor_fail(cursor, "range of a module");
    module->build_id_size = (uint32_t)ttd_cursor_varint_max(cursor, TTD_BUILD_ID_MAX);
    const uint8_t *bytes = ttd_cursor_bytes(cursor, module->build_id_size);
    if (bytes)
        memcpy(module->build_id, bytes, module->build_id_size);
}

void ttd_encode_thread(struct ttd_buffer *buffer, const struct ttd_thread *thread)
{
    ttd_buffer_put_varint(buffer, thread->action);
    ttd_buffer_put_varint(buffer, thread->id);
    ttd_encode_position(buffer, thread->position);
    if (thread->action == TTD_THREAD_BEGIN)
        ttd_buffer_put_varint(buffer, thread->os_id);
    ttd_buffer_put_varint(buffer, thread->name);
}

void ttd_decode_thread(struct ttd_cursor *cursor, struct ttd_thread *thread)
{
    memset(thread, 0, sizeof *thread);
    /* Compared before it becomes an enum, as of a module. */
    uint64_t action = ttd_cursor_varint(cursor);
    if (action != TTD_THREAD_BEGIN && action != TTD_THREAD_END)
        ttd_cursor_fail(cursor, "action of a thread");
    thread->action = (enum ttd_thread_action)action;
    thread->id = ttd_cursor_varint32(cursor);
    if (thread->id == TTD_NONE)
        ttd_cursor_fail(cursor, "id of a thread");
    thread->position = ttd_decode_valid_position(cursor);
    if (action == TTD_THREAD_BEGIN)
        thread->os_id = ttd_cursor_varint(cursor);
    thread->name = ttd_cursor_varint32(cursor);
}

void ttd_encode_heap(struct ttd_buffer *buffer, const struct ttd_heap *heap)
{
    ttd_buffer_put_varint(buffer, heap->handle);
    ttd_buffer_put_varint(buffer, heap->name);
}

void ttd_decode_heap(struct ttd_cursor *cursor, struct ttd_heap *heap)
{
    heap->handle = ttd_cursor_varint(cursor);
    heap->name = ttd_cursor_varint32(cursor);
}

void ttd_encode_heap_parent(struct ttd_buffer *buffer, const struct ttd_heap_parent *parent)
{
    ttd_buffer_put_varint(buffer, parent->heap);
    ttd_buffer_put_varint(buffer, parent->parent);
}

const char *ttd_check_heap_parent(const struct ttd_heap_parent *parent)
{
    /* A chain of parents ends, because ids fall along it. */
    return parent->parent == TTD_NONE || parent->parent >= parent->heap ? "parent of a heap" : NULL;
}

void ttd_decode_heap_parent(struct ttd_cursor *cursor, struct ttd_heap_parent *parent)
{
    parent->heap = ttd_cursor_varint32(cursor);
    parent->parent = ttd_cursor_varint32(cursor);
    if (ttd_check_heap_parent(parent))
        ttd_cursor_fail(cursor, ttd_check_heap_parent(parent));
}

void ttd_encode_symbol(struct ttd_buffer *buffer, const struct ttd_symbol *symbol, uint64_t *offset)
{
    ttd_buffer_put_varint(buffer, symbol->module);
    /* Symbols mostly come in order of their offsets: the difference takes fewer bytes. */
    ttd_buffer_put_varint(buffer, ttd_zigzag(symbol->offset - *offset));
    *offset = symbol->offset;
    ttd_buffer_put_varint(buffer, symbol->frame_count);
    for (uint32_t i = 0; i < symbol->frame_count; i++) {
        ttd_buffer_put_varint(buffer, symbol->frames[i].function);
        ttd_buffer_put_varint(buffer, symbol->frames[i].file);
        ttd_buffer_put_varint(buffer, symbol->frames[i].line);
    }
}

void ttd_decode_symbol(struct ttd_cursor *cursor, struct ttd_symbol *symbol, uint64_t *offset)
{
    memset(symbol, 0, sizeof *symbol);
    symbol->module = ttd_cursor_varint32(cursor);
    *offset += ttd_unzigzag(ttd_cursor_varint(cursor));
    symbol->offset = *offset;
    symbol->frame_count = (uint32_t)ttd_cursor_varint_max(cursor, TTD_SYMBOL_FRAME_MAX);
}

void ttd_decode_symbol_frame(struct ttd_cursor *cursor, struct ttd_symbol_frame *frame)
{
    frame->function = ttd_cursor_varint32(cursor);
    frame->file = ttd_cursor_varint32(cursor);
    frame->line = ttd_cursor_varint32(cursor);
}

void ttd_encode_user_event(struct ttd_buffer *buffer, const struct ttd_user_event *event)
{
    ttd_buffer_put(buffer, event->client, sizeof event->client);
    ttd_encode_position(buffer, event->position);
    ttd_buffer_put_varint(buffer, event->wall_time);
    ttd_buffer_put_varint(buffer, event->thread);
    ttd_buffer_put_varint(buffer, event->flags);
    ttd_encode_string(buffer, (struct ttd_string){(const char *)event->data, event->size});
}

void ttd_decode_user_event(struct ttd_cursor *cursor, struct ttd_user_event *event)
{
    memset(event, 0, sizeof *event);
    const uint8_t *client = ttd_cursor_bytes(cursor, sizeof event->client);
    if (client)
        memcpy(event->client, client, sizeof event->client);
    event->position = ttd_decode_valid_position(cursor);
    event->wall_time = ttd_cursor_varint(cursor);
    event->thread = ttd_cursor_varint32(cursor);
    event->flags = ttd_cursor_varint32(cursor);
    /* Reserved flags are refused, so that a later version may give them a meaning. */
    if (event->flags & ~TTD_USER_EVENT_KEYFRAME)
        ttd_cursor_fail(cursor, "unknown flags of a user event");
    struct ttd_string data = ttd_decode_string(cursor);
    event->data = (const uint8_t *)data.data;
    event->size = data.size;
}

void ttd_encode_loss(struct ttd_buffer *buffer, const struct ttd_loss *loss)
{
    ttd_buffer_put_varint(buffer, loss->reason);
    ttd_buffer_put_varint(buffer, loss->thread);
    ttd_buffer_put_varint(buffer, loss->count + 1); /* TTD_UNKNOWN becomes 0 */
    ttd_encode_position(buffer, loss->last_good);
    ttd_encode_position(buffer, loss->first_good);
}

void ttd_decode_loss(struct ttd_cursor *cursor, struct ttd_loss *loss)
{
    loss->reason = (enum ttd_loss_reason)ttd_cursor_varint_max(cursor, INT32_MAX);
    loss->thread = ttd_cursor_varint32(cursor);
    /* 0 becomes TTD_UNKNOWN, the largest number. */
    loss->count = ttd_cursor_varint(cursor) - 1;
    loss->last_good = ttd_decode_valid_position(cursor);
    loss->first_good = ttd_decode_position(cursor);
    ttd_cursor_check(cursor, ttd_check_loss(loss));
}

const char *ttd_check_loss(const struct ttd_loss *loss)
{
    if (!ttd_position_is_valid(loss->last_good) || !ttd_position_is_canonical(loss->first_good))
        return "invalid position";
    /* The invalid position, where nothing is good any more, compares as the last of all. */
    if (ttd_position_compare(loss->last_good, loss->first_good) > 0)
        return "range of a loss";
    return NULL;
}

void ttd_encode_metadata(struct ttd_buffer *buffer, const struct ttd_metadata *metadata)
{
    ttd_encode_string(buffer, metadata->key);
    ttd_encode_string(buffer, metadata->value);
}

void ttd_decode_metadata(struct ttd_cursor *cursor, struct ttd_metadata *metadata)
{
    metadata->key = ttd_decode_string(cursor);
    metadata->value = ttd_decode_string(cursor);
}
