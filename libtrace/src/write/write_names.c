/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <string.h>
#include <ttdtrace/names.h>

#include "base/buffer.h"
#include "base/map.h"
#include "base/memory.h"
#include "codec/chunk/header.h"
#include "layout.h"

/** A string that was written; its text is in names->text. */
struct known_string {
    size_t offset;
    size_t size;
    ttd_id id;
};

/** A module that is loaded. */
struct known_module {
    uint64_t begin;
    uint64_t end;
    uint64_t bias;
    ttd_id id;
};

/** A stack that was written; and a frame; it has neither parent nor id. */
struct known_stack {
    uint64_t offset;
    ttd_id module;
    ttd_id parent;
    ttd_id id;
};

/** A table of records that are found by a hash; equal hashes have neighbouring keys. */
struct names_table {
    struct ttd_map map;
    void *records;
    size_t count;
    size_t capacity;
};

struct ttd_names {
    struct ttd_allocator allocator;
    struct ttd_writer *writer;
    ttd_names_lookup lookup;
    void *context;
    /** Loaded modules, by address. */
    struct known_module *modules;
    size_t module_count;
    size_t module_capacity;
    struct names_table strings;
    struct ttd_buffer text;
    struct names_table stacks;
    struct names_table frames;
    struct ttd_name looked_up[TTD_NAMES_MAX];
    /** The frames of the symbol that is being written: kept, because names come in thousands. */
    struct ttd_symbol_frame *symbol_frames;
    size_t symbol_capacity;
};

enum ttd_status ttd_names_open(struct ttd_writer *writer, ttd_names_lookup lookup, void *context,
                               const struct ttd_allocator *allocator, struct ttd_names **names)
{
    if (!writer || !names || !ttd_allocator_is_valid(allocator))
        return TTD_ERROR_ARGUMENT;
    struct ttd_allocator table = ttd_allocator_or_default(allocator);
    struct ttd_names *result = ttd_allocate_zeroed(&table, sizeof *result);
    if (!result)
        return TTD_ERROR_NO_MEMORY;
    result->allocator = table;
    result->writer = writer;
    result->lookup = lookup;
    result->context = context;
    ttd_buffer_init(&result->text, &result->allocator);
    ttd_map_init(&result->strings.map, &result->allocator);
    ttd_map_init(&result->stacks.map, &result->allocator);
    ttd_map_init(&result->frames.map, &result->allocator);
    *names = result;
    return TTD_OK;
}

static void names_free_table(struct ttd_names *names, struct names_table *table)
{
    ttd_map_free(&table->map);
    ttd_release(&names->allocator, table->records);
}

void ttd_names_close(struct ttd_names *names)
{
    if (!names)
        return;
    names_free_table(names, &names->strings);
    names_free_table(names, &names->stacks);
    names_free_table(names, &names->frames);
    ttd_buffer_free(&names->text);
    ttd_release(&names->allocator, names->modules);
    ttd_release(&names->allocator, names->symbol_frames);
    struct ttd_allocator allocator = names->allocator;
    ttd_release(&allocator, names);
}

/** Makes room for one more record of `size` bytes. False without memory. */
static bool ttd_names_reserve(struct ttd_names *names, struct names_table *table, size_t size)
{
    return !ttd_grow_array(&names->allocator, &table->records, &table->capacity, table->count + 1,
                           size);
}

/* ---- Strings ---- */

enum ttd_status ttd_names_string(struct ttd_names *names, struct ttd_string text, ttd_id *id)
{
    if (!id || (!text.data && text.size != 0))
        return TTD_ERROR_ARGUMENT;
    /* No name and an empty name are the same: TTD_NONE. */
    if (text.size == 0) {
        *id = TTD_NONE;
        return TTD_OK;
    }
    struct names_table *strings = &names->strings;
    uint64_t key = ttd_hash(text.data, text.size);
    uint32_t index;
    /* Different strings may have one hash: the next keys are tried, and bytes compared. */
    for (; ttd_map_find(&strings->map, key, &index); key++) {
        const struct known_string *candidate =
            (const struct known_string *)strings->records + index;
        if (candidate->size == text.size &&
            memcmp(names->text.data + candidate->offset, text.data, text.size) == 0) {
            *id = candidate->id;
            return TTD_OK;
        }
    }
    /* A string that did not fit must not make all later ones fail. */
    names->text.failed = false;
    if (!ttd_names_reserve(names, strings, sizeof(struct known_string)) ||
        !ttd_buffer_reserve(&names->text, text.size))
        return TTD_ERROR_NO_MEMORY;
    struct known_string string = {.offset = names->text.size, .size = text.size};
    enum ttd_status status = ttd_writer_string(names->writer, text.data, text.size, &string.id);
    if (status != TTD_OK)
        return status;
    if (!ttd_map_add(&strings->map, key, (uint32_t)strings->count))
        return TTD_ERROR_NO_MEMORY;
    ttd_buffer_put(&names->text, text.data, text.size);
    ((struct known_string *)strings->records)[strings->count++] = string;
    *id = string.id;
    return TTD_OK;
}

/* ---- Modules ---- */

/** How many modules begin at or before an address: the last of them may have it. */
static size_t names_modules_before(const struct ttd_names *names, uint64_t address)
{
    size_t low = 0;
    size_t high = names->module_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (names->modules[middle].begin <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/** The module that is loaded at an address; NULL if there is none. Valid until the next load. */
static const struct known_module *ttd_names_module_at(const struct ttd_names *names,
                                                      uint64_t address)
{
    size_t before = names_modules_before(names, address);
    if (before == 0 || address >= names->modules[before - 1].end)
        return NULL;
    return &names->modules[before - 1];
}

enum ttd_status ttd_names_load(struct ttd_names *names, struct ttd_position position,
                               const struct ttd_loaded *module, ttd_id *id)
{
    if (module->end <= module->begin || module->build_id_size > TTD_BUILD_ID_MAX ||
        (!module->build_id && module->build_id_size != 0))
        return TTD_ERROR_ARGUMENT;
    size_t index = names_modules_before(names, module->end - 1);
    if (index != 0 && names->modules[index - 1].end > module->begin)
        return TTD_ERROR_ARGUMENT;
    void *array = names->modules;
    if (ttd_grow_array(&names->allocator, &array, &names->module_capacity, names->module_count + 1,
                       sizeof *names->modules))
        return TTD_ERROR_NO_MEMORY;
    names->modules = array;
    struct ttd_module record = {.action = TTD_MODULE_LOAD,
                                .position = position,
                                .bias = module->bias,
                                .begin = module->begin,
                                .end = module->end,
                                .build_id_size = (uint32_t)module->build_id_size};
    if (module->build_id_size != 0)
        memcpy(record.build_id, module->build_id, module->build_id_size);
    enum ttd_status status = ttd_names_string(names, module->path, &record.path);
    if (status == TTD_OK)
        status = ttd_writer_module(names->writer, &record, &record.id);
    if (status != TTD_OK)
        return status;
    struct known_module *loaded = names->modules + index;
    memmove(loaded + 1, loaded, (names->module_count - index) * sizeof *loaded);
    *loaded = (struct known_module){module->begin, module->end, module->bias, record.id};
    names->module_count++;
    if (id)
        *id = record.id;
    return TTD_OK;
}

enum ttd_status ttd_names_unload(struct ttd_names *names, struct ttd_position position,
                                 uint64_t address)
{
    const struct known_module *loaded = ttd_names_module_at(names, address);
    if (!loaded)
        return TTD_ERROR_ARGUMENT;
    struct ttd_module record = {
        .action = TTD_MODULE_UNLOAD, .id = loaded->id, .position = position};
    enum ttd_status status = ttd_writer_module(names->writer, &record, NULL);
    if (status != TTD_OK)
        return status;
    struct known_module *removed = names->modules + (loaded - names->modules);
    names->module_count--;
    memmove(removed, removed + 1,
            (names->module_count - (size_t)(removed - names->modules)) * sizeof *removed);
    return TTD_OK;
}

/* Stacks, and the names of their frames. */

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
    /* The call is before the return address; that may be another function's or module's. */
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
