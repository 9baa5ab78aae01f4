/* SPDX-License-Identifier: MIT */
/* The memory of an unwinder: for as many frames as its thread's stack ever had. */
#include "unwind_state.h"

#include <string.h>

static size_t arrays_size(size_t capacity)
{
    return capacity * (sizeof(uintptr_t) + sizeof(struct known_frame) + sizeof(struct new_frame) +
                       UNWIND_FRAME_CHECKS * sizeof(struct check));
}

static size_t pages(size_t size)
{
    return (size + UNWIND_PAGE - 1) & ~(size_t)(UNWIND_PAGE - 1);
}

static void use_arrays(struct unwinder *u, void *memory, uint32_t capacity)
{
    u->capacity = capacity;
    u->checks_max = UNWIND_FRAME_CHECKS * capacity;
    u->check = memory;
    u->frame = (struct known_frame *)(u->check + u->checks_max);
    u->found = (struct new_frame *)(u->frame + capacity);
    u->pc = (uintptr_t *)(u->found + capacity);
}

size_t unwinder_size(void)
{
    return pages(sizeof(struct unwinder) + arrays_size(UNWIND_FIRST_FRAMES));
}

void unwinder_init(struct unwinder *u, uintptr_t low, uintptr_t high, bool grows)
{
    u->low = low & ~(uintptr_t)7;
    u->high = high & ~(uintptr_t)7;
    u->grows = grows;
    u->whole = true;
    u->depth = 0;
    u->limit = 0;
    u->checks = 0;
    if (u->capacity == 0)
        use_arrays(u, u->first, UNWIND_FIRST_FRAMES);
}

bool unwinder_grow(struct unwinder *u)
{
    uint32_t capacity = u->capacity;
    size_t size = pages(arrays_size((size_t)capacity * 4));
    void *memory = capacity < UNWIND_MAX_FRAMES ? unwind_pages(size) : NULL;
    const uintptr_t *pc = u->pc;
    const struct known_frame *frame = u->frame;
    const struct new_frame *found = u->found;
    struct check *check = u->check;
    if (memory == NULL)
        return false;
    use_arrays(u, memory, capacity * 4);
    memcpy(u->pc, pc, u->depth * sizeof *pc);
    memcpy(u->frame, frame, u->depth * sizeof *frame);
    memcpy(u->found, found, capacity * sizeof *found);
    memcpy(u->check, check, u->checks * sizeof *check);
    if (capacity > UNWIND_FIRST_FRAMES)
        unwind_pages_free(check, pages(arrays_size(capacity)));
    return true;
}
