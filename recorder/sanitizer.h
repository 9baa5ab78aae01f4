/* SPDX-License-Identifier: MIT */
/*
 * Recognises programs that load a sanitizer's runtime, as gcc links it. It replaces malloc itself,
 * and ends the program, or crashes, where another library comes before it.
 */
#ifndef TTD_RECORDER_SANITIZER_H
#define TTD_RECORDER_SANITIZER_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Reads `size` bytes at `offset`; false if there are not as many. */
typedef bool sanitizer_read(int file, void *buffer, size_t size, uint64_t offset);

/* A file read in blocks, so that not every entry of its tables costs a system call. */
struct sanitizer_file {
    int file;
    sanitizer_read *read;
    uint64_t begin; /* of the block */
    uint64_t size;  /* 0 when nothing is read yet */
    char block[1024];
};

/* Like sanitizer_read, through the block. Near the end of the file, where no whole block can be
 * read, reads just these bytes. */
static inline bool sanitizer_take(struct sanitizer_file *file, void *buffer, size_t size,
                                  uint64_t offset)
{
    if (offset < file->begin || offset - file->begin > file->size ||
        size > file->size - (offset - file->begin)) {
        file->begin = offset;
        file->size = 0;
        if (!file->read(file->file, file->block, sizeof file->block, offset))
            return file->read(file->file, buffer, size, offset);
        file->size = sizeof file->block;
    }
    memcpy(buffer, file->block + (offset - file->begin), size);
    return true;
}

/* Returns the file offset of the byte loaded at `address`, or UINT64_MAX. */
static inline uint64_t sanitizer_offset(struct sanitizer_file *file, const Elf64_Ehdr *header,
                                        uint64_t address)
{
    Elf64_Phdr segment;
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (!sanitizer_take(file, &segment, sizeof segment, header->e_phoff + i * sizeof segment))
            return UINT64_MAX;
        else if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
                 address - segment.p_vaddr < segment.p_filesz)
            return segment.p_offset + (address - segment.p_vaddr);
    return UINT64_MAX;
}

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
static inline bool sanitizer_needed(int file, sanitizer_read *read, char name[32])
{
    enum { ENTRIES_MAX = 4096 };
    Elf64_Ehdr header;
    Elf64_Phdr segment = {.p_type = PT_NULL};
    Elf64_Dyn entry;
    uint64_t strings = UINT64_MAX;
    struct sanitizer_file tables = {.file = file, .read = read};
    if (!sanitizer_take(&tables, &header, sizeof header, 0) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
        return false;
    for (unsigned i = 0; i < header.e_phnum && segment.p_type != PT_DYNAMIC; i++)
        if (!sanitizer_take(&tables, &segment, sizeof segment, header.e_phoff + i * sizeof segment))
            return false;
    if (segment.p_type != PT_DYNAMIC)
        return false;
    for (int pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < ENTRIES_MAX; i++) {
            if (!sanitizer_take(&tables, &entry, sizeof entry,
                                segment.p_offset + i * sizeof entry) ||
                entry.d_tag == DT_NULL)
                break;
            if (pass == 0 && entry.d_tag == DT_STRTAB)
                strings = sanitizer_offset(&tables, &header, entry.d_un.d_ptr);
            if (pass == 0 || entry.d_tag != DT_NEEDED || strings == UINT64_MAX ||
                !read(file, name, 31, strings + entry.d_un.d_val))
                continue;
            name[31] = '\0';
            if (sanitizer_is_runtime(name))
                return true;
        }
    return false;
}

#endif
