/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

/*
 * Neither corrupt modules nor corrupt stacks may crash the unwinder. A copy of a loaded library's
 * image is damaged at random and searched; then captures start from stacks full of noise. That
 * the program gets to its end is the test.
 */

#include "preload/unwind/unwind.h"
#include "dwarf/cfi.h"
#include "preload/unwind/rules.h"
#include "preload/unwind/unwind_state.h"

#include "support/entropy.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ROUNDS  3000
#define LOOKUPS 60

/* The image of a library, copied to memory of ours. */
struct image {
    struct dl_find_object object;
    struct link_map map;
    uint8_t *copy;
    size_t size;
    size_t code; /* offset of some code, and its size */
    size_t code_size;
    size_t info; /* offset of the call frame information, and its size */
    size_t info_size;
};

static void copy_image(struct image *im, void *address)
{
    struct dl_find_object o;
    if (_dl_find_object(address, &o) != 0)
        exit(2);
    im->size = (size_t)((char *)o.dlfo_map_end - (char *)o.dlfo_map_start);
    size_t mapped = (im->size + 8191) & ~(size_t)4095; /* at least one page to forbid */
    im->copy = mmap(NULL, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const ElfW(Ehdr) *ehdr = o.dlfo_map_start;
    const ElfW(Phdr) *phdr = (const void *)((const char *)o.dlfo_map_start + ehdr->e_phoff);
    for (unsigned i = 0; i < ehdr->e_phnum; i++) {
        if (phdr[i].p_type != PT_LOAD)
            continue;
        size_t first = phdr[i].p_vaddr & ~(size_t)4095;
        size_t end = phdr[i].p_vaddr + phdr[i].p_filesz;
        mprotect(im->copy + first, end - first, PROT_READ | PROT_WRITE);
        memcpy(im->copy + first, (const char *)o.dlfo_map_start + first, end - first);
        size_t hdr = (size_t)((char *)o.dlfo_eh_frame - (char *)o.dlfo_map_start);
        if (hdr >= first && hdr < end) {
            im->info = hdr;
            im->info_size = end - hdr;
        }
        if ((phdr[i].p_flags & PF_X) != 0) {
            im->code = first;
            im->code_size = end - first;
        }
    }
    im->map.l_addr = (ElfW(Addr))im->copy;
    im->object = o;
    im->object.dlfo_map_start = im->copy;
    im->object.dlfo_map_end = im->copy + im->size;
    im->object.dlfo_link_map = &im->map;
    im->object.dlfo_eh_frame = im->copy + im->info;
}

static unsigned look(struct entropy *entropy, const struct image *im)
{
    unsigned known = 0;
    for (int i = 0; i < LOOKUPS; i++) {
        uintptr_t addr = (uintptr_t)im->copy + im->code + entropy_next(entropy) % im->code_size;
        struct cfi_lookup lookup = {.object = im->object};
        unsigned kind = rule_kind(rule_compile(&lookup, addr));
        known += kind != RULE_NO_CFI;
    }
    return known;
}

static bool corrupt_modules(struct entropy *entropy)
{
    struct image im = {.size = 0};
    uint8_t saved[64];
    size_t at[64];
    copy_image(&im, dlsym(RTLD_DEFAULT, "qsort"));
    if (look(entropy, &im) < LOOKUPS / 2) {
        puts("an intact copy is not understood: this would test nothing");
        return false;
    }
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = 1 + entropy_next(entropy) % 64;
        size_t near =
            entropy_next(entropy) % 2 != 0 ? 64 : im.info_size; /* half of them in the header */
        for (size_t i = 0; i < n; i++) {
            at[i] = im.info + entropy_next(entropy) % near;
            saved[i] = im.copy[at[i]];
            im.copy[at[i]] = (uint8_t)entropy_next(entropy);
        }
        look(entropy, &im);
        while (n-- > 0)
            im.copy[at[n]] = saved[n];
        if (round == ROUNDS / 2) { /* and without its program headers, by probing */
            memset(im.copy, 0, 64);
            if (look(entropy, &im) < LOOKUPS / 2) {
                puts("not understood without an ELF header");
                return false;
            }
        }
    }
    for (size_t i = 0; i < im.info_size; i++) /* dense damage: nearly everything is garbage */
        if (entropy_next(entropy) % 8 == 0)
            im.copy[im.info + i] = (uint8_t)entropy_next(entropy);
    look(entropy, &im);
    return true;
}

/* The end of the stack's frames: what the program was given lies above them. */
static uintptr_t above_frames;

static void corrupt_stacks(struct entropy *entropy)
{
    size_t size = 1 << 16;
    uintptr_t *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct unwinder *u =
        mmap(NULL, unwinder_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uintptr_t low = (uintptr_t)stack;
    uintptr_t high = low + size;
    const uintptr_t code = (uintptr_t)dlsym(RTLD_DEFAULT, "qsort") & ~(uintptr_t)0xffff;
    unwinder_init(u, low, high, false);
    for (int round = 0; round < ROUNDS * 10; round++) {
        for (int i = 0; i < 40; i++) {
            uintptr_t kinds[] = {code + entropy_next(entropy) % 0x40000,
                                 low + entropy_next(entropy) % size,
                                 entropy_next(entropy),
                                 0,
                                 high - entropy_next(entropy) % 64,
                                 low + 8 * (entropy_next(entropy) % (size / 8))};
            stack[size / 8 - 1 - entropy_next(entropy) % 400] = kinds[entropy_next(entropy) % 6];
        }
        uintptr_t sp = high - 8 * (entropy_next(entropy) % 400);
        if (entropy_next(entropy) % 8 == 0) /* elsewhere, perhaps nowhere */
            sp = entropy_next(entropy) % 2 != 0 ? entropy_next(entropy)
                                                : high + 8 * (entropy_next(entropy) % 512) - 2048;
        struct unwind_regs regs = {code + entropy_next(entropy) % 0x40000, sp,
                                   low + entropy_next(entropy) % (size + 64)};
        struct unwind_delta d;
        unwinder_capture(u, &regs, &d);
        if (d.kept + d.added > UNWIND_MAX_FRAMES || d.kept + d.added == 0)
            abort();
    }
}

/* Forgetting gives whole stacks, and the rules are found again. */
static bool forgetting(void)
{
    struct unwinder *u =
        mmap(NULL, unwinder_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    struct unwind_regs regs;
    struct unwind_delta d;
    unwinder_init(u, here - 4096, above_frames, false);
    unwind_here(&regs);
    unwinder_capture(u, &regs, &d);
    uint32_t depth = d.added;
    bool ok = d.kept == 0 && depth > 1;
    unwinder_capture(u, &regs, &d);
    ok &= d.kept == depth && d.added == 0;
    unwind_forget(0, UINTPTR_MAX);
    unwinder_capture(u, &regs, &d);
    ok &= d.kept == 0 && d.added == depth;
    unwinder_reset(u);
    unwinder_capture(u, &regs, &d);
    return ok && d.kept == 0 && d.added == depth;
}

/* The frames of a walk, innermost first. */
struct stack {
    uint32_t depth;
    uintptr_t pcs[UNWIND_MAX_FRAMES];
};

static void walk(struct unwinder *u, const struct unwind_regs *regs, struct stack *stack)
{
    struct unwind_delta d;
    unwinder_abandon(u); /* nothing that is remembered is met */
    unwinder_capture(u, regs, &d);
    stack->depth = d.added;
    memcpy(stack->pcs, d.frames, d.added * sizeof *d.frames);
}

static bool is_same(const struct stack *a, const struct stack *b)
{
    return a->depth == b->depth && memcmp(a->pcs, b->pcs, a->depth * sizeof *a->pcs) == 0;
}

/* Rules are taken from the thread's own cache, until they are forgotten. */
static bool caching(void)
{
    static struct stack first, now;
    struct unwinder *u =
        mmap(NULL, unwinder_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    struct unwind_regs regs;
    unwinder_init(u, here - 4096, above_frames, false);
    unwind_here(&regs);
    walk(u, &regs, &first);
    for (unsigned i = 0; !u->cache && i < RULE_CACHE_WALKS; i++)
        walk(u, &regs, &now);
    walk(u, &regs, &now);
    bool ok = u->cache && first.depth > 1 && is_same(&first, &now);
    for (size_t i = 0; ok && i < (size_t)1 << RULE_CACHE_BITS; i++)
        u->cache[i].rule = RULE_SP | UINT64_C(8) << RULE_OFFSET_SHIFT; /* wrong for all of them */
    walk(u, &regs, &now);
    ok &= !is_same(&first, &now);
    unwind_forget(0, UINTPTR_MAX);
    walk(u, &regs, &now);
    return ok && is_same(&first, &now);
}

int main(int argc, char **argv)
{
    (void)argc;
    above_frames = (uintptr_t)argv;
    unwind_setup(NULL, NULL);
    struct entropy entropy = entropy_of_seed(1);
    corrupt_stacks(&entropy);
    bool forgot = forgetting();
    bool cached = caching();
    return corrupt_modules(&entropy) && forgot && cached ? 0 : 1;
}
