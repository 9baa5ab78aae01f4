/* SPDX-License-Identifier: MIT */
#include "snapshot/layout/glibc.h"

enum {
    DYNAMIC_MAX = 128,     /* entries of a dynamic section */
    RELOCATIONS_MAX = 4096 /* that are looked at, behind the relative ones */
};

/* A block that is farther from the thread pointer is no static one. */
#define DISTANCE_MAX (UINT64_C(64) << 20)

/* A module's relocations. */
struct relocations {
    uint64_t address, size, symbols;
};

static const Elf64_Phdr *tls_find_segment(const struct tls_module *module, uint32_t type)
{
    for (size_t i = 0; i < module->segment_count; i++)
        if (module->segments[i].p_type == type)
            return &module->segments[i];
    return NULL;
}

/* Returns the loader's distance to the first of all blocks, the program's. */
static uint64_t tls_program_distance(const Elf64_Phdr *tls)
{
    uint64_t align = tls->p_align > 1 ? tls->p_align : 1;
    uint64_t first = -(tls->p_vaddr % align) % align;
    return (tls->p_memsz - first + align - 1) / align * align + first;
}

/* The loader has made addresses of some offsets. */
static uint64_t tls_address(const struct tls_module *module, uint64_t value)
{
    return value < module->begin ? module->bias + value : value;
}

static bool tls_find_relocations(const struct memory *memory, const struct tls_module *module,
                                 struct relocations *relocations)
{
    Elf64_Dyn entries[DYNAMIC_MAX];
    const Elf64_Phdr *segment = tls_find_segment(module, PT_DYNAMIC);
    uint64_t relative = 0;
    size_t count = segment ? segment->p_memsz / sizeof *entries : 0;
    count = count < DYNAMIC_MAX ? count : DYNAMIC_MAX;
    *relocations = (struct relocations){0};
    if (count == 0 ||
        !memory_read(memory, module->bias + segment->p_vaddr, entries, count * sizeof *entries))
        return false;
    for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++) {
        if (entries[i].d_tag == DT_RELA)
            relocations->address = tls_address(module, entries[i].d_un.d_ptr);
        else if (entries[i].d_tag == DT_RELASZ)
            relocations->size = entries[i].d_un.d_val;
        else if (entries[i].d_tag == DT_RELACOUNT)
            relative = entries[i].d_un.d_val;
        else if (entries[i].d_tag == DT_SYMTAB)
            relocations->symbols = tls_address(module, entries[i].d_un.d_ptr);
    }
    if (relocations->address == 0 || relative > relocations->size / sizeof(Elf64_Rela))
        return false;
    relocations->address += relative * sizeof(Elf64_Rela);
    relocations->size -= relative * sizeof(Elf64_Rela);
    return true;
}

/* Finds the offset in the module's block that a relocation is for. Returns false if it is for
 * another module's, or may be. */
static bool tls_own_offset(const struct memory *memory, const struct relocations *relocations,
                           const Elf64_Rela *relocation, uint64_t *offset)
{
    Elf64_Sym symbol = {.st_shndx = SHN_ABS};
    uint64_t number = ELF64_R_SYM(relocation->r_info);
    if (number != 0 && (!memory_read(memory, relocations->symbols + number * sizeof symbol, &symbol,
                                     sizeof symbol) ||
                        symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_TLS))
        return false;
    *offset = symbol.st_value + (uint64_t)relocation->r_addend;
    return true;
}

/* Reads where a thread has the block of the module with a number. */
static bool tls_block_of(const struct memory *memory, uint64_t pointer, uint64_t number,
                         uint64_t *begin)
{
    enum { ENTRY = 2 * sizeof(uint64_t) };
    uint64_t vector, count;
    return memory_read(memory, pointer + sizeof(uint64_t), &vector, sizeof vector) &&
           memory_read(memory, vector - ENTRY, &count, sizeof count) && number > 0 &&
           number <= count && memory_read(memory, vector + number * ENTRY, begin, sizeof *begin);
}

/* Finds the distance by a relocation that the loader has carried out. */
static bool tls_distance_by(const struct memory *memory, const struct tls_module *module,
                            const struct relocations *relocations, const Elf64_Rela *relocation,
                            uint64_t pointer, uint64_t *distance)
{
    uint64_t value, offset, begin;
    uint32_t type = ELF64_R_TYPE(relocation->r_info);
    if ((type != R_X86_64_TPOFF64 && type != R_X86_64_DTPMOD64) ||
        !tls_own_offset(memory, relocations, relocation, &offset) ||
        !memory_read(memory, module->bias + relocation->r_offset, &value, sizeof value))
        return false;
    if (type == R_X86_64_TPOFF64)
        *distance = offset - value;
    else if (tls_block_of(memory, pointer, value, &begin))
        *distance = pointer - begin;
    else
        return false;
    return true;
}

static bool tls_library_distance(const struct memory *memory, const struct tls_module *module,
                                 uint64_t pointer, uint64_t *distance)
{
    enum { PART = 256 };
    Elf64_Rela part[PART];
    struct relocations relocations;
    if (!tls_find_relocations(memory, module, &relocations))
        return false;
    uint64_t remaining = relocations.size / sizeof *part;
    remaining = remaining < RELOCATIONS_MAX ? remaining : RELOCATIONS_MAX;
    for (uint64_t address = relocations.address; remaining > 0;) {
        uint64_t count = remaining < PART ? remaining : PART;
        if (!memory_read(memory, address, part, count * sizeof *part))
            return false;
        for (uint64_t i = 0; i < count; i++)
            if (tls_distance_by(memory, module, &relocations, &part[i], pointer, distance))
                return true;
        address += count * sizeof *part;
        remaining -= count;
    }
    return false;
}

void tls_blocks_add(struct tls_blocks *blocks, const struct memory *memory,
                    const struct tls_module *module, uint64_t pointer)
{
    const Elf64_Phdr *tls = tls_find_segment(module, PT_TLS);
    bool is_program =
        !blocks->has_program && !module->is_library && tls_find_segment(module, PT_INTERP);
    uint64_t distance = 0;
    blocks->has_program |= is_program;
    if (!tls || tls->p_memsz == 0 || blocks->count == TLS_BLOCKS_MAX)
        return;
    if (is_program)
        distance = tls_program_distance(tls);
    else if (!tls_library_distance(memory, module, pointer, &distance))
        return;
    if (distance >= tls->p_memsz && distance <= DISTANCE_MAX)
        blocks->items[blocks->count++] = (struct tls_block){module->id, distance, tls->p_memsz};
}

/* Only ranges that begin with a word are reported. */
static void tls_add_blocks(const struct tls_blocks *blocks, const struct region *tls,
                           struct regions *refined)
{
    uint64_t pointer = tls->vector - 8;
    for (size_t i = 0; i < blocks->count; i++) {
        struct region region = *tls;
        region.begin = pointer - blocks->items[i].distance;
        region.end = region.begin + blocks->items[i].size;
        region.module = blocks->items[i].module;
        if (region.begin % 8 == 0 && region.begin >= tls->begin && region.end <= pointer)
            regions_add(refined, &region);
    }
}

void tls_blocks_cut(const struct tls_blocks *blocks, struct regions *regions)
{
    struct regions refined = {0};
    for (size_t i = 0; i < regions->count; i++)
        if (regions->items[i].kind == TTD_REGION_TLS && regions->items[i].vector != 0)
            tls_add_blocks(blocks, &regions->items[i], &refined);
    regions_refine(regions, &refined);
}
