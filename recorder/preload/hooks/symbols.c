/* SPDX-License-Identifier: MIT */
#include "preload/hooks/symbols.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>

int symbols_segment_protection(const ElfW(Phdr) * segment)
{
    return (segment->p_flags & PF_R ? PROT_READ : 0) | (segment->p_flags & PF_W ? PROT_WRITE : 0) |
           (segment->p_flags & PF_X ? PROT_EXEC : 0);
}

/* Returns the protection of the segment at `address`; -1 if it is not known: a tool may have moved
 * the list of segments away from the first page of the file. */
static int symbols_protection(const struct dl_find_object *object, uintptr_t address)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)object->dlfo_map_start;
    enum { FIRST_PAGE = 4096 };
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_phoff > FIRST_PAGE ||
        header->e_phnum * sizeof(ElfW(Phdr)) > FIRST_PAGE - header->e_phoff)
        return -1;
    const ElfW(Phdr) *segment = (const ElfW(Phdr) *)((const char *)header + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++) {
        uintptr_t begin = object->dlfo_link_map->l_addr + segment[i].p_vaddr;
        if (segment[i].p_type != PT_LOAD || address < begin ||
            address - begin >= segment[i].p_memsz)
            continue;
        return symbols_segment_protection(&segment[i]);
    }
    return -1;
}

bool symbols_of(const struct dl_find_object *object, struct symbols *symbols)
{
    const struct link_map *map = object->dlfo_link_map;
    *symbols = (struct symbols){.bias = map->l_addr};
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        uintptr_t address = symbols_address(map, entry);
        if (entry->d_tag == DT_SYMTAB)
            symbols->table = (ElfW(Sym) *)address;
        else if (entry->d_tag == DT_STRTAB)
            symbols->strings = (const char *)address;
        else if (entry->d_tag == DT_GNU_HASH)
            symbols->hash = (const uint32_t *)address;
    }
    if (!symbols->table || !symbols->strings || !symbols->hash)
        return false;
    symbols->protection = symbols_protection(object, (uintptr_t)symbols->table);
    return true;
}

static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;
    for (; *name != '\0'; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

ElfW(Sym) * symbols_find(const struct symbols *symbols, const char *name, uintptr_t address)
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
