/* SPDX-License-Identifier: MIT */
/*
 * Reads an ELF file of 64 bits before it is executed: its segments and its dynamic section. Shared
 * by ttdrecord and the library that it preloads, which may not allocate.
 */
#ifndef RECORDER_ELF_FILE_H
#define RECORDER_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Reads `size` bytes at `offset`; false if there are not as many. */
typedef bool elf_read(int file, void *buffer, size_t size, uint64_t offset);

/* A file read in blocks, so that not every entry of its tables costs a system call. */
struct elf_file {
    int file;
    elf_read *read;
    Elf64_Ehdr header;
    uint64_t begin; /* of the block */
    uint64_t size;  /* 0 when nothing is read yet */
    char block[1024];
};

/* Like elf_read, through the block. Near the end of the file, where no whole block can be read,
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

/* Begins to read a file. Returns false if it is no ELF file. Only those of 64 bits have the header
 * and the segments that the functions below expect. */
static inline bool elf_open(struct elf_file *elf, int file, elf_read *read)
{
    elf->file = file;
    elf->read = read;
    elf->begin = elf->size = 0;
    return elf_take(elf, &elf->header, sizeof elf->header, 0) &&
           memcmp(elf->header.e_ident, ELFMAG, SELFMAG) == 0;
}

/* Finds the first segment of a type; its type is PT_NULL if there is none. Returns false if the
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

/* Returns the file offset of the byte loaded at `address`, or UINT64_MAX. */
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

/* Reads the entry of the dynamic section at `index`. Returns false behind the last one. */
static inline bool elf_dynamic(struct elf_file *elf, const Elf64_Phdr *dynamic, unsigned index,
                               Elf64_Dyn *entry)
{
    enum { ENTRIES_MAX = 4096 };
    return index < ENTRIES_MAX &&
           elf_take(elf, entry, sizeof *entry, dynamic->p_offset + index * sizeof *entry) &&
           entry->d_tag != DT_NULL;
}

/* Returns the file offset of the table whose address a dynamic tag has, or UINT64_MAX. */
static inline uint64_t elf_table(struct elf_file *elf, const Elf64_Phdr *dynamic, Elf64_Sxword tag)
{
    Elf64_Dyn entry;
    for (unsigned i = 0; elf_dynamic(elf, dynamic, i, &entry); i++)
        if (entry.d_tag == tag)
            return elf_offset(elf, entry.d_un.d_ptr);
    return UINT64_MAX;
}

#endif
