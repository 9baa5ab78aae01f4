/* SPDX-License-Identifier: MIT */
#include "later/add_names.h"

#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "common/search.h"

/* The words of modules' data that held references in snapshots. */

/* Everything but modules: they are read before. */
#define WANTED_KINDS                                                                               \
    (TTD_KIND_BIT(TTD_KIND_STRINGS) | TTD_KIND_BIT(TTD_KIND_STACKS) |                              \
     TTD_KIND_BIT(TTD_KIND_SYMBOLS) | TTD_KIND_BIT(TTD_KIND_REGIONS) |                             \
     TTD_KIND_BIT(TTD_KIND_REFERENCES) | TTD_KIND_BIT(TTD_KIND_VARIABLES))

/* A region of a module's data; module 0 for any other region. */
struct wanted_region {
    ttd_id module;
    uint64_t offset; /* of its begin, as in ttd_variable */
};

/* The regions of one snapshot, by number - 1. All zero when empty. */
struct wanted_data {
    uint32_t snapshot;
    struct wanted_region *regions;
    size_t count, capacity;
    size_t sorted; /* number of words in wanted->variables when they were sorted last */
};

/* Words are sorted, and equal ones removed, when there are twice as many and so many more: each
 * snapshot has the same words again. */
enum { MANY_WORDS = 1 << 16 };

void wanted_free(struct wanted *wanted)
{
    for (size_t i = 0; i < wanted->module_count; i++)
        free(wanted->modules[i].path);
    free(wanted->modules);
    free(wanted->by_path);
    free(wanted->parts);
    free(wanted->addresses);
    stacks_free(&wanted->places);
    variables_free(&wanted->variables);
}

/* Grows an array like array_grow(). Returns NULL also if it has `max_count` elements, and marks the
 * result as partial. */
static void *wanted_grow(struct wanted *wanted, void *array, size_t count, size_t *capacity,
                         size_t size, size_t max_count)
{
    if (count >= max_count) {
        wanted->is_partial = true;
        return NULL;
    }
    return array_grow(array, count, capacity, size);
}

/* A failure of wanted_grow(): a limit is none. */
static enum ttd_status wanted_status(const struct wanted *wanted)
{
    return wanted->is_partial ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

/* ---- Modules ---- */

static enum ttd_status wanted_add_module(struct wanted *wanted, const struct ttd_module *module)
{
    if (module->action != TTD_MODULE_LOAD)
        return TTD_OK;
    void *grown =
        wanted_grow(wanted, wanted->modules, wanted->module_count, &wanted->module_capacity,
                    sizeof *wanted->modules, WANTED_MODULES_MAX);
    if (!grown)
        return wanted_status(wanted);
    wanted->modules = grown;
    struct wanted_module *copy = &wanted->modules[wanted->module_count];
    *copy = (struct wanted_module){.id = module->id,
                                   .path_id = module->path,
                                   .order = wanted->module_count++,
                                   .bias = module->bias,
                                   .build_id_size = module->build_id_size};
    memcpy(copy->build_id, module->build_id, module->build_id_size);
    return TTD_OK;
}

static int wanted_compare_modules(const void *left, const void *right)
{
    const struct wanted_module *a = left, *b = right;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static int wanted_compare_paths(const void *left, const void *right, void *context)
{
    const struct wanted_module *modules = context;
    ttd_id a = modules[*(const size_t *)left].path_id, b = modules[*(const size_t *)right].path_id;
    return a < b ? -1 : a > b;
}

static enum ttd_status wanted_sort_modules(struct wanted *wanted)
{
    wanted->by_path = calloc(wanted->module_count + 1, sizeof *wanted->by_path);
    if (!wanted->by_path)
        return TTD_ERROR_NO_MEMORY;
    if (wanted->module_count == 0)
        return TTD_OK;
    qsort(wanted->modules, wanted->module_count, sizeof *wanted->modules, wanted_compare_modules);
    for (size_t i = 0; i < wanted->module_count; i++)
        wanted->by_path[i] = i;
    qsort_r(wanted->by_path, wanted->module_count, sizeof *wanted->by_path, wanted_compare_paths,
            wanted->modules);
    return TTD_OK;
}

/* Returns the number of a module, 0 if the trace does not define it. */
static ttd_id wanted_module_number(const struct wanted *wanted, ttd_id id)
{
    size_t low = 0, high = wanted->module_count;
    SEARCH_SORTED(low, high, middle, wanted->modules[middle].id < id);
    bool is_there = low < wanted->module_count && wanted->modules[low].id == id;
    return is_there ? (ttd_id)(low + 1) : 0;
}

/* ---- Strings ---- */

static enum ttd_status wanted_add_part(struct wanted *wanted, ttd_id id)
{
    void *grown = wanted_grow(wanted, wanted->parts, wanted->part_count, &wanted->part_capacity,
                              sizeof *wanted->parts, WANTED_PARTS_MAX);
    if (!grown)
        return wanted_status(wanted);
    wanted->parts = grown;
    wanted->parts[wanted->part_count++] = id;
    return TTD_OK;
}

static size_t wanted_first_with_path(const struct wanted *wanted, ttd_id path)
{
    size_t low = 0, high = wanted->module_count;
    SEARCH_SORTED(low, high, middle, wanted->modules[wanted->by_path[middle]].path_id < path);
    return low;
}

static enum ttd_status wanted_add_string(struct wanted *wanted,
                                         const struct ttd_string_definition *string)
{
    if (string->text.size > 0 && string->text.data[0] == '.')
        return wanted_add_part(wanted, string->id);
    for (size_t i = wanted_first_with_path(wanted, string->id); i < wanted->module_count; i++) {
        struct wanted_module *module = &wanted->modules[wanted->by_path[i]];
        if (module->path_id != string->id || module->path)
            break;
        module->path = strndup(string->text.data, string->text.size);
        if (!module->path)
            return TTD_ERROR_NO_MEMORY;
    }
    return TTD_OK;
}

/* ---- Addresses ---- */

struct wanted_address *wanted_find(struct wanted *wanted, ttd_id module, uint64_t offset)
{
    uint32_t hash = stacks_hash(&wanted->places, module, offset);
    const struct stack_entry *entry = stacks_probe(&wanted->places, hash, module, offset);
    return entry->id != TTD_NONE ? &wanted->addresses[entry->id - 1] : NULL;
}

/* Finds or adds an address. NULL as for wanted_grow(). */
static struct wanted_address *wanted_address_at(struct wanted *wanted, ttd_id module,
                                                uint64_t offset)
{
    struct wanted_address *address = wanted_find(wanted, module, offset);
    if (address)
        return address;
    void *grown =
        wanted_grow(wanted, wanted->addresses, wanted->address_count, &wanted->address_capacity,
                    sizeof *wanted->addresses, WANTED_ADDRESSES_MAX);
    if (!grown)
        return NULL;
    wanted->addresses = grown;
    struct stack_entry *entry =
        stacks_find(&wanted->places, stacks_hash(&wanted->places, module, offset), module, offset);
    if (!entry)
        return NULL;
    address = &wanted->addresses[wanted->address_count++];
    *address = (struct wanted_address){.module = module, .offset = offset};
    entry->id = (ttd_id)wanted->address_count;
    return address;
}

static enum ttd_status wanted_add_stack(struct wanted *wanted, const struct ttd_stack *stack)
{
    struct wanted_address *address =
        wanted_address_at(wanted, wanted_module_number(wanted, stack->module), stack->offset);
    if (!address)
        return wanted_status(wanted);
    address->is_in_stack = true;
    return TTD_OK;
}

/* The last of several records for an address counts. */
static enum ttd_status wanted_add_symbol(struct wanted *wanted, const struct ttd_symbol *symbol)
{
    struct wanted_address *address =
        wanted_address_at(wanted, wanted_module_number(wanted, symbol->module), symbol->offset);
    if (!address)
        return wanted_status(wanted);
    address->quality = NAME_NONE;
    for (uint32_t i = 0; i < symbol->frame_count; i++) {
        if (symbol->frames[i].file != TTD_NONE)
            address->quality = NAME_SOURCE;
        else if (symbol->frames[i].function != TTD_NONE && address->quality == NAME_NONE)
            address->quality = NAME_FUNCTION;
    }
    return TTD_OK;
}

/* ---- The trace ---- */

static struct wanted_region wanted_region_of(const struct wanted *wanted,
                                             const struct ttd_region *region)
{
    ttd_id module = wanted_module_number(wanted, region->module);
    if (module == 0)
        return (struct wanted_region){0};
    if (region->kind == TTD_REGION_TLS)
        return (struct wanted_region){module, TTD_THREAD_LOCAL};
    bool is_data = region->kind == TTD_REGION_MODULE;
    return (struct wanted_region){is_data ? module : 0,
                                  region->begin - wanted->modules[module - 1].bias};
}

static enum ttd_status wanted_add_regions(struct wanted *wanted, struct wanted_data *data,
                                          const struct ttd_regions *regions)
{
    if (regions->snapshot != data->snapshot)
        data->count = 0;
    data->snapshot = regions->snapshot;
    /* Behind a gap, numbers are larger. */
    size_t first = (size_t)regions->first - 1, end = first + regions->count;
    if (first < data->count || end > WANTED_REGIONS_MAX) {
        wanted->is_partial |= end > WANTED_REGIONS_MAX;
        return TTD_OK;
    }
    void *grown = array_reserve(data->regions, end, &data->capacity, sizeof *data->regions);
    if (!grown)
        return TTD_ERROR_NO_MEMORY;
    data->regions = grown;
    while (data->count < first)
        data->regions[data->count++] = (struct wanted_region){0};
    for (size_t i = 0; i < regions->count; i++)
        data->regions[data->count++] = wanted_region_of(wanted, &regions->regions[i]);
    return TTD_OK;
}

static void wanted_add_references(struct wanted *wanted, struct wanted_data *data,
                                  const struct ttd_references *references)
{
    struct variables *variables = &wanted->variables;
    for (size_t i = 0; references->snapshot == data->snapshot && i < references->count; i++) {
        const struct ttd_reference *reference = &references->references[i];
        size_t index = reference->region - 1;
        if (index >= data->count || data->regions[index].module == 0)
            continue;
        variables_add(variables, data->regions[index].module,
                      data->regions[index].offset + reference->offset);
    }
    if (variables->count > 2 * data->sorted + MANY_WORDS) {
        variables_sort(variables);
        data->sorted = variables->count;
    }
    wanted->is_partial |= variables->count >= VARIABLE_WORDS_MAX;
}

static int wanted_compare_ids(const void *left, const void *right)
{
    ttd_id a = *(const ttd_id *)left, b = *(const ttd_id *)right;
    return a < b ? -1 : a > b;
}

/* Whether a name means a part of a section, where the debug information may know a variable. Ids of
 * strings rise in the file. */
static bool wanted_is_part(const struct wanted *wanted, ttd_id name)
{
    return wanted->part_count > 0 && bsearch(&name, wanted->parts, wanted->part_count,
                                             sizeof *wanted->parts, wanted_compare_ids);
}

/* Handles a batch of regions, references or variables. Returns TTD_OK, TTD_ERROR_NO_MEMORY. */
static enum ttd_status wanted_data_add(struct wanted *wanted, struct wanted_data *data,
                                       const struct ttd_batch *batch)
{
    enum ttd_status status = TTD_OK;
    if (batch->kind == TTD_KIND_REGIONS)
        status = wanted_add_regions(wanted, data, batch->u.regions);
    else if (batch->kind == TTD_KIND_REFERENCES)
        wanted_add_references(wanted, data, batch->u.references);
    for (size_t i = 0; batch->kind == TTD_KIND_VARIABLES && i < batch->count; i++) {
        const struct ttd_variable *variable = &batch->u.variables[i];
        ttd_id module = wanted_module_number(wanted, variable->module);
        if (module != 0 && !wanted_is_part(wanted, variable->name))
            variables_know(&wanted->variables, module, variable->offset, variable->size);
    }
    return status;
}

static enum ttd_status wanted_add_batch(struct wanted *wanted, struct wanted_data *data,
                                        const struct ttd_batch *batch)
{
    enum ttd_status status = TTD_OK;
    if (batch->kind == TTD_KIND_REGIONS || batch->kind == TTD_KIND_REFERENCES ||
        batch->kind == TTD_KIND_VARIABLES)
        return wanted_data_add(wanted, data, batch);
    for (size_t i = 0; status == TTD_OK && i < batch->count; i++) {
        if (batch->kind == TTD_KIND_MODULES)
            status = wanted_add_module(wanted, &batch->u.modules[i]);
        else if (batch->kind == TTD_KIND_STRINGS)
            status = wanted_add_string(wanted, &batch->u.strings[i]);
        else if (batch->kind == TTD_KIND_STACKS)
            status = wanted_add_stack(wanted, &batch->u.stacks[i]);
        else if (batch->kind == TTD_KIND_SYMBOLS)
            status = wanted_add_symbol(wanted, &batch->u.symbols[i]);
    }
    return status;
}

/* Reads all batches of some kinds. */
static enum ttd_status wanted_read_kinds(struct wanted *wanted, struct ttd_reader *reader,
                                         uint32_t kinds, struct ttd_error *error)
{
    struct wanted_data data = {.count = 0};
    enum ttd_status status = ttd_reader_rewind(reader, kinds);
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(reader, &batch, error);
        if (status == TTD_OK && !batch.synthetic)
            status = wanted_add_batch(wanted, &data, &batch);
    }
    free(data.regions);
    bool is_over = status == TTD_END || status == TTD_ERROR_TRUNCATED ||
                   status == TTD_ERROR_LIMIT || status == TTD_ERROR_UNSUPPORTED;
    return is_over ? TTD_OK : status;
}

enum ttd_status wanted_read(struct wanted *wanted, const struct ttd_input *input,
                            struct ttd_error *error)
{
    struct ttd_reader *reader;
    struct ttd_end end;
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = true;
    *wanted = (struct wanted){.module_count = 0};
    enum ttd_status status = ttd_reader_open(input, &options, NULL, &reader, error);
    if (status != TTD_OK)
        return status;
    wanted->is_closed = ttd_reader_end(reader, &end) == TTD_OK;
    status = stacks_init(&wanted->places) ? TTD_OK : TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK)
        status = wanted_read_kinds(wanted, reader, TTD_KIND_BIT(TTD_KIND_MODULES), error);
    if (status == TTD_OK)
        status = wanted_sort_modules(wanted);
    if (status == TTD_OK)
        status = wanted_read_kinds(wanted, reader, WANTED_KINDS, error);
    ttd_reader_close(reader);
    if (status == TTD_ERROR_NO_MEMORY)
        *error = (struct ttd_error){status, 0, TTD_NOWHERE, TTD_NOWHERE, NULL};
    return status;
}
