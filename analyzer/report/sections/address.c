/* SPDX-License-Identifier: MIT */
/* What an address is that lies in no block: a variable, a frame, a mapping, a part of a module. */
#include "report/sections/place.h"
#include "report/sections/sections.h"
#include "report/writers/escape.h"
#include "view/glob.h"

/* Addresses below this one come of a null pointer: the first page is never mapped. */
#define NULL_END UINT64_C(0x1000)

/* Finds the module that has an address in its code or its constants: its data are regions. Of
 * modules that were loaded at the same place, the one that was loaded last. */
static const struct definition_module *find_module(const struct report *report, uint64_t address)
{
    const struct definition_module *last = NULL, *module;
    for (ttd_id id = 1; (module = definitions_module(report->definitions, id)); id++) {
        if (address >= module->begin && address < module->end)
            last = module;
    }
    return last;
}

static bool is_in_heap(const struct heap_place *place)
{
    return place->region && place->region->kind == TTD_REGION_HEAP;
}

bool report_address_text(struct report *report, const char *label, const struct heap_places *places,
                         uint64_t address)
{
    struct text_output *output = report->output;
    struct heap_place place = {.region = NULL};
    if (places)
        place = heap_place_at(places, address);
    bool has_place = place.region || place.module;
    const struct definition_module *module = has_place ? NULL : find_module(report, address);
    if (is_in_heap(&place) || (!has_place && !module && address >= NULL_END))
        return false;
    out_text(output, label);
    if (has_place) {
        report_place_text(report, &place, true);
    } else if (module) {
        escape_text(output, glob_base_name(definitions_text(report->definitions, module->path)));
        out_char(output, '+');
        out_hex(output, address - module->bias);
        out_text(output, ", code or constants");
    } else {
        out_text(output, "a null pointer, or a member of an object at one");
    }
    return true;
}

void report_address_json(struct report *report, struct json *json, const struct heap_places *places,
                         uint64_t address)
{
    struct heap_place place = {.region = NULL};
    if (places)
        place = heap_place_at(places, address);
    if (place.region || place.module)
        report_place_json(report, json, "place", &place, true);
    else
        json_null(json, "place");
}

void report_address_csv(struct report *report, struct csv *csv, const struct heap_places *places,
                        uint64_t address)
{
    struct heap_place place = {.region = NULL};
    if (places)
        place = heap_place_at(places, address);
    if (place.region || place.module)
        report_place_csv(report, csv, &place, true);
    else
        csv_empty(csv);
}
