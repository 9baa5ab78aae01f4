/* SPDX-License-Identifier: MIT */
/*
 * Recognises programs that load a sanitizer's runtime, as gcc links it. It replaces malloc itself,
 * and ends the program, or crashes, where another library comes before it.
 */
#ifndef RECORDER_SANITIZER_H
#define RECORDER_SANITIZER_H

#include "elf_file.h"

static inline bool sanitizer_is_runtime(const char *name)
{
    static const char *const runtimes[] = {"libasan.so",   "libtsan.so",       "liblsan.so",
                                           "libhwasan.so", "libclang_rt.asan", "libclang_rt.tsan"};
    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++)
        if (strncmp(name, runtimes[i], strlen(runtimes[i])) == 0)
            return true;
    return false;
}

/* Searches the libraries that an ELF file needs for a sanitizer's runtime; sets `name` to it. */
static inline bool sanitizer_needed(struct elf_file *elf, char name[32])
{
    Elf64_Phdr dynamic;
    Elf64_Dyn entry;
    if (!elf_segment(elf, PT_DYNAMIC, &dynamic) || dynamic.p_type == PT_NULL)
        return false;
    uint64_t strings = elf_table(elf, &dynamic, DT_STRTAB);
    if (strings == UINT64_MAX)
        return false;
    for (unsigned i = 0; elf_dynamic(elf, &dynamic, i, &entry); i++) {
        if (entry.d_tag != DT_NEEDED || !elf->read(elf->file, name, 31, strings + entry.d_un.d_val))
            continue;
        name[31] = '\0';
        if (sanitizer_is_runtime(name))
            return true;
    }
    return false;
}

#endif
