/* SPDX-License-Identifier: MIT */
/*
 * Tells which programs' loaders can load the preload library: it is for x86-64 and the GNU C
 * library. Any other loader complains, or does not start the program.
 */
#ifndef RECORDER_LOADER_H
#define RECORDER_LOADER_H

#include "elf_file.h"

/* The usual loader, which the ABI names. */
#define LOADER_USUAL "/lib64/ld-linux-x86-64.so.2"

/* The newest version of the C library's symbols that the preload library needs. The loader of the
 * C library defines that version too. */
#define LOADER_VERSION "GLIBC_2.35"

enum loader_kind {
    LOADER_USUAL_ONE,
    LOADER_ANOTHER,       /* see loader_is_suitable() */
    LOADER_NONE,          /* the program is statically linked */
    LOADER_OTHER_MACHINE, /* i386, x32, or whatever an emulator runs */
    LOADER_UNREADABLE,
};

/* Longer paths of loaders are not followed: there may be little stack. */
enum { LOADER_PATH_MAX = 512 };

/* Whether an ELF file is a loader that defines LOADER_VERSION. */
static inline bool loader_is_suitable(struct elf_file *elf)
{
    enum { VERSIONS_MAX = 256 };
    Elf64_Phdr dynamic;
    Elf64_Verdef version;
    Elf64_Verdaux name;
    char text[sizeof LOADER_VERSION];
    if (elf->header.e_ident[EI_CLASS] != ELFCLASS64 || elf->header.e_machine != EM_X86_64 ||
        !elf_segment(elf, PT_DYNAMIC, &dynamic) || dynamic.p_type == PT_NULL)
        return false;
    uint64_t offset = elf_table(elf, &dynamic, DT_VERDEF);
    uint64_t strings = elf_table(elf, &dynamic, DT_STRTAB);
    if (offset == UINT64_MAX || strings == UINT64_MAX)
        return false;
    for (unsigned i = 0; i < VERSIONS_MAX; i++) {
        if (!elf_take(elf, &version, sizeof version, offset) ||
            !elf_take(elf, &name, sizeof name, offset + version.vd_aux))
            return false;
        if (elf->read(elf->file, text, sizeof text, strings + name.vda_name) &&
            memcmp(text, LOADER_VERSION, sizeof text) == 0)
            return true;
        if (version.vd_next == 0)
            return false;
        offset += version.vd_next;
    }
    return false;
}

/* Finds the kind of a program's loader; sets `path` to its path for LOADER_ANOTHER. */
static inline enum loader_kind loader_find(struct elf_file *elf, char path[LOADER_PATH_MAX])
{
    Elf64_Phdr interpreter;
    if (elf->header.e_ident[EI_CLASS] != ELFCLASS64 ||
        elf->header.e_ident[EI_DATA] != ELFDATA2LSB || elf->header.e_machine != EM_X86_64)
        return LOADER_OTHER_MACHINE;
    if (!elf_segment(elf, PT_INTERP, &interpreter))
        return LOADER_UNREADABLE;
    /* The loader itself runs the program that its arguments name. */
    if (interpreter.p_type == PT_NULL)
        return loader_is_suitable(elf) ? LOADER_USUAL_ONE : LOADER_NONE;
    if (interpreter.p_filesz == 0 || interpreter.p_filesz >= LOADER_PATH_MAX ||
        !elf_take(elf, path, interpreter.p_filesz, interpreter.p_offset))
        return LOADER_UNREADABLE;
    path[interpreter.p_filesz] = '\0';
    return strcmp(path, LOADER_USUAL) == 0 ? LOADER_USUAL_ONE : LOADER_ANOTHER;
}

#endif
