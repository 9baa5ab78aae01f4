/* SPDX-License-Identifier: MIT */
#include "collect/trace/trace_modules.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocator_names.h"
#include "symbolize/image/image_file.h"

static const char ending[] = ALLOCATOR_NAMES_ENDING;

enum { SECTIONS_MAX = 1 << 16, TABLE_MAX = 1 << 28 };

/* Reads part of a file into new memory, with a NUL behind it; NULL if that cannot be done. */
static char *unrecorded_read_part(int fd, uint64_t offset, uint64_t size)
{
    if (size > TABLE_MAX || offset > INT64_MAX)
        return NULL;
    char *bytes = malloc(size + 1);
    if (!bytes || pread(fd, bytes, size, (off_t)offset) != (ssize_t)size) {
        free(bytes);
        return NULL;
    }
    bytes[size] = '\0';
    return bytes;
}

/* Whether a function with that name, at an offset of the table of names, is defined. */
static bool unrecorded_is_defined(const Elf64_Sym *symbols, size_t count, size_t name)
{
    for (size_t i = 0; i < count; i++)
        if (symbols[i].st_name == name && symbols[i].st_shndx != SHN_UNDEF &&
            ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC)
            return true;
    return false;
}

/* Returns the name that ends at `end`, of those that are looked for and are defined. */
static const char *unrecorded_name_ending_at(const char *strings, size_t end,
                                             const Elf64_Sym *symbols, size_t count)
{
    for (size_t i = 0; i < ALLOCATOR_NAMES; i++) {
        size_t length = strlen(allocator_names[i]);
        if (length <= end && memcmp(strings + end - length, allocator_names[i], length) == 0 &&
            unrecorded_is_defined(symbols, count, end - length))
            return allocator_names[i];
    }
    return NULL;
}

static bool unrecorded_is_hooked_name(const char *name)
{
    for (size_t i = ALLOCATOR_NAMES - ALLOCATOR_NAMES_HOOKED; i < ALLOCATOR_NAMES; i++)
        if (name == allocator_names[i])
            return true;
    return false;
}

/* Whether malloc() itself is defined. Its name may be the end of another one. */
static bool unrecorded_defines_malloc(const char *strings, size_t size, const Elf64_Sym *symbols,
                                      size_t count)
{
    const char *at = strings, *end = strings + size;
    while ((at = memmem(at, (size_t)(end - at), ending, sizeof ending))) {
        if (unrecorded_is_defined(symbols, count, (size_t)(at - strings)))
            return true;
        at += sizeof ending - 1;
    }
    return false;
}

static const char *unrecorded_find_in_table(int fd, const Elf64_Shdr *table, const Elf64_Shdr *text)
{
    const char *found = NULL;
    char *strings = unrecorded_read_part(fd, text->sh_offset, text->sh_size);
    char *symbols = NULL;
    const char *at = strings;
    while (strings && !found &&
           (at = memmem(at, text->sh_size - (size_t)(at - strings), ending, sizeof ending))) {
        at += sizeof ending - 1;
        if (!symbols)
            symbols = unrecorded_read_part(fd, table->sh_offset, table->sh_size);
        if (!symbols)
            break;
        found =
            unrecorded_name_ending_at(strings, (size_t)(at - strings), (const Elf64_Sym *)symbols,
                                      table->sh_size / sizeof(Elf64_Sym));
        if (found && unrecorded_is_hooked_name(found) && table->sh_type == SHT_DYNSYM &&
            unrecorded_defines_malloc(strings, text->sh_size, (const Elf64_Sym *)symbols,
                                      table->sh_size / sizeof(Elf64_Sym)))
            found = NULL;
    }
    free(symbols);
    free(strings);
    return found;
}

static const char *allocators_find_in_file(int fd)
{
    Elf64_Ehdr header;
    const char *found = NULL;
    if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_shentsize != sizeof(Elf64_Shdr))
        return NULL;
    char *bytes =
        unrecorded_read_part(fd, header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr));
    const Elf64_Shdr *sections = (const Elf64_Shdr *)bytes;
    for (unsigned i = 0; sections && !found && i < header.e_shnum; i++)
        if ((sections[i].sh_type == SHT_SYMTAB || sections[i].sh_type == SHT_DYNSYM) &&
            sections[i].sh_link < header.e_shnum)
            found = unrecorded_find_in_table(fd, &sections[i], &sections[sections[i].sh_link]);
    free(bytes);
    return found;
}

/* Whether it is an allocator's own library, whose functions of these names are hooked. */
static bool unrecorded_is_hooked(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    return unrecorded_is_hooked_name(name) && strstr(slash ? slash : path, "malloc");
}

enum { KNOWN = 256, KNOWN_TRIED = 8 };

/* Answers for files that were read. */
static struct known_file {
    struct symbolize_file file; /* no inode if there is none */
    const char *name;
} known_files[KNOWN];

/* Returns the answer for a file, or the place for one, of another file or of none. */
static struct known_file *unrecorded_known_place(const struct symbolize_file *file)
{
    size_t first = (file->inode ^ file->device) % KNOWN;
    struct known_file *place = &known_files[first];
    for (size_t i = KNOWN_TRIED; i-- > 0;) {
        struct known_file *known = &known_files[(first + i) % KNOWN];
        if (image_file_same(&known->file, file))
            return known;
        place = known->file.inode == 0 ? known : place;
    }
    return place;
}

/* Reads the module's file, if it is the one that was loaded. */
static const struct known_file *allocators_known_read(const struct module *module)
{
    const struct known_file *known = NULL;
    struct symbolize_file file;
    const char *path = module_files_place(module);
    int fd = image_file_open(path ? path : module->path);
    if (fd >= 0 && image_file_read(fd, &file) && image_file_is(fd, &module->file)) {
        struct known_file *place = unrecorded_known_place(&file);
        if (!image_file_same(&place->file, &file))
            *place = (struct known_file){file, allocators_find_in_file(fd)};
        known = place;
    }
    if (fd >= 0)
        close(fd);
    return known;
}

const char *allocators_find(const struct module *module)
{
    /* Forked children have the modules of their parents. */
    const struct known_file *known = unrecorded_known_place(&module->file);
    if (module->file.inode == 0 || !image_file_same(&known->file, &module->file))
        known = allocators_known_read(module);
    return known && known->name && !unrecorded_is_hooked(module->path, known->name) ? known->name
                                                                                    : NULL;
}
