/* SPDX-License-Identifier: MIT */
#include <ttdtrace/names.h>

#include <stdbool.h>
#include <string.h>

#include "base/buffer.h"
#include "base/map.h"
#include "base/memory.h"
#include "layout.h"

/** A string that was written; its text is in names->text. */
struct known_string {
    size_t at;
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

/** A stack that was written; and a frame, which has neither parent nor id. */
struct known_stack {
    uint64_t offset;
    ttd_id module;
    ttd_id parent;
    ttd_id id;
};

/** A table of records that are found by a hash; equal hashes have neighbouring keys. */
struct table {
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
    struct table strings;
    struct ttd_buffer text;
    struct table stacks;
    struct table frames;
    struct ttd_name found[TTD_NAMES_MAX];
};

enum ttd_status ttd_names_open(struct ttd_writer *writer, ttd_names_lookup lookup, void *context,
                               const struct ttd_allocator *allocator, struct ttd_names **names)
{
    if (!writer || !names || !ttd_allocator_is_valid(allocator))
        return TTD_ERROR_ARGUMENT;
    struct ttd_allocator used = ttd_allocator_or_default(allocator);
    struct ttd_names *result = ttd_allocate_zeroed(&used, sizeof *result);
    if (!result)
        return TTD_ERROR_NO_MEMORY;
    result->allocator = used;
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

static void free_table(struct ttd_names *names, struct table *of)
{
    ttd_map_free(&of->map);
    ttd_release(&names->allocator, of->records);
}

void ttd_names_close(struct ttd_names *names)
{
    if (!names)
        return;
    free_table(names, &names->strings);
    free_table(names, &names->stacks);
    free_table(names, &names->frames);
    ttd_buffer_free(&names->text);
    ttd_release(&names->allocator, names->modules);
    struct ttd_allocator allocator = names->allocator;
    ttd_release(&allocator, names);
}

/** Makes room for one more record of `size` bytes. False without memory. */
static bool reserve(struct ttd_names *names, struct table *in, size_t size)
{
    return !ttd_grow_array(&names->allocator, &in->records, &in->capacity, in->count + 1, size);
}

/* ---- Strings ---- */

static uint64_t hash_of_text(struct ttd_string text)
{
    uint64_t hash = text.size;
    for (size_t i = 0; i < text.size; i++)
        hash = (hash ^ (uint8_t)text.data[i]) * UINT64_C(0x100000001B3);
    return ttd_map_hash(hash);
}

enum ttd_status ttd_names_string(struct ttd_names *names, struct ttd_string text, ttd_id *id)
{
    if (!id || (!text.data && text.size != 0))
        return TTD_ERROR_ARGUMENT;
    if (text.size == 0) {
        *id = TTD_NONE;
        return TTD_OK;
    }
    struct table *strings = &names->strings;
    uint64_t key = hash_of_text(text);
    uint32_t place;
    for (; ttd_map_find(&strings->map, key, &place); key++) {
        const struct known_string *known = (const struct known_string *)strings->records + place;
        if (known->size == text.size &&
            memcmp(names->text.data + known->at, text.data, text.size) == 0) {
            *id = known->id;
            return TTD_OK;
        }
    }
    names->text.failed = false;
    if (!reserve(names, strings, sizeof(struct known_string)) ||
        !ttd_buffer_reserve(&names->text, text.size))
        return TTD_ERROR_NO_MEMORY;
    struct known_string added = {.at = names->text.size, .size = text.size};
    enum ttd_status status = ttd_writer_string(names->writer, text.data, text.size, &added.id);
    if (status != TTD_OK)
        return status;
    if (!ttd_map_add(&strings->map, key, (uint32_t)strings->count))
        return TTD_ERROR_NO_MEMORY;
    ttd_buffer_put(&names->text, text.data, text.size);
    ((struct known_string *)strings->records)[strings->count++] = added;
    *id = added.id;
    return TTD_OK;
}

/* ---- Modules ---- */

/** How many modules begin at or before an address: the last of them may have it. */
static size_t modules_before(const struct ttd_names *names, uint64_t address)
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

static const struct known_module *module_at(const struct ttd_names *names, uint64_t address)
{
    size_t before = modules_before(names, address);
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
    size_t place = modules_before(names, module->end - 1);
    if (place != 0 && names->modules[place - 1].end > module->begin)
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
    struct known_module *at = names->modules + place;
    memmove(at + 1, at, (names->module_count - place) * sizeof *at);
    *at = (struct known_module){module->begin, module->end, module->bias, record.id};
    names->module_count++;
    if (id)
        *id = record.id;
    return TTD_OK;
}

enum ttd_status ttd_names_unload(struct ttd_names *names, struct ttd_position position,
                                 uint64_t address)
{
    const struct known_module *known = module_at(names, address);
    if (!known)
        return TTD_ERROR_ARGUMENT;
    struct ttd_module record = {.action = TTD_MODULE_UNLOAD, .id = known->id, .position = position};
    enum ttd_status status = ttd_writer_module(names->writer, &record, NULL);
    if (status != TTD_OK)
        return status;
    struct known_module *at = names->modules + (known - names->modules);
    names->module_count--;
    memmove(at, at + 1, (names->module_count - (size_t)(at - names->modules)) * sizeof *at);
    return TTD_OK;
}

/* ---- Stacks ---- */

/** Finds a stack or a frame; sets the key to add it under if it is not there. */
static const struct known_stack *find(const struct table *in, const struct known_stack *wanted,
                                      uint64_t *key)
{
    uint64_t ids = (uint64_t)wanted->module << 32 | wanted->parent;
    uint32_t place;
    *key = ttd_map_hash(wanted->offset) ^ ttd_map_hash(ttd_map_hash(ids));
    for (; ttd_map_find(&in->map, *key, &place); (*key)++) {
        const struct known_stack *known = (const struct known_stack *)in->records + place;
        if (known->offset == wanted->offset && known->module == wanted->module &&
            known->parent == wanted->parent)
            return known;
    }
    return NULL;
}

static bool add(struct table *to, uint64_t key, const struct known_stack *added)
{
    if (!ttd_map_add(&to->map, key, (uint32_t)to->count))
        return false;
    ((struct known_stack *)to->records)[to->count++] = *added;
    return true;
}

enum ttd_status ttd_names_symbol(struct ttd_names *names, ttd_id module, uint64_t offset,
                                 const struct ttd_name *frames, size_t count)
{
    if (count > TTD_SYMBOL_FRAME_MAX)
        return TTD_ERROR_LIMIT;
    if (!frames && count != 0)
        return TTD_ERROR_ARGUMENT;
    struct ttd_symbol symbol = {.module = module, .offset = offset, .frame_count = (uint32_t)count};
    struct ttd_symbol_frame *named = NULL;
    if (count != 0) {
        named = ttd_allocate_zeroed(&names->allocator, count * sizeof *named);
        if (!named)
            return TTD_ERROR_NO_MEMORY;
    }
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < count && status == TTD_OK; i++) {
        named[i].line = frames[i].line;
        status = ttd_names_string(names, frames[i].function, &named[i].function);
        if (status == TTD_OK)
            status = ttd_names_string(names, frames[i].file, &named[i].file);
    }
    symbol.frames = named;
    if (status == TTD_OK)
        status = ttd_writer_symbol(names->writer, &symbol);
    ttd_release(&names->allocator, named);
    return status;
}

/** Asks for the names of a frame and writes them, if it is new. */
static enum ttd_status name_frame(struct ttd_names *names, const struct known_stack *frame,
                                  uint64_t address)
{
    uint64_t key;
    if (!names->lookup || find(&names->frames, frame, &key))
        return TTD_OK;
    if (!reserve(names, &names->frames, sizeof *frame))
        return TTD_ERROR_NO_MEMORY;
    memset(names->found, 0, sizeof names->found);
    size_t count = names->lookup(names->context, address, names->found);
    if (count > TTD_NAMES_MAX)
        return TTD_ERROR_ARGUMENT;
    if (count != 0) {
        enum ttd_status status =
            ttd_names_symbol(names, frame->module, frame->offset, names->found, count);
        if (status != TTD_OK)
            return status;
    }
    return add(&names->frames, key, frame) ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

/** Finds or defines the stack of one more frame. */
static enum ttd_status push(struct ttd_names *names, ttd_id parent, uint64_t address, ttd_id *stack)
{
    /* The call is before the return address, which may be another function's or module's. */
    const struct known_module *module = module_at(names, address - 1);
    struct known_stack wanted = {.offset = module ? address - module->bias : address,
                                 .module = module ? module->id : TTD_NONE,
                                 .parent = parent};
    uint64_t key;
    const struct known_stack *known = find(&names->stacks, &wanted, &key);
    if (known) {
        *stack = known->id;
        return TTD_OK;
    }
    struct known_stack frame = {.offset = wanted.offset, .module = wanted.module};
    enum ttd_status status = name_frame(names, &frame, address - 1);
    if (status != TTD_OK)
        return status;
    if (!reserve(names, &names->stacks, sizeof wanted))
        return TTD_ERROR_NO_MEMORY;
    status = ttd_writer_stack(names->writer, parent, wanted.module, wanted.offset, &wanted.id);
    if (status != TTD_OK)
        return status;
    *stack = wanted.id;
    return add(&names->stacks, key, &wanted) ? TTD_OK : TTD_ERROR_NO_MEMORY;
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
        enum ttd_status status = push(names, id, addresses[i], &id);
        if (status != TTD_OK)
            return status;
    }
    *stack = id;
    return TTD_OK;
}
