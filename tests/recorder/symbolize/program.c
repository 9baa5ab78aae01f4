/* SPDX-License-Identifier: MIT */
/* Reading programs' symbol tables, simply. */
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>

#include <criterion/criterion.h>

#include "support.h"

struct table {
    Elf *elf;
    int fd;
    Elf_Data *data;
    size_t count;
    uint32_t strings;
};

static void open_table(struct table *table, const char *path)
{
    elf_version(EV_CURRENT);
    table->fd = open(path, O_RDONLY);
    cr_assert(table->fd >= 0, "%s", path);
    table->elf = elf_begin(table->fd, ELF_C_READ_MMAP, NULL);
    table->count = 0;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(table->elf, section));) {
        GElf_Shdr header;
        cr_assert(gelf_getshdr(section, &header) != NULL);
        if (header.sh_type != SHT_SYMTAB)
            continue;
        table->data = elf_getdata(section, NULL);
        table->count = header.sh_size / header.sh_entsize;
        table->strings = header.sh_link;
    }
    cr_assert(table->count > 0);
}

static void close_table(struct table *table)
{
    elf_end(table->elf);
    close(table->fd);
}

static void add_addresses(struct program *program, uint64_t begin, uint64_t size)
{
    program->offsets =
        realloc(program->offsets, (program->count + size) * sizeof *program->offsets);
    cr_assert(program->offsets != NULL);
    for (uint64_t i = 0; i < size; i++)
        program->offsets[program->count++] = begin + i + 1;
}

static int compare_offsets(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;
    return *a < *b ? -1 : *a > *b;
}

static void drop_duplicates(struct program *program)
{
    qsort(program->offsets, program->count, sizeof *program->offsets, compare_offsets);
    size_t kept = 1;
    for (size_t i = 1; i < program->count; i++) {
        if (program->offsets[i] != program->offsets[kept - 1])
            program->offsets[kept++] = program->offsets[i];
    }
    program->count = kept;
}

void load_program(struct program *program, const char *name)
{
    *program = (struct program){0};
    cr_assert(realpath(name, program->path) != NULL, "%s", name);
    struct table table;
    open_table(&table, program->path);
    for (size_t i = 0; i < table.count; i++) {
        GElf_Sym symbol;
        cr_assert(gelf_getsym(table.data, (int)i, &symbol) != NULL);
        if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_size > 0)
            add_addresses(program, symbol.st_value, symbol.st_size);
    }
    cr_assert(program->count > 0);
    drop_duplicates(program);
    const void *id;
    ssize_t size = dwelf_elf_gnu_build_id(table.elf, &id);
    if (size > 0 && (size_t)size <= sizeof program->build_id) {
        memcpy(program->build_id, id, (size_t)size);
        program->build_id_size = (size_t)size;
    }
    close_table(&table);
}

uint64_t address_of(const char *program, const char *name)
{
    struct table table;
    open_table(&table, program);
    uint64_t address = 0;
    for (size_t i = 0; i < table.count; i++) {
        GElf_Sym symbol;
        cr_assert(gelf_getsym(table.data, (int)i, &symbol) != NULL);
        const char *found = elf_strptr(table.elf, table.strings, symbol.st_name);
        if (found && strcmp(found, name) == 0)
            address = symbol.st_value;
    }
    close_table(&table);
    cr_assert(address != 0, "%s", name);
    return address;
}
