/* SPDX-License-Identifier: MIT */
/*
 * Ranges come from the units' DIEs, since .debug_aranges is optional and clang omits it.
 */
#include "symbolize/dwarf/units.h"

#include <dwarf.h>
#include <stdlib.h>

#include "symbolize/grow.h"

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
    if (dwarf == NULL || bias != 0)
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
        type == DW_UT_skeleton && split.addr != NULL)
        return split;
    return die;
}
