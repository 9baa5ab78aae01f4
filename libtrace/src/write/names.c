/* SPDX-License-Identifier: MIT */
#include <ttdtrace/names.h>

#include <stdbool.h>
#include <string.h>

#include "base/buffer.h"
#include "base/map.h"
#include "base/memory.h"
#include "layout.h"

/** A string that was written; its text is in names->text. */
typedef struct known_string {
    size_t at;
    size_t size;
    ttd_id id;
} known_string;

/** A module that is loaded. */
typedef struct known_module {
    uint64_t begin;
    uint64_t end;
    uint64_t bias;
    ttd_id id;
} known_module;

/** A stack that was written; and a frame, which has neither parent nor id. */
typedef struct known_stack {
    uint64_t offset;
    ttd_id module;
    ttd_id parent;
    ttd_id id;
} known_stack;

/** A table of records that are found by a hash; equal hashes have neighbouring keys. */
typedef struct table {
    ttd_map map;
    void *records;
    size_t count;
    size_t capacity;
} table;

struct ttd_names {
    ttd_allocator allocator;
    ttd_writer *writer;
    ttd_names_lookup lookup;
    void *context;
    /** Loaded modules, by address. */
    known_module *modules;
    size_t module_count;
    size_t module_capacity;
    table strings;
    ttd_buffer text;
    table stacks;
    table frames;
    ttd_name found[TTD_NAMES_MAX];
};

ttd_status ttd_names_open(ttd_writer *writer, ttd_names_lookup lookup, void *context,
                          const ttd_allocator *allocator, ttd_names **names)
{
    if (!writer || !names || !ttd_allocator_is_valid(allocator))
        return TTD_ERROR_ARGUMENT;
    ttd_allocator used = ttd_allocator_or_default(allocator);
    ttd_names *result = ttd_allocate_zeroed(&used, sizeof *result);
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

static void free_table(ttd_names *names, table *of)
{
    ttd_map_free(&of->map);
    ttd_release(&names->allocator, of->records);
}

void ttd_names_close(ttd_names *names)
{
    if (!names)
        return;
    free_table(names, &names->strings);
    free_table(names, &names->stacks);
    free_table(names, &names->frames);
    ttd_buffer_free(&names->text);
    ttd_release(&names->allocator, names->modules);
    ttd_allocator allocator = names->allocator;
    ttd_release(&allocator, names);
}

/** Makes room for one more record of `size` bytes. False without memory. */
static bool reserve(ttd_names *names, table *in, size_t size)
{
    return !ttd_grow_array(&names->allocator, &in->records, &in->capacity, in->count + 1, size);
}

/* ---- Strings ---- */

static uint64_t hash_of_text(ttd_string text)
{
    uint64_t hash = text.size;
    for (size_t i = 0; i < text.size; i++)
        hash = (hash ^ (uint8_t)text.data[i]) * UINT64_C(0x100000001B3);
    return ttd_map_hash(hash);
}

ttd_status ttd_names_string(ttd_names *names, ttd_string text, ttd_id *id)
{
    if (!id || (!text.data && text.size != 0))
        return TTD_ERROR_ARGUMENT;
    if (text.size == 0) {
        *id = TTD_NONE;
        return TTD_OK;
    }
    table *strings = &names->strings;
    uint64_t key = hash_of_text(text);
    uint32_t place;
    for (; ttd_map_find(&strings->map, key, &place); key++) {
        const known_string *known = (const known_string *)strings->records + place;
        if (known->size == text.size &&
            memcmp(names->text.data + known->at, text.data, text.size) == 0) {
            *id = known->id;
            return TTD_OK;
        }
    }
    names->text.failed = false;
    if (!reserve(names, strings, sizeof(known_string)) ||
        !ttd_buffer_reserve(&names->text, text.size))
        return TTD_ERROR_NO_MEMORY;
    known_string added = {.at = names->text.size, .size = text.size};
    ttd_status status = ttd_writer_string(names->writer, text.data, text.size, &added.id);
    if (status != TTD_OK)
        return status;
    if (!ttd_map_add(&strings->map, key, (uint32_t)strings->count))
        return TTD_ERROR_NO_MEMORY;
    ttd_buffer_put(&names->text, text.data, text.size);
    ((known_string *)strings->records)[strings->count++] = added;
    *id = added.id;
    return TTD_OK;
}

/* ---- Modules ---- */

/** How many modules begin at or before an address: the last of them may have it. */
static size_t modules_before(const ttd_names *names, uint64_t address)
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

static const known_module *module_at(const ttd_names *names, uint64_t address)
{
    size_t before = modules_before(names, address);
    if (before == 0 || address >= names->modules[before - 1].end)
        return NULL;
    return &names->modules[before - 1];
}

ttd_status ttd_names_load(ttd_names *names, ttd_position position, const ttd_loaded *module,
                          ttd_id *id)
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
    ttd_module record = {.action = TTD_MODULE_LOAD,
                         .position = position,
                         .bias = module->bias,
                         .begin = module->begin,
                         .end = module->end,
                         .build_id_size = (uint32_t)module->build_id_size};
    if (module->build_id_size != 0)
        memcpy(record.build_id, module->build_id, module->build_id_size);
    ttd_status status = ttd_names_string(names, module->path, &record.path);
    if (status == TTD_OK)
        status = ttd_writer_module(names->writer, &record, &record.id);
    if (status != TTD_OK)
        return status;
    known_module *at = names->modules + place;
    memmove(at + 1, at, (names->module_count - place) * sizeof *at);
    *at = (known_module){module->begin, module->end, module->bias, record.id};
    names->module_count++;
    if (id)
        *id = record.id;
    return TTD_OK;
}

ttd_status ttd_names_unload(ttd_names *names, ttd_position position, uint64_t address)
{
    const known_module *known = module_at(names, address);
    if (!known)
        return TTD_ERROR_ARGUMENT;
    ttd_module record = {.action = TTD_MODULE_UNLOAD, .id = known->id, .position = position};
    ttd_status status = ttd_writer_module(names->writer, &record, NULL);
    if (status != TTD_OK)
        return status;
    known_module *at = names->modules + (known - names->modules);
    names->module_count--;
    memmove(at, at + 1, (names->module_count - (size_t)(at - names->modules)) * sizeof *at);
    return TTD_OK;
}

/* ---- Stacks ---- */

/** Finds a stack or a frame; sets the key to add it under if it is not there. */
static const known_stack *find(const table *in, const known_stack *wanted, uint64_t *key)
{
    uint64_t ids = (uint64_t)wanted->module << 32 | wanted->parent;
    uint32_t place;
    *key = ttd_map_hash(wanted->offset) ^ ttd_map_hash(ttd_map_hash(ids));
    for (; ttd_map_find(&in->map, *key, &place); (*key)++) {
        const known_stack *known = (const known_stack *)in->records + place;
        if (known->offset == wanted->offset && known->module == wanted->module &&
            known->parent == wanted->parent)
            return known;
    }
    return NULL;
}

static bool add(table *to, uint64_t key, const known_stack *added)
{
    if (!ttd_map_add(&to->map, key, (uint32_t)to->count))
        return false;
    ((known_stack *)to->records)[to->count++] = *added;
    return true;
}

ttd_status ttd_names_symbol(ttd_names *names, ttd_id module, uint64_t offset,
                            const ttd_name *frames, size_t count)
{
    if (count > TTD_SYMBOL_FRAME_MAX)
        return TTD_ERROR_LIMIT;
    if (!frames && count != 0)
        return TTD_ERROR_ARGUMENT;
    ttd_symbol symbol = {.module = module, .offset = offset, .frame_count = (uint32_t)count};
    ttd_symbol_frame *named = NULL;
    if (count != 0) {
        named = ttd_allocate_zeroed(&names->allocator, count * sizeof *named);
        if (!named)
            return TTD_ERROR_NO_MEMORY;
    }
    ttd_status status = TTD_OK;
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
static ttd_status name_frame(ttd_names *names, const known_stack *frame, uint64_t address)
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
        ttd_status status =
            ttd_names_symbol(names, frame->module, frame->offset, names->found, count);
        if (status != TTD_OK)
            return status;
    }
    return add(&names->frames, key, frame) ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

/** Finds or defines the stack of one more frame. */
static ttd_status push(ttd_names *names, ttd_id parent, uint64_t address, ttd_id *stack)
{
    /* The call is before the return address, which may be another function's or module's. */
    const known_module *module = module_at(names, address - 1);
    known_stack wanted = {.offset = module ? address - module->bias : address,
                          .module = module ? module->id : TTD_NONE,
                          .parent = parent};
    uint64_t key;
    const known_stack *known = find(&names->stacks, &wanted, &key);
    if (known) {
        *stack = known->id;
        return TTD_OK;
    }
    known_stack frame = {.offset = wanted.offset, .module = wanted.module};
    ttd_status status = name_frame(names, &frame, address - 1);
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

ttd_status ttd_names_stack(ttd_names *names, const uint64_t *addresses, size_t count, ttd_id *stack)
{
    if (!stack || (!addresses && count != 0))
        return TTD_ERROR_ARGUMENT;
    if (count > TTD_STACK_DEPTH_MAX)
        return TTD_ERROR_LIMIT;
    ttd_id id = TTD_NONE;
    for (size_t i = count; i-- > 0;) {
        ttd_status status = push(names, id, addresses[i], &id);
        if (status != TTD_OK)
            return status;
    }
    *stack = id;
    return TTD_OK;
}
