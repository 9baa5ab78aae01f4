/* SPDX-License-Identifier: MIT */
/*
 * The section .debug_frame of a module that lacks it comes from the debug file that its build-id
 * names; another file at that path is not used. The argument is a seed of the fuzz target
 * frame_file: a byte, then a file with the section.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf/frame_file.h"

enum { MODULE, DEBUG, FILES, FILE_SIZE = 4096 };

static struct {
    uint8_t bytes[FILE_SIZE];
    size_t size;
} files[FILES];
static char opened[256]; /* the last path */

int dwarf_file_open(const char *path)
{
    snprintf(opened, sizeof opened, "%s", path);
    return DEBUG;
}

bool dwarf_file_read(int file, uint64_t offset, void *bytes, size_t size)
{
    if (offset > files[file].size || size > files[file].size - offset)
        return false;
    memcpy(bytes, files[file].bytes + offset, size);
    return true;
}

void dwarf_file_close(int file)
{
    (void)file;
}

void *dwarf_pages(size_t size)
{
    return calloc(1, size);
}

void dwarf_pages_free(void *pages, size_t size)
{
    (void)size;
    free(pages);
}

/* No address is looked up. */

struct cfi_span modules_segment(const struct cfi_lookup *lookup, uintptr_t address)
{
    (void)lookup;
    (void)address;
    abort();
}

struct cursor span_fetch(const struct cfi_span *span, uintptr_t address, size_t size)
{
    (void)span;
    (void)address;
    (void)size;
    abort();
}

const struct debug_frame *modules_debug_frame(struct cfi_lookup *lookup, uintptr_t *bias)
{
    (void)lookup;
    (void)bias;
    abort();
}

/* Returns where a file has the header of its first section of a type. */
static Elf64_Shdr *section_of(int file, uint32_t type)
{
    const Elf64_Ehdr *header = (const void *)files[file].bytes;
    Elf64_Shdr *sections = (void *)(files[file].bytes + header->e_shoff);
    for (size_t i = 0; i < header->e_shnum; i++)
        if (sections[i].sh_type == type)
            return &sections[i];
    abort();
}

/* Returns the path that the build-id of a file leads to. */
static const char *path_of(int file)
{
    static char path[256];
    const Elf64_Shdr *section = section_of(file, SHT_NOTE);
    const uint8_t *note = files[file].bytes + section->sh_offset;
    const uint8_t *id = note + sizeof(Elf64_Nhdr) + sizeof "GNU";
    size_t size = (size_t)snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%02x/", id[0]);
    for (uint32_t i = 1; i < ((const Elf64_Nhdr *)(const void *)note)->n_descsz; i++)
        size += (size_t)snprintf(path + size, sizeof path - size, "%02x", id[i]);
    snprintf(path + size, sizeof path - size, ".debug");
    return path;
}

static size_t load(void)
{
    struct debug_frame frame = {.size = 0};
    size_t count = 0;
    opened[0] = '\0';
    if (debug_frame_load(MODULE, "/bin/module", 0, UINT64_MAX, &frame))
        count = frame.fde_count;
    debug_frame_unload(&frame);
    return count;
}

static int expect(bool holds, const char *text)
{
    if (!holds)
        printf("%s\n", text);
    return holds ? 0 : 1;
}

int main(int argc, char **argv)
{
    FILE *seed = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (!seed || fgetc(seed) == EOF)
        return 99;
    files[DEBUG].size = fread(files[DEBUG].bytes, 1, FILE_SIZE, seed);
    fclose(seed);
    files[MODULE] = files[DEBUG];
    int failures = expect(load() == 3 && opened[0] == '\0', "the module's own section is read");
    section_of(MODULE, SHT_PROGBITS)->sh_type = SHT_NOBITS;
    failures += expect(load() == 3, "the debug file's section is read");
    failures += expect(strcmp(opened, path_of(MODULE)) == 0, "by the path of the build-id");
    files[DEBUG].bytes[section_of(DEBUG, SHT_NOTE)->sh_offset + 20] ^= 1;
    failures += expect(load() == 0 && opened[0] != '\0', "a file with another build-id is not");
    return failures;
}
