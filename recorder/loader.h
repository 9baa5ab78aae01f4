/* SPDX-License-Identifier: MIT */
/**
 * Finds the programs whose loaders can load the preload library: it is for x86-64 and the GNU C
 * library. Any other loader complains, or does not start the program.
 */
#ifndef RECORDER_LOADER_H
#define RECORDER_LOADER_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Reads an ELF file of 64 bits before it is executed: its segments and its dynamic section. Shared
 * by ttdrecord and its preload library; the latter may not allocate.
 */

/** Reads `size` bytes at `offset`; false if there are not as many. */
typedef bool elf_read(int file, void *buffer, size_t size, uint64_t offset);

/** A file read in blocks, so that not every entry of its tables costs a system call. */
struct elf_file {
    int file;
    elf_read *read;
    Elf64_Ehdr header;
    uint64_t begin; /* of the block */
    uint64_t size;  /* 0 when nothing is read yet */
    char block[1024];
};

/** Like elf_read, through the block. Near the end of the file, where no whole block can be read,
 * reads just these bytes. */
static inline bool elf_take(struct elf_file *elf, void *buffer, size_t size, uint64_t offset)
{
    if (offset < elf->begin || offset - elf->begin > elf->size ||
        size > elf->size - (offset - elf->begin)) {
        elf->begin = offset;
        elf->size = 0;
        if (size > sizeof elf->block ||
            !elf->read(elf->file, elf->block, sizeof elf->block, offset))
            return elf->read(elf->file, buffer, size, offset);
        elf->size = sizeof elf->block;
    }
    memcpy(buffer, elf->block + (offset - elf->begin), size);
    return true;
}

/** Begins to read a file. Returns false if it is no ELF file. Only files of 64 bits have the header
 * and the segments that the functions below expect. */
static inline bool elf_open(struct elf_file *elf, int file, elf_read *read)
{
    elf->file = file;
    elf->read = read;
    elf->begin = elf->size = 0;
    return elf_take(elf, &elf->header, sizeof elf->header, 0) &&
           memcmp(elf->header.e_ident, ELFMAG, SELFMAG) == 0;
}

/** Finds the first segment of a type; its type is PT_NULL if there is none. Returns false if the
 * segments cannot be read. */
static inline bool elf_segment(struct elf_file *elf, uint32_t type, Elf64_Phdr *segment)
{
    for (unsigned i = 0; i < elf->header.e_phnum; i++)
        if (!elf_take(elf, segment, sizeof *segment, elf->header.e_phoff + i * sizeof *segment))
            return false;
        else if (segment->p_type == type)
            return true;
    segment->p_type = PT_NULL;
    return true;
}

/** Returns the file offset of the byte loaded at `address`, or UINT64_MAX. */
static inline uint64_t elf_offset(struct elf_file *elf, uint64_t address)
{
    Elf64_Phdr segment;
    for (unsigned i = 0; i < elf->header.e_phnum; i++)
        if (!elf_take(elf, &segment, sizeof segment, elf->header.e_phoff + i * sizeof segment))
            return UINT64_MAX;
        else if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
                 address - segment.p_vaddr < segment.p_filesz)
            return segment.p_offset + (address - segment.p_vaddr);
    return UINT64_MAX;
}

/** Reads the entry of the dynamic section at `index`. Returns false behind the last one. */
static inline bool elf_dynamic(struct elf_file *elf, const Elf64_Phdr *dynamic, unsigned index,
                               Elf64_Dyn *entry)
{
    enum { ENTRIES_MAX = 4096 };
    return index < ENTRIES_MAX &&
           elf_take(elf, entry, sizeof *entry, dynamic->p_offset + index * sizeof *entry) &&
           entry->d_tag != DT_NULL;
}

/** Returns the file offset of the table whose address a dynamic tag has, or UINT64_MAX. */
static inline uint64_t elf_table(struct elf_file *elf, const Elf64_Phdr *dynamic, Elf64_Sxword tag)
{
    Elf64_Dyn entry;
    for (unsigned i = 0; elf_dynamic(elf, dynamic, i, &entry); i++)
        if (entry.d_tag == tag)
            return elf_offset(elf, entry.d_un.d_ptr);
    return UINT64_MAX;
}

/*
 * Recognises programs that load a sanitizer's runtime, as gcc links it. It replaces malloc itself,
 * and ends the program, or crashes, where another library comes before it.
 */

static inline bool sanitizer_is_runtime(const char *name)
{
    static const char *const runtimes[] = {"libasan.so",   "libtsan.so",       "liblsan.so",
                                           "libhwasan.so", "libclang_rt.asan", "libclang_rt.tsan"};
    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++)
        if (strncmp(name, runtimes[i], strlen(runtimes[i])) == 0)
            return true;
    return false;
}

/** Returns the name of a sanitizer's runtime in a value of LD_PRELOAD, where the rest follows it;
 * NULL if there is none. */
static inline const char *sanitizer_preloaded(const char *value)
{
    while (*value != '\0') {
        size_t length = strcspn(value, ": ");
        const char *name = value;
        for (size_t i = 0; i < length; i++)
            if (value[i] == '/')
                name = value + i + 1;
        if (sanitizer_is_runtime(name))
            return name;
        value += length + (value[length] != '\0');
    }
    return NULL;
}

/** Searches the libraries that an ELF file needs for a sanitizer's runtime; sets `name` to it. */
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

/** The usual loader, named by the ABI. */
#define LOADER_USUAL "/lib64/ld-linux-x86-64.so.2"

/** The newest version of the C library's symbols that the preload library needs. The loader of the
 * C library defines that version too. */
#define LOADER_VERSION "GLIBC_2.35"

enum loader_kind {
    LOADER_USUAL_ONE,
    LOADER_ANOTHER,       /* see loader_is_suitable() */
    LOADER_NONE,          /* the program is statically linked */
    LOADER_OTHER_MACHINE, /* i386, x32, or whatever an emulator runs */
    LOADER_UNREADABLE,
};

/** Longer paths of loaders are not followed: there may be little stack. */
enum { LOADER_PATH_MAX = 512 };

/** Whether an ELF file is a loader that defines LOADER_VERSION. */
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

/** Finds the kind of a program's loader; sets `path` to its path for LOADER_ANOTHER. */
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
