/* SPDX-License-Identifier: MIT */
/*
 * Ranges come from the units' DIEs, since .debug_aranges is optional and clang omits it.
 */
#include "symbolize/dwarf/units.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/child_arrays.h"

static void add_unit(struct units *units, size_t *unit_capacity, size_t *span_capacity,
                     Dwarf_Die die, const struct image *image)
{
    units->dies = grow_by_one(units->dies, unit_capacity, units->count, sizeof *units->dies);
    uint32_t unit = (uint32_t)units->count;
    units->dies[units->count++] = die;
    Dwarf_Addr base;
    Dwarf_Addr begin;
    Dwarf_Addr end;
    for (ptrdiff_t range = 0; (range = dwarf_ranges(&die, range, &base, &begin, &end)) > 0;) {
        /* Skips ranges of functions that the linker dropped: it moves them out of the code. */
        if (begin >= end || image_ranges_end(&image->code, begin) == 0)
            continue;
        units->spans =
            grow_by_one(units->spans, span_capacity, units->span_count, sizeof *units->spans);
        units->spans[units->span_count++] = (struct span){begin, end, unit};
    }
}

bool units_load(struct units *units, const struct image *image)
{
    *units = (struct units){0};
    Dwarf_Addr bias;
    Dwarf *dwarf = dwfl_module_getdwarf(image->module, &bias);
    if (!dwarf || bias != 0)
        return false;
    size_t unit_capacity = 0;
    size_t span_capacity = 0;
    Dwarf_CU *unit = NULL;
    Dwarf_Half version;
    uint8_t type;
    Dwarf_Die die;
    while (dwarf_get_units(dwarf, unit, &unit, &version, &type, &die, NULL) == 0) {
        if (type == DW_UT_compile || type == DW_UT_skeleton)
            add_unit(units, &unit_capacity, &span_capacity, die, image);
    }
    spans_sort(units->spans, units->span_count);
    return true;
}

void units_free(struct units *units)
{
    free(units->dies);
    free(units->spans);
    *units = (struct units){0};
}

Dwarf_Die units_content(const struct units *units, uint32_t unit)
{
    Dwarf_Die die = units->dies[unit];
    Dwarf_Die split = {0};
    uint8_t type = 0;
    if (dwarf_cu_info(die.cu, NULL, &type, NULL, &split, NULL, NULL, NULL) == 0 &&
        type == DW_UT_skeleton && split.addr)
        return split;
    return die;
}

enum { DEPTH_MAX = 256 };

struct search {
    struct scopes *scopes;
    const struct image *image;
    const uint64_t *addresses;
    size_t count;
    uint32_t *innermost;
    /* Types, and functions without addresses, are searched, too: functions are rarely there. */
    bool searches_everywhere;
};

static void units_scopes_visit(struct search *search, Dwarf_Die *die, uint32_t parent,
                               unsigned depth);

static uint32_t units_add_scope(struct scopes *scopes, const Dwarf_Die *die, uint32_t parent,
                                bool is_inlined)
{
    scopes->scopes =
        grow_by_one(scopes->scopes, &scopes->capacity, scopes->count, sizeof *scopes->scopes);
    scopes->scopes[scopes->count] = (struct scope){parent, is_inlined, *die};
    return (uint32_t)scopes->count++;
}

/*
 * Adds a scope for the DIE, and moves to it the addresses in its ranges that its parent has.
 * Returns the scope's index, or SCOPE_NONE, and adds nothing, if there are no such addresses.
 */
static uint32_t units_claim(struct search *search, Dwarf_Die *die, uint32_t parent, bool is_inlined)
{
    uint32_t scope = SCOPE_NONE;
    Dwarf_Addr base;
    Dwarf_Addr begin;
    Dwarf_Addr end;
    for (ptrdiff_t range = 0; (range = dwarf_ranges(die, range, &base, &begin, &end)) > 0;) {
        size_t i = addresses_from(search->addresses, search->count, begin);
        if (i == search->count || search->addresses[i] >= end ||
            image_ranges_end(&search->image->code, begin) == 0)
            continue;
        for (; i < search->count && search->addresses[i] < end; i++) {
            if (search->innermost[i] != parent)
                continue;
            if (scope == SCOPE_NONE)
                scope = units_add_scope(search->scopes, die, parent, is_inlined);
            search->innermost[i] = scope;
        }
    }
    return scope;
}

/* Whether a block may hold any of the addresses. A block without ranges may. */
static bool units_may_hold(const struct search *search, Dwarf_Die *die)
{
    Dwarf_Addr base;
    Dwarf_Addr begin;
    Dwarf_Addr end;
    ptrdiff_t range = dwarf_ranges(die, 0, &base, &begin, &end);
    if (range <= 0 || search->searches_everywhere)
        return true;
    for (; range > 0; range = dwarf_ranges(die, range, &base, &begin, &end)) {
        size_t i = addresses_from(search->addresses, search->count, begin);
        if (i < search->count && search->addresses[i] < end)
            return true;
    }
    return false;
}

static void units_visit_child(struct search *search, Dwarf_Die *child, uint32_t parent,
                              unsigned depth)
{
    switch (dwarf_tag(child)) {
    case DW_TAG_subprogram: {
        uint32_t scope = units_claim(search, child, SCOPE_NONE, false);
        if (scope != SCOPE_NONE || search->searches_everywhere)
            units_scopes_visit(search, child, scope, depth);
        break;
    }
    case DW_TAG_inlined_subroutine: {
        uint32_t scope = units_claim(search, child, parent, true);
        if (scope != SCOPE_NONE)
            units_scopes_visit(search, child, scope, depth);
        break;
    }
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_with_stmt:
        if (units_may_hold(search, child))
            units_scopes_visit(search, child, parent, depth);
        break;
    case DW_TAG_namespace:
    case DW_TAG_module:
        units_scopes_visit(search, child, parent, depth);
        break;
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
    case DW_TAG_enumeration_type:
        if (search->searches_everywhere)
            units_scopes_visit(search, child, parent, depth);
        break;
    default:
        break;
    }
}

static void units_scopes_visit(struct search *search, Dwarf_Die *die, uint32_t parent,
                               unsigned depth)
{
    Dwarf_Die child;
    if (depth == DEPTH_MAX || dwarf_child(die, &child) != 0)
        return;
    do {
        units_visit_child(search, &child, parent, depth + 1);
    } while (dwarf_siblingof(&child, &child) == 0);
}

void scopes_find(struct scopes *scopes, const struct image *image, Dwarf_Die *unit,
                 const uint64_t *addresses, size_t count, uint32_t *innermost)
{
    *scopes = (struct scopes){0};
    struct search search = {scopes, image, addresses, count, innermost, false};
    for (size_t i = 0; i < count; i++)
        innermost[i] = SCOPE_NONE;
    units_scopes_visit(&search, unit, SCOPE_NONE, 0);
    for (size_t i = 0; i < count && !search.searches_everywhere; i++)
        search.searches_everywhere = innermost[i] == SCOPE_NONE;
    if (search.searches_everywhere)
        units_scopes_visit(&search, unit, SCOPE_NONE, 0);
}

void scopes_free(struct scopes *scopes)
{
    free(scopes->scopes);
    *scopes = (struct scopes){0};
}

static void units_load_files(struct files *files, Dwarf_Die *unit)
{
    if (dwarf_getsrcfiles(unit, &files->files, &files->count) != 0)
        *files = (struct files){0};
    files->names = grow_new(files->count, sizeof *files->names);
}

static void units_free_files(struct files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->names[i]);
    free(files->names);
}

static const char *units_directory_of(Dwarf_Die *unit)
{
    Dwarf_Attribute attribute;
    return dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
}

void lines_load(struct lines *lines, Dwarf_Die *unit, Dwarf_Die *content)
{
    *lines = (struct lines){.unit = unit, .directory = units_directory_of(unit)};
    if (!lines->directory)
        lines->directory = units_directory_of(content);
    units_load_files(&lines->line_files, unit);
    units_load_files(&lines->call_files, content);
}

void lines_free(struct lines *lines)
{
    units_free_files(&lines->line_files);
    units_free_files(&lines->call_files);
}

static char *lines_join_path(const char *directory, const char *name)
{
    if (name[0] == '/' || !directory || directory[0] == '\0')
        directory = "";
    size_t directory_size = strlen(directory);
    size_t name_size = strlen(name);
    char *joined = grow_new(directory_size + name_size + 2, 1);
    memcpy(joined, directory, directory_size);
    if (directory_size > 0 && directory[directory_size - 1] != '/')
        joined[directory_size++] = '/';
    memcpy(joined + directory_size, name, name_size);
    return joined;
}

static const char *lines_file_name(struct lines *lines, struct files *files, size_t index)
{
    if (index >= files->count)
        return NULL;
    if (!files->names[index]) {
        const char *name = dwarf_filesrc(files->files, index, NULL, NULL);
        /* libdw's name for an unknown file. */
        if (!name || strcmp(name, "???") == 0)
            return NULL;
        files->names[index] = lines_join_path(lines->directory, name);
    }
    return files->names[index];
}

static uint32_t units_valid_line(Dwarf_Word line)
{
    return line <= INT32_MAX ? (uint32_t)line : 0;
}

struct source_location lines_at(struct lines *lines, uint64_t address)
{
    struct source_location location = {0};
    Dwarf_Line *line = dwarf_getsrc_die(lines->unit, address);
    Dwarf_Files *files;
    size_t index;
    int number;
    if (!line || dwarf_line_file(line, &files, &index) != 0 || files != lines->line_files.files)
        return location;
    location.file = lines_file_name(lines, &lines->line_files, index);
    if (location.file && dwarf_lineno(line, &number) == 0 && number > 0)
        location.line = (uint32_t)number;
    return location;
}

static Dwarf_Word units_number_attribute(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) != 0)
        return 0;
    return value;
}

struct source_location lines_of_call(struct lines *lines, Dwarf_Die *inlined)
{
    struct source_location location = {0};
    Dwarf_Attribute attribute;
    if (!dwarf_attr(inlined, DW_AT_call_file, &attribute))
        return location;
    Dwarf_Word file = units_number_attribute(inlined, DW_AT_call_file);
    location.file = lines_file_name(lines, &lines->call_files, file);
    if (location.file)
        location.line = units_valid_line(units_number_attribute(inlined, DW_AT_call_line));
    return location;
}
