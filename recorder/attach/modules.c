/* SPDX-License-Identifier: MIT */
#include "attach/attach.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, SEGMENTS_MAX = 64, SECTIONS_MAX = 4096, TABLE_MAX = 64 << 20 };

static bool attach_modules_read_at(int file, void *bytes, size_t size, uint64_t offset)
{
    return pread(file, bytes, size, (off_t)offset) == (ssize_t)size;
}

/* Opens the file of a module as the process sees it, if it is still the one that is mapped. A first
 * thread that has ended sees none. */
static int attach_modules_open_file(uint32_t pid, uint32_t tid, const struct mapping *mapping)
{
    char path[64 + 4096];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%u/task/%u/root%s", pid, tid, mapping->name);
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
static bool modules_read_segments(struct attach_module *module, int memory)
{
    Elf64_Ehdr header;
    bool is_based = false;
    if (!attach_modules_read_at(memory, &header, sizeof header, module->begin) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_machine != EM_X86_64 || header.e_phentsize != sizeof(Elf64_Phdr) ||
        header.e_phnum > SEGMENTS_MAX)
        return false;
    module->segments = calloc(header.e_phnum + 1u, sizeof *module->segments);
    module->segment_count = header.e_phnum;
    if (!module->segments ||
        !attach_modules_read_at(memory, module->segments, header.e_phnum * sizeof *module->segments,
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
    if (!modules->items)
        return false;
    uint64_t end = 0;
    for (size_t i = 0; i < modules->maps.count; i++) {
        const struct mapping *mapping = &modules->maps.items[i];
        struct attach_module *module = &modules->items[modules->count];
        /* Functions that read the clock call the vDSO, which is no file. */
        bool is_vdso = strcmp(mapping->name, "[vdso]") == 0;
        bool is_file = mapping->is_file && mapping->name[0] == '/';
        if (mapping->begin < end || !mapping->is_readable || mapping->is_shared ||
            (!is_file && !is_vdso))
            continue;
        *module =
            (struct attach_module){.path = mapping->name, .begin = mapping->begin, .file = -1};
        if (!modules_read_segments(module, memory)) {
            free(module->segments);
            continue;
        }
        module->file = is_vdso ? -1 : attach_modules_open_file(pid, tid, mapping);
        end = module->end;
        modules->count++;
    }
    return true;
}

static void attach_symbols_free(struct attach_symbols *symbols)
{
    free(symbols->items);
    free(symbols->names);
}

void attach_modules_free(struct attach_modules *modules)
{
    for (size_t i = 0; i < modules->count; i++) {
        struct attach_module *module = &modules->items[i];
        if (module->file >= 0)
            close(module->file);
        free(module->segments);
        attach_symbols_free(&module->exported);
        attach_symbols_free(&module->all);
    }
    free(modules->items);
    maps_free(&modules->maps);
    *modules = (struct attach_modules){0};
}

struct attach_module *attach_modules_named(struct attach_modules *modules, const char *name)
{
    for (size_t i = 0; i < modules->count; i++) {
        const char *base = strrchr(modules->items[i].path, '/');
        if (base && strncmp(base + 1, name, strlen(name)) == 0)
            return &modules->items[i];
    }
    return NULL;
}

static void *modules_read_table(int file, const Elf64_Shdr *section)
{
    if (section->sh_size == 0 || section->sh_size > TABLE_MAX)
        return NULL;
    char *table = malloc(section->sh_size + 1);
    if (table && !attach_modules_read_at(file, table, section->sh_size, section->sh_offset)) {
        free(table);
        return NULL;
    }
    if (table)
        table[section->sh_size] = '\0';
    return table;
}

/* Reads a table of symbols with their names. */
static bool modules_read_symbol_table(int file, const Elf64_Shdr *section, const Elf64_Shdr *names,
                                      struct attach_symbols *symbols)
{
    void *items = modules_read_table(file, section);
    char *text = modules_read_table(file, names);
    if (!items || !text) {
        free(items);
        free(text);
        return false;
    }
    free(symbols->items);
    *symbols = (struct attach_symbols){items, section->sh_size / sizeof *symbols->items, text,
                                       names->sh_size};
    return true;
}

/* Reads the first table of a type. Leaves the module without any if that is impossible. */
static void modules_read_symbols(const struct attach_module *module, uint32_t type,
                                 struct attach_symbols *symbols)
{
    Elf64_Ehdr header;
    symbols->items = calloc(1, sizeof *symbols->items);
    if (module->file < 0 || !attach_modules_read_at(module->file, &header, sizeof header, 0) ||
        header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum > SECTIONS_MAX)
        return;
    Elf64_Shdr *sections = calloc(header.e_shnum + 1u, sizeof *sections);
    if (sections && attach_modules_read_at(module->file, sections,
                                           header.e_shnum * sizeof *sections, header.e_shoff))
        for (size_t i = 0; i < header.e_shnum; i++)
            if (sections[i].sh_type == type && sections[i].sh_link < header.e_shnum) {
                modules_read_symbol_table(module->file, &sections[i],
                                          &sections[sections[i].sh_link], symbols);
                break;
            }
    free(sections);
}

const struct attach_symbols *attach_module_symbols(struct attach_module *module, bool are_all)
{
    struct attach_symbols *symbols = are_all ? &module->all : &module->exported;
    if (!symbols->items)
        modules_read_symbols(module, are_all ? SHT_SYMTAB : SHT_DYNSYM, symbols);
    return symbols;
}

static const Elf64_Sym *modules_find_symbol(struct attach_module *module, const char *name,
                                            bool are_all)
{
    const struct attach_symbols *symbols = attach_module_symbols(module, are_all);
    for (size_t i = 0; i < symbols->count; i++) {
        const Elf64_Sym *symbol = &symbols->items[i];
        if (symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
            symbol->st_name < symbols->names_size &&
            strcmp(symbols->names + symbol->st_name, name) == 0)
            return symbol;
    }
    return NULL;
}

uint64_t attach_module_symbol(struct attach_module *module, const char *name)
{
    const Elf64_Sym *symbol = modules_find_symbol(module, name, false);
    return symbol && ELF64_ST_TYPE(symbol->st_info) != STT_GNU_IFUNC
               ? module->bias + symbol->st_value
               : 0;
}

uint64_t attach_module_any_symbol(struct attach_module *module, const char *name)
{
    const Elf64_Sym *symbol = modules_find_symbol(module, name, true);
    return symbol ? module->bias + symbol->st_value : 0;
}

const Elf64_Phdr *attach_module_segment(const struct attach_module *module, uint32_t type)
{
    for (size_t i = 0; i < module->segment_count; i++)
        if (module->segments[i].p_type == type)
            return &module->segments[i];
    return NULL;
}

struct attach_module *attach_modules_program(struct attach_modules *modules, uint32_t pid)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/%u/exe", pid);
    ssize_t size = readlink(link, path, sizeof path - 1);
    for (size_t i = 0; size > 0 && i < modules->count; i++)
        if (strlen(modules->items[i].path) == (size_t)size &&
            memcmp(modules->items[i].path, path, (size_t)size) == 0)
            return &modules->items[i];
    return NULL;
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
                   attach_modules_read_at(module->file, bytes, size,
                                          (segment->p_offset & -(uint64_t)PAGE) +
                                              (address - begin));
    }
    return false;
}
