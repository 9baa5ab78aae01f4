/* SPDX-License-Identifier: MIT */
#include "snapshot/search/scan.h"

#include <stdlib.h>

#include "snapshot/process_image.h"

static const void *scan_read_page(void *context, uint64_t address, void *room)
{
    const struct memory *memory = context;
    const void *bytes = memory->image ? image_find(memory->image, address, CLASS_PAGE) : NULL;
    return bytes || !memory_read(memory, address, room, CLASS_PAGE) ? bytes : room;
}

static bool tables_is_plain(void *context, uint64_t address)
{
    return image_is_clean(((const struct memory *)context)->image, address);
}

/* Returns the module that a mapping belongs to, or NULL. */
static const struct snapshot_module *tables_module(const struct snapshot_subject *subject,
                                                   const struct mapping *mapping)
{
    for (size_t i = 0; i < subject->module_count; i++)
        if (mapping->begin >= subject->modules[i].begin && mapping->begin < subject->modules[i].end)
            return &subject->modules[i];
    return NULL;
}

/* Adds ".bss": a linker copies tables of libraries to there if the program itself uses them. */
static void scan_add_copies(struct tables *tables, const struct regions *regions)
{
    for (size_t i = 0; i < regions->count; i++) {
        const struct region *region = &regions->items[i];
        if (region->name == layout_bss_name)
            heap_pages_add(&tables->pages, region->begin, region->end - region->begin);
    }
}

void tables_open(struct tables *tables, const struct layout *layout,
                 const struct snapshot_subject *subject, struct memory *memory)
{
    const struct maps *maps = &layout->maps;
    *tables = (struct tables){0};
    tables->ranges = calloc(maps->count + 1, sizeof *tables->ranges);
    for (size_t i = 0; i < maps->count && tables->ranges; i++) {
        const struct mapping *mapping = &maps->items[i];
        const struct snapshot_module *module = tables_module(subject, mapping);
        if (mapping->is_shared || !mapping->is_readable || !module)
            continue;
        tables->ranges[tables->range_count++] =
            (struct class_range){mapping->begin, mapping->end, mapping->is_executable,
                                 mapping->is_writable, module->bias != 0};
        if (!mapping->is_executable && !mapping->is_writable)
            heap_pages_add(&tables->pages, mapping->begin, mapping->end - mapping->begin);
    }
    scan_add_copies(tables, &layout->regions);
    classes_init(&tables->classes, scan_read_page, memory, tables->ranges, tables->range_count);
    tables->classes.is_plain = tables_is_plain;
}

void tables_close(struct tables *tables)
{
    classes_free(&tables->classes);
    heap_pages_free(&tables->pages);
    free(tables->ranges);
}
