/* SPDX-License-Identifier: MIT */
#include "support/churn.h"

#define BASE_ADDRESS 0x10000000
#define ADDRESS_STEP 0x40

static size_t pick(struct churn *churn, size_t count)
{
    churn->random = churn->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(churn->random >> 33) % count;
}

static uint64_t address_of(size_t slot)
{
    return BASE_ADDRESS + (uint64_t)slot * ADDRESS_STEP;
}

/* Lets the event acquire a block in the slot. The call fails where the slot is used, and sometimes
 * where it is free. */
static void acquire(struct churn *churn, size_t slot, struct ttd_event *event)
{
    event->size = pick(churn, 300);
    if (churn->release_from[slot] || !pick(churn, 50)) {
        event->result = 0;
        return;
    }
    event->address = address_of(slot);
    churn->release_from[slot] = event->time_end.sequence + 1;
}

struct ttd_event churn_next(struct churn *churn)
{
    size_t slot = pick(churn, churn->slots);
    churn->now.sequence++;
    struct ttd_event event = {.action = TTD_ACTION_ALLOC,
                              .api = TTD_API_MALLOC,
                              .time_start = churn->now,
                              .time_end = churn->now,
                              .result = 1,
                              .thread = 1 + (ttd_id)pick(churn, 2),
                              .heap = 1 + (ttd_id)pick(churn, 2),
                              .stack = (ttd_id)pick(churn, 5)};
    event.time_end.steps = 1;
    if (!churn->release_from[slot] || churn->release_from[slot] > churn->now.sequence) {
        acquire(churn, slot, &event);
        return event;
    }
    event.base_address = address_of(slot);
    event.action = TTD_ACTION_FREE;
    event.api = TTD_API_FREE;
    if (!pick(churn, 4)) {
        event.action = TTD_ACTION_REALLOC;
        event.api = TTD_API_REALLOC;
        event.previous_address = event.base_address;
        event.time_end.sequence += pick(churn, 5);
        acquire(churn, pick(churn, churn->slots), &event);
    }
    if (event.result)
        churn->release_from[slot] = 0;
    return event;
}
