/* SPDX-License-Identifier: MIT */
#include "qualified.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"

/* Crafted debug information may be nested without end, or refer to itself. */
enum { DEPTH_MAX = 64, TYPE_DEPTH_MAX = 32, PARAMETERS_MAX = 64, SIZE_MAX_OF_NAME = 16384 };

#define NO_PARENT UINT32_MAX

/* A DIE that others are in, or a function. A unit's are in the order of their places. */
struct enclosed {
    Dwarf_Die die;
    uint32_t parent;
};

struct qualified_name {
    const void *die;
    char *text;
};

struct writing {
    struct qualified *qualified;
    FILE *out;
};

void qualified_free(struct qualified *qualified)
{
    for (size_t i = 0; i < qualified->name_count; i++)
        free(qualified->names[i].text);
    free(qualified->names);
    free(qualified->dies);
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

static bool encloses(int tag)
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

static void enclose(struct qualified *qualified, Dwarf_Die *die, uint32_t parent, unsigned depth)
{
    Dwarf_Die child;
    if (depth == DEPTH_MAX || dwarf_child(die, &child) != 0)
        return;
    do {
        int tag = dwarf_tag(&child);
        if (!encloses(tag) && tag != DW_TAG_enumeration_type)
            continue;
        uint32_t index = (uint32_t)qualified->die_count;
        qualified->dies = grow_by_one(qualified->dies, &qualified->die_capacity,
                                      qualified->die_count, sizeof *qualified->dies);
        qualified->dies[qualified->die_count++] = (struct enclosed){child, parent};
        if (encloses(tag))
            enclose(qualified, &child, index, depth + 1);
    } while (dwarf_siblingof(&child, &child) == 0);
}

/* Finds a DIE with its scope; NULL if no named scope has it. */
static struct enclosed *find(struct qualified *qualified, Dwarf_Die *die)
{
    Dwarf_Die unit;
    if (dwarf_diecu(die, &unit, NULL, NULL) == NULL)
        return NULL;
    if (unit.addr != qualified->unit) {
        qualified->unit = unit.addr;
        qualified->die_count = 0;
        enclose(qualified, &unit, NO_PARENT, 0);
    }
    size_t low = 0;
    size_t high = qualified->die_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)qualified->dies[middle].die.addr < (uintptr_t)die->addr)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_there = low < qualified->die_count && qualified->dies[low].die.addr == die->addr;
    return is_there ? &qualified->dies[low] : NULL;
}

static bool follow(Dwarf_Die *die, unsigned name, Dwarf_Die *result)
{
    Dwarf_Attribute attribute;
    return dwarf_attr(die, name, &attribute) != NULL &&
           dwarf_formref_die(&attribute, result) != NULL;
}

/* The DIE that stands where a function was declared. */
static Dwarf_Die declaration_of(Dwarf_Die die)
{
    for (unsigned i = 0; i < 8; i++) {
        Dwarf_Die next;
        if (!follow(&die, DW_AT_abstract_origin, &next) &&
            !follow(&die, DW_AT_specification, &next))
            break;
        die = next;
    }
    return die;
}

static void write_parameters(struct writing *writing, Dwarf_Die *function, unsigned depth);

/* A class without a name whose call operator this is, is that of a lambda. */
static void write_part(struct writing *writing, Dwarf_Die *die, Dwarf_Die *inner, unsigned depth)
{
    const char *name = dwarf_diename(die);
    const char *inner_name = inner != NULL ? dwarf_diename(inner) : NULL;
    if (name != NULL) {
        fputs(name, writing->out);
    } else if (dwarf_tag(die) == DW_TAG_namespace) {
        fputs("(anonymous namespace)", writing->out);
    } else if (inner_name != NULL && strncmp(inner_name, "operator()", 10) == 0) {
        fputs("{lambda", writing->out);
        write_parameters(writing, inner, depth + 1);
        fputs("}", writing->out);
    } else {
        fputs("{unnamed}", writing->out);
    }
}

/* Writes the name of a DIE, in which `inner` is if not NULL, and of what is around it. */
static void write_path(struct writing *writing, Dwarf_Die die, Dwarf_Die *inner, unsigned depth)
{
    die = declaration_of(die);
    struct enclosed *around = find(writing->qualified, &die);
    uint32_t parent = around != NULL ? around->parent : NO_PARENT;
    while (parent != NO_PARENT &&
           dwarf_tag(&writing->qualified->dies[parent].die) == DW_TAG_lexical_block)
        parent = writing->qualified->dies[parent].parent;
    if (parent != NO_PARENT && depth < TYPE_DEPTH_MAX) {
        write_path(writing, writing->qualified->dies[parent].die, &die, depth + 1);
        fputs("::", writing->out);
    }
    write_part(writing, &die, inner, depth);
}

/* A demangler's name of a type that compilers spell with more words. */
static const char *builtin_name(const char *name)
{
    static const char *const names[][2] = {{"long int", "long"},
                                           {"long unsigned int", "unsigned long"},
                                           {"long long int", "long long"},
                                           {"long long unsigned int", "unsigned long long"},
                                           {"short int", "short"},
                                           {"short unsigned int", "unsigned short"},
                                           {"_Bool", "bool"}};
    for (size_t i = 0; name != NULL && i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i][0]) == 0)
            return names[i][1];
    }
    return name != NULL ? name : "?";
}

static void write_type(struct writing *writing, Dwarf_Die *owner, unsigned depth)
{
    Dwarf_Die type;
    if (depth == TYPE_DEPTH_MAX || !follow(owner, DW_AT_type, &type)) {
        fputs("void", writing->out);
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
    if (suffix != NULL && follow(&type, DW_AT_type, &target) &&
        dwarf_tag(&target) == DW_TAG_subroutine_type) {
        write_type(writing, &target, depth + 1);
        fprintf(writing->out, " (%s)", suffix);
        write_parameters(writing, &target, depth + 1);
    } else if (suffix != NULL) {
        write_type(writing, &type, depth + 1);
        fputs(suffix, writing->out);
    } else if (encloses(tag) || tag == DW_TAG_enumeration_type) {
        write_path(writing, type, NULL, depth + 1);
    } else {
        fputs(builtin_name(dwarf_diename(&type)), writing->out);
    }
}

/* Writes the parameters that stand in the source. */
static void write_parameters(struct writing *writing, Dwarf_Die *function, unsigned depth)
{
    Dwarf_Die child;
    unsigned count = 0;
    fputc('(', writing->out);
    int status = dwarf_child(function, &child);
    for (; status == 0 && count < PARAMETERS_MAX; status = dwarf_siblingof(&child, &child)) {
        int tag = dwarf_tag(&child);
        Dwarf_Attribute attribute;
        bool flag = false;
        if (tag != DW_TAG_formal_parameter && tag != DW_TAG_unspecified_parameters)
            continue;
        if (dwarf_attr_integrate(&child, DW_AT_artificial, &attribute) != NULL &&
            dwarf_formflag(&attribute, &flag) == 0 && flag)
            continue;
        if (ftell(writing->out) > SIZE_MAX_OF_NAME)
            break;
        fputs(count++ > 0 ? ", " : "", writing->out);
        if (tag == DW_TAG_unspecified_parameters)
            fputs("...", writing->out);
        else
            write_type(writing, &child, depth);
    }
    fputc(')', writing->out);
}

/* Whether a method is const: so is what its first parameter points to. */
static bool is_const(Dwarf_Die *method)
{
    Dwarf_Die object;
    Dwarf_Die type;
    if (!follow(method, DW_AT_object_pointer, &object) || !follow(&object, DW_AT_type, &type))
        return false;
    if (dwarf_tag(&type) == DW_TAG_const_type && !follow(&type, DW_AT_type, &type))
        return false;
    return dwarf_tag(&type) == DW_TAG_pointer_type && follow(&type, DW_AT_type, &type) &&
           dwarf_tag(&type) == DW_TAG_const_type;
}

static char *write_name(struct qualified *qualified, Dwarf_Die *declaration)
{
    char *text = NULL;
    size_t size = 0;
    struct writing writing = {qualified, open_memstream(&text, &size)};
    if (writing.out == NULL)
        abort();
    write_path(&writing, *declaration, NULL, 0);
    write_parameters(&writing, declaration, 0);
    if (is_const(declaration))
        fputs(" const", writing.out);
    fclose(writing.out);
    return text;
}

/* The index of a DIE's name among the sorted names, or of its place there. */
static size_t find_name(const struct qualified *qualified, const void *die)
{
    size_t low = 0;
    size_t high = qualified->name_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)qualified->names[middle].die < (uintptr_t)die)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const char *qualified_name(struct qualified *qualified, Dwarf_Die *function)
{
    Dwarf_Die declaration = declaration_of(*function);
    if (dwarf_diename(&declaration) == NULL)
        return NULL;
    size_t at = find_name(qualified, declaration.addr);
    if (at < qualified->name_count && qualified->names[at].die == declaration.addr)
        return qualified->names[at].text;
    char *text = write_name(qualified, &declaration);
    qualified->names = grow_by_one(qualified->names, &qualified->name_capacity,
                                   qualified->name_count, sizeof *qualified->names);
    struct qualified_name *name = &qualified->names[at];
    memmove(name + 1, name, (qualified->name_count++ - at) * sizeof *name);
    *name = (struct qualified_name){declaration.addr, text};
    return text;
}
