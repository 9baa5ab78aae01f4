/* SPDX-License-Identifier: MIT */
#include "symbolize/dwarf/statics.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/child_arrays.h"

/* A limit against crafted debug information, which may nest deeply. */
enum { DEPTH_MAX = 64 };

/* Finds the address of a variable, in the form of symbols. Returns false if it has none of its
 * own. */
static bool statics_address(Dwarf_Die *variable, uint64_t *address)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *operations;
    size_t count;
    if (!dwarf_attr(variable, DW_AT_location, &attribute) ||
        dwarf_getlocation(&attribute, &operations, &count) != 0)
        return false;
    bool is_of_thread = count == 2 && (operations[1].atom == DW_OP_form_tls_address ||
                                       operations[1].atom == DW_OP_GNU_push_tls_address);
    if (count < 1 || (count > 1 && !is_of_thread) ||
        (operations[0].atom != DW_OP_addr && !is_of_thread))
        return false;
    *address = operations[0].number | (is_of_thread ? SYMBOLIZE_TLS : 0);
    return true;
}

static void statics_add(struct statics *statics, uint64_t address, const char *function,
                        const char *name)
{
    static const char between[] = "()::";
    size_t function_size = strlen(function);
    size_t name_size = strlen(name) + 1;
    char *text = grow_new(function_size + sizeof between - 1 + name_size, 1);
    memcpy(text, function, function_size);
    memcpy(text + function_size, between, sizeof between - 1);
    memcpy(text + function_size + sizeof between - 1, name, name_size);
    statics->variables = grow_by_one(statics->variables, &statics->capacity, statics->count,
                                     sizeof *statics->variables);
    statics->variables[statics->count++] = (struct static_variable){address, text};
}

/* Adds the variables below a DIE. `function`: the name of the function that it is or lies in; NULL
 * if there is none. */
static void read_die(struct statics *statics, Dwarf_Die *die, const char *function, unsigned depth)
{
    Dwarf_Die child;
    if (depth == DEPTH_MAX || dwarf_child(die, &child) != 0)
        return;
    do {
        uint64_t address;
        const char *name;
        switch (dwarf_tag(&child)) {
        case DW_TAG_subprogram:
            read_die(statics, &child, dwarf_diename(&child), depth + 1);
            break;
        case DW_TAG_lexical_block:
            read_die(statics, &child, function, depth + 1);
            break;
        case DW_TAG_variable:
            name = dwarf_diename(&child);
            if (function && name && statics_address(&child, &address))
                statics_add(statics, address, function, name);
            break;
        default:
            break;
        }
    } while (dwarf_siblingof(&child, &child) == 0);
}

static const char *statics_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int compare_variables(const void *left, const void *right)
{
    const struct static_variable *a = left;
    const struct static_variable *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Reads the units of a source file that were not read yet. */
static void statics_read_file(struct statics *statics, const struct units *units, const char *file)
{
    size_t before = statics->count;
    if (!statics->is_read)
        statics->is_read = grow_new(units->count, sizeof *statics->is_read);
    for (uint32_t unit = 0; unit < units->count; unit++) {
        const char *name = statics->is_read[unit] ? NULL : dwarf_diename(&units->dies[unit]);
        if (!name || strcmp(statics_base_name(name), statics_base_name(file)) != 0)
            continue;
        Dwarf_Die content = units_content(units, unit);
        statics->is_read[unit] = true;
        read_die(statics, &content, NULL, 0);
    }
    if (statics->count > before)
        qsort(statics->variables, statics->count, sizeof *statics->variables, compare_variables);
}

const char *statics_name(struct statics *statics, const struct units *units,
                         const struct symbol *symbol)
{
    if (!symbol->file)
        return NULL;
    statics_read_file(statics, units, symbol->file);
    size_t low = 0;
    size_t high = statics->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (statics->variables[middle].address < symbol->begin)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_known = low < statics->count && statics->variables[low].address == symbol->begin;
    return is_known ? statics->variables[low].name : NULL;
}

void statics_free(struct statics *statics)
{
    for (size_t i = 0; i < statics->count; i++)
        free(statics->variables[i].name);
    free(statics->variables);
    free(statics->is_read);
    *statics = (struct statics){0};
}
