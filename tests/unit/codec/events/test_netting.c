/* SPDX-License-Identifier: MIT */
/* Chunks are netted as the events say that the ordinary decoder returns. */
#include "codec/events/netting.h"

#include <string.h>

#include <criterion/criterion.h>

#include "support/entropy.h"
#include "support/fixtures/event_chunk.h"

static struct ttd_netting netting;

static void netting_begin(void)
{
    event_fixture_begin();
    ttd_netting_init(&netting, &fixture.allocator);
}

static void netting_end(void)
{
    ttd_netting_free(&netting);
    event_fixture_finish();
}

TestSuite(netting, .init = netting_begin, .fini = netting_end, .timeout = 120);

/* ---- The oracle: each effect by itself ---- */

#define PLACES_MAX (2 * EVENT_CHUNK_MAX)

/* The history of an address within a chunk. */
struct place {
    struct ttd_net net;
    ttd_id heap;
    struct ttd_event acquired;
};

/* An acquisition by a ReAlloc, which takes effect when the call ends. */
struct flight {
    struct ttd_event event;
    uint32_t index;
};

struct oracle {
    struct place places[PLACES_MAX];
    size_t count;
    struct flight flights[EVENT_CHUNK_MAX];
    size_t flight_count;
    /* Nets can say all. */
    bool is_plain;
    /* By event: whether it destroys a heap, and which. */
    bool destroys[EVENT_CHUNK_MAX];
    ttd_id destroyed[EVENT_CHUNK_MAX];
    /* Position of the last effect. */
    struct ttd_position last;
};

static struct oracle oracle;

static struct place *find_place(uint64_t address, ttd_id heap, uint32_t index, bool was_live)
{
    for (size_t i = 0; i < oracle.count; i++) {
        if (oracle.places[i].net.address != address)
            continue;
        oracle.is_plain = oracle.is_plain && oracle.places[i].heap == heap;
        return &oracle.places[i];
    }
    struct place *place = &oracle.places[oracle.count++];
    *place = (struct place){
        .net = {.address = address, .first = index, .was_live = was_live, .state = was_live},
        .heap = heap};
    return place;
}

static void acquire(const struct ttd_event *event, uint32_t index)
{
    struct place *place = find_place(event->address, event->heap, index, false);
    oracle.is_plain = oracle.is_plain && !place->net.state;
    place->net.state = true;
    place->net.size = event->size;
    place->net.last = index;
    place->acquired = *event;
    oracle.last = event->time_end;
}

static void release(const struct ttd_event *event, uint32_t index)
{
    struct place *place = find_place(event->base_address, event->heap, index, true);
    oracle.is_plain = oracle.is_plain && place->net.state;
    place->net.state = false;
    place->net.last = index;
    oracle.last = event->time_start;
}

/* Applies the acquisitions in flight that are due. */
static void land(struct ttd_position position)
{
    for (;;) {
        size_t next = oracle.flight_count;
        for (size_t i = 0; i < oracle.flight_count; i++)
            if (ttd_position_compare(oracle.flights[i].event.time_end, position) <= 0 &&
                (next == oracle.flight_count ||
                 ttd_position_compare(oracle.flights[i].event.time_end,
                                      oracle.flights[next].event.time_end) < 0))
                next = i;
        if (next == oracle.flight_count)
            return;
        struct flight flight = oracle.flights[next];
        memmove(&oracle.flights[next], &oracle.flights[next + 1],
                (--oracle.flight_count - next) * sizeof flight);
        acquire(&flight.event, flight.index);
    }
}

/* Ends the blocks of a heap. A release that finds none since the destruction before is not seen in
 * nets. */
static void destroy(const struct ttd_event *event, uint32_t index)
{
    uint32_t first = 0;
    while (first < index && !(oracle.destroys[first] && oracle.destroyed[first] == event->heap))
        first++;
    for (size_t i = 0; i < oracle.count; i++) {
        struct place *place = &oracle.places[i];
        if (place->heap != event->heap)
            continue;
        oracle.is_plain = oracle.is_plain && !(place->net.was_live && place->net.first > first);
        place->net.state = false;
    }
    oracle.destroys[index] = true;
    oracle.destroyed[index] = event->heap;
    oracle.last = event->time_start;
}

static void apply(const struct ttd_event *event, uint32_t index)
{
    land(ttd_event_position(event));
    bool is_returned = ttd_event_returned(event);
    if (event->action == TTD_ACTION_DESTROY && (event->result || !is_returned))
        destroy(event, index);
    if (event->action == TTD_ACTION_ALLOC && event->result && event->address)
        acquire(event, index);
    if (event->action == TTD_ACTION_FREE && event->base_address && (event->result || !is_returned))
        release(event, index);
    if (event->action != TTD_ACTION_REALLOC || !event->result)
        return;
    if (event->base_address)
        release(event, index);
    if (event->address)
        oracle.flights[oracle.flight_count++] = (struct flight){*event, index};
}

static struct ttd_header header_of(const struct event_chunk *chunk)
{
    return (struct ttd_header){
        .first_record = EVENT_NUMBER,
        .record_count = (uint32_t)chunk->count,
        .first_position = ttd_event_position(&chunk->events[0]),
        .last_position = ttd_event_position(&chunk->events[chunk->count - 1]),
    };
}

/* Returns the status of both ways; TTD_OK if the chunk is good. */
static enum ttd_status net(const struct event_chunk *chunk)
{
    struct ttd_header header = header_of(chunk);
    struct ttd_cursor payload = ttd_cursor_of(fixture.payload.data, fixture.payload.size);
    enum ttd_status status = ttd_netting_chunk(&netting, &header, payload, EVENT_TIME_UNIT);
    enum ttd_status decoded = event_chunk_decode(chunk, fixture.payload.data, fixture.payload.size);
    cr_assert_eq(status, decoded == TTD_END ? TTD_OK : decoded, "%d and %d: %s", (int)status,
                 (int)decoded, fixture.decoder.error ? fixture.decoder.error : "");
    return status;
}

static void expect_block(const struct ttd_net *net, const struct ttd_event *event)
{
    struct ttd_net_block block;
    ttd_netting_block(&netting, net, &block);
    cr_assert_eq(block.block.address, event->address);
    cr_assert_eq(block.block.size, event->size);
    cr_assert_eq(block.block.event, EVENT_NUMBER + net->last);
    cr_assert_eq(ttd_position_compare(block.block.allocated, event->time_end), 0);
    cr_assert_eq(block.block.thread, event->thread);
    cr_assert_eq(block.block.heap, event->heap);
    cr_assert_eq(block.block.stack, event->stack);
    cr_assert_eq(block.block.api, event->api);
    cr_assert_eq(block.action, event->action);
}

static void expect_nets(void)
{
    const struct ttd_netted *netted = &netting.netted;
    cr_assert_eq(netted->count, oracle.count);
    cr_assert_eq(ttd_position_compare(netted->last_effect, oracle.last), 0);
    for (size_t i = 0; i < netted->count; i++) {
        const struct ttd_net *net = &netted->nets[i];
        ttd_id heap = netted->heaps[net->heap];
        const struct place *place = find_place(net->address, heap, 0, false);
        cr_assert_eq(place->heap, heap);
        cr_assert_eq(net->first, place->net.first);
        cr_assert_eq(net->last, place->net.last);
        cr_assert_eq(net->was_live, place->net.was_live);
        cr_assert_eq(net->state, place->net.state);
        if (net->state)
            expect_block(net, &place->acquired);
    }
    cr_assert_eq(netted->count, oracle.count, "each address once");
}

/* The list has the blocks that are acquired behind the last event, and no others. */
static void expect_pending(void)
{
    const struct ttd_netted *netted = &netting.netted;
    cr_assert_eq(netted->pending_count, oracle.flight_count);
    for (size_t i = 0; i < netted->pending_count; i++) {
        const struct ttd_net_pending *pending = &netted->pending[i];
        size_t flight = 0;
        while (flight < oracle.flight_count &&
               oracle.flights[flight].event.address != pending->address)
            flight++;
        cr_assert_lt(flight, oracle.flight_count);
        cr_assert_eq(ttd_position_compare(pending->position, oracle.flights[flight].event.time_end),
                     0);
    }
}

static void expect_destructions(const struct event_chunk *chunk)
{
    const struct ttd_netted *netted = &netting.netted;
    for (size_t i = 0; i < netted->heap_count; i++) {
        const struct ttd_net_destruction *destruction = &netted->destructions[i];
        uint32_t first = TTD_NET_NO_EVENT;
        uint32_t last = TTD_NET_NO_EVENT;
        for (uint32_t event = 0; event < chunk->count; event++) {
            if (!oracle.destroys[event] || oracle.destroyed[event] != netted->heaps[i])
                continue;
            first = first == TTD_NET_NO_EVENT ? event : first;
            last = event;
        }
        cr_assert_eq(destruction->first, first);
        cr_assert_eq(destruction->last, last);
        if (first != TTD_NET_NO_EVENT)
            cr_assert_eq(
                ttd_position_compare(destruction->position, chunk->events[first].time_start), 0);
    }
}

static void expect_counts(const struct event_chunk *chunk)
{
    uint64_t actions[TTD_ACTION_DESTROY + 1] = {0};
    uint64_t failed = 0;
    uint64_t unfinished = 0;
    for (size_t i = 0; i < chunk->count; i++) {
        const struct ttd_event *event = &chunk->events[i];
        actions[event->action]++;
        failed += !event->result && ttd_event_returned(event);
        unfinished += !ttd_event_returned(event);
    }
    cr_assert_eq(memcmp(actions, netting.netted.actions, sizeof actions), 0);
    cr_assert_eq(failed, netting.netted.failed);
    cr_assert_eq(unfinished, netting.netted.unfinished);
}

/* The times that are listed give each event's. */
static void expect_times(const struct event_chunk *chunk)
{
    const struct ttd_netted *netted = &netting.netted;
    size_t next = 0;
    for (size_t i = 0; i < chunk->count; i++) {
        const struct ttd_event *event = &chunk->events[i];
        bool is_new = !i || event->wall_time != event[-1].wall_time;
        if (!is_new)
            continue;
        cr_assert_lt(next, netted->time_count);
        const struct ttd_net_time *time = &netted->times[next++];
        cr_assert_eq(time->wall_time, event->wall_time, "event %zu", i);
        cr_assert_eq(ttd_position_compare(time->position, ttd_event_position(event)), 0);
    }
    cr_assert_eq(next, netted->time_count);
}

/* Nets a chunk, and compares. Returns whether it is plain. */
static bool expect_netted(const struct event_chunk *chunk)
{
    memset(&oracle, 0, sizeof oracle);
    oracle.is_plain = true;
    event_chunk_encode(chunk);
    cr_assert_eq(net(chunk), TTD_OK);
    for (size_t i = 0; i < chunk->count; i++)
        apply(&chunk->events[i], (uint32_t)i);
    if (netting.netted.is_plain) {
        expect_pending();
        expect_destructions(chunk);
    }
    land(ttd_position_max());
    expect_counts(chunk);
    expect_times(chunk);
    cr_assert(oracle.is_plain || !netting.netted.is_plain);
    if (netting.netted.is_plain)
        expect_nets();
    return netting.netted.is_plain;
}

/* ---- Chunks of a program without errors ---- */

#define TAME_ADDRESSES 600

/* The blocks of a program. One in flight is live and may not be used before `ready`. */
struct tame {
    struct entropy entropy;
    bool is_live[TAME_ADDRESSES];
    struct ttd_position ready[TAME_ADDRESSES];
    struct ttd_position position;
    uint64_t clock;
    /* Shares of calls, in percent: which overlap the call behind; which are errors. */
    unsigned overlapping;
    unsigned errors;
};

static uint64_t tame_address(size_t i)
{
    /* Some at odd addresses, and some that differ in their highest bits. */
    return UINT64_C(0x10000) + 16 * i + (i % 7 == 0 ? i % 16 : 0) +
           (i % 11 == 0 ? UINT64_C(0xF) << 60 : 0);
}

/* Picks an address that is live, or not; TAME_ADDRESSES if none was found. */
static size_t tame_pick(struct tame *tame, bool is_live)
{
    if (entropy_pick(&tame->entropy, 100) < tame->errors)
        is_live = !is_live;
    for (int i = 0; i < 50; i++) {
        size_t index = entropy_pick(&tame->entropy, TAME_ADDRESSES);
        bool is_ready = ttd_position_compare(tame->ready[index], tame->position) <= 0;
        if (tame->is_live[index] == is_live &&
            (is_ready || entropy_pick(&tame->entropy, 100) < tame->errors))
            return index;
    }
    return TAME_ADDRESSES;
}

static void tame_set(struct tame *tame, size_t index, bool is_live, struct ttd_position ready)
{
    tame->is_live[index] = is_live;
    tame->ready[index] = ready;
}

static void tame_add(struct event_chunk *chunk, struct tame *tame)
{
    static const uint8_t apis[] = {TTD_API_MALLOC, TTD_API_CALLOC, TTD_API_FREE, TTD_API_REALLOC};
    struct entropy *entropy = &tame->entropy;
    bool switches = !entropy_pick(entropy, 6);
    uint8_t api = apis[entropy_pick(entropy, 4)];
    struct ttd_event event = {.thread = switches ? 1 + entropy_pick(entropy, 3) : 1,
                              .stack = 1 + entropy_pick(entropy, 5),
                              .heap = 2,
                              .api = api,
                              .action = TTD_ACTION_ALLOC,
                              .result = 1};
    size_t given = TAME_ADDRESSES;
    size_t taken = TAME_ADDRESSES;
    struct ttd_position start = {tame->position.sequence, tame->position.steps + 1};
    struct ttd_position end = {start.sequence, start.steps + 1};
    if (api == TTD_API_FREE || (api == TTD_API_REALLOC && entropy_pick(entropy, 4)))
        given = tame_pick(tame, true);
    if (api != TTD_API_FREE)
        taken =
            given != TAME_ADDRESSES && entropy_pick(entropy, 2) ? given : tame_pick(tame, false);
    if (api == TTD_API_FREE ? given == TAME_ADDRESSES : taken == TAME_ADDRESSES)
        return;
    event.size = api == TTD_API_FREE ? 0 : 8 * entropy_below(entropy, 6);
    event.action = api == TTD_API_FREE ? TTD_ACTION_FREE : event.action;
    event.action = api == TTD_API_REALLOC ? TTD_ACTION_REALLOC : event.action;
    tame->position = event.action == TTD_ACTION_ALLOC ? end : start;
    if (event.action == TTD_ACTION_REALLOC && entropy_pick(entropy, 100) < tame->overlapping)
        end.steps += entropy_pick(entropy, 20);
    else
        tame->position = end;
    event.time_start = start;
    event.time_end = end;
    event.base_address = given == TAME_ADDRESSES ? 0 : tame_address(given);
    event.address = taken == TAME_ADDRESSES ? 0 : tame_address(taken);
    event.previous_address = event.action == TTD_ACTION_REALLOC ? event.base_address : 0;
    if (event.action == TTD_ACTION_REALLOC && !entropy_pick(entropy, 30))
        event.result = event.address = 0;
    tame->clock += entropy_pick(entropy, 50) ? 0 : entropy_below(entropy, 1000);
    event.wall_time = tame->clock * EVENT_TIME_UNIT;
    event_chunk_add(chunk, event);
    if (event.result && given != TAME_ADDRESSES)
        tame_set(tame, given, false, start);
    if (event.result && taken != TAME_ADDRESSES)
        tame_set(tame, taken, true, end);
}

static void fill_tamely(struct event_chunk *chunk, uint64_t seed, unsigned overlapping,
                        unsigned errors)
{
    struct tame tame = {.entropy = entropy_of_seed(seed),
                        .position = {1, 0},
                        .overlapping = overlapping,
                        .errors = errors};
    for (size_t i = 0; i < TAME_ADDRESSES; i++)
        tame.is_live[i] = entropy_pick(&tame.entropy, 2);
    chunk->count = 0;
    while (chunk->count < EVENT_CHUNK_MAX)
        tame_add(chunk, &tame);
}

Test(netting, is_plain_for_a_program_without_errors)
{
    static struct event_chunk chunk;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        fill_tamely(&chunk, seed, 0, 0);
        cr_assert(expect_netted(&chunk), "seed %d", (int)seed);
    }
}

Test(netting, is_plain_where_reallocations_overlap_other_calls)
{
    static struct event_chunk chunk;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        fill_tamely(&chunk, seed, 30, 0);
        cr_assert(expect_netted(&chunk), "seed %d", (int)seed);
    }
}

Test(netting, is_not_plain_where_the_order_of_blocks_is_broken)
{
    static struct event_chunk chunk;
    unsigned plain = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        fill_tamely(&chunk, seed, (unsigned)(seed % 40), 1);
        chunk.count = 5 + seed % 200;
        plain += expect_netted(&chunk);
    }
    cr_assert(plain > 100 && plain < 1900, "%u", plain);
}

Test(netting, says_no_more_than_events_of_every_kind_do)
{
    static struct event_chunk chunk;
    unsigned plain = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        event_chunk_fill_at_random(&chunk, seed);
        if (seed % 2)
            chunk.count = chunk.count < 4 ? chunk.count : 1 + seed % 4;
        plain += expect_netted(&chunk);
    }
    cr_assert_gt(plain, 20);
}

/* Both addresses that are spelled out are acquired and released, as if nothing were wrong. */
Test(netting, is_not_plain_where_two_ordinals_of_an_address_cross)
{
    static struct event_chunk chunk;
    chunk.count = 0;
    event_chunk_add(&chunk, event_allocation(0, 0x1000, 24));
    event_chunk_add(&chunk, event_allocation(2, 0x1000, 24));
    event_chunk_add(&chunk, event_release(4, 0x1000));
    event_chunk_add(&chunk, event_release(6, 0x1000));
    cr_assert_not(expect_netted(&chunk));
}

/* A block is acquired when its reallocation ends: another thread releases its address before. */
Test(netting, is_not_plain_where_a_block_in_flight_is_released)
{
    static struct event_chunk chunk;
    struct ttd_event reallocation = event_allocation(2, 0x2000, 48);
    struct ttd_event release = event_release(4, 0x2000);
    reallocation.action = TTD_ACTION_REALLOC;
    reallocation.api = TTD_API_REALLOC;
    reallocation.base_address = reallocation.previous_address = 0x1000;
    release.thread = 2;
    for (uint64_t end = 3; end < 10; end++) {
        reallocation.time_end.steps = end;
        chunk.count = 0;
        event_chunk_add(&chunk, event_allocation(0, 0x1000, 24));
        event_chunk_add(&chunk, reallocation);
        event_chunk_add(&chunk, release);
        cr_assert_eq(expect_netted(&chunk), end <= 4, "%d", (int)end);
    }
}

/* Addresses that have one hash are not compared with each other for hours. */
Test(netting, gives_up_where_addresses_are_chosen_to_collide)
{
    static struct event_chunk chunk;
    const uint64_t inverse = UINT64_C(0xF1DE83E19937733D);
    chunk.count = 0;
    for (uint64_t i = 0; i < EVENT_CHUNK_MAX; i++)
        event_chunk_add(&chunk, event_allocation(2 * i, inverse * (i + 1), 24));
    cr_assert_not(expect_netted(&chunk));
    cr_assert(oracle.is_plain);
}

/* Shapes, sizes and places of addresses that no encoder would choose. */
Test(netting, says_no_more_than_the_events_of_damaged_chunks_do)
{
    static struct event_chunk chunk;
    struct entropy entropy = entropy_of_seed(1);
    for (uint64_t seed = 1; seed <= 300; seed++) {
        fill_tamely(&chunk, seed, 10, 0);
        chunk.count = 40 + seed % 800;
        event_chunk_encode(&chunk);
        for (unsigned i = 0; i < 3; i++)
            fixture.payload.data[entropy_below(&entropy, fixture.payload.size)] =
                (uint8_t)entropy_pick(&entropy, 256);
        memset(&oracle, 0, sizeof oracle);
        oracle.is_plain = true;
        if (net(&chunk) != TTD_OK)
            continue;
        struct ttd_header header = header_of(&chunk);
        size_t count;
        uint32_t index = 0;
        cr_assert_eq(event_chunk_begin_decoding(&chunk, fixture.payload.data, fixture.payload.size),
                     TTD_OK);
        while (index < header.record_count &&
               ttd_events_decoder_next(&fixture.decoder, &count) == TTD_OK)
            for (size_t i = 0; i < count; i++)
                apply(&fixture.decoder.batch->events[i], index++);
        land(ttd_position_max());
        cr_assert(oracle.is_plain || !netting.netted.is_plain, "seed %d", (int)seed);
        if (netting.netted.is_plain)
            expect_nets();
    }
}

Test(netting, refuses_what_the_decoder_refuses)
{
    static struct event_chunk chunk;
    struct entropy entropy = entropy_of_seed(3);
    unsigned refused = 0;
    event_chunk_fill_at_random(&chunk, 3);
    chunk.count = chunk.count < 60 ? chunk.count : 60;
    event_chunk_encode(&chunk);
    for (size_t at = 0; at < fixture.payload.size; at++) {
        for (unsigned i = 0; i < 20; i++) {
            uint8_t kept = fixture.payload.data[at];
            fixture.payload.data[at] = (uint8_t)entropy_pick(&entropy, 256);
            refused += net(&chunk) != TTD_OK;
            fixture.payload.data[at] = kept;
        }
    }
    cr_assert_gt(refused, 1000);
    for (size_t size = fixture.payload.size; fixture.payload.size--;)
        cr_assert_eq(net(&chunk), TTD_ERROR_CORRUPT, "%zu", size);
}

Test(netting, says_where_it_has_no_memory)
{
    static struct event_chunk chunk;
    fill_tamely(&chunk, 5, 30, 0);
    event_chunk_encode(&chunk);
    struct ttd_header header = header_of(&chunk);
    struct ttd_cursor payload = ttd_cursor_of(fixture.payload.data, fixture.payload.size);
    for (uint64_t call = 0;; call++) {
        ttd_netting_free(&netting);
        ttd_netting_init(&netting, &fixture.allocator);
        fixture.memory.counter = (struct chaos_counter){.fail_at = call};
        enum ttd_status status = ttd_netting_chunk(&netting, &header, payload, EVENT_TIME_UNIT);
        if (fixture.memory.counter.calls <= call) {
            cr_assert_eq(status, TTD_OK);
            cr_assert_gt(call, 10);
            return;
        }
        cr_assert_eq(status, TTD_ERROR_NO_MEMORY, "call %u", (unsigned)call);
    }
}
