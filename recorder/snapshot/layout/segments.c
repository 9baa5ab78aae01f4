/* SPDX-License-Identifier: MIT */
/* The program headers of a module in memory. By itself, because stacks are followed without the
 * search for regions: so does the fuzz target follower. */
#include "snapshot/layout/process_layout.h"

#include <string.h>

size_t module_segments(const struct memory *memory, const struct snapshot_module *module,
                       Elf64_Phdr segments[MODULE_SEGMENTS])
{
    Elf64_Ehdr header;
    if (!memory_read(memory, module->begin, &header, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phnum > MODULE_SEGMENTS ||
        header.e_phentsize != sizeof *segments || header.e_phoff >= module->end - module->begin ||
        !memory_read(memory, module->begin + header.e_phoff, segments,
                     header.e_phnum * sizeof *segments))
        return 0;
    return header.e_phnum;
}
