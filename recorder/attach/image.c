/* SPDX-License-Identifier: MIT */
#include "attach/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "messages.h"

/* The file is part of the installation: it is checked for mistakes, not for malice. */
enum { PAGE = 4096, FILE_MAX = 64 << 20 };

static uint8_t *attach_image_read_file(const char *path, size_t *size)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t *bytes = NULL;
    if (file >= 0 && fstat(file, &status) == 0 && status.st_size > 0 && status.st_size < FILE_MAX &&
        (bytes = malloc((size_t)status.st_size))) {
        *size = (size_t)status.st_size;
        if (read(file, bytes, *size) != (ssize_t)*size) {
            free(bytes);
            bytes = NULL;
        }
    }
    if (file >= 0)
        close(file);
    return bytes;
}

/* Puts the segments where they are to be. */
static bool image_place(struct attach_image *image, const uint8_t *file, size_t file_size)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(file + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD)
            image->size = (segments[i].p_vaddr + segments[i].p_memsz + PAGE - 1) / PAGE * PAGE;
    image->bytes = calloc(image->size, 1);
    if (!image->bytes)
        return false;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        const Elf64_Phdr *segment = &segments[i];
        if (segment->p_type == PT_TLS)
            image->thread_size = segment->p_memsz;
        if (segment->p_type != PT_LOAD)
            continue;
        if (segment->p_offset + segment->p_filesz > file_size)
            return false;
        memcpy(image->bytes + segment->p_vaddr, file + segment->p_offset, segment->p_filesz);
        if (segment->p_flags & PF_W)
            image->data = segment->p_vaddr / PAGE * PAGE;
    }
    memcpy(image->bytes + ATTACHED_MARK_AT, ATTACHED_MARK, strlen(ATTACHED_MARK));
    return image->data != 0;
}

/* The tables for relocating the image. */
struct image_tables {
    const Elf64_Sym *symbols;
    size_t symbol_count;
    const char *names;
    const Elf64_Rela *relocations[2];
    size_t counts[2];
};

static void image_find_tables(const struct attach_image *image, struct image_tables *tables)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)image->bytes;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(image->bytes + header->e_phoff);
    *tables = (struct image_tables){0};
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type != PT_DYNAMIC)
            continue;
        const Elf64_Dyn *entry = (const Elf64_Dyn *)(image->bytes + segments[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            const uint8_t *table = image->bytes + entry->d_un.d_ptr;
            if (entry->d_tag == DT_SYMTAB)
                tables->symbols = (const Elf64_Sym *)table;
            else if (entry->d_tag == DT_STRTAB)
                tables->names = (const char *)table;
            else if (entry->d_tag == DT_RELA)
                tables->relocations[0] = (const Elf64_Rela *)table;
            else if (entry->d_tag == DT_RELASZ)
                tables->counts[0] = entry->d_un.d_val / sizeof(Elf64_Rela);
            else if (entry->d_tag == DT_JMPREL)
                tables->relocations[1] = (const Elf64_Rela *)table;
            else if (entry->d_tag == DT_PLTRELSZ)
                tables->counts[1] = entry->d_un.d_val / sizeof(Elf64_Rela);
        }
    }
    /* The names follow the symbols, as the linker lays them out. */
    if (tables->symbols && tables->names)
        tables->symbol_count =
            (size_t)((const char *)tables->names - (const char *)tables->symbols) /
            sizeof *tables->symbols;
}

/* Sets addresses within the image to their offsets, until it is relocated. */
static void image_set_offsets(struct attach_image *image)
{
    struct image_tables tables;
    image_find_tables(image, &tables);
    for (size_t i = 0; i < tables.counts[0]; i++) {
        const Elf64_Rela *relocation = &tables.relocations[0][i];
        if (ELF64_R_TYPE(relocation->r_info) == R_X86_64_RELATIVE)
            memcpy(image->bytes + relocation->r_offset, &relocation->r_addend,
                   sizeof relocation->r_addend);
    }
}

/* Finds the struct attached, by its symbol. */
static bool image_find_own(struct attach_image *image)
{
    struct image_tables tables;
    image_find_tables(image, &tables);
    for (size_t i = 0; i < tables.symbol_count; i++)
        if (tables.symbols[i].st_shndx != SHN_UNDEF &&
            strcmp(tables.names + tables.symbols[i].st_name, ATTACHED_SYMBOL) == 0)
            image->own = tables.symbols[i].st_value;
    return image->own != 0 && attach_image_own(image)->magic == ATTACHED_MAGIC;
}

bool attach_image_load(struct attach_image *image, const char *path)
{
    size_t size = 0;
    *image = (struct attach_image){0};
    uint8_t *file = attach_image_read_file(path, &size);
    bool is_loaded = file && size >= sizeof(Elf64_Ehdr) && memcmp(file, ELFMAG, SELFMAG) == 0 &&
                     image_place(image, file, size) && image_find_own(image);
    if (is_loaded) {
        ((Elf64_Ehdr *)image->bytes)->e_entry = image->own;
        image_set_offsets(image);
        image->call = attach_image_own(image)->borrowed.call;
        image->run = attach_image_own(image)->run;
        image->hooks =
            (const struct attached_hook *)(image->bytes + attach_image_own(image)->hooks);
        image->hook_count = (attach_image_own(image)->hooks_end - attach_image_own(image)->hooks) /
                            sizeof *image->hooks;
        image->copy = attach_image_own(image)->borrowed.copy;
        image->stack_end = attach_image_own(image)->borrowed.stack_end;
    }
    free(file);
    if (!is_loaded) {
        message("'%s' cannot be used; is the installation complete?", path);
        attach_image_free(image);
    }
    return is_loaded;
}

void attach_image_free(struct attach_image *image)
{
    free(image->bytes);
    *image = (struct attach_image){0};
}

/* Returns the offset of the image's own function for a static program; 0 if it has none. */
static uint64_t image_find_static(const struct image_tables *tables, const char *name)
{
    const size_t size = sizeof ATTACHED_STATIC - 1;
    for (size_t i = 1; i < tables->symbol_count; i++) {
        const char *own = tables->names + tables->symbols[i].st_name;
        if (tables->symbols[i].st_shndx != SHN_UNDEF && strncmp(own, ATTACHED_STATIC, size) == 0 &&
            strcmp(own + size, name) == 0)
            return tables->symbols[i].st_value;
    }
    return 0;
}

const char *attach_image_import(const struct attach_image *image, size_t number, bool is_static)
{
    struct image_tables tables;
    image_find_tables(image, &tables);
    for (size_t i = 1; i < tables.symbol_count; i++) {
        const char *name = tables.names + tables.symbols[i].st_name;
        if (tables.symbols[i].st_shndx == SHN_UNDEF &&
            (!is_static || image_find_static(&tables, name) == 0) && number-- == 0)
            return name;
    }
    return NULL;
}

static uint64_t image_find_import(struct attach_modules *modules, const char *name)
{
    static const char *const files[] = {"libc.so.6", "ld-linux-x86-64.so.2"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct attach_module *module = attach_modules_named(modules, files[i]);
        uint64_t address = module ? attach_module_symbol(module, name) : 0;
        if (address != 0)
            return address;
    }
    return 0;
}

const char *attach_image_relocate(struct attach_image *image, uint64_t base, int64_t thread_block,
                                  struct attach_modules *modules, struct attach_module *program)
{
    struct image_tables tables;
    uint64_t own;
    image_find_tables(image, &tables);
    for (size_t table = 0; table < 2; table++)
        for (size_t i = 0; i < tables.counts[table]; i++) {
            const Elf64_Rela *relocation = &tables.relocations[table][i];
            const Elf64_Sym *symbol = &tables.symbols[ELF64_R_SYM(relocation->r_info)];
            const char *name = tables.names + symbol->st_name;
            uint64_t value = base + symbol->st_value;
            if (symbol->st_shndx == SHN_UNDEF && symbol->st_name != 0) {
                if (!program)
                    value = image_find_import(modules, name);
                else if ((own = image_find_static(&tables, name)) != 0)
                    value = base + own;
                else
                    value = attach_module_any_symbol(program, name);
                if (value == 0)
                    return name;
            }
            switch (ELF64_R_TYPE(relocation->r_info)) {
            case R_X86_64_RELATIVE:
                value = base + (uint64_t)relocation->r_addend;
                break;
            case R_X86_64_TPOFF64:
                value = (uint64_t)(thread_block + relocation->r_addend);
                break;
            case R_X86_64_64:
                value += (uint64_t)relocation->r_addend;
                break;
            case R_X86_64_GLOB_DAT:
            case R_X86_64_JUMP_SLOT:
                break;
            default:
                return "a relocation";
            }
            memcpy(image->bytes + relocation->r_offset, &value, sizeof value);
        }
    return NULL;
}
