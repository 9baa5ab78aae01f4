/* SPDX-License-Identifier: MIT */
#include "inflate.h"

#include <gelf.h>
#include <libdeflate.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* A file may claim any size. */
#define SIZE_LIMIT (UINT64_C(256) << 20)

/* The most that one byte expands to. */
enum { RATIO_MAX = 1032 };

/* A section that can be decompressed here. */
struct section {
    Elf_Data *raw, *data; /* libdw takes either */
    GElf_Shdr header;
    size_t size; /* decompressed */
    size_t skip; /* header of the compression */
};

static bool is_debug(Elf *elf, size_t strings, const GElf_Shdr *header)
{
    static const char prefix[] = ".debug_";
    const char *name = elf_strptr(elf, strings, header->sh_name);
    return name != NULL && strncmp(name, prefix, sizeof prefix - 1) == 0;
}

static bool open_section(Elf *elf, size_t strings, Elf_Scn *handle, struct section *section)
{
    GElf_Chdr compression;
    if (gelf_getshdr(handle, &section->header) == NULL || section->header.sh_type == SHT_NOBITS ||
        (section->header.sh_flags & SHF_COMPRESSED) == 0 ||
        !is_debug(elf, strings, &section->header) || gelf_getchdr(handle, &compression) == NULL ||
        compression.ch_type != ELFCOMPRESS_ZLIB)
        return false;
    section->raw = elf_rawdata(handle, NULL);
    section->data = elf_getdata(handle, NULL);
    section->skip = gelf_getclass(elf) == ELFCLASS32 ? sizeof(Elf32_Chdr) : sizeof(Elf64_Chdr);
    section->size = compression.ch_size;
    return section->raw != NULL && section->data != NULL && section->size > 0 &&
           section->raw->d_size > section->skip &&
           section->size / RATIO_MAX <= section->raw->d_size - section->skip;
}

/* Returns the bytes that a section takes, so that the one behind it is at a multiple of 16. */
static size_t room_of(const struct section *section)
{
    return (section->size + 15) & -(size_t)16;
}

static void decompress(struct libdeflate_decompressor *decompressor, Elf_Scn *handle,
                       struct section *section, void *target)
{
    const char *stream = section->raw->d_buf;
    if (libdeflate_zlib_decompress(decompressor, stream + section->skip,
                                   section->raw->d_size - section->skip, target, section->size,
                                   NULL) != LIBDEFLATE_SUCCESS)
        return;
    /* In memory only: the file is read. */
    section->header.sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
    section->header.sh_size = section->size;
    if (gelf_update_shdr(handle, &section->header) == 0)
        return;
    section->data->d_buf = section->raw->d_buf = target;
    section->data->d_size = section->raw->d_size = section->size;
}

static uint64_t total_of(Elf *elf, size_t strings)
{
    uint64_t total = 0;
    struct section section;
    for (Elf_Scn *handle = NULL;
         (handle = elf_nextscn(elf, handle)) != NULL && total <= SIZE_LIMIT;)
        if (open_section(elf, strings, handle, &section))
            total += section.size <= SIZE_LIMIT ? room_of(&section) : SIZE_LIMIT + 1;
    return total;
}

void inflate_sections(struct inflated *inflated, Elf *elf)
{
    size_t strings;
    *inflated = (struct inflated){0};
    if (elf == NULL || elf_getshdrstrndx(elf, &strings) != 0)
        return;
    uint64_t total = total_of(elf, strings);
    if (total == 0 || total > SIZE_LIMIT)
        return;
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    /* All of it is written: a page fault for each page would take as long as the decompression. */
    void *memory = mmap(NULL, total, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory != MAP_FAILED)
        *inflated = (struct inflated){memory, total};
    char *target = memory;
    struct section section;
    for (Elf_Scn *handle = NULL; inflated->memory != NULL && decompressor != NULL &&
                                 (handle = elf_nextscn(elf, handle)) != NULL;)
        if (open_section(elf, strings, handle, &section)) {
            decompress(decompressor, handle, &section, target);
            target += room_of(&section);
        }
    libdeflate_free_decompressor(decompressor);
}

void inflate_free(struct inflated *inflated)
{
    if (inflated->memory != NULL)
        munmap(inflated->memory, inflated->size);
    *inflated = (struct inflated){0};
}
