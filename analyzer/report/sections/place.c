/* SPDX-License-Identifier: MIT */
/* The label of a place: "redis-server .bss: server+0x1f8". */
#include "report/sections/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/sections/sections.h"
#include "report/writers/escape.h"
#include "view/glob.h"

#define PIECES_MAX 12

/** A label in pieces: its own words and names, each of which is escaped when it is written. */
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

static void add_text(struct label *label, const char *text)
{
    place_label_add(label, escape_string(text));
}

static void add_number(struct label *label, const char *format, uint64_t number)
{
    char *scratch = label->scratch[label->scratch_count++];
    snprintf(scratch, sizeof label->scratch[0], format, (unsigned long long)number);
    add_text(label, scratch);
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
        add_text(label, ": ");
        place_label_add(label, definitions_function(report->definitions, place->variable->name));
        offset = place->variable_offset;
    }
    if (has_offset && (offset || !place->variable))
        add_number(label, "+0x%llx", offset);
}

static void label_module(struct report *report, const struct heap_place *place, bool has_offset,
                         struct label *label)
{
    struct ttd_string section = definitions_text(report->definitions, place->region->name);
    struct ttd_string part = {"", 0};
    if (place->variable)
        part = definitions_function(report->definitions, place->variable->name);
    place_label_add(label, place_module(report, place));
    add_text(label, " ");
    if (part.size && *part.data == '.') { /* no variable, but a part of a section */
        place_label_add(label, part);
        if (has_offset && place->variable_offset)
            add_number(label, "+0x%llx", place->variable_offset);
        return;
    }
    place_label_add(label, section.size ? section : escape_string("data"));
    place_add_variable(report, place, has_offset, label);
}

/* The place of an address in a module's code or constants. */
static void label_constant(struct report *report, const struct heap_place *place, bool has_offset,
                           struct label *label)
{
    const struct definition_module *module = definitions_module(report->definitions, place->module);
    if (module)
        place_label_add(label, glob_base_name(definitions_text(report->definitions, module->path)));
    if (place->variable && place->variable->name) {
        struct ttd_string name = definitions_function(report->definitions, place->variable->name);
        add_text(label, name.size && *name.data == '.' ? " " : ": ");
        place_label_add(label, name);
        if (has_offset && place->variable_offset)
            add_number(label, "+0x%llx", place->variable_offset);
        return;
    }
    if (has_offset)
        add_number(label, "+0x%llx", place->module_offset);
    add_text(label, ", code or constants");
}

static void label_stack(struct report *report, const struct heap_place *place, bool has_offset,
                        struct label *label)
{
    struct frame frame;
    add_number(label, "thread %llu, stack", place->region->thread);
    if (!place_find_frame(report, place, &frame)) {
        if (has_offset)
            add_number(label, " +0x%llx", place->offset);
        return;
    }
    add_text(label, ", ");
    if (frame.function.size) {
        place_label_add(label, frame.function);
    } else {
        place_label_add(label,
                        frame.module.size ? glob_base_name(frame.module) : escape_string("?"));
        add_number(label, "+0x%llx", frame.offset);
    }
    if (frame.file.size) {
        add_text(label, " (");
        place_label_add(label, glob_base_name(frame.file));
        if (frame.line)
            add_number(label, ":%llu", frame.line);
        add_text(label, ")");
    }
    if (has_offset)
        add_number(label, " +0x%llx", place->frame_offset);
}

static void label_registers(const struct heap_place *place, bool has_offset, struct label *label)
{
    const char *name = report_register_name(place->offset / 8);
    add_number(label, "thread %llu, ", place->region->thread);
    if (!has_offset)
        add_text(label, "registers");
    else if (name)
        add_text(label, name);
    else
        add_number(label, "register %llu", place->offset / 8);
}

static void label_tls(struct report *report, const struct heap_place *place, bool has_offset,
                      struct label *label)
{
    if (place->region->module) {
        place_label_add(label, place_module(report, place));
        add_text(label, " ");
    }
    add_text(label, "TLS");
    if (place->region->thread)
        add_number(label, " of thread %llu", place->region->thread);
    if (place->variable)
        place_add_variable(report, place, has_offset, label);
    else if (has_offset)
        add_number(label, " +0x%llx", place->offset);
}

static void label_mapping(struct report *report, const struct heap_place *place, bool has_offset,
                          struct label *label)
{
    static const char *const units[] = {" bytes)", " kB)", " MB)", " GB)", " TB)"};
    struct ttd_string name = definitions_text(report->definitions, place->region->name);
    uint64_t size = place->region->size;
    size_t unit = 0;
    for (; size >= 1024 && unit < 4; unit++)
        size = (size + 512) / 1024;
    bool is_anonymous = place->region->kind == TTD_REGION_ANONYMOUS;
    add_number(label, "mapping 0x%llx (", place->region->begin);
    place_label_add(
        label, name.size ? name : escape_string(is_anonymous ? "anonymous" : "shared or file"));
    add_number(label, ", %llu", size);
    add_text(label, units[unit]);
    if (has_offset)
        add_number(label, " +0x%llx", place->offset);
}

static void make_label(struct report *report, const struct heap_place *place, bool has_offset,
                       struct label *label)
{
    label->count = label->scratch_count = 0;
    if (!place->region && place->module) {
        label_constant(report, place, has_offset, label);
        return;
    }
    switch (place->region ? place->region->kind : TTD_REGION_HEAP) {
    case TTD_REGION_MODULE:
        label_module(report, place, has_offset, label);
        break;
    case TTD_REGION_STACK:
        label_stack(report, place, has_offset, label);
        break;
    case TTD_REGION_REGISTERS:
        label_registers(place, has_offset, label);
        break;
    case TTD_REGION_TLS:
        label_tls(report, place, has_offset, label);
        break;
    case TTD_REGION_ANONYMOUS:
    case TTD_REGION_FILE:
        label_mapping(report, place, has_offset, label);
        break;
    case TTD_REGION_HEAP:
        add_text(label, "heap memory outside of blocks");
        break;
    }
}

void report_place_text(struct report *report, const struct heap_place *place, bool has_offset)
{
    struct label label;
    make_label(report, place, has_offset, &label);
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
    make_label(report, place, has_offset, &label);
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
    bool has_address = region && region->kind != TTD_REGION_REGISTERS;
    row_hex_if(row, "address", has_address,
               has_address ? region->begin + (has_offset ? place->offset : 0) : 0);
    row_end_object(row);
}
