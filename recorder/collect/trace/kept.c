/* SPDX-License-Identifier: MIT */
/*
 * The calls of a trace that has only live blocks. They are kept back until a snapshot, or the end:
 * a block that is released before is left out with both of its calls. The rest is written
 * in the order of the calls, so that the trace has the right blocks there, and is a trace like any
 * other. Of a trace that keeps the recent past, the same table has the live blocks.
 */
#include "collect/trace/process_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "arrays.h"
#include "collect/channel/translate.h"

/* A call, without its parameters. */
struct kept_call {
    struct ttd_position start, end;
    uint64_t address; /* of the block that is acquired; 0 for none, or if the call is left out */
    uint64_t base;    /* of the block that is released; 0 for none */
    uint64_t size, result, flags, reserve_size, commit_size, make_read_only;
    uint64_t wall_time;
    ttd_id thread, stack, heap;
    uint8_t action, api;
    bool is_gone;
    bool is_in_flight; /* a reallocation whose end is ahead: its block is not there yet */
};

/* An entry of the table of blocks: it has all that a search compares, so that this reads no
 * call. */
struct kept_block {
    uint64_t address;
    ttd_id heap;
    uint32_t number; /* of the call that has acquired it, from 1 on; 0 for a free entry */
};

struct kept {
    struct kept_call *calls;
    size_t count, capacity;
    uint32_t vacant; /* number of the call that was left out last; `base` has the next; or 0 */
    struct kept_block *blocks; /* hash table */
    size_t block_room;         /* a power of two; 0 before the first */
    uint32_t *flights;         /* numbers of the calls in flight, of all threads: few */
    size_t flight_count, flight_capacity;
    uint64_t key;      /* random: addresses come from an untrusted process */
    uint64_t left_out; /* calls in all that were left out */
    bool is_live_only; /* only acquisitions of live blocks are kept, and creations of heaps */
};

enum { BLOCKS_FIRST = 1 << 10 };

struct kept *kept_new(bool is_live_only)
{
    struct kept *kept = calloc(1, sizeof *kept);
    if (!kept)
        return NULL;
    kept->is_live_only = is_live_only;
    if (getrandom(&kept->key, sizeof kept->key, 0) != sizeof kept->key)
        kept->key = (uintptr_t)kept;
    return kept;
}

void kept_free(struct kept *kept)
{
    if (!kept)
        return;
    free(kept->calls);
    free(kept->blocks);
    free(kept->flights);
    free(kept);
}

/* Returns the slot where the search for a block begins. */
static size_t kept_first_slot(const struct kept *kept, uint64_t address, ttd_id heap)
{
    return array_hash(address ^ (uint64_t)heap << 48 ^ kept->key, kept->key | 1) &
           (kept->block_room - 1);
}

/* Returns the slot where a block is, or belongs. */
static size_t kept_slot(const struct kept *kept, uint64_t address, ttd_id heap)
{
    size_t mask = kept->block_room - 1, slot = kept_first_slot(kept, address, heap);
    for (;; slot = (slot + 1) & mask) {
        const struct kept_block *block = &kept->blocks[slot];
        if (block->number == 0 || (block->address == address && block->heap == heap))
            return slot;
    }
}

/* Takes a block out of the table. Blocks behind it whose search begins no later than there close
 * the gap. */
static void kept_remove(struct kept *kept, size_t gap)
{
    size_t mask = kept->block_room - 1;
    for (size_t slot = (gap + 1) & mask; kept->blocks[slot].number != 0; slot = (slot + 1) & mask) {
        const struct kept_block *block = &kept->blocks[slot];
        size_t first = kept_first_slot(kept, block->address, block->heap);
        if (((slot - first) & mask) < ((slot - gap) & mask))
            continue;
        kept->blocks[gap] = *block;
        gap = slot;
    }
    kept->blocks[gap].number = 0;
}

/* Enters all blocks into a table of this size. */
static bool kept_number_all(struct kept *kept, size_t room)
{
    struct kept_block *blocks = calloc(room, sizeof *blocks);
    if (!blocks)
        return false;
    free(kept->blocks);
    kept->blocks = blocks;
    kept->block_room = room;
    for (size_t i = 0; i < kept->count; i++) {
        const struct kept_call *call = &kept->calls[i];
        if (call->address != 0 && !call->is_in_flight)
            blocks[kept_slot(kept, call->address, call->heap)] =
                (struct kept_block){call->address, call->heap, (uint32_t)i + 1};
    }
    return true;
}

/* Removes the calls that are left out; they must be numbered again. */
static void kept_close_up(struct kept *kept)
{
    size_t count = 0;
    for (size_t i = 0; i < kept->count; i++)
        if (!kept->calls[i].is_gone)
            kept->calls[count++] = kept->calls[i];
    kept->count = count;
    kept->vacant = 0;
}

/* Finds the calls in flight again, once all calls are numbered anew. */
static void kept_number_flights(struct kept *kept)
{
    kept->flight_count = 0;
    for (size_t i = 0; i < kept->count; i++)
        if (kept->calls[i].is_in_flight)
            kept->flights[kept->flight_count++] = (uint32_t)i + 1;
}

/*
 * Returns the number of a free entry for a call; 0 if there is no memory. It is the one that was
 * left out last, if any: blocks that live for a short time then use the same few entries again and
 * again, which the cache holds.
 */
static uint32_t kept_take_number(struct kept *kept)
{
    uint32_t vacant = kept->vacant;
    if (vacant != 0) {
        kept->vacant = (uint32_t)kept->calls[vacant - 1].base;
        return vacant;
    }
    struct kept_call *grown =
        array_grow(kept->calls, kept->count, &kept->capacity, sizeof *kept->calls);
    if (!grown || kept->count >= UINT32_MAX - 1)
        return 0;
    kept->calls = grown;
    if (kept->count >= kept->block_room / 2 &&
        !kept_number_all(kept, kept->block_room != 0 ? 2 * kept->block_room : BLOCKS_FIRST))
        return 0;
    return (uint32_t)++kept->count;
}

/* Returns the function that releases a block that a function has reallocated. */
static uint8_t kept_release_of(uint8_t api)
{
    if (call_shapes[api].kind != CALL_REALLOCATION)
        return TTD_API_OTHER;
    return api == TTD_API_LIVE_HEAP_REALLOC ? TTD_API_LIVE_HEAP_FREE : TTD_API_FREE;
}

static void kept_forget(struct kept *kept, struct kept_call *call)
{
    call->is_gone = true;
    call->address = 0;
    call->base = kept->vacant;
    kept->vacant = (uint32_t)(call - kept->calls) + 1;
}

/* Leaves out the acquisition of a block. If its call released another one, that remains. */
static void kept_drop(struct kept *kept, struct kept_call *call)
{
    call->address = 0;
    kept->left_out++;
    if (call->base == 0) {
        kept_forget(kept, call);
        return;
    }
    call->action = TTD_ACTION_FREE;
    call->api = kept_release_of(call->api);
    call->size = 0;
}

/* Leaves out the acquisition of a block that is released. Returns false if it is not there. */
static bool kept_release(struct kept *kept, uint64_t address, ttd_id heap)
{
    size_t slot = kept->block_room != 0 ? kept_slot(kept, address, heap) : 0;
    if (kept->block_room == 0 || kept->blocks[slot].number == 0)
        return false;
    struct kept_call *call = &kept->calls[kept->blocks[slot].number - 1];
    kept_remove(kept, slot);
    kept_drop(kept, call);
    return true;
}

/* Enters the block that a call has acquired. */
static void kept_enter(struct kept *kept, uint32_t added)
{
    struct kept_call *call = &kept->calls[added - 1];
    struct kept_block *block = &kept->blocks[kept_slot(kept, call->address, call->heap)];
    if (block->number != 0) /* its release is missing: it is replaced, as it is in a reader */
        kept_drop(kept, &kept->calls[block->number - 1]);
    *block = (struct kept_block){call->address, call->heap, added};
    call->is_in_flight = false;
}

/* Notes a reallocation whose end is ahead. False if there is no memory. */
static bool kept_await(struct kept *kept, uint32_t added)
{
    uint32_t *flights = array_grow(kept->flights, kept->flight_count, &kept->flight_capacity,
                                   sizeof *kept->flights);
    if (!flights)
        return false;
    kept->flights = flights;
    flights[kept->flight_count++] = added;
    kept->calls[added - 1].is_in_flight = true;
    return true;
}

/* Enters the blocks of reallocations that have ended by a position: others may have released an
 * earlier block at the address since they began. */
static void kept_land(struct kept *kept, struct ttd_position position)
{
    size_t left = 0;
    for (size_t i = 0; i < kept->flight_count; i++) {
        uint32_t number = kept->flights[i];
        if (ttd_position_compare(kept->calls[number - 1].end, position) <= 0)
            kept_enter(kept, number);
        else
            kept->flights[left++] = number;
    }
    kept->flight_count = left;
}

/* Leaves out the blocks of a heap that ends. */
static void kept_end_heap(struct kept *kept, ttd_id heap)
{
    for (size_t i = 0; i < kept->count; i++) {
        struct kept_call *call = &kept->calls[i];
        if (call->heap != heap || call->is_gone)
            continue;
        if (call->address != 0)
            kept_release(kept, call->address, heap);
        else if (kept->is_live_only)
            kept_forget(kept, call);
    }
}

/* Adds a call; the memory of its parameters is not kept. False if there is no memory. */
static bool kept_add(struct kept *kept, const struct ttd_event *event)
{
    uint64_t base = event->base_address, address = event->address;
    bool is_block = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_FREE ||
                    event->action == TTD_ACTION_REALLOC;
    bool acquires = event->action == TTD_ACTION_ALLOC && ttd_event_returned(event);
    kept_land(kept, acquires ? event->time_end : event->time_start);
    if (event->action == TTD_ACTION_DESTROY) {
        kept_land(kept, ttd_position_max());
        kept_end_heap(kept, event->heap);
    }
    /* A reallocation that fails releases nothing. */
    if (event->action == TTD_ACTION_REALLOC && address == 0 && event->size != 0)
        base = 0;
    if (base != 0 && kept_release(kept, base, event->heap))
        base = 0;
    if (kept->is_live_only) {
        base = 0;
        is_block |= event->action != TTD_ACTION_CREATE;
    }
    if (is_block && base == 0 && address == 0) {
        kept->left_out++;
        return true;
    }
    uint32_t number = kept_take_number(kept);
    if (number == 0)
        return false;
    kept->calls[number - 1] = (struct kept_call){.start = event->time_start,
                                                 .end = event->time_end,
                                                 .address = address,
                                                 .base = base,
                                                 .size = event->size,
                                                 .result = event->result,
                                                 .flags = event->flags,
                                                 .reserve_size = event->reserve_size,
                                                 .commit_size = event->commit_size,
                                                 .make_read_only = event->make_read_only,
                                                 .wall_time = event->wall_time,
                                                 .thread = event->thread,
                                                 .stack = event->stack,
                                                 .heap = event->heap,
                                                 .action = event->action,
                                                 .api = event->api};
    if (address == 0)
        return true;
    if (event->action == TTD_ACTION_REALLOC && ttd_event_returned(event))
        return kept_await(kept, number);
    kept_enter(kept, number);
    return true;
}

static struct ttd_position kept_position(const struct kept_call *call)
{
    bool acquires = call->action == TTD_ACTION_ALLOC || call->action == TTD_ACTION_CREATE;
    return acquires && ttd_position_is_valid(call->end) ? call->end : call->start;
}

/* By position; a call that released a block, and was added first, comes first. */
static int kept_compare(const void *left, const void *right)
{
    const struct kept_call *a = left, *b = right;
    int order = ttd_position_compare(kept_position(a), kept_position(b));
    return order != 0 ? order : ttd_position_compare(a->start, b->start);
}

/* Hands all calls over, in their order. */
static void kept_hand_over(struct kept *kept,
                           void (*take)(void *context, const struct ttd_event *event),
                           void *context)
{
    if (kept->count == 0)
        return;
    qsort(kept->calls, kept->count, sizeof *kept->calls, kept_compare);
    for (size_t i = 0; i < kept->count; i++) {
        const struct kept_call *call = &kept->calls[i];
        if (call->is_gone)
            continue;
        take(context, &(struct ttd_event){.time_start = call->start,
                                          .time_end = call->end,
                                          .wall_time = call->wall_time,
                                          .thread = call->thread,
                                          .stack = call->stack,
                                          .address = call->address,
                                          .previous_address =
                                              call->action == TTD_ACTION_REALLOC ? call->base : 0,
                                          .base_address = call->base,
                                          .size = call->size,
                                          .flags = call->flags,
                                          .result = call->result,
                                          .reserve_size = call->reserve_size,
                                          .commit_size = call->commit_size,
                                          .make_read_only = call->make_read_only,
                                          .heap = call->heap,
                                          .action = call->action,
                                          .api = call->api});
    }
}

static void kept_take(struct kept *kept, void (*take)(void *context, const struct ttd_event *event),
                      void *context)
{
    kept_hand_over(kept, take, context);
    kept->count = kept->flight_count = 0;
    kept->vacant = 0;
    free(kept->blocks);
    kept->blocks = NULL;
    kept->block_room = 0;
}

bool kept_visit(struct kept *kept, void (*take)(void *context, const struct ttd_event *event),
                void *context)
{
    kept_close_up(kept);
    kept_hand_over(kept, take, context);
    kept_number_flights(kept);
    return kept->block_room == 0 || kept_number_all(kept, kept->block_room);
}

void trace_keep_blocks(struct trace *trace)
{
    trace->kept = kept_new(false);
    if (!trace->kept)
        trace_out_of_memory(trace);
    trace->is_followed = true;
    trace_metadata(trace, "chosen", "blocks that are live at a snapshot, or at the end");
}

void trace_keep(struct trace *trace, const struct ttd_event *event, struct ttd_position position)
{
    if (!trace->writer) {
        trace_unwritten(trace, TTD_ERROR_MISUSE);
        return;
    }
    if (!kept_add(trace->kept, event)) {
        trace_out_of_memory(trace);
        return;
    }
    if (trace->kept->is_live_only)
        trace_write_event(trace, event, position);
    else
        trace_note_event(trace, event, position);
}

static void kept_write(void *context, const struct ttd_event *event)
{
    struct trace *trace = context;
    enum ttd_status status =
        trace->writer ? ttd_writer_event(trace->writer, event) : TTD_ERROR_MISUSE;
    if (status == TTD_OK)
        trace_count(trace, event);
    else
        trace_unwritten(trace, status);
}

void trace_write_kept(struct trace *trace)
{
    if (trace->kept && !trace->kept->is_live_only)
        kept_take(trace->kept, kept_write, trace);
}

void trace_state_left_out(struct trace *trace)
{
    char text[96];
    if (!trace->kept || trace->kept->is_live_only || trace->kept->left_out == 0)
        return;
    snprintf(text, sizeof text, "%llu calls, for blocks that were live at no snapshot",
             (unsigned long long)trace->kept->left_out);
    trace_metadata(trace, "unrecorded", text);
}

void trace_keep_calls(struct trace *trace, const struct ttd_calls *calls)
{
    struct ttd_position start = calls->start;
    /* The table of many blocks is in no cache: all entries come into it at the same time. */
    for (size_t i = 0; i < calls->count && trace->kept->block_room != 0; i++)
        __builtin_prefetch(
            &trace->kept
                 ->blocks[kept_first_slot(trace->kept, calls->calls[i].address, calls->heap)]);
    struct ttd_event event = {
        .wall_time = calls->wall_time, .thread = calls->thread, .result = 1, .heap = calls->heap};
    for (size_t i = 0; i < calls->count; i++, start.steps += 2) {
        const struct ttd_call *call = &calls->calls[i];
        bool frees = call->action == TTD_ACTION_FREE;
        const uint64_t parameters[] = {frees ? call->address : call->size, call->size};
        event.time_start = start;
        event.time_end = (struct ttd_position){start.sequence, start.steps + 1};
        event.stack = call->stack;
        event.address = frees ? 0 : call->address;
        event.base_address = frees ? call->address : 0;
        event.size = call->size;
        event.parameters = parameters;
        event.parameter_count = call->parameter_count;
        event.action = call->action;
        event.api = call->api;
        trace_keep(trace, &event, frees ? event.time_start : event.time_end);
    }
}
