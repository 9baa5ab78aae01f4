/* SPDX-License-Identifier: MIT */
#include "symbolize/names/variables.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/grow.h"

enum { SECTION_NAME_MAX = 256 };

/* Walks the variables of an image beside ascending offsets. */
struct walk {
    const struct image *image;
    const struct symbols *variables;
    size_t next;  /* the first variable that begins above the offset */
    uint64_t end; /* the highest end of those before it */
};

static void variables_go_to(struct walk *walk, uint64_t offset)
{
    const struct symbols *variables = walk->variables;
    for (; walk->next < variables->count && variables->symbols[walk->next].begin <= offset;
         walk->next++)
        if (variables->symbols[walk->next].end > walk->end)
            walk->end = variables->symbols[walk->next].end;
}

/* Describes the gap between variables that holds an offset, as a part of its section. `name` has
 * SECTION_NAME_MAX bytes. */
static struct symbolize_frame gap_at(const struct walk *walk, uint64_t offset, char *name)
{
    struct symbolize_frame gap = {.begin = offset, .size = 1};
    const struct span *range = image_ranges_at(&walk->image->data, offset);
    if (range == NULL)
        return gap;
    uint64_t end = range->end;
    if (walk->next < walk->variables->count && walk->variables->symbols[walk->next].begin < end)
        end = walk->variables->symbols[walk->next].begin;
    gap.begin = walk->end > range->begin && walk->end <= offset ? walk->end : range->begin;
    gap.size = end - gap.begin;
    const char *section = image_section_name(walk->image, range);
    if (section == NULL || section[0] != '.')
        return gap;
    int size = gap.begin == range->begin ? snprintf(name, SECTION_NAME_MAX, "%s", section)
                                         : snprintf(name, SECTION_NAME_MAX, "%s+0x%" PRIx64,
                                                    section, gap.begin - range->begin);
    if (size <= 0 || size >= SECTION_NAME_MAX)
        return gap;
    gap.function = name;
    gap.function_size = (size_t)size;
    return gap;
}

static struct symbolize_frame variable_of(struct binary *binary, const struct symbol *symbol)
{
    const char *name = NULL;
    if (symbol->file != NULL) {
        binary_load_units(binary);
        name = binary->has_units ? statics_name(&binary->statics, &binary->units, symbol) : NULL;
    }
    return (struct symbolize_frame){.function = name != NULL ? name : symbol->name,
                                    .function_size =
                                        name != NULL ? strlen(name) : symbol->name_size,
                                    .begin = symbol->begin,
                                    .size = symbol->end - symbol->begin};
}

void variables_answer(struct wire_encoder *encoder, struct binary *binary,
                      const struct symbolize_module *module, const uint8_t *answered)
{
    binary_load_data(binary);
    const struct symbol **symbols = grow_new(module->offset_count, sizeof(struct symbol *));
    symbols_find(&binary->variables, &binary->image.data, module->offsets, module->offset_count,
                 symbols);
    struct walk walk = {.image = &binary->image, .variables = &binary->variables};
    uint64_t answered_end = 0; /* offsets below are answered */
    for (size_t i = 0; i < module->offset_count; i++) {
        char name[SECTION_NAME_MAX];
        uint64_t offset = module->offsets[i];
        if (offset < answered_end)
            continue;
        variables_go_to(&walk, offset);
        struct symbolize_frame variable =
            symbols[i] != NULL ? variable_of(binary, symbols[i]) : gap_at(&walk, offset, name);
        answered_end = variable.begin + variable.size;
        if (answered == NULL || !answered[i])
            wire_encoder_variable(encoder, (uint32_t)i, &variable);
    }
    free(symbols);
}
