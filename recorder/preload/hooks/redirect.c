/* SPDX-License-Identifier: MIT */
/*
 * Changes the symbol tables of the libraries behind this one, so that they define the hooks instead
 * of their allocation functions. Some modules are bound to those although the hooks come first: a
 * plugin opened with RTLD_DEEPBIND looks in its own libraries, and dlsym() in the library that it
 * is given. Calls within such a library, and modules that are bound already, are not affected.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "../system/real.h"
#include "../system/sys.h"
#include "../channel/target.h"

enum { PAGE = 4096 };

/* The tables of a loaded module by which the loader finds its symbols. */
struct symbols {
    uintptr_t bias;
    ElfW(Sym) * table;
    const char *strings;
    const uint32_t *hash; /* DT_GNU_HASH */
    int protection;       /* of the pages of the table */
};

/* Returns the address of an entry. The loader has made it absolute in most modules, but not in all.
 */
static uintptr_t address_of(const struct link_map *map, const ElfW(Dyn) * entry)
{
    return entry->d_un.d_ptr < map->l_addr ? entry->d_un.d_ptr + map->l_addr : entry->d_un.d_ptr;
}

/* Returns the protection of the segment at `address`; -1 if there is none. */
static int protection_of(const struct dl_find_object *object, uintptr_t address)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)object->dlfo_map_start;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return -1;
    const ElfW(Phdr) *segment = (const ElfW(Phdr) *)((const char *)header + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++) {
        uintptr_t begin = object->dlfo_link_map->l_addr + segment[i].p_vaddr;
        if (segment[i].p_type != PT_LOAD || address < begin ||
            address - begin >= segment[i].p_memsz)
            continue;
        return (segment[i].p_flags & PF_R ? PROT_READ : 0) |
               (segment[i].p_flags & PF_W ? PROT_WRITE : 0) |
               (segment[i].p_flags & PF_X ? PROT_EXEC : 0);
    }
    return -1;
}

static bool symbols_of(const struct dl_find_object *object, struct symbols *symbols)
{
    const struct link_map *map = object->dlfo_link_map;
    *symbols = (struct symbols){.bias = map->l_addr};
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        uintptr_t address = address_of(map, entry);
        if (entry->d_tag == DT_SYMTAB)
            symbols->table = (ElfW(Sym) *)address;
        else if (entry->d_tag == DT_STRTAB)
            symbols->strings = (const char *)address;
        else if (entry->d_tag == DT_GNU_HASH)
            symbols->hash = (const uint32_t *)address;
    }
    if (symbols->table == NULL || symbols->strings == NULL || symbols->hash == NULL)
        return false;
    symbols->protection = protection_of(object, (uintptr_t)symbols->table);
    return symbols->protection >= 0;
}

static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;
    for (; *name != '\0'; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* Finds the symbol `name` that is defined at `address`, or anywhere if that is 0; NULL if there is
 * none. */
static ElfW(Sym) * find_symbol(const struct symbols *symbols, const char *name, uintptr_t address)
{
    uint32_t buckets = symbols->hash[0], first = symbols->hash[1], words = symbols->hash[2];
    const uint32_t *bucket = symbols->hash + 4 + words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chain = bucket + buckets;
    uint32_t hash = gnu_hash(name);
    uint32_t index = buckets != 0 ? bucket[hash % buckets] : 0;
    if (index < first)
        return NULL;
    for (;; index++) {
        ElfW(Sym) *symbol = &symbols->table[index];
        uint32_t known = chain[index - first];
        if ((known | 1) == (hash | 1) &&
            (address == 0 || symbols->bias + symbol->st_value == address) &&
            ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
            strcmp(symbols->strings + symbol->st_name, name) == 0)
            return symbol;
        if (known & 1)
            return NULL;
    }
}

/* The definitions of one module that are to be changed. */
struct change {
    struct symbols symbols;
    uintptr_t begin, end; /* of the pages that they are on */
};

/* Finds the definition of each function of this module. */
static void find_all(const struct link_map *map, struct change *change,
                     struct redirection *redirections, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct redirection *one = &redirections[i];
        struct dl_find_object object;
        if (one->real_function == 0 || one->symbol != NULL ||
            _dl_find_object((void *)one->real_function, &object) != 0 ||
            object.dlfo_link_map != map)
            continue;
        ElfW(Sym) *symbol = find_symbol(&change->symbols, one->name, one->real_function);
        if (symbol == NULL)
            continue;
        uintptr_t begin = (uintptr_t)symbol & -(uintptr_t)PAGE;
        uintptr_t end = ((uintptr_t)(symbol + 1) + PAGE - 1) & -(uintptr_t)PAGE;
        change->begin = begin < change->begin ? begin : change->begin;
        change->end = end > change->end ? end : change->end;
        one->symbol = symbol;
    }
}

static bool protect(const struct change *change, int protection)
{
    return sys_call3(SYS_mprotect, (long)change->begin, (long)(change->end - change->begin),
                     protection) == 0;
}

static void redirect_module(const struct dl_find_object *object, struct redirection *redirections,
                            size_t count)
{
    struct change change = {.begin = UINTPTR_MAX};
    if (!symbols_of(object, &change.symbols))
        return;
    find_all(object->dlfo_link_map, &change, redirections, count);
    if (change.begin >= change.end || !protect(&change, change.symbols.protection | PROT_WRITE))
        return;
    for (size_t i = 0; i < count; i++) {
        ElfW(Sym) *symbol = redirections[i].symbol;
        /* Another thread may be looking it up. */
        if ((uintptr_t)symbol >= change.begin && (uintptr_t)symbol < change.end)
            __atomic_store_n(&symbol->st_value, redirections[i].hook - change.symbols.bias,
                             __ATOMIC_RELEASE);
    }
    protect(&change, change.symbols.protection);
}

void redirect(struct redirection *redirections, size_t count)
{
    const struct link_map *done = NULL;
    for (size_t i = 0; i < count; i++) {
        struct dl_find_object object;
        if (redirections[i].real_function == 0 || redirections[i].symbol != NULL ||
            _dl_find_object((void *)redirections[i].real_function, &object) != 0 ||
            object.dlfo_link_map == done)
            continue;
        redirect_module(&object, redirections, count);
        done = object.dlfo_link_map;
    }
}

void *real_find_beside(uintptr_t function, const char *name)
{
    struct dl_find_object object;
    struct symbols symbols;
    if (_dl_find_object((void *)function, &object) != 0 || !symbols_of(&object, &symbols))
        return NULL;
    const ElfW(Sym) *symbol = find_symbol(&symbols, name, 0);
    return symbol != NULL ? (void *)(symbols.bias + symbol->st_value) : NULL;
}

static bool is_extension(const char *name)
{
    static const char *const names[] = {"mallocx", "rallocx", "xallocx", "dallocx", "sdallocx"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Symbols that a module only refers to come first in its table, before those that are hashed. */
static int refers_to_extension(struct dl_phdr_info *info, size_t size, void *unused)
{
    struct dl_find_object object;
    struct symbols symbols;
    (void)size, (void)unused;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_DYNAMIC ||
            _dl_find_object((void *)(info->dlpi_addr + segment->p_vaddr), &object) != 0 ||
            !symbols_of(&object, &symbols))
            continue;
        for (uint32_t index = 1; index < symbols.hash[1]; index++)
            if (is_extension(symbols.strings + symbols.table[index].st_name))
                return 1;
    }
    return 0;
}

void redirect_note_extensions(uintptr_t function)
{
    struct dl_find_object object;
    struct symbols symbols;
    if (function == 0 || _dl_find_object((void *)function, &object) != 0 ||
        !symbols_of(&object, &symbols) || find_symbol(&symbols, "mallocx", 0) == NULL)
        return;
    if (dl_iterate_phdr(refers_to_extension, NULL) != 0)
        process_note(NOTE_EXTENSIONS);
}
