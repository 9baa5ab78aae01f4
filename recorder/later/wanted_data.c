/* SPDX-License-Identifier: MIT */
#include "later/wanted_data.h"

#include <stdlib.h>

/* Words are sorted, which removes those that are the same, when there are twice as many and so many
 * more: each snapshot has the same words again. */
enum { MANY_WORDS = 1 << 16 };

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

static enum ttd_status add_regions(struct wanted *wanted, struct wanted_data *data,
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
    if (end > data->capacity) {
        void *grown = reallocarray(data->regions, 2 * end, sizeof *data->regions);
        if (grown == NULL)
            return TTD_ERROR_NO_MEMORY;
        data->regions = grown;
        data->capacity = 2 * end;
    }
    while (data->count < first)
        data->regions[data->count++] = (struct wanted_region){0};
    for (size_t i = 0; i < regions->count; i++)
        data->regions[data->count++] = wanted_region_of(wanted, &regions->regions[i]);
    return TTD_OK;
}

static void add_references(struct wanted *wanted, struct wanted_data *data,
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

static int compare_ids(const void *left, const void *right)
{
    ttd_id a = *(const ttd_id *)left, b = *(const ttd_id *)right;
    return a < b ? -1 : a > b;
}

/* Whether a name is that of a part of a section, where the debug information may know a variable.
 * Ids of strings rise in the file. */
static bool is_part(const struct wanted *wanted, ttd_id name)
{
    return wanted->part_count > 0 && bsearch(&name, wanted->parts, wanted->part_count,
                                             sizeof *wanted->parts, compare_ids) != NULL;
}

enum ttd_status wanted_data_add(struct wanted *wanted, struct wanted_data *data,
                                const struct ttd_batch *batch)
{
    enum ttd_status status = TTD_OK;
    if (batch->kind == TTD_KIND_REGIONS)
        status = add_regions(wanted, data, batch->u.regions);
    else if (batch->kind == TTD_KIND_REFERENCES)
        add_references(wanted, data, batch->u.references);
    for (size_t i = 0; batch->kind == TTD_KIND_VARIABLES && i < batch->count; i++) {
        const struct ttd_variable *variable = &batch->u.variables[i];
        ttd_id module = wanted_module_number(wanted, variable->module);
        if (module != 0 && !is_part(wanted, variable->name))
            variables_know(&wanted->variables, module, variable->offset, variable->size);
    }
    return status;
}
