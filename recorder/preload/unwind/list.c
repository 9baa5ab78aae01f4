/* SPDX-License-Identifier: MIT */
#include "preload/unwind/unwind.h"

#include "preload/unwind/unwind_state.h"

/* Frames of this library, of the C library and of handlers within it, at most. */
enum { SKIPPED_MAX = 64 };

/* Frames that are walked at most: more than any stack has. */
enum { LISTED_MAX = 1 << 20 };

bool unwinder_find(struct unwinder *unwinder, bool (*is_skipped)(uintptr_t address),
                   struct step_regs *regs)
{
    struct unwind_mem mem = UNWIND_MEM_PROBED;
    cfi_forget(&unwinder->scratch.lookup);
    step_regs_here(regs);
    for (int i = 0; i < SKIPPED_MAX && is_skipped(regs->reg[CFI_RA] - 1); i++)
        if (unwind_step(regs, &mem, &unwinder->scratch) != STEP_DONE)
            return false;
    return !is_skipped(regs->reg[CFI_RA] - 1);
}

/* The frames that are listed so far: those up to the gap, and a ring of the last ones. */
struct listed {
    struct stack_list *list;
    uint64_t count;   /* of all frames */
    uint64_t gap_cfa; /* of the last frame that is left out */
};

static uint32_t list_ring_begin(const struct stack_list *list)
{
    return list->max - list->outermost;
}

static void list_add(struct listed *listed, uint64_t pc, uint64_t cfa)
{
    const struct stack_list *list = listed->list;
    uint64_t at = listed->count++;
    if (at >= list->max) {
        at = list_ring_begin(list) + (at - list_ring_begin(list)) % list->outermost;
        listed->gap_cfa = list->cfas[at];
    }
    list->pcs[at] = pc;
    list->cfas[at] = cfa;
}

static void list_swap(uint64_t *items, uint32_t begin, uint32_t end)
{
    for (; begin + 1 < end; begin++, end--) {
        uint64_t item = items[begin];
        items[begin] = items[end - 1];
        items[end - 1] = item;
    }
}

/* Puts the items of the ring in order; the oldest one is at `oldest`. */
static void list_unroll(uint64_t *ring, uint32_t size, uint32_t oldest)
{
    list_swap(ring, 0, oldest);
    list_swap(ring, oldest, size);
    list_swap(ring, 0, size);
}

/* Completes the list. Returns how many entries it has. */
static uint32_t list_end(struct listed *listed)
{
    struct stack_list *list = listed->list;
    uint32_t ring = list_ring_begin(list);
    if (listed->count <= list->max)
        return (uint32_t)listed->count;
    uint32_t oldest = (uint32_t)((listed->count - ring) % list->outermost);
    list_unroll(list->pcs + ring, list->outermost, oldest);
    list_unroll(list->cfas + ring, list->outermost, oldest);
    list->gap = ring - 1;
    list->left_out = listed->count - list->max + 1;
    list->cfas[ring - 1] = listed->gap_cfa;
    return list->max;
}

uint32_t unwinder_list(struct unwinder *unwinder, const struct step_regs *regs,
                       struct stack_list *list)
{
    struct walk *walk = &unwinder->walk;
    struct listed listed = {.list = list};
    enum walk_end end;
    cfi_forget(&unwinder->scratch.lookup);
    unwinder->scratch.others = *regs;
    *walk = (struct walk){
        .mem = UNWIND_MEM_PROBED,
        .place.state = {regs->reg[CFI_RA], regs->reg[CFI_RSP], regs->reg[CFI_RBP]},
        .others = &unwinder->scratch.others,
    };
    do { /* as many frames as there is room for, then the next ones */
        unwinder->read_count = 0;
        walk->place.new_count = 0;
        end = walk_stack(unwinder, walk);
        uint32_t count = walk->place.new_count;
        for (uint32_t i = 0; i < count; i++) {
            const struct unwind_regs *state = &unwinder->new_frames[i].state;
            uintptr_t next =
                i + 1 == count ? walk->place.state.sp : unwinder->new_frames[i + 1].state.sp;
            list_add(&listed, state->pc, next != state->sp ? next : 0);
        }
    } while (end == WALK_DEEP && listed.count < LISTED_MAX);
    return list_end(&listed);
}
