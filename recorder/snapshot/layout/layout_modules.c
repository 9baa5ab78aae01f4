/* SPDX-License-Identifier: MIT */
/* The data of modules, as their program headers in memory tell. */
#include "snapshot/layout/layout_parts.h"

#include <string.h>

#include "snapshot/layout/segments.h"

const char layout_data_name[] = ".data", layout_bss_name[] = ".bss";

static bool module_path_begins(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

static bool module_path_ends(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

/* The file's name, without its directory. */
static const char *module_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

bool layout_is_library(const char *path)
{
    const char *name = module_base_name(path);
    return module_path_begins(name, "libc.so") || module_path_begins(name, "libc-") ||
           module_path_begins(name, "libpthread") || module_path_begins(name, "ld-linux") ||
           module_path_begins(name, "ld-2") || module_path_begins(name, "ld.so");
}

static uint64_t page_down(uint64_t address)
{
    return address / MEMORY_PAGE * MEMORY_PAGE;
}

static uint64_t page_up(uint64_t address)
{
    return page_down(address + MEMORY_PAGE - 1);
}

/* Adds the parts of a writable segment: from the file, and behind these. */
static void layout_add_segment(struct layout_search *search, const struct snapshot_module *module,
                               const Elf64_Phdr *segment)
{
    uint64_t begin = module->bias + segment->p_vaddr;
    uint64_t file_end = (begin + segment->p_filesz + 7) / 8 * 8;
    struct region region = {
        .begin = page_down(begin),
        .end = file_end,
        .kind = module_path_ends(module_base_name(module->path), OWN_LIBRARY) ? REGION_SKIPPED
                                                                              : TTD_REGION_MODULE,
        .module = module->id,
        .name = layout_data_name,
    };
    regions_add(&search->refined, &region);
    region.begin = file_end;
    region.end = page_up(begin + segment->p_memsz);
    region.name = layout_bss_name;
    regions_add(&search->refined, &region);
}

/* Finds where threads have the variables of a module. */
static void layout_find_tls_block(struct layout_search *search,
                                  const struct snapshot_module *module, const Elf64_Phdr *segments,
                                  size_t count)
{
    struct tls_module asked = {.id = module->id,
                               .bias = module->bias,
                               .begin = module->begin,
                               .segments = segments,
                               .segment_count = count,
                               .is_library = layout_is_library(module->path)};
    for (size_t i = 0; i < search->thread_count; i++) {
        if (!search->threads[i].is_known)
            continue;
        tls_blocks_add(&search->blocks, search->memory, &asked, search->threads[i].thread_pointer);
        return;
    }
}

void layout_add_modules(struct layout_search *search)
{
    Elf64_Phdr segments[MODULE_SEGMENTS];
    for (size_t i = 0; i < search->subject->module_count; i++) {
        const struct snapshot_module *module = &search->subject->modules[i];
        size_t count = module_segments(search->memory, module, segments);
        layout_find_tls_block(search, module, segments, count);
        for (size_t j = 0; j < count; j++)
            if (segments[j].p_type == PT_LOAD && (segments[j].p_flags & PF_W))
                layout_add_segment(search, module, &segments[j]);
    }
    regions_refine(search->regions, &search->refined);
}
