/* SPDX-License-Identifier: MIT */
/* Stacks, and the names of their frames. */
#include "write/names.h"

#include <string.h>

#include "base/memory.h"
#include "layout.h"

/** Finds a stack or a frame; sets the key to add it under if it is not there. */
static const struct known_stack *names_find_stack(const struct names_table *table,
                                                  const struct known_stack *frame, uint64_t *key)
{
    uint64_t ids = (uint64_t)frame->module << 32 | frame->parent;
    uint32_t index;
    *key = ttd_map_hash(frame->offset) ^ ttd_map_hash(ttd_map_hash(ids));
    for (; ttd_map_find(&table->map, *key, &index); (*key)++) {
        const struct known_stack *candidate = (const struct known_stack *)table->records + index;
        if (candidate->offset == frame->offset && candidate->module == frame->module &&
            candidate->parent == frame->parent)
            return candidate;
    }
    return NULL;
}

static bool names_add_stack(struct names_table *table, uint64_t key,
                            const struct known_stack *stack)
{
    if (!ttd_map_add(&table->map, key, (uint32_t)table->count))
        return false;
    ((struct known_stack *)table->records)[table->count++] = *stack;
    return true;
}

enum ttd_status ttd_names_symbol(struct ttd_names *names, ttd_id module, uint64_t offset,
                                 const struct ttd_name *frames, size_t count)
{
    if (count > TTD_SYMBOL_FRAME_MAX)
        return TTD_ERROR_LIMIT;
    if (!frames && count != 0)
        return TTD_ERROR_ARGUMENT;
    void *array = names->symbol_frames;
    if (ttd_grow_array(&names->allocator, &array, &names->symbol_capacity, count,
                       sizeof *names->symbol_frames))
        return TTD_ERROR_NO_MEMORY;
    names->symbol_frames = array;
    for (size_t i = 0; i < count; i++) {
        struct ttd_symbol_frame *named = &names->symbol_frames[i];
        named->line = frames[i].line;
        enum ttd_status status = ttd_names_string(names, frames[i].function, &named->function);
        if (status == TTD_OK)
            status = ttd_names_string(names, frames[i].file, &named->file);
        if (status != TTD_OK)
            return status;
    }
    struct ttd_symbol symbol = {.module = module,
                                .offset = offset,
                                .frames = names->symbol_frames,
                                .frame_count = (uint32_t)count};
    return ttd_writer_symbol(names->writer, &symbol);
}

/** Asks for the names of a frame and writes them, if it is new. */
static enum ttd_status names_name_frame(struct ttd_names *names, const struct known_stack *frame,
                                        uint64_t address)
{
    uint64_t key;
    if (!names->lookup || names_find_stack(&names->frames, frame, &key))
        return TTD_OK;
    if (!ttd_names_reserve(names, &names->frames, sizeof *frame))
        return TTD_ERROR_NO_MEMORY;
    memset(names->looked_up, 0, sizeof names->looked_up);
    size_t count = names->lookup(names->context, address, names->looked_up);
    if (count > TTD_NAMES_MAX)
        return TTD_ERROR_ARGUMENT;
    if (count != 0) {
        enum ttd_status status =
            ttd_names_symbol(names, frame->module, frame->offset, names->looked_up, count);
        if (status != TTD_OK)
            return status;
    }
    return names_add_stack(&names->frames, key, frame) ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

/** Finds or defines the stack of one more frame. */
static enum ttd_status names_push_frame(struct ttd_names *names, ttd_id parent, uint64_t address,
                                        ttd_id *stack)
{
    /* The call is before the return address, which may be another function's or module's. */
    const struct known_module *module = ttd_names_module_at(names, address - 1);
    struct known_stack key_frame = {.offset = module ? address - module->bias : address,
                                    .module = module ? module->id : TTD_NONE,
                                    .parent = parent};
    uint64_t key;
    const struct known_stack *existing = names_find_stack(&names->stacks, &key_frame, &key);
    if (existing) {
        *stack = existing->id;
        return TTD_OK;
    }
    struct known_stack frame = {.offset = key_frame.offset, .module = key_frame.module};
    enum ttd_status status = names_name_frame(names, &frame, address - 1);
    if (status != TTD_OK)
        return status;
    if (!ttd_names_reserve(names, &names->stacks, sizeof key_frame))
        return TTD_ERROR_NO_MEMORY;
    status =
        ttd_writer_stack(names->writer, parent, key_frame.module, key_frame.offset, &key_frame.id);
    if (status != TTD_OK)
        return status;
    *stack = key_frame.id;
    return names_add_stack(&names->stacks, key, &key_frame) ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

enum ttd_status ttd_names_stack(struct ttd_names *names, const uint64_t *addresses, size_t count,
                                ttd_id *stack)
{
    if (!stack || (!addresses && count != 0))
        return TTD_ERROR_ARGUMENT;
    if (count > TTD_STACK_DEPTH_MAX)
        return TTD_ERROR_LIMIT;
    ttd_id id = TTD_NONE;
    for (size_t i = count; i-- > 0;) {
        enum ttd_status status = names_push_frame(names, id, addresses[i], &id);
        if (status != TTD_OK)
            return status;
    }
    *stack = id;
    return TTD_OK;
}
