/* SPDX-License-Identifier: MIT */
#include "symbolize/dwarf/units.h"

#include <dwarf.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "common/search.h"
#include "symbolize/child_arrays.h"

/* A limit against crafted, deeply nested debug information. */
enum { DEPTH_MAX = 64 };

/** Whether DIEs with this tag enclose others. */
static bool enclosing_is_scope(int tag)
{
    switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_subprogram:
    case DW_TAG_lexical_block:
        return true;
    default:
        return false;
    }
}

/* Appends the scopes and enumerations below a DIE, depth first: in order of addresses. */
static void qualified_load_scopes(struct enclosing *enclosing, Dwarf_Die *die, uint32_t parent,
                                  unsigned depth)
{
    Dwarf_Die child;
    if (depth == DEPTH_MAX || dwarf_child(die, &child) != 0)
        return;
    do {
        int tag = dwarf_tag(&child);
        if (!enclosing_is_scope(tag) && tag != DW_TAG_enumeration_type)
            continue;
        uint32_t index = (uint32_t)enclosing->count;
        enclosing->dies = grow_by_one(enclosing->dies, &enclosing->capacity, enclosing->count,
                                      sizeof *enclosing->dies);
        enclosing->dies[enclosing->count++] = (struct scope_die){child, parent};
        if (enclosing_is_scope(tag))
            qualified_load_scopes(enclosing, &child, index, depth + 1);
    } while (dwarf_siblingof(&child, &child) == 0);
}

/** Returns the entry of a DIE, or NULL if it is none of its unit's scopes. */
static const struct scope_die *enclosing_find(struct enclosing *enclosing, Dwarf_Die *die)
{
    Dwarf_Die unit;
    if (!dwarf_diecu(die, &unit, NULL, NULL))
        return NULL;
    if (unit.addr != enclosing->unit) {
        enclosing->unit = unit.addr;
        enclosing->count = 0;
        qualified_load_scopes(enclosing, &unit, ENCLOSING_NONE, 0);
    }
    size_t low = 0;
    size_t high = enclosing->count;
    SEARCH_SORTED(low, high, middle,
                  (uintptr_t)enclosing->dies[middle].die.addr < (uintptr_t)die->addr);
    bool is_found = low < enclosing->count && enclosing->dies[low].die.addr == die->addr;
    return is_found ? &enclosing->dies[low] : NULL;
}

/** Follows a reference to another DIE. Returns false if there is no such attribute. */
static bool qualified_die_follow(Dwarf_Die *die, unsigned name, Dwarf_Die *target)
{
    Dwarf_Attribute attribute;
    return dwarf_attr(die, name, &attribute) && dwarf_formref_die(&attribute, target);
}

/** Returns the DIE of the declaration of a function, itself if it has no other. */
static Dwarf_Die qualified_die_declaration(Dwarf_Die die)
{
    for (unsigned i = 0; i < 8; i++) {
        Dwarf_Die next;
        if (!qualified_die_follow(&die, DW_AT_abstract_origin, &next) &&
            !qualified_die_follow(&die, DW_AT_specification, &next))
            break;
        die = next;
    }
    return die;
}

/* Limits against crafted debug information: it may nest deeply or refer to itself. */
enum { TYPE_DEPTH_MAX = 32, PARAMETERS_MAX = 64, NAME_SIZE_MAX = 16384 };

struct qualified_name {
    const void *die;
    char *text;
};

struct name_writer {
    struct qualified *qualified;
    FILE *out;
};

void qualified_free(struct qualified *qualified)
{
    for (size_t i = 0; i < qualified->name_count; i++)
        free(qualified->names[i].text);
    free(qualified->names);
    free(qualified->scopes.dies);
    *qualified = (struct qualified){0};
}

bool qualified_is_for(int language)
{
    switch (language) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case 0x2b: /* C++17 and C++20, of DWARF 6 */
    case 0x2c:
        return true;
    default:
        return false;
    }
}

static void qualified_write_parameters(struct name_writer *writer, Dwarf_Die *function,
                                       unsigned depth);

/* A class without a name whose member `inner` is a call operator belongs to a lambda. */
static void qualified_write_component(struct name_writer *writer, Dwarf_Die *die, Dwarf_Die *inner,
                                      unsigned depth)
{
    const char *name = dwarf_diename(die);
    const char *inner_name = inner ? dwarf_diename(inner) : NULL;
    if (name) {
        fputs(name, writer->out);
    } else if (dwarf_tag(die) == DW_TAG_namespace) {
        fputs("(anonymous namespace)", writer->out);
    } else if (inner_name && strncmp(inner_name, "operator()", 10) == 0) {
        fputs("{lambda", writer->out);
        qualified_write_parameters(writer, inner, depth + 1);
        fputs("}", writer->out);
    } else {
        fputs("{unnamed}", writer->out);
    }
}

/* Writes the name of a DIE, preceded by the names of its enclosing scopes. `inner` is the DIE
 * written next, or NULL. */
static void qualified_write_path(struct name_writer *writer, Dwarf_Die die, Dwarf_Die *inner,
                                 unsigned depth)
{
    die = qualified_die_declaration(die);
    const struct scope_die *scope = enclosing_find(&writer->qualified->scopes, &die);
    uint32_t parent = scope ? scope->parent : ENCLOSING_NONE;
    while (parent != ENCLOSING_NONE &&
           dwarf_tag(&writer->qualified->scopes.dies[parent].die) == DW_TAG_lexical_block)
        parent = writer->qualified->scopes.dies[parent].parent;
    if (parent != ENCLOSING_NONE && depth < TYPE_DEPTH_MAX) {
        qualified_write_path(writer, writer->qualified->scopes.dies[parent].die, &die, depth + 1);
        fputs("::", writer->out);
    }
    qualified_write_component(writer, &die, inner, depth);
}

/* Returns a demangler's name of a basic type; compilers spell it differently. */
static const char *qualified_builtin_name(const char *name)
{
    static const char *const names[][2] = {{"long int", "long"},
                                           {"long unsigned int", "unsigned long"},
                                           {"long long int", "long long"},
                                           {"long long unsigned int", "unsigned long long"},
                                           {"short int", "short"},
                                           {"short unsigned int", "unsigned short"},
                                           {"_Bool", "bool"}};
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i][0]) == 0)
            return names[i][1];
    }
    return name ? name : "?";
}

static void qualified_write_type(struct name_writer *writer, Dwarf_Die *owner, unsigned depth)
{
    Dwarf_Die type;
    if (depth == TYPE_DEPTH_MAX || !qualified_die_follow(owner, DW_AT_type, &type)) {
        fputs("void", writer->out);
        return;
    }
    int tag = dwarf_tag(&type);
    const char *suffix = tag == DW_TAG_pointer_type            ? "*"
                         : tag == DW_TAG_reference_type        ? "&"
                         : tag == DW_TAG_rvalue_reference_type ? "&&"
                         : tag == DW_TAG_const_type            ? " const"
                         : tag == DW_TAG_volatile_type         ? " volatile"
                         : tag == DW_TAG_restrict_type         ? " __restrict"
                         : tag == DW_TAG_array_type            ? " []"
                         : tag == DW_TAG_typedef               ? ""
                                                               : NULL;
    Dwarf_Die target;
    if (suffix && qualified_die_follow(&type, DW_AT_type, &target) &&
        dwarf_tag(&target) == DW_TAG_subroutine_type) {
        qualified_write_type(writer, &target, depth + 1);
        fprintf(writer->out, " (%s)", suffix);
        qualified_write_parameters(writer, &target, depth + 1);
    } else if (suffix) {
        qualified_write_type(writer, &type, depth + 1);
        fputs(suffix, writer->out);
    } else if (enclosing_is_scope(tag) || tag == DW_TAG_enumeration_type) {
        qualified_write_path(writer, type, NULL, depth + 1);
    } else {
        fputs(qualified_builtin_name(dwarf_diename(&type)), writer->out);
    }
}

/* Writes the types of the parameters in the source: artificial ones, such as this, are left out. */
static void qualified_write_parameters(struct name_writer *writer, Dwarf_Die *function,
                                       unsigned depth)
{
    Dwarf_Die child;
    unsigned count = 0;
    fputc('(', writer->out);
    int status = dwarf_child(function, &child);
    for (; status == 0 && count < PARAMETERS_MAX; status = dwarf_siblingof(&child, &child)) {
        int tag = dwarf_tag(&child);
        Dwarf_Attribute attribute;
        bool flag = false;
        if (tag != DW_TAG_formal_parameter && tag != DW_TAG_unspecified_parameters)
            continue;
        if (dwarf_attr_integrate(&child, DW_AT_artificial, &attribute) &&
            dwarf_formflag(&attribute, &flag) == 0 && flag)
            continue;
        if (ftell(writer->out) > NAME_SIZE_MAX)
            break;
        fputs(count++ > 0 ? ", " : "", writer->out);
        if (tag == DW_TAG_unspecified_parameters)
            fputs("...", writer->out);
        else
            qualified_write_type(writer, &child, depth);
    }
    fputc(')', writer->out);
}

/* Whether a method is const, that is, its object parameter points to a const type. */
static bool qualified_is_const(Dwarf_Die *method)
{
    Dwarf_Die object;
    Dwarf_Die type;
    if (!qualified_die_follow(method, DW_AT_object_pointer, &object) ||
        !qualified_die_follow(&object, DW_AT_type, &type))
        return false;
    if (dwarf_tag(&type) == DW_TAG_const_type && !qualified_die_follow(&type, DW_AT_type, &type))
        return false;
    return dwarf_tag(&type) == DW_TAG_pointer_type &&
           qualified_die_follow(&type, DW_AT_type, &type) && dwarf_tag(&type) == DW_TAG_const_type;
}

static char *qualified_write_name(struct qualified *qualified, Dwarf_Die *declaration)
{
    char *text = NULL;
    size_t size = 0;
    struct name_writer writer = {qualified, open_memstream(&text, &size)};
    if (!writer.out)
        abort();
    qualified_write_path(&writer, *declaration, NULL, 0);
    qualified_write_parameters(&writer, declaration, 0);
    if (qualified_is_const(declaration))
        fputs(" const", writer.out);
    fclose(writer.out);
    return text;
}

/* Returns the index of a DIE's name among the sorted names, or its index for an insertion. */
static size_t qualified_find_name(const struct qualified *qualified, const void *die)
{
    size_t low = 0;
    size_t high = qualified->name_count;
    SEARCH_SORTED(low, high, middle, (uintptr_t)qualified->names[middle].die < (uintptr_t)die);
    return low;
}

const char *qualified_name(struct qualified *qualified, Dwarf_Die *function)
{
    Dwarf_Die declaration = qualified_die_declaration(*function);
    if (!dwarf_diename(&declaration))
        return NULL;
    size_t index = qualified_find_name(qualified, declaration.addr);
    if (index < qualified->name_count && qualified->names[index].die == declaration.addr)
        return qualified->names[index].text;
    char *text = qualified_write_name(qualified, &declaration);
    qualified->names = grow_by_one(qualified->names, &qualified->name_capacity,
                                   qualified->name_count, sizeof *qualified->names);
    struct qualified_name *name = &qualified->names[index];
    memmove(name + 1, name, (qualified->name_count++ - index) * sizeof *name);
    *name = (struct qualified_name){declaration.addr, text};
    return text;
}

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
static void qualified_read_die(struct statics *statics, Dwarf_Die *die, const char *function,
                               unsigned depth)
{
    Dwarf_Die child;
    if (depth == DEPTH_MAX || dwarf_child(die, &child) != 0)
        return;
    do {
        uint64_t address;
        const char *name;
        switch (dwarf_tag(&child)) {
        case DW_TAG_subprogram:
            qualified_read_die(statics, &child, dwarf_diename(&child), depth + 1);
            break;
        case DW_TAG_lexical_block:
            qualified_read_die(statics, &child, function, depth + 1);
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

static int qualified_compare_variables(const void *left, const void *right)
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
        qualified_read_die(statics, &content, NULL, 0);
    }
    if (statics->count > before)
        qsort(statics->variables, statics->count, sizeof *statics->variables,
              qualified_compare_variables);
}

const char *statics_name(struct statics *statics, const struct units *units,
                         const struct symbol *symbol)
{
    if (!symbol->file)
        return NULL;
    statics_read_file(statics, units, symbol->file);
    size_t i = array_count_below(statics->variables, statics->count, sizeof *statics->variables,
                                 offsetof(struct static_variable, address), symbol->begin);
    bool is_known = i < statics->count && statics->variables[i].address == symbol->begin;
    return is_known ? statics->variables[i].name : NULL;
}

void statics_free(struct statics *statics)
{
    for (size_t i = 0; i < statics->count; i++)
        free(statics->variables[i].name);
    free(statics->variables);
    free(statics->is_read);
    *statics = (struct statics){0};
}
