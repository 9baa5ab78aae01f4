/* SPDX-License-Identifier: MIT */
#include "dwarf/debug_frame.h"

#include "dwarf/cursor.h"

/* Moves fdes[i] down to where none below it is larger: the first `count` become a heap again. */
static void fde_sift(struct debug_fde *fdes, size_t i, size_t count)
{
    struct debug_fde fde = fdes[i];
    for (size_t child; (child = 2 * i + 1) < count; i = child) {
        child += child + 1 < count && fdes[child + 1].code > fdes[child].code;
        if (fdes[child].code <= fde.code)
            break;
        fdes[i] = fdes[child];
    }
    fdes[i] = fde;
}

/* Sorts by code, without other memory and in bounded time whatever the order. */
static void fdes_sort(struct debug_fde *fdes, size_t count)
{
    for (size_t i = count / 2; i-- > 0;)
        fde_sift(fdes, i, count);
    for (size_t last = count; last-- > 1;) {
        struct debug_fde largest = fdes[0];
        fdes[0] = fdes[last];
        fdes[last] = largest;
        fde_sift(fdes, 0, last);
    }
}

size_t debug_frame_list(struct debug_frame *frame, uint64_t low, uint64_t high)
{
    struct cursor cursor = {.next = frame->bytes, .end = frame->bytes + frame->size};
    size_t count = 0;
    while (cursor_left(&cursor) > 0) {
        uint32_t offset = (uint32_t)(cursor.next - frame->bytes);
        uint64_t size = cursor_uint(&cursor, 4);
        bool is_wide = size == 0xffffffff; /* 64-bit DWARF, which no compiler writes by itself */
        if (is_wide)
            size = cursor_uint(&cursor, 8);
        if (size > cursor_left(&cursor))
            break;
        struct cursor record = {.next = cursor.next, .end = cursor.next + size};
        cursor_skip(&cursor, size);
        uint64_t cie = cursor_uint(&record, 4);
        uint64_t code = cursor_uint(&record, 8);
        if (is_wide || record.is_bad || cie == DEBUG_FRAME_CIE || code < low || code >= high)
            continue;
        if (frame->fdes != NULL)
            frame->fdes[count] = (struct debug_fde){code, offset};
        count++;
    }
    if (frame->fdes != NULL)
        fdes_sort(frame->fdes, count);
    return count;
}

bool debug_frame_search(const struct debug_frame *frame, uint64_t code, uint32_t *offset)
{
    size_t low = 0;
    size_t high = frame->fde_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (frame->fdes[middle].code <= code)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return false;
    *offset = frame->fdes[low - 1].offset;
    return true;
}
