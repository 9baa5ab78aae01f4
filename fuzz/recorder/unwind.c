/* SPDX-License-Identifier: MIT */
/*
 * Call frame information and stacks may contain anything: the unwinder reads nothing outside the
 * module's segment and readable memory, every step ends, and a compiled rule leads to the same
 * caller as the full rules. An input is registers and a stack, then call frame information from its
 * header on. Both lie between pages that cannot be read.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "../target.h"
#include "preload/unwind/rules.h"
#include "dwarf/expr.h"
#include "preload/system/own_memory.h"

enum { PAGE = 4096, IMAGE_PAGES = 5, STACK_SIZE = 256, INFO_MAX = (IMAGE_PAGES - 1) * PAGE };

/* The head of an input: a byte for each address, then a byte for each word of the stack. */
enum { ADDRESSES = 4, STACK_TAKEN = 64, HEAD_SIZE = ADDRESSES + STACK_TAKEN };

/* Ends of the image and the stack, each followed by a page that cannot be read. */
static uint8_t *image_end;
static uint8_t *stack_end;

static struct dl_find_object object;
static struct link_map map;

static bool is_in_image(uintptr_t address)
{
    return address >= (uintptr_t)object.dlfo_map_start && address < (uintptr_t)object.dlfo_map_end;
}

/* Replaces the C library's function, which does not know the input's module. */
int _dl_find_object(void *address, struct dl_find_object *result)
{
    static int (*next)(void *, struct dl_find_object *);
    if (is_in_image((uintptr_t)address)) {
        *result = object;
        return 0;
    }
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "_dl_find_object");
    return next ? next(address, result) : -1;
}

/* Maps pages between two that cannot be read. Returns their end. */
static uint8_t *map_pages(size_t count)
{
    size_t size = (count + 2) * PAGE;
    uint8_t *pages = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    target_require(pages != MAP_FAILED, "memory");
    target_require(mprotect(pages + PAGE, count * PAGE, PROT_READ | PROT_WRITE) == 0, "memory");
    return pages + (count + 1) * PAGE;
}

/* ---- Memory: replaces the functions that ask the system; only image and stack exist ---- */

bool unwind_is_confined;

bool unwind_page_readable(uintptr_t address)
{
    uintptr_t page = address / PAGE * PAGE;
    return (page < (uintptr_t)image_end && page >= (uintptr_t)image_end - IMAGE_PAGES * PAGE) ||
           page == (uintptr_t)stack_end - PAGE;
}

bool unwind_range_readable(uintptr_t address, size_t size)
{
    for (size_t at = 0; at < size; at += PAGE)
        if (!unwind_page_readable(address + at))
            return false;
    return !size || unwind_page_readable(address + size - 1);
}

bool unwind_read_elsewhere(struct unwind_mem *m, uintptr_t address, uintptr_t *value)
{
    m->is_foreign = true;
    if (address % sizeof *value != 0 || !unwind_page_readable(address))
        return false;
    memcpy(value, (const void *)address, sizeof *value);
    return true;
}

/* ---- An input ---- */

/* Builds a module of one segment that ends with the call frame information. */
static void build_image(const uint8_t *info, size_t size)
{
    size_t padded = (size + 7) / 8 * 8;
    uint8_t *start = image_end - PAGE - padded;
    memset(start, 0, PAGE + padded);
    ElfW(Ehdr) *header = (ElfW(Ehdr) *)start;
    ElfW(Phdr) *segment = (ElfW(Phdr) *)(header + 1);
    memcpy(header->e_ident, ELFMAG, SELFMAG);
    header->e_phentsize = sizeof *segment;
    header->e_phoff = sizeof *header;
    header->e_phnum = 1;
    *segment = (ElfW(Phdr)){.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = PAGE + padded};
    memcpy(image_end - size, info, size);
    map.l_addr = (ElfW(Addr))start;
    object = (struct dl_find_object){.dlfo_map_start = start,
                                     .dlfo_map_end = image_end,
                                     .dlfo_link_map = &map,
                                     .dlfo_eh_frame = image_end - size};
}

/* Builds the stack: input bytes below 128 become addresses in the stack, others in the image. */
static void build_stack(const uint8_t *head)
{
    uint64_t *words = (uint64_t *)(stack_end - STACK_SIZE);
    for (unsigned i = 0; i < STACK_SIZE / 8; i++) {
        uint8_t value = head[ADDRESSES + i % STACK_TAKEN];
        words[i] = value < 128 ? (uintptr_t)(stack_end - STACK_SIZE) + 2u * value
                               : (uintptr_t)image_end - PAGE + 8u * value;
    }
}

static struct step_regs registers(const uint8_t *head)
{
    struct step_regs regs = {.known = (1u << CFI_REGS) - 1};
    uintptr_t low = (uintptr_t)stack_end - STACK_SIZE;
    for (unsigned i = 0; i < CFI_REGS; i++)
        regs.reg[i] = low + 8 * i;
    regs.reg[CFI_RSP] = low + head[0];
    regs.reg[CFI_RBP] = low + head[1];
    /* Near the header. */
    regs.reg[CFI_RA] = (uintptr_t)object.dlfo_eh_frame + 2 * (uintptr_t)head[2] - head[3];
    return regs;
}

static struct unwind_mem memory(void)
{
    return (struct unwind_mem){.own_low = (uintptr_t)stack_end - STACK_SIZE,
                               .own_high = (uintptr_t)stack_end};
}

/* Computes the caller by the compiled rule. Returns false if the rule is special or memory
 * unreadable. */
static bool step_by_rule(unwind_rule rule, const struct step_regs *from, struct step_regs *to)
{
    struct unwind_mem mem = memory();
    uintptr_t bp = from->reg[CFI_RBP], cfa = rule_offset(rule);
    switch (rule_kind(rule)) {
    case RULE_SP:
        cfa += from->reg[CFI_RSP];
        break;
    case RULE_BP:
        cfa += bp;
        break;
    case RULE_DRAP:
        if (!unwind_read(&mem, bp + rule_offset(rule), &cfa) || !unwind_read(&mem, bp, &bp))
            return false;
        break;
    default:
        return false;
    }
    if (rule_bp(rule) && !unwind_read(&mem, cfa - rule_bp(rule), &bp))
        return false;
    to->reg[CFI_RSP] = cfa;
    to->reg[CFI_RBP] = bp;
    return unwind_read(&mem, cfa - 8, &to->reg[CFI_RA]);
}

static void check_rule(unwind_rule rule, const struct step_regs *from, const struct step_regs *full,
                       enum step_result result)
{
    struct step_regs quick;
    unsigned kind = rule_kind(rule);
    target_require((kind == RULE_END) <= (result == STEP_END), "an end is one by the full rules");
    target_require((kind == RULE_NO_CFI) <= (result == STEP_BAD), "there are no full rules");
    if (!step_by_rule(rule, from, &quick))
        return;
    target_require(result == STEP_DONE, "the full rules lead there");
    target_require(quick.reg[CFI_RA] == full->reg[CFI_RA], "the same caller");
    target_require(quick.reg[CFI_RSP] == full->reg[CFI_RSP], "the same stack pointer");
    target_require((full->known >> CFI_RBP & 1) != 0, "the full rules find the frame pointer");
    target_require(quick.reg[CFI_RBP] == full->reg[CFI_RBP], "the same frame pointer");
}

/* Continuing the last run of the compiler gives the same rules as starting anew. */
static void check_going_on(struct cfi_lookup *lookup, uintptr_t address)
{
    static struct cfi_lookup fresh;
    fresh.object = object;
    for (unsigned i = 0; i < 16 && is_in_image(address + i); i++) {
        cfi_forget(&fresh);
        target_require(rule_compile(lookup, address + i) == rule_compile(&fresh, address + i),
                       "the same rule");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct unwind_scratch scratch;
    uint8_t head[HEAD_SIZE] = {0};
    if (!image_end) {
        image_end = map_pages(IMAGE_PAGES);
        stack_end = map_pages(1);
    }
    memcpy(head, data, size < HEAD_SIZE ? size : HEAD_SIZE);
    size_t rest = size > HEAD_SIZE ? size - HEAD_SIZE : 0;
    build_image(data + size - rest, rest < INFO_MAX ? rest : INFO_MAX);
    build_stack(head);
    struct step_regs regs = registers(head);
    scratch.caller = regs;       /* a step leaves unfound values plausible: a use of one shows */
    cfi_forget(&scratch.lookup); /* that was another image */
    for (unsigned steps = 0; steps < 16; steps++) {
        struct unwind_mem mem = memory();
        struct step_regs from = regs;
        uintptr_t address = from.reg[CFI_RA] - 1;
        if (!is_in_image(address))
            break;
        scratch.lookup.object = object;
        check_going_on(&scratch.lookup, address);
        unwind_rule rule = rule_compile(&scratch.lookup, address);
        enum step_result result = unwind_step(&regs, &mem, &scratch);
        check_rule(rule, &from, &regs, result);
        if (result != STEP_DONE)
            break;
        step_settle_state(&regs);
    }
    return 0;
}
