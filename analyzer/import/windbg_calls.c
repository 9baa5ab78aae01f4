/* SPDX-License-Identifier: MIT */
/*
 * A packed call is
 *
 *     a byte           its action, and whether it has a thread
 *     two bytes        a bit for each of its numbers that is not 0
 *     these numbers    seven bits a byte; the eighth is set in all but the last byte
 *
 * Nearly all texts are in order of effect: keys are made only for one that is not.
 */
#include "import/windbg_calls.h"

#include <stdlib.h>

#include "base/grow.h"

#define WINDBG_PACKED_NUMBERS 12
#define WINDBG_PACKED_MAX     (3 + 10 * WINDBG_PACKED_NUMBERS)

struct windbg_key {
    struct ttd_position effect;
    const uint8_t *packed;
};

/* Returns where the next call may be packed. */
static uint8_t *windbg_pack(const struct windbg_call *call, uint8_t *packed)
{
    const uint64_t numbers[WINDBG_PACKED_NUMBERS] = {
        call->start.sequence, call->start.steps, call->end.sequence - call->start.sequence,
        call->end.steps,      call->heap,        call->thread,
        call->address,        call->base,        call->size,
        call->reserve,        call->flags,       call->result};
    unsigned given = 0;
    uint8_t *next = packed + 3;
    for (size_t i = 0; i < WINDBG_PACKED_NUMBERS; i++) {
        uint64_t rest = numbers[i];
        if (!rest)
            continue;
        given |= 1U << i;
        for (; rest >= 0x80; rest >>= 7)
            *next++ = (uint8_t)(rest | 0x80);
        *next++ = (uint8_t)rest;
    }
    packed[0] = (uint8_t)(call->action << 1 | call->has_thread);
    packed[1] = (uint8_t)given;
    packed[2] = (uint8_t)(given >> 8);
    return next;
}

/* Returns where the next packed call begins. */
static const uint8_t *windbg_unpack(const uint8_t *packed, struct windbg_call *call)
{
    uint64_t numbers[WINDBG_PACKED_NUMBERS] = {0};
    unsigned given = packed[1] | (unsigned)packed[2] << 8;
    const uint8_t *next = packed + 3;
    for (; given; given &= given - 1) {
        uint64_t number = *next & 0x7F;
        for (unsigned shift = 7; *next++ & 0x80; shift += 7)
            number |= (uint64_t)(*next & 0x7F) << shift;
        numbers[__builtin_ctz(given)] = number;
    }
    *call = (struct windbg_call){.start = {numbers[0], numbers[1]},
                                 .end = {numbers[0] + numbers[2], numbers[3]},
                                 .heap = numbers[4],
                                 .thread = numbers[5],
                                 .address = numbers[6],
                                 .base = numbers[7],
                                 .size = numbers[8],
                                 .reserve = numbers[9],
                                 .flags = numbers[10],
                                 .result = numbers[11],
                                 .action = packed[0] >> 1,
                                 .has_thread = packed[0] & 1};
    return next;
}

static struct ttd_position windbg_effect(const struct windbg_call *call)
{
    bool acquires = call->action == TTD_ACTION_ALLOC || call->action == TTD_ACTION_CREATE;
    return acquires && ttd_position_is_valid(call->end) ? call->end : call->start;
}

enum ttd_status windbg_calls_add(struct windbg_calls *calls, const struct windbg_call *call)
{
    struct ttd_position effect = windbg_effect(call);
    enum ttd_status status = grow_array((void **)&calls->packed, &calls->capacity,
                                        calls->size + WINDBG_PACKED_MAX, sizeof *calls->packed);
    if (status != TTD_OK)
        return status;
    /* Calls with one effect are sorted by their starts. */
    if (calls->count && ttd_position_compare(calls->effect, effect) >= 0)
        calls->is_unsorted = true;
    calls->effect = effect;
    calls->size = (size_t)(windbg_pack(call, calls->packed + calls->size) - calls->packed);
    calls->count++;
    return TTD_OK;
}

static int windbg_compare(const void *left, const void *right)
{
    const struct windbg_key *a = left;
    const struct windbg_key *b = right;
    int order = ttd_position_compare(a->effect, b->effect);
    if (!order) {
        struct windbg_call first, second;
        windbg_unpack(a->packed, &first);
        windbg_unpack(b->packed, &second);
        order = ttd_position_compare(first.start, second.start);
    }
    return order ? order : (a->packed > b->packed) - (a->packed < b->packed);
}

enum ttd_status windbg_calls_sort(struct windbg_calls *calls)
{
    const uint8_t *next = calls->packed;
    calls->next_packed = next;
    if (!calls->is_unsorted)
        return TTD_OK;
    calls->keys = malloc(calls->count * sizeof *calls->keys);
    if (!calls->keys)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < calls->count; i++) {
        struct windbg_call call;
        calls->keys[i].packed = next;
        next = windbg_unpack(next, &call);
        calls->keys[i].effect = windbg_effect(&call);
    }
    qsort(calls->keys, calls->count, sizeof *calls->keys, windbg_compare);
    return TTD_OK;
}

bool windbg_calls_next(struct windbg_calls *calls, struct windbg_call *call)
{
    if (calls->next == calls->count)
        return false;
    if (calls->keys)
        calls->next_packed = calls->keys[calls->next].packed;
    calls->next_packed = windbg_unpack(calls->next_packed, call);
    calls->next++;
    return true;
}

void windbg_calls_free(struct windbg_calls *calls)
{
    free(calls->packed);
    free(calls->keys);
    *calls = (struct windbg_calls){0};
}
