/* SPDX-License-Identifier: MIT */
/*
 * Stands for functions of the loader, which knows nothing of this library, and whose locks may be
 * held by a thread that is stopped. _dl_find_object() itself waits for nobody.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>

#include "preload/attached/attached_parts.h"

extern const ElfW(Ehdr) own_header __asm__("__ehdr_start") __attribute__((visibility("hidden")));

int loader_find_object(void *address, struct dl_find_object *object) __asm__("_dl_find_object");
int attached_iterate(int (*function)(struct dl_phdr_info *, size_t, void *), void *context);

static struct link_map own_map = {.l_name = (char[]){"[ttdrecord]"}};

static void *own_frame_index(void)
{
    const ElfW(Phdr) *segment =
        (const ElfW(Phdr) *)((const char *)&own_header + own_header.e_phoff);
    for (unsigned i = 0; i < own_header.e_phnum; i++)
        if (segment[i].p_type == PT_GNU_EH_FRAME)
            return (void *)(attached.begin + segment[i].p_vaddr);
    return NULL;
}

int attached_find_object(void *address, struct dl_find_object *object)
{
    if ((uintptr_t)address - attached.begin >= attached.end - attached.begin)
        return loader_find_object(address, object);
    own_map.l_addr = attached.begin;
    *object = (struct dl_find_object){.dlfo_map_start = (void *)attached.begin,
                                      .dlfo_map_end = (void *)attached.end,
                                      .dlfo_link_map = &own_map,
                                      .dlfo_eh_frame = own_frame_index()};
    return 0;
}

int attached_iterate(int (*function)(struct dl_phdr_info *, size_t, void *), void *context)
{
    for (uint64_t i = 0; i < attached.module_count; i++) {
        const ElfW(Phdr) segment = {.p_type = PT_LOAD, .p_vaddr = attached.modules[i]};
        struct dl_phdr_info info = {.dlpi_name = "", .dlpi_phdr = &segment, .dlpi_phnum = 1};
        int result = function(&info, sizeof info, context);
        if (result != 0)
            return result;
    }
    return 0;
}
