/* SPDX-License-Identifier: MIT */
#include "symbolize/dwarf/enclosing.h"

#include <dwarf.h>
#include <stdlib.h>

#include "symbolize/grow.h"

/* A limit against crafted debug information, which may nest deeply. */
enum { DEPTH_MAX = 64 };

bool enclosing_is_scope(int tag)
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

/* Appends the scopes and enumerations below a DIE, depth first, which is the order of addresses. */
static void load_scopes(struct enclosing *enclosing, Dwarf_Die *die, uint32_t parent,
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
            load_scopes(enclosing, &child, index, depth + 1);
    } while (dwarf_siblingof(&child, &child) == 0);
}

const struct scope_die *enclosing_find(struct enclosing *enclosing, Dwarf_Die *die)
{
    Dwarf_Die unit;
    if (dwarf_diecu(die, &unit, NULL, NULL) == NULL)
        return NULL;
    if (unit.addr != enclosing->unit) {
        enclosing->unit = unit.addr;
        enclosing->count = 0;
        load_scopes(enclosing, &unit, ENCLOSING_NONE, 0);
    }
    size_t low = 0;
    size_t high = enclosing->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)enclosing->dies[middle].die.addr < (uintptr_t)die->addr)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_found = low < enclosing->count && enclosing->dies[low].die.addr == die->addr;
    return is_found ? &enclosing->dies[low] : NULL;
}

bool die_follow(Dwarf_Die *die, unsigned name, Dwarf_Die *target)
{
    Dwarf_Attribute attribute;
    return dwarf_attr(die, name, &attribute) != NULL &&
           dwarf_formref_die(&attribute, target) != NULL;
}

Dwarf_Die die_declaration(Dwarf_Die die)
{
    for (unsigned i = 0; i < 8; i++) {
        Dwarf_Die next;
        if (!die_follow(&die, DW_AT_abstract_origin, &next) &&
            !die_follow(&die, DW_AT_specification, &next))
            break;
        die = next;
    }
    return die;
}

void enclosing_free(struct enclosing *enclosing)
{
    free(enclosing->dies);
    *enclosing = (struct enclosing){0};
}
