/* SPDX-License-Identifier: MIT */
#include "analyses/reachability/places.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "common/search.h"

#define PLACE_KINDS                                                                                \
    (TTD_KIND_BIT(TTD_KIND_MODULES) | TTD_KIND_BIT(TTD_KIND_VARIABLES) |                           \
     TTD_KIND_BIT(TTD_KIND_FRAMES))

static enum ttd_status places_add_module(struct heap_places *places,
                                         const struct ttd_module *module)
{
    if (module->action != TTD_MODULE_LOAD ||
        map_get(&places->module_index, module->id, 0) != MAP_NONE)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&places->modules, &places->module_capacity,
                                        places->module_count + 1, sizeof *places->modules);
    if (status != TTD_OK)
        return status;
    places->modules[places->module_count] =
        (struct heap_place_module){module->id, module->bias, module->begin, module->end};
    return map_set(&places->module_index, module->id, 0, (uint32_t)places->module_count++);
}

static enum ttd_status places_add_variable(struct heap_places *places,
                                           const struct ttd_variable *variable)
{
    enum ttd_status status = grow_array((void **)&places->variables, &places->variable_capacity,
                                        places->variable_count + 1, sizeof *places->variables);
    if (status == TTD_OK)
        places->variables[places->variable_count++] = *variable;
    return status;
}

static enum ttd_status places_add_frames(struct heap_places *places,
                                         const struct ttd_frames *frames)
{
    if (frames->snapshot != places->snapshot || !frames->count)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&places->frames, &places->frame_capacity,
                                        places->frame_count + 1, sizeof *places->frames);
    uint64_t *addresses = status == TTD_OK ? malloc(frames->count * sizeof *addresses) : NULL;
    if (!addresses)
        return TTD_ERROR_NO_MEMORY;
    /* The addresses in the batch are valid only until the next one is read. */
    memcpy(addresses, frames->addresses, frames->count * sizeof *addresses);
    places->frames[places->frame_count++] =
        (struct heap_frames){frames->thread, frames->stack, addresses, frames->count};
    return TTD_OK;
}

static enum ttd_status places_add_batch(struct heap_places *places, const struct ttd_batch *batch)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < batch->count && status == TTD_OK; i++) {
        if (batch->kind == TTD_KIND_MODULES)
            status = places_add_module(places, &batch->u.modules[i]);
        else if (batch->kind == TTD_KIND_VARIABLES)
            status = places_add_variable(places, &batch->u.variables[i]);
        else if (batch->kind == TTD_KIND_FRAMES)
            status = places_add_frames(places, &batch->u.frames[i]);
    }
    return status;
}

static int places_compare_variables(const void *a, const void *b)
{
    const struct ttd_variable *x = a;
    const struct ttd_variable *y = b;
    if (x->module != y->module)
        return x->module < y->module ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    /* A variable may have two names. Sorting by name makes the choice the same each time. */
    return (x->name > y->name) - (x->name < y->name);
}

enum ttd_status heap_places_read(const struct heap_trace *trace, const struct heap_reach *reach,
                                 struct heap_places *places, struct ttd_error *error)
{
    *places = (struct heap_places){.regions = reach->regions,
                                   .region_count = reach->region_count,
                                   .snapshot = reach->snapshot.number};
    map_init(&places->module_index);
    enum ttd_status status = ttd_reader_rewind(trace->reader, PLACE_KINDS);
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(trace->reader, &batch, error);
        if (status == TTD_OK)
            status = places_add_batch(places, &batch);
    }
    if (!heap_is_over(status)) {
        heap_places_free(places);
        return status;
    }
    if (places->variable_count)
        qsort(places->variables, places->variable_count, sizeof *places->variables,
              places_compare_variables);
    return TTD_OK;
}

void heap_places_free(struct heap_places *places)
{
    for (size_t i = 0; i < places->frame_count; i++)
        free(places->frames[i].addresses);
    free(places->frames);
    free(places->variables);
    free(places->modules);
    map_free(&places->module_index);
    *places = (struct heap_places){.regions = NULL};
}

/* Finds the variable that contains a word at an offset of a module's data, or with
 * TTD_THREAD_LOCAL: the last variable that begins at or before it. */
static void places_find_variable(const struct heap_places *places, ttd_id module, uint64_t offset,
                                 struct heap_place *place)
{
    size_t first = 0;
    size_t end = places->variable_count;
    const struct ttd_variable *variables = places->variables;
    SEARCH_SORTED(first, end, middle,
                  variables[middle].module < module ||
                      (variables[middle].module == module && variables[middle].offset <= offset));
    const struct ttd_variable *variable = first ? &places->variables[first - 1] : NULL;
    /* A variable of unknown size reaches up to the next one. */
    if (!variable || variable->module != module ||
        (variable->size && offset - variable->offset >= variable->size))
        return;
    place->variable = variable;
    place->variable_offset = offset - variable->offset;
}

/* Finds the variable that contains a word of a region. */
static void places_find_in_region(const struct heap_places *places, struct heap_place *place)
{
    const struct ttd_region *region = place->region;
    uint32_t index = map_get(&places->module_index, region->module, 0);
    if (index == MAP_NONE)
        return;
    uint64_t offset = region->kind == TTD_REGION_TLS
                          ? TTD_THREAD_LOCAL + place->offset
                          : region->begin + place->offset - places->modules[index].bias;
    places_find_variable(places, region->module, offset, place);
}

/* Whether a range that may be empty or reversed has its ends in a region. */
static bool places_is_within(const struct ttd_region *region, uint64_t begin, uint64_t end)
{
    return begin - region->begin <= region->size && end - region->begin <= region->size;
}

/* Finds the frame that contains a word of a thread's stack. */
static void places_find_frame(const struct heap_places *places, struct heap_place *place)
{
    uint64_t address = place->region->begin + place->offset;
    for (size_t i = 0; i < places->frame_count; i++) {
        const struct heap_frames *frames = &places->frames[i];
        if (frames->thread != place->region->thread)
            continue;
        /* Frames on one stack adjoin each other. The innermost one begins at the lowest address,
         * and `addresses` has the end of each. Where frames go on from another stack, as below a
         * signal handler that has its own, the first one has no words here. */
        uint64_t begin = place->region->begin;
        for (size_t frame = 0; frame < frames->count; frame++) {
            uint64_t end = frames->addresses[frame];
            bool is_here = places_is_within(place->region, begin, end);
            if (is_here && address >= begin && address < end) {
                place->stack = frames->stack;
                place->frame = frame;
                place->frame_offset = address - begin;
                return;
            }
            begin = end;
        }
    }
}

struct heap_place heap_place_of(const struct heap_places *places, uint32_t region, uint64_t offset)
{
    struct heap_place place = {.offset = offset};
    if (!region || region > places->region_count)
        return place;
    place.region = &places->regions[region - 1];
    if (place.region->kind == TTD_REGION_MODULE || place.region->kind == TTD_REGION_TLS)
        places_find_in_region(places, &place);
    if (place.region->kind == TTD_REGION_STACK)
        places_find_frame(places, &place);
    return place;
}

struct heap_place heap_place_at(const struct heap_places *places, uint64_t address)
{
    if (!places)
        return (struct heap_place){.region = NULL};
    for (size_t i = 0; i < places->region_count; i++) {
        const struct ttd_region *region = &places->regions[i];
        if (region->kind != TTD_REGION_REGISTERS && address - region->begin < region->size)
            return heap_place_of(places, (uint32_t)(i + 1), address - region->begin);
    }
    struct heap_place place = {.region = NULL};
    for (size_t i = places->module_count; i-- > 0 && !place.module;) {
        const struct heap_place_module *module = &places->modules[i];
        if (address < module->begin || address >= module->end)
            continue;
        place.module = module->id;
        place.module_offset = address - module->bias;
        places_find_variable(places, module->id, place.module_offset, &place);
    }
    return place;
}
