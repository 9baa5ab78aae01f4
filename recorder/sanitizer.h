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

/* The offset in the file of the byte that is loaded at `address`; UINT64_MAX if none is. */
static inline uint64_t sanitizer_offset(int file, sanitizer_read *read, const Elf64_Ehdr *header,
                                        uint64_t address)
{
    Elf64_Phdr segment;
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (!read(file, &segment, sizeof segment, header->e_phoff + i * sizeof segment))
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

/* Looks through the list of libraries that an ELF file needs; the runtime's name is put into
 * `name`. */
static inline bool sanitizer_needed(int file, sanitizer_read *read, char name[32])
{
    enum { ENTRIES_MAX = 4096 };
    Elf64_Ehdr header;
    Elf64_Phdr segment = {.p_type = PT_NULL};
    Elf64_Dyn entry;
    uint64_t strings = UINT64_MAX;
    if (!read(file, &header, sizeof header, 0) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64)
        return false;
    for (unsigned i = 0; i < header.e_phnum && segment.p_type != PT_DYNAMIC; i++)
        if (!read(file, &segment, sizeof segment, header.e_phoff + i * sizeof segment))
            return false;
    if (segment.p_type != PT_DYNAMIC)
        return false;
    for (int pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < ENTRIES_MAX; i++) {
            if (!read(file, &entry, sizeof entry, segment.p_offset + i * sizeof entry) ||
                entry.d_tag == DT_NULL)
                break;
            if (pass == 0 && entry.d_tag == DT_STRTAB)
                strings = sanitizer_offset(file, read, &header, entry.d_un.d_ptr);
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
