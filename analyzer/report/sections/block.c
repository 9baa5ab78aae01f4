/* SPDX-License-Identifier: MIT */
/* One block in one line, or as an object. */
#include "report/sections/place.h"
#include "report/sections/sections.h"
#include "report/writers/escape.h"
#include "view/allocators.h"
#include "view/glob.h"

/* Names for an address that lies in no block: a variable, a frame, a mapping, a part of a module.
 */

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

void row_address(struct row *row, const struct heap_places *places, uint64_t address)
{
    struct heap_place place = {.region = NULL};
    if (places)
        place = heap_place_at(places, address);
    if (place.region || place.module)
        row_place(row, "place", &place, true);
    else
        row_null(row, "place");
}

/* The first frame of report->frames that only passes memory on to no other; NULL if there are no
 * frames. */
static const struct frame *block_owner_frame(const struct report *report)
{
    const struct frame_list *list = &report->frames;
    for (size_t i = 0; i < list->count; i++) {
        const struct frame *frame = &list->frames[i];
        if (!allocators_have(frame->function) &&
            !allocators_wrap(definitions_canonical(report->definitions, frame->name)))
            return frame;
    }
    return list->count ? &list->frames[0] : NULL;
}

static void text_block_fields(struct report *report, const struct heap_block *block,
                              struct ttd_string class_name)
{
    struct text_output *output = report->output;
    out_hex(output, block->address);
    out_text(output, ", ");
    report_count(output, block->size, "byte");
    if (class_name.size) {
        out_text(output, ", ");
        report_function_text(report, class_name);
    }
    report_expand(report, block->stack);
    const struct frame *owner = block_owner_frame(report);
    if (owner) {
        out_text(output, " by ");
        report_frame_text(report, owner);
    }
    out_format(output, ", allocated by %s() at ", ttd_api_name(block->api));
    report_position_text(report, block->allocated);
    out_format(output, " in thread %u", block->thread);
    if (heap_is_unknown(block->allocated, report->unknown_before))
        out_text(output, ", unknown: perhaps released while recording was off");
}

void report_owner_frame_text(struct report *report, ttd_id stack)
{
    report_expand(report, stack);
    const struct frame *owner = block_owner_frame(report);
    if (owner)
        report_frame_text(report, owner);
    else
        out_text(report->output, "(no stack was recorded)");
}

void report_block_text(struct report *report, const struct heap_block *block)
{
    text_block_fields(report, block, (struct ttd_string){"", 0});
}

struct ttd_string report_node_class(struct report *report, const struct heap_reach *reach,
                                    uint32_t node)
{
    uint32_t index =
        reach->node_classes && node < reach->nodes.count ? reach->node_classes[node] : 0;
    return index ? definitions_class(report->definitions, reach->classes[index - 1].name)
                 : (struct ttd_string){"", 0};
}

void report_node_text(struct report *report, const struct heap_reach *reach, uint32_t node)
{
    struct heap_block block = heap_nodes_block(&reach->nodes, node);
    text_block_fields(report, &block, report_node_class(report, reach, node));
}

void row_block(struct row *row, const char *key, const struct heap_block *block)
{
    if (!block) {
        row_null(row, key);
        return;
    }
    struct heap_call allocated = heap_call_of_block(block);
    row_begin_object(row, key);
    row_hex(row, "address", block->address);
    row_unsigned(row, "size", block->size);
    row_call(row, "allocated", &allocated);
    row_bool(row, "unknown", heap_is_unknown(block->allocated, row->report->unknown_before));
    row_end_object(row);
}

/* The blocks beside an address, which often show whose pointer has gone astray. */

static void text_one(struct report *report, const struct heap_neighbour *block, uint64_t apart,
                     bool is_before)
{
    struct text_output *output = report->output;
    if (!block->address)
        return;
    out_text(output, is_before ? "  the block before it, at " : "  the block behind it, at ");
    out_hex(output, block->address);
    out_text(output, is_before ? ", begins " : ", ");
    report_count(output, apart, "byte");
    out_text(output, is_before ? " before it and has " : " behind it, has ");
    report_count(output, block->size, "byte");
    out_char(output, '\n');
    report_call_text(report, "allocated", &block->allocated);
}

void report_neighbours_text(struct report *report, const struct heap_neighbours *neighbours,
                            uint64_t address)
{
    text_one(report, &neighbours->before, address - neighbours->before.address, true);
    text_one(report, &neighbours->after, neighbours->after.address - address, false);
}

static void row_neighbour(struct row *row, const char *key, const struct heap_neighbour *block)
{
    if (!block->address) {
        row_null(row, key);
        return;
    }
    row_begin_object(row, key);
    row_hex(row, "address", block->address);
    row_unsigned(row, "size", block->size);
    row_call(row, "allocated", &block->allocated);
    row_end_object(row);
}

void row_neighbours(struct row *row, const struct heap_neighbours *neighbours)
{
    row_neighbour(row, "before", &neighbours->before);
    row_neighbour(row, "after", &neighbours->after);
}
