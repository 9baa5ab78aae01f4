/* SPDX-License-Identifier: MIT */
#include "modules.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, SEGMENTS_MAX = 64, SECTIONS_MAX = 4096, TABLE_MAX = 64 << 20 };

static bool read_at(int file, void *bytes, size_t size, uint64_t offset)
{
    return pread(file, bytes, size, (off_t)offset) == (ssize_t)size;
}

/* Opens the file of a module as the process sees it, if it is still the one that is mapped. */
static int open_file(uint32_t pid, const struct mapping *mapping)
{
    char path[64 + 4096];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%u/root%s", pid, mapping->name);
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_ino == mapping->inode)
        return file;
    if (file >= 0)
        close(file);
    snprintf(path, sizeof path, "/proc/%u/map_files/%llx-%llx", pid,
             (unsigned long long)mapping->begin, (unsigned long long)mapping->end);
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Reads the segments of a module from the memory of the process. */
static bool read_segments(struct attach_module *module, int memory)
{
    Elf64_Ehdr header;
    bool is_based = false;
    if (!read_at(memory, &header, sizeof header, module->begin) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_machine != EM_X86_64 || header.e_phentsize != sizeof(Elf64_Phdr) ||
        header.e_phnum > SEGMENTS_MAX)
        return false;
    module->segments = calloc(header.e_phnum + 1u, sizeof *module->segments);
    module->segment_count = header.e_phnum;
    if (module->segments == NULL ||
        !read_at(memory, module->segments, header.e_phnum * sizeof *module->segments,
                 module->begin + header.e_phoff))
        return false;
    for (size_t i = 0; i < module->segment_count; i++) {
        const Elf64_Phdr *segment = &module->segments[i];
        if (segment->p_type != PT_LOAD)
            continue;
        if (!is_based)
            module->bias = module->begin - (segment->p_vaddr & -(uint64_t)PAGE);
        is_based = true;
        module->end =
            (module->bias + segment->p_vaddr + segment->p_memsz + PAGE - 1) & -(uint64_t)PAGE;
    }
    return is_based && module->end > module->begin;
}

bool attach_modules_read(struct attach_modules *modules, uint32_t pid, uint32_t tid, int memory)
{
    *modules = (struct attach_modules){0};
    if (!maps_read(&modules->maps, pid, tid))
        return false;
    modules->items = calloc(modules->maps.count + 1, sizeof *modules->items);
    if (modules->items == NULL)
        return false;
    uint64_t end = 0;
    for (size_t i = 0; i < modules->maps.count; i++) {
        const struct mapping *mapping = &modules->maps.items[i];
        struct attach_module *module = &modules->items[modules->count];
        if (mapping->begin < end || !mapping->is_readable || !mapping->is_file ||
            mapping->is_shared || mapping->name[0] != '/')
            continue;
        *module =
            (struct attach_module){.path = mapping->name, .begin = mapping->begin, .file = -1};
        if (!read_segments(module, memory)) {
            free(module->segments);
            continue;
        }
        module->file = open_file(pid, mapping);
        end = module->end;
        modules->count++;
    }
    return true;
}

void attach_modules_free(struct attach_modules *modules)
{
    for (size_t i = 0; i < modules->count; i++) {
        struct attach_module *module = &modules->items[i];
        if (module->file >= 0)
            close(module->file);
        free(module->segments);
        free(module->symbols);
        free(module->names);
    }
    free(modules->items);
    maps_free(&modules->maps);
    *modules = (struct attach_modules){0};
}

struct attach_module *attach_modules_named(struct attach_modules *modules, const char *name)
{
    for (size_t i = 0; i < modules->count; i++) {
        const char *base = strrchr(modules->items[i].path, '/');
        if (base != NULL && strncmp(base + 1, name, strlen(name)) == 0)
            return &modules->items[i];
    }
    return NULL;
}

static void *read_table(int file, const Elf64_Shdr *section)
{
    if (section->sh_size == 0 || section->sh_size > TABLE_MAX)
        return NULL;
    char *table = malloc(section->sh_size + 1);
    if (table != NULL && !read_at(file, table, section->sh_size, section->sh_offset)) {
        free(table);
        return NULL;
    }
    if (table != NULL)
        table[section->sh_size] = '\0';
    return table;
}

/* Reads the symbols that the module exports. Leaves it without any if that is impossible. */
static void read_symbols(struct attach_module *module)
{
    Elf64_Ehdr header;
    module->symbols = calloc(1, sizeof *module->symbols);
    if (module->file < 0 || !read_at(module->file, &header, sizeof header, 0) ||
        header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum > SECTIONS_MAX)
        return;
    Elf64_Shdr *sections = calloc(header.e_shnum + 1u, sizeof *sections);
    if (sections != NULL &&
        read_at(module->file, sections, header.e_shnum * sizeof *sections, header.e_shoff))
        for (size_t i = 0; i < header.e_shnum; i++) {
            const Elf64_Shdr *section = &sections[i];
            if (section->sh_type != SHT_DYNSYM || section->sh_link >= header.e_shnum)
                continue;
            Elf64_Sym *symbols = read_table(module->file, section);
            char *names = read_table(module->file, &sections[section->sh_link]);
            if (symbols == NULL || names == NULL) {
                free(symbols);
                free(names);
                break;
            }
            free(module->symbols);
            module->symbols = symbols;
            module->symbol_count = section->sh_size / sizeof *symbols;
            module->names = names;
            module->names_size = sections[section->sh_link].sh_size;
            break;
        }
    free(sections);
}

static const Elf64_Sym *find_symbol(struct attach_module *module, const char *name)
{
    if (module->symbols == NULL)
        read_symbols(module);
    for (size_t i = 0; i < module->symbol_count; i++) {
        const Elf64_Sym *symbol = &module->symbols[i];
        if (symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
            symbol->st_name < module->names_size &&
            strcmp(module->names + symbol->st_name, name) == 0)
            return symbol;
    }
    return NULL;
}

uint64_t attach_module_function(struct attach_module *module, const char *name, uint64_t *size)
{
    const Elf64_Sym *symbol = find_symbol(module, name);
    if (symbol == NULL || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC)
        return 0;
    *size = symbol->st_size;
    return module->bias + symbol->st_value;
}

uint64_t attach_module_symbol(struct attach_module *module, const char *name)
{
    const Elf64_Sym *symbol = find_symbol(module, name);
    return symbol != NULL ? module->bias + symbol->st_value : 0;
}

bool attach_module_imports(struct attach_module *module, const char *begin)
{
    if (module->symbols == NULL)
        read_symbols(module);
    for (size_t i = 1; i < module->symbol_count; i++) {
        const Elf64_Sym *symbol = &module->symbols[i];
        if (symbol->st_shndx == SHN_UNDEF && symbol->st_name < module->names_size &&
            strncmp(module->names + symbol->st_name, begin, strlen(begin)) == 0)
            return true;
    }
    return false;
}

bool attach_module_read(const struct attach_module *module, uint64_t address, void *bytes,
                        size_t size)
{
    for (size_t i = 0; i < module->segment_count; i++) {
        const Elf64_Phdr *segment = &module->segments[i];
        uint64_t begin = (module->bias + segment->p_vaddr) & -(uint64_t)PAGE;
        uint64_t end = module->bias + segment->p_vaddr + segment->p_filesz;
        if (segment->p_type == PT_LOAD && address >= begin && address < end)
            return module->file >= 0 &&
                   read_at(module->file, bytes, size,
                           (segment->p_offset & -(uint64_t)PAGE) + (address - begin));
    }
    return false;
}
