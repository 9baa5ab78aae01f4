/* SPDX-License-Identifier: MIT */
/* Random calls, and calls told one by one. */
#include "support/heap/heap_model.h"

#define ADDRESSES    7
#define DURATION_MAX 12

/* An address may have several ordinals in a chunk. */
#define ORDINALS (2 * ADDRESSES)

static uint64_t nth_address(unsigned n)
{
    return 0x1000 + 16 * n;
}

static uint32_t random_ordinal(struct entropy *entropy, uint64_t address)
{
    return address ? (uint32_t)(address - 0x1000) / 16 * 2 + entropy_pick(entropy, 2)
                   : entropy_pick(entropy, 99);
}

struct ttd_batch heap_model_batch(uint64_t chunk, const struct ttd_event *events, size_t count)
{
    static uint64_t addresses[ORDINALS];
    for (unsigned i = 0; i < ORDINALS; i++)
        addresses[i] = nth_address(i / 2);
    return (struct ttd_batch){.kind = TTD_KIND_EVENTS,
                              .count = count,
                              .chunk.offset = chunk,
                              .u.events = events,
                              .addresses = addresses,
                              .address_count = ORDINALS};
}

static struct ttd_event random_event(struct entropy *entropy, unsigned clock)
{
    static const uint8_t actions[] = {TTD_ACTION_ALLOC,   TTD_ACTION_ALLOC,   TTD_ACTION_ALLOC,
                                      TTD_ACTION_FREE,    TTD_ACTION_FREE,    TTD_ACTION_REALLOC,
                                      TTD_ACTION_REALLOC, TTD_ACTION_REALLOC, TTD_ACTION_DESTROY,
                                      TTD_ACTION_CREATE,  TTD_ACTION_LOCK,    TTD_ACTION_UNLOCK,
                                      TTD_ACTION_PROTECT};
    struct ttd_event event = {.action = actions[entropy_pick(entropy, sizeof actions)]};
    event.time_start = heap_model_at(clock);
    event.time_end = entropy_pick(entropy, 12)
                         ? heap_model_at(clock + entropy_pick(entropy, DURATION_MAX))
                         : ttd_position_invalid();
    event.result = ttd_event_returned(&event) && entropy_pick(entropy, 8);
    event.thread = 1 + entropy_pick(entropy, HEAP_MODEL_THREADS);
    event.heap = entropy_pick(entropy, HEAP_MODEL_HEAPS + 1);
    event.stack = entropy_pick(entropy, HEAP_MODEL_STACKS + 1);
    bool allocates = event.action == TTD_ACTION_ALLOC || event.action == TTD_ACTION_REALLOC;
    bool is_given = event.action == TTD_ACTION_FREE || event.action == TTD_ACTION_REALLOC;
    if (allocates) {
        event.size = entropy_pick(entropy, 100);
        event.address =
            entropy_pick(entropy, 10) ? nth_address(entropy_pick(entropy, ADDRESSES)) : 0;
    }
    if (is_given && entropy_pick(entropy, 8))
        event.base_address = nth_address(entropy_pick(entropy, ADDRESSES));
    if (event.action == TTD_ACTION_REALLOC)
        event.previous_address = event.base_address;
    event.address_ordinal = random_ordinal(entropy, event.address);
    event.base_ordinal = random_ordinal(entropy, event.base_address);
    return event;
}

size_t heap_model_events(struct entropy *entropy, struct ttd_event events[HEAP_MODEL_EVENTS_MAX])
{
    size_t count = entropy_pick(entropy, HEAP_MODEL_EVENTS_MAX) + 1;
    for (size_t i = 0; i < count; i++)
        events[i] =
            random_event(entropy, entropy_pick(entropy, HEAP_MODEL_TICKS - 2 * DURATION_MAX));
    /* Insertion into the order of effect positions; equal ones stay as they came. */
    for (size_t i = 1; i < count; i++) {
        struct ttd_event event = events[i];
        size_t k = i;
        for (; k > 0 && ttd_position_compare(ttd_event_position(&event),
                                             ttd_event_position(&events[k - 1])) < 0;
             k--)
            events[k] = events[k - 1];
        events[k] = event;
    }
    for (size_t i = 0; i < count; i++)
        events[i].number = i;
    return count;
}

struct ttd_event heap_model_call(unsigned tick, enum ttd_action action, uint64_t address,
                                 uint64_t size)
{
    bool allocates = action == TTD_ACTION_ALLOC;
    return (struct ttd_event){.action = (uint8_t)action,
                              .time_start = heap_model_at(tick),
                              .time_end = heap_model_at(tick),
                              .result = 1,
                              .address = allocates ? address : 0,
                              .base_address = allocates ? 0 : address,
                              .size = size};
}

struct ttd_batch heap_model_calls(const struct ttd_event *events, size_t count,
                                  const uint64_t *addresses, size_t address_count)
{
    return (struct ttd_batch){.kind = TTD_KIND_EVENTS,
                              .count = count,
                              .u.events = events,
                              .addresses = addresses,
                              .address_count = address_count};
}
