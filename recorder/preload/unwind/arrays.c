/* SPDX-License-Identifier: MIT */
/* The arrays of an unwinder: room for as many frames as its thread's stack ever had. */
#include "preload/unwind/state.h"

#include <string.h>

static size_t arrays_size(size_t capacity)
{
    return capacity * (sizeof(uintptr_t) + sizeof(struct known_frame) + sizeof(struct new_frame) +
                       (1 + UNWIND_FRAME_CHECKS) * sizeof(struct check));
}

static size_t pages(size_t size)
{
    return (size + UNWIND_PAGE - 1) & ~(size_t)(UNWIND_PAGE - 1);
}

static void use_arrays(struct unwinder *unwinder, void *memory, uint32_t capacity)
{
    unwinder->capacity = capacity;
    unwinder->check_max = UNWIND_FRAME_CHECKS * capacity;
    unwinder->checks = memory;
    unwinder->arrivals = unwinder->checks + unwinder->check_max;
    unwinder->frames = (struct known_frame *)(unwinder->arrivals + capacity);
    unwinder->new_frames = (struct new_frame *)(unwinder->frames + capacity);
    unwinder->pcs = (uintptr_t *)(unwinder->new_frames + capacity);
}

size_t unwinder_size(void)
{
    return pages(sizeof(struct unwinder) + arrays_size(UNWIND_FIRST_FRAMES));
}

void unwinder_init(struct unwinder *unwinder, uintptr_t low, uintptr_t high, bool grows)
{
    unwinder->low = low & ~(uintptr_t)7;
    unwinder->high = high & ~(uintptr_t)7;
    unwinder->can_grow = grows;
    unwinder->wants_whole = true;
    unwinder->depth = 0;
    unwinder->meetable = 0;
    unwinder->check_count = 0;
    if (unwinder->capacity == 0)
        use_arrays(unwinder, unwinder->first_arrays, UNWIND_FIRST_FRAMES);
}

bool unwinder_grow(struct unwinder *unwinder)
{
    uint32_t capacity = unwinder->capacity;
    size_t size = pages(arrays_size((size_t)capacity * 4));
    void *memory = capacity < UNWIND_MAX_FRAMES ? unwind_pages(size) : NULL;
    if (memory == NULL)
        return false;
    const uintptr_t *pcs = unwinder->pcs;
    const struct known_frame *frames = unwinder->frames;
    const struct new_frame *new_frames = unwinder->new_frames;
    const struct check *arrivals = unwinder->arrivals;
    struct check *checks = unwinder->checks;
    use_arrays(unwinder, memory, capacity * 4);
    memcpy(unwinder->pcs, pcs, unwinder->depth * sizeof *pcs);
    memcpy(unwinder->frames, frames, unwinder->depth * sizeof *frames);
    memcpy(unwinder->new_frames, new_frames, capacity * sizeof *new_frames);
    memcpy(unwinder->arrivals, arrivals, unwinder->depth * sizeof *arrivals);
    memcpy(unwinder->checks, checks, unwinder->check_count * sizeof *checks);
    if (capacity > UNWIND_FIRST_FRAMES)
        unwind_pages_free(checks, pages(arrays_size(capacity)));
    return true;
}
