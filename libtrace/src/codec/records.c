/* SPDX-License-Identifier: MIT */
#include "codec/records.h"

#include <string.h>

#include "layout.h"

void ttd_encode_string(struct ttd_buffer *out, struct ttd_string string)
{
    ttd_buffer_put_varint(out, string.size);
    ttd_buffer_put(out, string.data, string.size);
}

struct ttd_string ttd_decode_string(struct ttd_cursor *in)
{
    size_t size = (size_t)ttd_cursor_varint_max(in, TTD_STRING_MAX);
    /* Without bytes the size is 0 as well, so that nobody reads `size` bytes at NULL. */
    const uint8_t *bytes = ttd_cursor_bytes(in, size);
    struct ttd_string string = {(const char *)bytes, bytes ? size : 0};
    return string;
}

void ttd_encode_module(struct ttd_buffer *out, const struct ttd_module *module)
{
    ttd_buffer_put_varint(out, module->action);
    ttd_buffer_put_varint(out, module->id);
    ttd_encode_position(out, module->position);
    /* An unload refers to its load by the id, and repeats nothing. */
    if (module->action != TTD_MODULE_LOAD)
        return;
    ttd_buffer_put_varint(out, module->path);
    ttd_buffer_put_varint(out, module->bias);
    ttd_buffer_put_varint(out, module->begin);
    ttd_buffer_put_varint(out, module->end);
    ttd_buffer_put_varint(out, module->build_id_size);
    ttd_buffer_put(out, module->build_id, module->build_id_size);
}

void ttd_decode_module(struct ttd_cursor *in, struct ttd_module *module)
{
    memset(module, 0, sizeof *module);
    /* Compared before it becomes an enum, which would cut a large value to a valid one. */
    uint64_t action = ttd_cursor_varint(in);
    if (action != TTD_MODULE_LOAD && action != TTD_MODULE_UNLOAD)
        ttd_cursor_fail(in, "action of a module");
    module->action = (enum ttd_module_action)action;
    module->id = ttd_cursor_varint32(in);
    if (module->id == TTD_NONE)
        ttd_cursor_fail(in, "id of a module");
    module->position = ttd_decode_valid_position(in);
    if (action != TTD_MODULE_LOAD)
        return;
    module->path = ttd_cursor_varint32(in);
    module->bias = ttd_cursor_varint(in);
    module->begin = ttd_cursor_varint(in);
    module->end = ttd_cursor_varint(in);
    if (module->end < module->begin)
        ttd_cursor_fail(in, "range of a module");
    module->build_id_size = (uint32_t)ttd_cursor_varint_max(in, TTD_BUILD_ID_MAX);
    const uint8_t *bytes = ttd_cursor_bytes(in, module->build_id_size);
    if (bytes)
        memcpy(module->build_id, bytes, module->build_id_size);
}

void ttd_encode_thread(struct ttd_buffer *out, const struct ttd_thread *thread)
{
    ttd_buffer_put_varint(out, thread->action);
    ttd_buffer_put_varint(out, thread->id);
    ttd_encode_position(out, thread->position);
    if (thread->action == TTD_THREAD_BEGIN)
        ttd_buffer_put_varint(out, thread->os_id);
    ttd_buffer_put_varint(out, thread->name);
}

void ttd_decode_thread(struct ttd_cursor *in, struct ttd_thread *thread)
{
    memset(thread, 0, sizeof *thread);
    /* Compared before it becomes an enum, as of a module. */
    uint64_t action = ttd_cursor_varint(in);
    if (action != TTD_THREAD_BEGIN && action != TTD_THREAD_END)
        ttd_cursor_fail(in, "action of a thread");
    thread->action = (enum ttd_thread_action)action;
    thread->id = ttd_cursor_varint32(in);
    if (thread->id == TTD_NONE)
        ttd_cursor_fail(in, "id of a thread");
    thread->position = ttd_decode_valid_position(in);
    if (action == TTD_THREAD_BEGIN)
        thread->os_id = ttd_cursor_varint(in);
    thread->name = ttd_cursor_varint32(in);
}

void ttd_encode_heap(struct ttd_buffer *out, const struct ttd_heap *heap)
{
    ttd_buffer_put_varint(out, heap->handle);
    ttd_buffer_put_varint(out, heap->name);
}

void ttd_decode_heap(struct ttd_cursor *in, struct ttd_heap *heap)
{
    heap->handle = ttd_cursor_varint(in);
    heap->name = ttd_cursor_varint32(in);
}

void ttd_encode_heap_parent(struct ttd_buffer *out, const struct ttd_heap_parent *parent)
{
    ttd_buffer_put_varint(out, parent->heap);
    ttd_buffer_put_varint(out, parent->parent);
}

const char *ttd_check_heap_parent(const struct ttd_heap_parent *parent)
{
    /* A chain of parents ends, because ids fall along it. */
    return parent->parent == TTD_NONE || parent->parent >= parent->heap ? "parent of a heap" : NULL;
}

void ttd_decode_heap_parent(struct ttd_cursor *in, struct ttd_heap_parent *parent)
{
    parent->heap = ttd_cursor_varint32(in);
    parent->parent = ttd_cursor_varint32(in);
    if (ttd_check_heap_parent(parent))
        ttd_cursor_fail(in, ttd_check_heap_parent(parent));
}

void ttd_encode_symbol(struct ttd_buffer *out, const struct ttd_symbol *symbol, uint64_t *offset)
{
    ttd_buffer_put_varint(out, symbol->module);
    /* Symbols mostly come in order of their offsets: the difference takes fewer bytes. */
    ttd_buffer_put_varint(out, ttd_zigzag(symbol->offset - *offset));
    *offset = symbol->offset;
    ttd_buffer_put_varint(out, symbol->frame_count);
    for (uint32_t i = 0; i < symbol->frame_count; i++) {
        ttd_buffer_put_varint(out, symbol->frames[i].function);
        ttd_buffer_put_varint(out, symbol->frames[i].file);
        ttd_buffer_put_varint(out, symbol->frames[i].line);
    }
}

void ttd_decode_symbol(struct ttd_cursor *in, struct ttd_symbol *symbol, uint64_t *offset)
{
    memset(symbol, 0, sizeof *symbol);
    symbol->module = ttd_cursor_varint32(in);
    *offset += ttd_unzigzag(ttd_cursor_varint(in));
    symbol->offset = *offset;
    symbol->frame_count = (uint32_t)ttd_cursor_varint_max(in, TTD_SYMBOL_FRAME_MAX);
}

void ttd_decode_symbol_frame(struct ttd_cursor *in, struct ttd_symbol_frame *frame)
{
    frame->function = ttd_cursor_varint32(in);
    frame->file = ttd_cursor_varint32(in);
    frame->line = ttd_cursor_varint32(in);
}

void ttd_encode_user_event(struct ttd_buffer *out, const struct ttd_user_event *event)
{
    ttd_buffer_put(out, event->client, sizeof event->client);
    ttd_encode_position(out, event->position);
    ttd_buffer_put_varint(out, event->wall_time);
    ttd_buffer_put_varint(out, event->thread);
    ttd_buffer_put_varint(out, event->flags);
    ttd_encode_string(out, (struct ttd_string){(const char *)event->data, event->size});
}

void ttd_decode_user_event(struct ttd_cursor *in, struct ttd_user_event *event)
{
    memset(event, 0, sizeof *event);
    const uint8_t *client = ttd_cursor_bytes(in, sizeof event->client);
    if (client)
        memcpy(event->client, client, sizeof event->client);
    event->position = ttd_decode_valid_position(in);
    event->wall_time = ttd_cursor_varint(in);
    event->thread = ttd_cursor_varint32(in);
    event->flags = ttd_cursor_varint32(in);
    /* Reserved flags are refused, so that a later version may give them a meaning. */
    if (event->flags & ~TTD_USER_EVENT_KEYFRAME)
        ttd_cursor_fail(in, "unknown flags of a user event");
    struct ttd_string data = ttd_decode_string(in);
    event->data = (const uint8_t *)data.data;
    event->size = data.size;
}

void ttd_encode_loss(struct ttd_buffer *out, const struct ttd_loss *loss)
{
    ttd_buffer_put_varint(out, loss->reason);
    ttd_buffer_put_varint(out, loss->thread);
    ttd_buffer_put_varint(out, loss->count + 1); /* TTD_UNKNOWN becomes 0 */
    ttd_encode_position(out, loss->last_good);
    ttd_encode_position(out, loss->first_good);
}

void ttd_decode_loss(struct ttd_cursor *in, struct ttd_loss *loss)
{
    loss->reason = (enum ttd_loss_reason)ttd_cursor_varint_max(in, INT32_MAX);
    loss->thread = ttd_cursor_varint32(in);
    /* 0 becomes TTD_UNKNOWN, which is the largest number. */
    loss->count = ttd_cursor_varint(in) - 1;
    loss->last_good = ttd_decode_valid_position(in);
    loss->first_good = ttd_decode_position(in);
    ttd_cursor_check(in, ttd_check_loss(loss));
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

void ttd_encode_metadata(struct ttd_buffer *out, const struct ttd_metadata *metadata)
{
    ttd_encode_string(out, metadata->key);
    ttd_encode_string(out, metadata->value);
}

void ttd_decode_metadata(struct ttd_cursor *in, struct ttd_metadata *metadata)
{
    metadata->key = ttd_decode_string(in);
    metadata->value = ttd_decode_string(in);
}
