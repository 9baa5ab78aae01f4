/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

/*
 * A section .debug_frame gives the rules of its functions: found wherever they stand, relative to
 * the module's bias. Damage of any kind leads to no read outside of the section.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf/cfi.h"
#include "support/entropy.h"

enum { FUNCTIONS = 40, CODE = 0x1000, CODE_STEP = 0x40, CODE_SIZE = 0x30, ROUNDS = 20000 };

#define BIAS     ((uintptr_t)0x7f0000000000)
#define CODE_END ((uint64_t)CODE + FUNCTIONS * CODE_STEP)

static struct debug_frame frame;

bool modules_find(struct cfi_lookup *lookup, uintptr_t address)
{
    (void)lookup;
    (void)address;
    return true;
}

struct cfi_span modules_segment(const struct cfi_lookup *lookup, uintptr_t address)
{
    (void)lookup;
    (void)address;
    return (struct cfi_span){0};
}

struct cursor span_fetch(const struct cfi_span *span, uintptr_t address, size_t size)
{
    (void)span;
    (void)address;
    (void)size;
    abort();
}

const struct debug_frame *modules_debug_frame(struct cfi_lookup *lookup, uintptr_t *bias)
{
    (void)lookup;
    *bias = BIAS;
    return &frame;
}

struct section {
    uint8_t bytes[8192];
    size_t size;
};

static void put(struct section *section, const void *bytes, size_t size)
{
    if (size > sizeof section->bytes - section->size)
        abort();
    memcpy(section->bytes + section->size, bytes, size);
    section->size += size;
}

static void put_uint(struct section *section, uint64_t value, size_t size)
{
    put(section, &value, size);
}

/* A CIE of this version: the CFA is rsp + 8, and the return address is below it. */
static void put_cie(struct section *section, uint8_t version)
{
    static const uint8_t common[] = {1, 0x78, CFI_RA, CFA_DEF_CFA, CFI_RSP, 8, CFA_OFFSET | CFI_RA,
                                     1, 0,    0};
    put_uint(section, 4 + 2 + (version == 4 ? 2 : 0) + sizeof common, 4);
    put_uint(section, DEBUG_FRAME_CIE, 4);
    put_uint(section, version, 1);
    put_uint(section, 0, 1); /* no augmentation */
    if (version == 4)
        put_uint(section, 8, 2);
    put(section, common, sizeof common);
}

/* An FDE: after 4 bytes the CFA is rsp + 16 + 8 * i. */
static void put_fde(struct section *section, uint32_t cie, uint64_t code, uint8_t i)
{
    const uint8_t specific[] = {CFA_ADVANCE_LOC | 4, CFA_DEF_CFA_OFFSET, (uint8_t)(16 + i)};
    put_uint(section, 4 + 16 + sizeof specific, 4);
    put_uint(section, cie, 4);
    put_uint(section, code, 8);
    put_uint(section, CODE_SIZE, 8);
    put(section, specific, sizeof specific);
}

/* Functions in no order, among others that the linker has dropped, and a record of 64-bit DWARF. */
static void make_section(struct section *section)
{
    section->size = 0;
    put_cie(section, 1);
    uint32_t newer = (uint32_t)section->size;
    put_cie(section, 4);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        unsigned place = i * 7 % FUNCTIONS;
        put_fde(section, i % 2 ? newer : 0, CODE + place * CODE_STEP, (uint8_t)place);
        put_fde(section, 0, 0, 0);
    }
    put_uint(section, 0xffffffff, 4);
    put_uint(section, 12, 8);
    put_uint(section, 0, 8);
    put_uint(section, 0, 4);
    put_fde(section, 0, CODE_END, FUNCTIONS);
}

/* Copies the section to exactly as much memory, so that a checker sees every read beyond it. */
static void use_section(const struct section *section, uint64_t end)
{
    uint8_t *bytes = malloc(section->size);
    memcpy(bytes, section->bytes, section->size);
    frame = (struct debug_frame){.bytes = bytes, .size = section->size};
    size_t count = debug_frame_list(&frame, CODE, end);
    frame.fdes = calloc(count + 1, sizeof *frame.fdes);
    frame.fde_count = debug_frame_list(&frame, CODE, end);
    if (frame.fde_count != count)
        abort();
}

static void drop_section(void)
{
    free(frame.fdes);
    free((void *)(uintptr_t)frame.bytes);
}

/* Returns the offset of the CFA from rsp at an address of the file, 0 if there is no rule. */
static int32_t offset_at(struct cfi_lookup *lookup, uint64_t code)
{
    if (!cfi_find(lookup, BIAS + code) || !cfi_row(lookup, BIAS + code))
        return 0;
    return lookup->row.cfa_offset;
}

static bool rules_are_found(void)
{
    struct cfi_lookup lookup = {0};
    bool is_right = frame.fde_count == FUNCTIONS + 1;
    for (unsigned i = 0; i <= FUNCTIONS; i++) {
        uint64_t code = CODE + i * CODE_STEP;
        is_right &= offset_at(&lookup, code) == 8 && offset_at(&lookup, code + 4) == 16 + (int)i &&
                    lookup.function.start == BIAS + code && lookup.row.reg[CFI_RA].value == -8 &&
                    offset_at(&lookup, code + CODE_SIZE - 1) == 16 + (int)i &&
                    offset_at(&lookup, code + CODE_SIZE) == 0; /* between functions */
    }
    return is_right && offset_at(&lookup, 0) == 0 && offset_at(&lookup, CODE - 1) == 0 &&
           offset_at(&lookup, 1u << 30) == 0;
}

int main(void)
{
    struct section section;
    struct entropy entropy = entropy_of_seed(1);
    make_section(&section);
    use_section(&section, CODE_END + 1);
    bool is_right = rules_are_found();
    drop_section();
    if (!is_right)
        puts("a rule is wrong");
    for (int round = 0; round < ROUNDS; round++) {
        struct section damaged = section;
        struct cfi_lookup lookup = {0};
        for (unsigned i = 1 + entropy_next(&entropy) % 8; i-- > 0;)
            damaged.bytes[entropy_next(&entropy) % damaged.size] = (uint8_t)entropy_next(&entropy);
        damaged.size -= round % 2 ? entropy_next(&entropy) % damaged.size : 0;
        use_section(&damaged, UINT64_MAX);
        for (unsigned i = 0; i < 50; i++)
            offset_at(&lookup, entropy_next(&entropy) % (CODE_END + CODE_STEP));
        drop_section();
    }
    return is_right ? 0 : 1;
}
