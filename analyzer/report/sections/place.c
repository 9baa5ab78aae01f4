/* SPDX-License-Identifier: MIT */
/* Places and blocks in one line, or as an object. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/sections/sections.h"
#include "report/writers/out.h"
#include "view/function_names.h"

/* The label of a place: "redis-server .bss: server+0x1f8". */

#define PIECES_MAX 12

/** A label in pieces: its own words and names; each is escaped when it is written. */
struct label {
    struct ttd_string pieces[PIECES_MAX];
    size_t count;
    /** Room for numbers. */
    char scratch[6][40];
    size_t scratch_count;
};

static void place_label_add(struct label *label, struct ttd_string text)
{
    if (label->count < PIECES_MAX)
        label->pieces[label->count++] = text;
}

static void place_add_text(struct label *label, const char *text)
{
    place_label_add(label, escape_string(text));
}

static void place_add_number(struct label *label, const char *format, uint64_t number)
{
    char *scratch = label->scratch[label->scratch_count++];
    snprintf(scratch, sizeof label->scratch[0], format, (unsigned long long)number);
    place_add_text(label, scratch);
}

const char *report_register_name(uint64_t number)
{
    /* In the order of their DWARF numbers. */
    static const char *const names[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi",
                                        "rbp", "rsp", "r8",  "r9",  "r10", "r11",
                                        "r12", "r13", "r14", "r15", "rip"};
    return number < sizeof names / sizeof names[0] ? names[number] : NULL;
}

static struct ttd_string place_module(const struct report *report, const struct heap_place *place)
{
    const struct definition_module *module =
        definitions_module(report->definitions, place->region->module);
    struct ttd_string path = definitions_text(report->definitions, module ? module->path : 0);
    return path.size ? glob_base_name(path) : escape_string("?");
}

/* Finds the frame that a place lies in; false if its names are not known. Among inlined functions,
 * it is the one that they were inlined into. */
static bool place_find_frame(struct report *report, const struct heap_place *place,
                             struct frame *frame)
{
    struct ttd_stack stack;
    ttd_id id = place->stack;
    /* Frames count from the innermost one outward, as parents do. */
    for (size_t i = 0; id; i++) {
        if (definitions_stack(report->definitions, id, &stack) != TTD_OK)
            return false;
        if (i == place->frame)
            break;
        id = stack.parent;
    }
    report->frames.count = 0;
    if (!id || frame_list_add(&report->frames, report->definitions, &stack) != TTD_OK ||
        !report->frames.count)
        return false;
    *frame = report->frames.frames[report->frames.count - 1];
    return true;
}

/* Adds the variable, if one is known, and the offset there. */
static void place_add_variable(struct report *report, const struct heap_place *place,
                               bool has_offset, struct label *label)
{
    uint64_t offset = place->offset;
    if (place->variable) {
        place_add_text(label, ": ");
        place_label_add(label, definitions_function(report->definitions, place->variable->name));
        offset = place->variable_offset;
    }
    if (has_offset && (offset || !place->variable))
        place_add_number(label, "+0x%llx", offset);
}

static void place_label_module(struct report *report, const struct heap_place *place,
                               bool has_offset, struct label *label)
{
    struct ttd_string section = definitions_text(report->definitions, place->region->name);
    struct ttd_string part = {"", 0};
    if (place->variable)
        part = definitions_function(report->definitions, place->variable->name);
    place_label_add(label, place_module(report, place));
    place_add_text(label, " ");
    if (part.size && *part.data == '.') { /* no variable, but a part of a section */
        place_label_add(label, part);
        if (has_offset && place->variable_offset)
            place_add_number(label, "+0x%llx", place->variable_offset);
        return;
    }
    place_label_add(label, section.size ? section : escape_string("data"));
    place_add_variable(report, place, has_offset, label);
}

/* The place of an address in a module's code or constants. */
static void place_label_constant(struct report *report, const struct heap_place *place,
                                 bool has_offset, struct label *label)
{
    const struct definition_module *module = definitions_module(report->definitions, place->module);
    if (module)
        place_label_add(label, glob_base_name(definitions_text(report->definitions, module->path)));
    if (place->variable && place->variable->name) {
        struct ttd_string name = definitions_function(report->definitions, place->variable->name);
        place_add_text(label, name.size && *name.data == '.' ? " " : ": ");
        place_label_add(label, name);
        if (has_offset && place->variable_offset)
            place_add_number(label, "+0x%llx", place->variable_offset);
        return;
    }
    if (has_offset)
        place_add_number(label, "+0x%llx", place->module_offset);
    place_add_text(label, ", code or constants");
}

static void place_label_stack(struct report *report, const struct heap_place *place,
                              bool has_offset, struct label *label)
{
    struct frame frame;
    place_add_number(label, "thread %llu, stack", place->region->thread);
    if (place->has_returned) {
        place_add_text(label, ", in a frame that had returned");
        return;
    }
    if (!place_find_frame(report, place, &frame)) {
        if (has_offset)
            place_add_number(label, " +0x%llx", place->offset);
        return;
    }
    place_add_text(label, ", ");
    if (frame.function.size) {
        place_label_add(label, frame.function);
    } else {
        place_label_add(label,
                        frame.module.size ? glob_base_name(frame.module) : escape_string("?"));
        place_add_number(label, "+0x%llx", frame.offset);
    }
    if (frame.file.size) {
        place_add_text(label, " (");
        place_label_add(label, glob_base_name(frame.file));
        if (frame.line)
            place_add_number(label, ":%llu", frame.line);
        place_add_text(label, ")");
    }
    if (has_offset)
        place_add_number(label, " +0x%llx", place->frame_offset);
}

static void place_label_registers(const struct heap_place *place, bool has_offset,
                                  struct label *label)
{
    const char *name = report_register_name(place->offset / 8);
    place_add_number(label, "thread %llu, ", place->region->thread);
    if (!has_offset)
        place_add_text(label, "registers");
    else if (name)
        place_add_text(label, name);
    else
        place_add_number(label, "register %llu", place->offset / 8);
}

static void place_label_tls(struct report *report, const struct heap_place *place, bool has_offset,
                            struct label *label)
{
    if (place->region->module) {
        place_label_add(label, place_module(report, place));
        place_add_text(label, " ");
    }
    place_add_text(label, "TLS");
    if (place->region->thread)
        place_add_number(label, " of thread %llu", place->region->thread);
    else if (!place->region->module)
        place_add_number(label, " at 0x%llx", place->region->begin);
    if (place->variable)
        place_add_variable(report, place, has_offset, label);
    else if (has_offset)
        place_add_number(label, " +0x%llx", place->offset);
}

static void place_label_mapping(struct report *report, const struct heap_place *place,
                                bool has_offset, struct label *label)
{
    static const char *const units[] = {" bytes)", " kB)", " MB)", " GB)", " TB)"};
    struct ttd_string name = definitions_text(report->definitions, place->region->name);
    uint64_t size = place->region->size;
    size_t unit = 0;
    for (; size >= 1024 && unit < 4; unit++)
        size = (size + 512) / 1024;
    bool is_anonymous = place->region->kind == TTD_REGION_ANONYMOUS;
    bool is_memory = heap_region_has_addresses(place->region);
    if (is_memory)
        place_add_number(label, "mapping 0x%llx (", place->region->begin);
    place_label_add(
        label, name.size ? name : escape_string(is_anonymous ? "anonymous" : "shared or file"));
    place_add_number(label, is_memory ? ", %llu" : " of the system (%llu", size);
    place_add_text(label, units[unit]);
    if (has_offset)
        place_add_number(label, " +0x%llx", place->offset);
}

static void place_make_label(struct report *report, const struct heap_place *place, bool has_offset,
                             struct label *label)
{
    label->count = label->scratch_count = 0;
    if (!place->region && place->module) {
        place_label_constant(report, place, has_offset, label);
        return;
    }
    switch (place->region ? place->region->kind : TTD_REGION_HEAP) {
    case TTD_REGION_MODULE:
        place_label_module(report, place, has_offset, label);
        break;
    case TTD_REGION_STACK:
        place_label_stack(report, place, has_offset, label);
        break;
    case TTD_REGION_REGISTERS:
        place_label_registers(place, has_offset, label);
        break;
    case TTD_REGION_TLS:
        place_label_tls(report, place, has_offset, label);
        break;
    case TTD_REGION_ANONYMOUS:
    case TTD_REGION_FILE:
        place_label_mapping(report, place, has_offset, label);
        break;
    case TTD_REGION_HEAP:
        place_add_text(label, "heap memory outside of blocks");
        break;
    }
}

void report_place_text(struct report *report, const struct heap_place *place, bool has_offset)
{
    struct label label;
    place_make_label(report, place, has_offset, &label);
    for (size_t i = 0; i < label.count; i++)
        escape_text(report->output, label.pieces[i]);
}

/* Returns the pieces as one string, to be freed; NULL without memory. */
static char *place_label_join(struct report *report, const struct label *label,
                              struct ttd_string *joined)
{
    size_t size = 0;
    for (size_t i = 0; i < label->count; i++)
        size += label->pieces[i].size;
    char *text = malloc(size + 1);
    if (!text)
        report->status = TTD_ERROR_NO_MEMORY;
    size = 0;
    for (size_t i = 0; text && i < label->count; i++) {
        memcpy(text + size, label->pieces[i].data, label->pieces[i].size);
        size += label->pieces[i].size;
    }
    *joined = (struct ttd_string){text, text ? size : 0};
    return text;
}

void row_place(struct row *row, const char *key, const struct heap_place *place, bool has_offset)
{
    static const char *const kinds[] = {"unknown",   "heap", "module",    "stack",
                                        "registers", "tls",  "anonymous", "file"};
    struct report *report = row->report;
    struct label label;
    struct ttd_string joined;
    const struct ttd_region *region = place->region;
    if (row_is_skipped(row))
        return;
    place_make_label(report, place, has_offset, &label);
    char *text = place_label_join(report, &label, &joined);
    if (!row->is_json)
        row_string(row, key, joined);
    row_begin_object(row, key);
    row_text(row, "kind", kinds[region ? region->kind : place->module ? TTD_REGION_MODULE : 0]);
    row_name(row, "label", joined);
    free(text);
    row_unsigned(row, "thread", region ? region->thread : 0);
    row_unsigned(row, "module", region ? region->module : place->module);
    row_name(row, "variable",
             place->variable ? definitions_function(report->definitions, place->variable->name)
                             : (struct ttd_string){"", 0});
    bool has_address = region && heap_region_has_addresses(region);
    row_hex_if(row, "address", has_address,
               has_address ? region->begin + (has_offset ? place->offset : 0) : 0);
    row_end_object(row);
}

/* One block in one line, or as an object. */

/* Names for an address that lies in no block: a variable, a frame, a mapping, a part of a module.
 */

/* Addresses below this one come of a null pointer: the first page is never mapped. */
#define NULL_END UINT64_C(0x1000)

/* Finds the module that has an address in its code or its constants: its data are regions. Of
 * modules that were loaded at the same place, the one that was loaded last. */
static const struct definition_module *place_find_module(const struct report *report,
                                                         uint64_t address)
{
    const struct definition_module *last = NULL, *module;
    for (ttd_id id = 1; (module = definitions_module(report->definitions, id)); id++) {
        if (address >= module->begin && address < module->end)
            last = module;
    }
    return last;
}

bool report_address_text(struct report *report, const char *label, const struct heap_place *place,
                         uint64_t address)
{
    struct text_output *output = report->output;
    bool has_place = place->region || place->module;
    const struct definition_module *module = has_place ? NULL : place_find_module(report, address);
    if ((place->region && place->region->kind == TTD_REGION_HEAP) ||
        (!has_place && !module && address >= NULL_END))
        return false;
    out_text(output, label);
    if (has_place) {
        report_place_text(report, place, true);
    } else if (module) {
        say(output, glob_base_name(definitions_text(report->definitions, module->path)), "+",
            hex(address - module->bias), ", code or constants");
    } else {
        out_text(output, "a null pointer, or a member of an object at one");
    }
    return true;
}

void row_address(struct row *row, const struct heap_place *place)
{
    if (place->region || place->module)
        row_place(row, "place", place, true);
    else
        row_null(row, "place");
}

/* The first frame of report->frames that is not of the runtimes, or else the first one that only
 * passes memory on to no other; NULL if there are no frames. */
static const struct frame *place_block_owner_frame(const struct report *report)
{
    const struct frame_list *list = &report->frames;
    for (size_t i = 0; i < list->count; i++) {
        if (!report_frame_is_foreign(report, &list->frames[i]))
            return &list->frames[i];
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct frame *frame = &list->frames[i];
        if (!allocators_have(frame->function) &&
            !allocators_wrap(definitions_canonical(report->definitions, frame->name)))
            return frame;
    }
    return list->count ? &list->frames[0] : NULL;
}

static void place_text_block_fields(struct report *report, const struct heap_block *block,
                                    struct ttd_string class_name)
{
    struct text_output *output = report->output;
    say(output, hex(block->address), ", ", bytes(block->size));
    if (class_name.size) {
        out_text(output, ", ");
        report_function_text(report, class_name);
    }
    report_expand(report, block->stack);
    const struct frame *owner = place_block_owner_frame(report);
    if (owner) {
        out_text(output, " by ");
        report_frame_text(report, owner);
    }
    say(output, ", allocated by ", ttd_api_name(block->api), "() at ",
        moment(report, block->allocated), " in thread ", number(block->thread));
    if (heap_is_unknown(block->allocated, report->unknown_before))
        out_text(output, ", unknown: perhaps released while recording was off");
}

void report_owner_frame_text(struct report *report, ttd_id stack)
{
    report_expand(report, stack);
    const struct frame *owner = place_block_owner_frame(report);
    if (owner)
        report_frame_text(report, owner);
    else
        out_text(report->output, "(no stack was recorded)");
}

void report_block_text(struct report *report, const struct heap_block *block)
{
    place_text_block_fields(report, block, (struct ttd_string){"", 0});
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
    place_text_block_fields(report, &block, report_node_class(report, reach, node));
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

/* The blocks beside an address: they often show whose pointer has gone astray. */

static void place_text_one(struct report *report, const struct heap_neighbour *block,
                           uint64_t apart, bool is_before)
{
    struct text_output *output = report->output;
    if (!block->address)
        return;
    say(output, is_before ? "  the block before it, at " : "  the block behind it, at ",
        hex(block->address), is_before ? ", begins " : ", ", bytes(apart),
        is_before ? " before it and has " : " behind it, has ", bytes(block->size), "\n");
    report_call_text(report, "allocated", &block->allocated);
}

void report_neighbours_text(struct report *report, const struct heap_neighbours *neighbours,
                            uint64_t address)
{
    place_text_one(report, &neighbours->before, address - neighbours->before.address, true);
    place_text_one(report, &neighbours->after, neighbours->after.address - address, false);
}

static void place_row_neighbour(struct row *row, const char *key,
                                const struct heap_neighbour *block)
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
    place_row_neighbour(row, "before", &neighbours->before);
    place_row_neighbour(row, "after", &neighbours->after);
}
