/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* _dl_find_object */
#endif
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>

#include "dwarf/cfi.h"
#include "dwarf/dwarf.h"
#include "preload/system/own_memory.h"
#include "preload/unwind/rules.h"

/* Bytes of call frame information that are followed in memory of unknown extent. */
#define PROBED_MAX ((uintptr_t)1 << 28)

/* The program headers of the program itself, from the kernel. */
static const ElfW(Phdr) * main_phdr;
static size_t main_phnum;

static unwind_frame_finder *_Atomic find_frame;

void own_modules_setup(unwind_frame_finder *frame_finder)
{
    atomic_store(&find_frame, frame_finder);
    main_phdr = (const void *)getauxval(AT_PHDR);
    main_phnum = getauxval(AT_PHNUM);
}

/* Returns the readable segment that holds `address`; its `low` is 0 if there is none. */
static struct cfi_span compile_own_modules_find_segment(const ElfW(Phdr) * phdr, size_t count,
                                                        uintptr_t load, uintptr_t address)
{
    for (size_t i = 0; i < count; i++) {
        uintptr_t low = load + phdr[i].p_vaddr;
        if (phdr[i].p_type == PT_LOAD && (phdr[i].p_flags & PF_R) != 0 && address >= low &&
            address - low < phdr[i].p_filesz)
            return (struct cfi_span){.low = low, .high = low + phdr[i].p_filesz};
    }
    return (struct cfi_span){0};
}

/* Finds the segment by the ELF header at the start of the mapping. */
static struct cfi_span segment_by_header(const struct dl_find_object *object, uintptr_t address)
{
    uintptr_t start = (uintptr_t)object->dlfo_map_start;
    uintptr_t end = (uintptr_t)object->dlfo_map_end;
    const ElfW(Ehdr) *header = object->dlfo_map_start;
    if (end - start < UNWIND_PAGE || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phentsize != sizeof(ElfW(Phdr)) || header->e_phoff > UNWIND_PAGE ||
        header->e_phnum > (UNWIND_PAGE - header->e_phoff) / sizeof(ElfW(Phdr)))
        return (struct cfi_span){0};
    const ElfW(Phdr) *phdr = (const void *)(start + header->e_phoff);
    struct cfi_span span = compile_own_modules_find_segment(phdr, header->e_phnum,
                                                            object->dlfo_link_map->l_addr, address);
    return span.low >= start && span.high <= end && span.low < span.high ? span
                                                                         : (struct cfi_span){0};
}

/* Finds the segment by the program headers that the kernel gave, if `object` is the program. */
static struct cfi_span segment_of_main(const struct dl_find_object *object, uintptr_t address)
{
    uintptr_t load = object->dlfo_link_map->l_addr;
    for (size_t i = 0; i < main_phnum; i++)
        if (main_phdr[i].p_type == PT_GNU_EH_FRAME &&
            load + main_phdr[i].p_vaddr == (uintptr_t)object->dlfo_eh_frame)
            return compile_own_modules_find_segment(main_phdr, main_phnum, load, address);
    return (struct cfi_span){0};
}

bool modules_find(struct cfi_lookup *lookup, uintptr_t address)
{
    return _dl_find_object((void *)address, &lookup->object) == 0;
}

/* Without program headers, the segment is a range whose pages are probed. */
struct cfi_span modules_segment(const struct cfi_lookup *lookup, uintptr_t address)
{
    const struct dl_find_object *object = &lookup->object;
    struct cfi_span span = segment_by_header(object, address);
    if (span.low == 0)
        span = segment_of_main(object, address);
    if (span.low == 0) { /* some tools that edit libraries move their program headers */
        span.low = address - (address < PROBED_MAX ? address : PROBED_MAX);
        span.high = address + (UINTPTR_MAX - address < PROBED_MAX ? 0 : PROBED_MAX);
        span.is_fetched = true;
    }
    return span;
}

const struct debug_frame *modules_debug_frame(struct cfi_lookup *lookup, uintptr_t *bias)
{
    unwind_frame_finder *finder = atomic_load(&find_frame);
    *bias = lookup->object.dlfo_link_map->l_addr;
    return finder ? finder(&lookup->object, &lookup->is_unsettled) : NULL;
}

struct cursor span_fetch(const struct cfi_span *span, uintptr_t address, size_t size)
{
    struct cursor cursor = {.next = (const uint8_t *)address,
                            .end = (const uint8_t *)address + size};
    (void)span;
    if (!unwind_range_readable(address, size))
        cursor_fail(&cursor);
    return cursor;
}

const uint8_t rule_other_regs[RULE_OTHER_COUNT] = {CFI_RBX, CFI_R12, 13, 14, CFI_R15};

/* Whether an expression is the slot at rbp + `*offset`, or (`is_loaded`) the word in that slot. */
static bool compile_is_bp_slot(const struct cfi_span *span, int32_t expression, bool is_loaded,
                               int64_t *offset)
{
    struct cursor cursor;
    cfi_expression(span, expression, &cursor);
    if (cursor_u8(&cursor) != OP_BREG0 + CFI_RBP)
        return false;
    *offset = cursor_sleb(&cursor);
    if (is_loaded && cursor_u8(&cursor) != OP_DEREF)
        return false;
    return !cursor.is_bad && cursor.next == cursor.end;
}

/* Returns the four bits for a register other than rbp. */
static unsigned pack_other(struct cfi_rule rule)
{
    if (rule.kind == CFI_SAME)
        return 0;
    if (rule.kind == CFI_OFFSET && rule.value % 8 == 0 && rule.value <= -16 &&
        rule.value >= -15 * 8)
        return (unsigned)(-rule.value / 8);
    return RULE_OTHER_UNSAID;
}

static unwind_rule pack_others(const struct cfi_row *row)
{
    unwind_rule rule = 0;
    for (unsigned i = 0; i < RULE_OTHER_COUNT; i++) {
        unwind_rule other = pack_other(row->reg[rule_other_regs[i]]);
        rule |= other << (RULE_OTHER_SHIFT + 4 * i);
    }
    return rule;
}

static bool compile_fits_offset(int64_t offset)
{
    return offset >= -(1 << 25) && offset < 1 << 25;
}

static unwind_rule pack(unsigned kind, int64_t offset, unwind_rule saves)
{
    return kind | saves | (uint64_t)offset << RULE_OFFSET_SHIFT;
}

/* Compiles the row of a frame that gcc has realigned: the CFA is kept in a slot below rbp, and rbp
   is saved where it points to. */
static unwind_rule compile_drap(const struct cfi_span *span, const struct cfi_row *row)
{
    int64_t offset;
    int64_t zero;
    if (!compile_is_bp_slot(span, row->cfa_offset, true, &offset) || !compile_fits_offset(offset) ||
        row->reg[CFI_RBP].kind != CFI_EXPR ||
        !compile_is_bp_slot(span, row->reg[CFI_RBP].value, false, &zero) || zero != 0)
        return RULE_GENERAL;
    return pack(RULE_DRAP, offset, pack_others(row));
}

static unwind_rule compile_row(const struct cfi_span *span, const struct cfi_row *row)
{
    struct cfi_rule pc_rule = row->reg[CFI_RA];
    struct cfi_rule bp_rule = row->reg[CFI_RBP];
    unwind_rule saves = pack_others(row);
    if (pc_rule.kind == CFI_UNDEFINED)
        return RULE_END;
    if (pc_rule.kind != CFI_OFFSET || pc_rule.value != -8 || row->reg[CFI_RSP].kind != CFI_SAME)
        return RULE_GENERAL;
    if (row->cfa_is_expr)
        return compile_drap(span, row);
    if (bp_rule.kind == CFI_OFFSET) {
        if (bp_rule.value % 8 != 0 || bp_rule.value >= 0 ||
            (unsigned)-(bp_rule.value / 8) > RULE_BP_MAX)
            return RULE_GENERAL;
        saves |= (unwind_rule)(-(bp_rule.value / 8)) << RULE_BP_SHIFT;
    } else if (bp_rule.kind != CFI_SAME) {
        return RULE_GENERAL;
    }
    if (!compile_fits_offset(row->cfa_offset))
        return RULE_GENERAL;
    if (row->cfa_reg == CFI_RSP)
        return pack(RULE_SP, row->cfa_offset, saves);
    return row->cfa_reg == CFI_RBP ? pack(RULE_BP, row->cfa_offset, saves) : RULE_GENERAL;
}

unwind_rule rule_compile(struct cfi_lookup *lookup, uintptr_t address)
{
    const struct cfi_function *function = &lookup->function;
    if (!cfi_find(lookup, address) || !cfi_row(lookup, address))
        return RULE_NO_CFI;
    return function->is_signal_frame ? RULE_GENERAL : compile_row(&function->span, &lookup->row);
}
