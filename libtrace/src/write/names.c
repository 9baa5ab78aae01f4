/* SPDX-License-Identifier: MIT */
#include "write/names.h"

#include <string.h>

#include "base/memory.h"
#include "codec/chunk/header.h"
#include "layout.h"

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

static void free_table(struct ttd_names *names, struct names_table *table)
{
    ttd_map_free(&table->map);
    ttd_release(&names->allocator, table->records);
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
    ttd_release(&names->allocator, names->symbol_frames);
    struct ttd_allocator allocator = names->allocator;
    ttd_release(&allocator, names);
}

bool ttd_names_reserve(struct ttd_names *names, struct names_table *table, size_t size)
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

const struct known_module *ttd_names_module_at(const struct ttd_names *names, uint64_t address)
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
    size_t index = modules_before(names, module->end - 1);
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
