/* SPDX-License-Identifier: MIT */
#include "symbolize/names/module_names.h"

#include <dwarf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/child_arrays.h"
#include "symbolize/dwarf/units.h"
#include "symbolize/wire/wire.h"

/* Names of a module's data: variables, or else sections. */

enum { SECTION_NAME_MAX = 256 };

/* Walks the variables of an image beside ascending offsets. */
struct walk {
    const struct image *image;
    const struct symbols *variables;
    size_t next;  /* the first variable that begins above the offset */
    uint64_t end; /* the highest end of those before it */
};

static void module_names_variables_go_to(struct walk *walk, uint64_t offset)
{
    const struct symbols *variables = walk->variables;
    for (; walk->next < variables->count && variables->symbols[walk->next].begin <= offset;
         walk->next++)
        if (variables->symbols[walk->next].end > walk->end)
            walk->end = variables->symbols[walk->next].end;
}

/* Describes the gap between variables that holds an offset, as a part of its section. `name` has
 * SECTION_NAME_MAX bytes. */
static struct symbolize_frame module_names_gap_at(const struct walk *walk, uint64_t offset,
                                                  char *name)
{
    struct symbolize_frame gap = {.begin = offset, .size = 1};
    const struct span *range = image_ranges_at(&walk->image->data, offset);
    if (!range)
        return gap;
    uint64_t end = range->end;
    if (walk->next < walk->variables->count && walk->variables->symbols[walk->next].begin < end)
        end = walk->variables->symbols[walk->next].begin;
    gap.begin = walk->end > range->begin && walk->end <= offset ? walk->end : range->begin;
    gap.size = end - gap.begin;
    const char *section = image_section_name(walk->image, range);
    if (!section || section[0] != '.')
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

static struct symbolize_frame module_names_variable_of(struct binary *binary,
                                                       const struct symbol *symbol)
{
    const char *name = NULL;
    if (symbol->file) {
        binary_load_units(binary);
        name = binary->has_units ? statics_name(&binary->statics, &binary->units, symbol) : NULL;
    }
    return (struct symbolize_frame){.function = name ? name : symbol->name,
                                    .function_size = name ? strlen(name) : symbol->name_size,
                                    .begin = symbol->begin,
                                    .size = symbol->end - symbol->begin};
}

/**
 * Encodes the variable that holds each of the module's offsets, once: for the first of them. An
 * offset in no variable is answered by the gap between the variables around it, within its section,
 * and with the section's name; one in no section by itself, without a name. A variable of a
 * function is named with it, if debug information has it.
 *
 * @param answered  for each offset, 1 to skip it; NULL to skip none.
 */
static void module_names_variables_answer(struct wire_encoder *encoder, struct binary *binary,
                                          const struct symbolize_module *module,
                                          const uint8_t *answered)
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
        module_names_variables_go_to(&walk, offset);
        struct symbolize_frame variable = symbols[i] ? module_names_variable_of(binary, symbols[i])
                                                     : module_names_gap_at(&walk, offset, name);
        answered_end = variable.begin + variable.size;
        if (!answered || !answered[i])
            wire_encoder_variable(encoder, (uint32_t)i, &variable);
    }
    free(symbols);
}

/* The addresses to name, in ascending order, as parallel arrays. */
struct targets {
    uint64_t *addresses;
    uint32_t *indexes; /* of each address among the module's offsets */
    const struct symbol **symbols;
    size_t count;
};

/* The targets that lie in one unit. */
struct group {
    const uint32_t *positions; /* indexes in targets */
    uint64_t *addresses;
    size_t count;
};

struct naming {
    struct wire_encoder *encoder;
    struct binary *binary;
    struct targets targets;
};

static void module_names_load_targets(struct naming *naming, const struct symbolize_module *module,
                                      const uint8_t *answered)
{
    struct span *sorted = grow_new(module->offset_count, sizeof *sorted);
    size_t count = 0;
    for (size_t i = 0; i < module->offset_count; i++) {
        uint64_t address = module->offsets[i] - 1;
        if ((!answered || !answered[i]) &&
            image_ranges_end(&naming->binary->image.code, address) != 0)
            sorted[count++] = (struct span){address, 0, (uint32_t)i};
    }
    spans_sort(sorted, count);
    struct targets *targets = &naming->targets;
    targets->count = count;
    targets->addresses = grow_new(count, sizeof *targets->addresses);
    targets->indexes = grow_new(count, sizeof *targets->indexes);
    targets->symbols = grow_new(count, sizeof *targets->symbols);
    for (size_t i = 0; i < count; i++) {
        targets->addresses[i] = sorted[i].begin;
        targets->indexes[i] = sorted[i].index;
    }
    free(sorted);
}

static void module_names_set_function(struct symbolize_frame *frame, const char *name, size_t size)
{
    frame->function = size > 0 ? name : NULL;
    frame->function_size = size;
}

static void module_names_set_location(struct symbolize_frame *frame,
                                      struct source_location location)
{
    frame->file = location.file;
    frame->file_size = location.file ? strlen(location.file) : 0;
    frame->line = location.line;
}

static const char *linkage_name(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));
    if (!name)
        name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute));
    return name;
}

/* Whether a language's source names are its symbol names: no mangling. */
static bool names_is_plain(int language)
{
    switch (language) {
    case DW_LANG_C:
    case DW_LANG_C89:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case DW_LANG_Mips_Assembler:
        return true;
    default:
        return false;
    }
}

/* How the language of a unit names functions. */
struct unit_language {
    bool has_plain_names;
    bool is_qualified;
    struct qualified names;
};

/* Prefers the linkage name to the symbol: that may be an alias or a clone (f.part.0). */
static void name_function(struct symbolize_frame *frame, struct scope *scope,
                          const struct symbol *symbol, struct unit_language *language)
{
    const char *name = scope ? linkage_name(&scope->die) : NULL;
    bool own_symbol = !scope || !scope->is_inlined;
    if (!name && scope && (language->has_plain_names || !own_symbol || !symbol))
        name = language->is_qualified ? qualified_name(&language->names, &scope->die)
                                      : dwarf_diename(&scope->die);
    if (name)
        module_names_set_function(frame, name, strlen(name));
    else if (own_symbol && symbol)
        module_names_set_function(frame, symbol->name, symbol->name_size);
}

static void module_names_answer_symbol(struct naming *naming, size_t position)
{
    const struct symbol *symbol = naming->targets.symbols[position];
    if (!symbol)
        return;
    struct symbolize_frame frame = {.function = symbol->name, .function_size = symbol->name_size};
    wire_encoder_answer(naming->encoder, naming->targets.indexes[position], &frame, 1);
}

/* Encodes the frames of one address, innermost first: the location of each frame is the place of
 * its call of the frame before it. */
static void module_names_answer_scope(struct naming *naming, struct lines *lines,
                                      struct scopes *scopes, uint32_t innermost, size_t position,
                                      struct unit_language *language)
{
    const struct symbol *symbol = naming->targets.symbols[position];
    struct source_location location = lines_at(lines, naming->targets.addresses[position]);
    struct symbolize_frame frames[SYMBOLIZE_FRAMES_MAX] = {0};
    size_t count = 0;
    bool is_inlined = true;
    for (uint32_t index = innermost; is_inlined && count < SYMBOLIZE_FRAMES_MAX;) {
        struct scope *scope = index != SCOPE_NONE ? &scopes->scopes[index] : NULL;
        is_inlined = scope && scope->is_inlined;
        name_function(&frames[count], scope, symbol, language);
        module_names_set_location(&frames[count++], location);
        if (is_inlined) {
            location = lines_of_call(lines, &scope->die);
            index = scope->parent;
        }
    }
    if (count > 1 || frames[0].function || frames[0].file)
        wire_encoder_answer(naming->encoder, naming->targets.indexes[position], frames, count);
}

static void module_names_answer_unit(struct naming *naming, uint32_t unit,
                                     const struct group *group)
{
    Dwarf_Die die = naming->binary->units.dies[unit];
    Dwarf_Die content = units_content(&naming->binary->units, unit);
    for (size_t i = 0; i < group->count; i++)
        group->addresses[i] = naming->targets.addresses[group->positions[i]];
    uint32_t *innermost = grow_new(group->count, sizeof *innermost);
    struct scopes scopes;
    struct lines lines;
    scopes_find(&scopes, &naming->binary->image, &content, group->addresses, group->count,
                innermost);
    lines_load(&lines, &die, &content);
    int language = dwarf_srclang(&content);
    struct unit_language unit_language = {.has_plain_names = names_is_plain(language),
                                          .is_qualified = qualified_is_for(language)};
    for (size_t i = 0; i < group->count; i++)
        module_names_answer_scope(naming, &lines, &scopes, innermost[i], group->positions[i],
                                  &unit_language);
    qualified_free(&unit_language.names);
    lines_free(&lines);
    scopes_free(&scopes);
    free(innermost);
}

/* Returns the targets sorted by unit, SPAN_NONE last, then by position: each unit is read once. */
static struct span *module_names_by_unit(const struct naming *naming)
{
    size_t count = naming->targets.count;
    uint32_t *span_indexes = grow_new(count, sizeof *span_indexes);
    struct span *sorted = grow_new(count, sizeof *sorted);
    spans_find(naming->binary->units.spans, naming->binary->units.span_count,
               naming->targets.addresses, count, span_indexes);
    for (size_t i = 0; i < count; i++) {
        uint32_t unit = span_indexes[i] != SPAN_NONE
                            ? naming->binary->units.spans[span_indexes[i]].index
                            : SPAN_NONE;
        sorted[i] = (struct span){unit, 0, (uint32_t)i};
    }
    spans_sort(sorted, count);
    free(span_indexes);
    return sorted;
}

static void module_names_answer_units(struct naming *naming)
{
    struct span *sorted = module_names_by_unit(naming);
    size_t count = naming->targets.count;
    uint32_t *positions = grow_new(count, sizeof *positions);
    uint64_t *addresses = grow_new(count, sizeof *addresses);
    for (size_t i = 0; i < count; i++)
        positions[i] = sorted[i].index;
    for (size_t begin = 0; begin < count;) {
        size_t end = begin;
        while (end < count && sorted[end].begin == sorted[begin].begin)
            end++;
        struct group group = {positions + begin, addresses, end - begin};
        if (sorted[begin].begin != SPAN_NONE)
            module_names_answer_unit(naming, (uint32_t)sorted[begin].begin, &group);
        for (; begin < end; begin++) {
            if (sorted[begin].begin == SPAN_NONE)
                module_names_answer_symbol(naming, positions[begin]);
        }
    }
    free(sorted);
    free(positions);
    free(addresses);
}

static void module_names_answer_code(struct wire_encoder *encoder, struct binary *binary,
                                     const struct symbolize_module *module, const uint8_t *answered)
{
    struct naming naming = {.encoder = encoder, .binary = binary};
    binary_load_code(binary);
    module_names_load_targets(&naming, module, answered);
    symbols_find(&binary->symbols, &binary->image.code, naming.targets.addresses,
                 naming.targets.count, naming.targets.symbols);
    if (binary->has_units) {
        module_names_answer_units(&naming);
    } else {
        for (size_t i = 0; i < naming.targets.count; i++)
            module_names_answer_symbol(&naming, i);
    }
    free(naming.targets.addresses);
    free(naming.targets.indexes);
    free(naming.targets.symbols);
}

enum wire_result names_look_up(struct wire_encoder *encoder, struct image_cache *images,
                               const struct symbolize_module *module, const uint8_t *answered,
                               bool is_reduced)
{
    struct binary *binary;
    enum image_result opened = image_cache_open(images, module, !is_reduced, &binary);
    if (opened != IMAGE_OPEN)
        return opened == IMAGE_ABSENT ? WIRE_ABSENT : WIRE_FAILED;
    if (module->is_data)
        module_names_variables_answer(encoder, binary, module, answered);
    else
        module_names_answer_code(encoder, binary, module, answered);
    image_cache_release(binary);
    return WIRE_READ;
}

static void module_cache_close_binary(struct binary *binary)
{
    units_free(&binary->units);
    symbols_free(&binary->symbols);
    symbols_free(&binary->variables);
    statics_free(&binary->statics);
    image_close(&binary->image);
    free(binary->path);
    free(binary->build_id);
    free(binary);
}

static bool module_cache_is_of(const struct binary *binary, const struct symbolize_module *module)
{
    return binary->build_id_size == module->build_id_size &&
           memcmp(binary->build_id, module->build_id, module->build_id_size) == 0 &&
           strcmp(binary->path, module->path) == 0;
}

/* Whether the file was overwritten since it was opened, so that pages not read yet would be those
 * of another version. A file that was replaced or removed does no harm: the old one stays open. */
static bool module_cache_is_overwritten(const struct binary *binary)
{
    struct stat now;
    const struct stat *then = &binary->status;
    return stat(binary->path, &now) == 0 && now.st_dev == then->st_dev &&
           now.st_ino == then->st_ino &&
           (now.st_size != then->st_size || now.st_mtim.tv_sec != then->st_mtim.tv_sec ||
            now.st_mtim.tv_nsec != then->st_mtim.tv_nsec);
}

static void module_cache_drop(struct image_cache *images, size_t index)
{
    module_cache_close_binary(images->binaries[index]);
    images->binaries[index] = images->binaries[--images->count];
}

void image_cache_clear(struct image_cache *images)
{
    while (images->count > 0)
        module_cache_drop(images, images->count - 1);
    images->next = 0;
}

/* Opens the file. If descriptors or memory run out, clears the cache and tries once more. */
static enum image_result module_open_image(struct image *image, struct image_cache *images,
                                           const struct symbolize_module *module, bool with_debug)
{
    errno = 0;
    enum image_result opened = image_open(image, module, with_debug);
    if (opened == IMAGE_OPEN || !images || images->count == 0 ||
        (errno != EMFILE && errno != ENFILE && errno != ENOMEM))
        return opened;
    image_cache_clear(images);
    return image_open(image, module, with_debug);
}

/* Returns a module's cached binary, or NULL. Drops it if its file was overwritten. */
static struct binary *module_cache_find(struct image_cache *images,
                                        const struct symbolize_module *module)
{
    for (size_t i = 0; i < images->count; i++) {
        if (!module_cache_is_of(images->binaries[i], module))
            continue;
        if (!module_cache_is_overwritten(images->binaries[i]))
            return images->binaries[i];
        module_cache_drop(images, i);
        break;
    }
    return NULL;
}

static void module_cache_keep(struct image_cache *images, struct binary *binary,
                              const struct symbolize_module *module)
{
    size_t path_size = strlen(module->path) + 1;
    binary->path = grow_new(path_size, 1);
    memcpy(binary->path, module->path, path_size);
    binary->build_id = grow_new(module->build_id_size, 1);
    memcpy(binary->build_id, module->build_id, module->build_id_size);
    binary->build_id_size = module->build_id_size;
    if (images->count < IMAGE_CACHE_MAX) {
        images->binaries[images->count++] = binary;
        return;
    }
    module_cache_close_binary(images->binaries[images->next]);
    images->binaries[images->next] = binary;
    images->next = (images->next + 1) % IMAGE_CACHE_MAX;
}

enum image_result image_cache_open(struct image_cache *images,
                                   const struct symbolize_module *module, bool with_debug,
                                   struct binary **binary)
{
    bool is_kept = images && with_debug && module->path && module->build_id_size > 0;
    struct binary *cached = is_kept ? module_cache_find(images, module) : NULL;
    if (cached) {
        *binary = cached;
        return IMAGE_OPEN;
    }
    struct image image;
    struct stat status = {0};
    is_kept = is_kept && stat(module->path, &status) == 0;
    enum image_result opened = module_open_image(&image, images, module, with_debug);
    if (opened != IMAGE_OPEN)
        return opened;
    *binary = grow_new(1, sizeof **binary);
    (*binary)->image = image;
    (*binary)->with_debug = with_debug;
    (*binary)->status = status;
    if (is_kept)
        module_cache_keep(images, *binary, module);
    return IMAGE_OPEN;
}

void binary_load_code(struct binary *binary)
{
    if (binary->has_code)
        return;
    binary->has_code = true;
    symbols_load(&binary->symbols, &binary->image);
    binary_load_units(binary);
}

void binary_load_data(struct binary *binary)
{
    if (!binary->has_data)
        symbols_load_data(&binary->variables, &binary->image);
    binary->has_data = true;
}

void binary_load_units(struct binary *binary)
{
    if (binary->has_looked_for_units)
        return;
    binary->has_looked_for_units = true;
    if (binary->with_debug)
        image_prepare_debug(&binary->image);
    binary->has_units = binary->with_debug && units_load(&binary->units, &binary->image);
}

void image_cache_release(struct binary *binary)
{
    if (!binary->path)
        module_cache_close_binary(binary);
}
