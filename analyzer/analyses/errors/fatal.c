/* SPDX-License-Identifier: MIT */
#include "analyses/errors/fatal.h"

#include <string.h>

#include "analyses/errors/errors.h"
#include "heap/heap_live.h"
#include "reach/reach.h"

/* The numbers of signals, and the code SI_KERNEL, on the recorded system. The analyzer may run on
 * another one. The kernel gives no address with SI_KERNEL. */
enum { ILL = 4, TRAP, ABRT, BUS, FPE, SEGV = 11, SYS = 31, LAST = 64, FROM_KERNEL = 128 };

bool heap_fatal_is_fault(uint32_t signal)
{
    const uint64_t faults = 1u << ILL | 1u << TRAP | 1u << ABRT | 1u << BUS | 1u << FPE |
                            1u << SEGV | UINT64_C(1) << SYS;
    /* Numbers that Linux does not have are of another system. */
    return signal > LAST || (signal < LAST && faults >> signal & 1);
}

bool heap_fatal_has_address(const struct ttd_fatal_signal *signal)
{
    bool is_of_memory = signal->signal == BUS || signal->signal == SEGV;
    return signal->address || (is_of_memory && signal->code > 0 && signal->code < FROM_KERNEL);
}

/* DWARF numbers of x86-64; and distances from the stack pointer that a thread uses: its newest
 * pushes, and frames that it has not yet touched. */
enum { RSP = 7, RIP = 16, ABOVE = 1 << 12, BELOW = 1 << 20 };

static bool fatal_find_register(const struct heap_fatal *fatal, uint32_t number, uint64_t *value)
{
    for (size_t i = 0; i < fatal->signal.count; i++) {
        if (fatal->registers[i].number != number)
            continue;
        *value = fatal->registers[i].value;
        return true;
    }
    return false;
}

/* Whether the fault address, and the stack pointer, lie at the lower end of the thread's stack. */
static bool fatal_is_overflow(const struct heap_fatal *fatal, uint64_t sp,
                              const struct ttd_region *regions, size_t region_count)
{
    uint64_t address = fatal->signal.address;
    if (address > sp + ABOVE || address + BELOW < sp)
        return false;
    for (size_t i = 0; i < region_count; i++) {
        const struct ttd_region *region = &regions[i];
        if (region->kind == TTD_REGION_STACK && region->thread == fatal->signal.thread &&
            sp + BELOW >= region->begin && sp - region->begin + BELOW < region->size + BELOW)
            return true;
    }
    return false;
}

enum heap_fatal_cause heap_fatal_cause(const struct heap_fatal *fatal,
                                       const struct ttd_region *regions, size_t region_count)
{
    uint64_t value;
    if (fatal->signal.signal != SEGV && fatal->signal.signal != BUS)
        return HEAP_FATAL_UNKNOWN_CAUSE;
    if (fatal->has_address && fatal_find_register(fatal, RIP, &value) &&
        value == fatal->signal.address)
        return HEAP_FATAL_JUMP;
    if (fatal->has_address && fatal_find_register(fatal, RSP, &value) &&
        fatal_is_overflow(fatal, value, regions, region_count))
        return HEAP_FATAL_OVERFLOW;
    return HEAP_FATAL_UNKNOWN_CAUSE;
}

static void fatal_keep_earlier(struct heap_fatal *fatal)
{
    struct ttd_fatal_signal *earlier = fatal->earlier;
    if (fatal->earlier_count == HEAP_FATAL_EARLIER)
        memmove(earlier, earlier + 1, --fatal->earlier_count * sizeof *earlier);
    earlier[fatal->earlier_count] = fatal->signal;
    earlier[fatal->earlier_count].registers = NULL;
    earlier[fatal->earlier_count++].count = 0;
}

static void fatal_take_signal(struct heap_fatal *fatal, const struct ttd_fatal_signal *signal)
{
    if (!heap_fatal_is_fault(signal->signal))
        return;
    if (fatal->count++)
        fatal_keep_earlier(fatal);
    fatal->signal = *signal;
    for (size_t i = 0; i < signal->count; i++)
        fatal->registers[i] = signal->registers[i];
    fatal->signal.registers = fatal->registers;
}

static enum ttd_status fatal_find_signal(struct heap_fatal *fatal, struct ttd_reader *reader,
                                         struct ttd_error *error)
{
    enum ttd_status status = ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_FATAL_SIGNALS));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(reader, &batch, error);
        if (status != TTD_OK || batch.kind != TTD_KIND_FATAL_SIGNALS || !batch.count)
            continue;
        for (size_t i = 0; i < batch.count; i++)
            fatal_take_signal(fatal, &batch.u.fatal_signals[i]);
    }
    return heap_is_over(status) ? TTD_OK : status;
}

/* Takes the signal from the end of the trace: a thread whose stack has overflown may have no stack
 * left to report it. */
static void fatal_take_end(struct heap_fatal *fatal, struct ttd_reader *reader)
{
    struct ttd_end end;
    if (ttd_reader_end(reader, &end) != TTD_OK || end.reason != TTD_END_REASON_SIGNALED ||
        !heap_fatal_is_fault(end.code))
        return;
    fatal->signal =
        (struct ttd_fatal_signal){.signal = end.code, .position = ttd_position_invalid()};
    fatal->count = 1;
}

static enum ttd_status fatal_find_snapshot(struct heap_fatal *fatal, const struct heap_trace *trace,
                                           struct ttd_error *error)
{
    struct heap_snapshots snapshots;
    if (!fatal->signal.snapshot)
        return TTD_OK;
    enum ttd_status status = heap_snapshots_find(trace, &snapshots, error);
    if (status != TTD_OK)
        return status;
    const struct ttd_snapshot *snapshot = heap_snapshots_get(&snapshots, fatal->signal.snapshot);
    if (snapshot)
        fatal->snapshot = *snapshot;
    heap_snapshots_free(&snapshots);
    return TTD_OK;
}

static void fatal_add_pointer(struct heap_fatal *fatal, struct heap_fatal_pointer pointer)
{
    pointer.allocated = heap_call_none();
    pointer.released = heap_call_none();
    pointer.neighbours.before.allocated = heap_call_none();
    pointer.neighbours.after.allocated = heap_call_none();
    fatal->pointers[fatal->pointer_count++] = pointer;
}

static void fatal_list_pointers(struct heap_fatal *fatal)
{
    fatal->has_address = heap_fatal_has_address(&fatal->signal);
    if (fatal->has_address)
        fatal_add_pointer(fatal, (struct heap_fatal_pointer){.address = fatal->signal.address});
    for (size_t i = 0; i < fatal->signal.count; i++)
        fatal_add_pointer(fatal, (struct heap_fatal_pointer){.address = fatal->registers[i].value,
                                                             .is_register = true,
                                                             .number = fatal->registers[i].number});
}

/* Remembers for each pointer the block released last of those that had it, however long ago. The
 * blocks of a destroyed heap come late, but with the position of its destruction. */
static enum ttd_status fatal_see_effect(void *context, const struct heap_effect *effect)
{
    struct heap_fatal *fatal = context;
    if (effect->kind != HEAP_RELEASED && effect->kind != HEAP_DISCARDED)
        return TTD_OK;
    for (size_t i = 0; i < fatal->pointer_count; i++) {
        struct heap_fatal_pointer *pointer = &fatal->pointers[i];
        if (!heap_block_covers(effect->block, pointer->address, pointer->address) ||
            (heap_call_is_known(&pointer->released) &&
             ttd_position_compare(effect->position, pointer->released.position) < 0))
            continue;
        pointer->where = HEAP_FATAL_IN_RELEASED;
        pointer->block_address = effect->block->address;
        pointer->block_size = effect->block->size;
        pointer->allocated = heap_call_of_block(effect->block);
        pointer->released = heap_call_of_effect(effect);
    }
    return TTD_OK;
}

/* The live block of the pointer, and those that begin next before it and after it. */
struct around {
    const struct heap_block *containing;
    const struct heap_block *before;
    const struct heap_block *after;
};

/* Keeps the nearest block on either side. The table of live blocks has no order, so each block
 * is looked at once for all pointers together. */
static void fatal_see_block(struct around *around, uint64_t address, const struct heap_block *block)
{
    const struct heap_block **nearest = &around->before;
    if (heap_block_covers(block, address, address))
        nearest = &around->containing;
    else if (block->address > address)
        nearest = &around->after;
    bool is_nearer =
        !*nearest || (nearest == &around->after ? block->address < (*nearest)->address
                                                : block->address > (*nearest)->address);
    if (is_nearer)
        *nearest = block;
}

static struct heap_neighbour fatal_neighbour(const struct heap_block *block)
{
    return (struct heap_neighbour){block->address, block->size, heap_call_of_block(block)};
}

static void fatal_decide(struct heap_fatal_pointer *pointer, const struct around *around)
{
    uint64_t near = pointer->is_register ? HEAP_FATAL_NEAR_REGISTER : HEAP_FATAL_NEAR_ADDRESS;
    if (around->containing) {
        pointer->where = HEAP_FATAL_IN_LIVE;
        pointer->block_address = around->containing->address;
        pointer->block_size = around->containing->size;
        pointer->allocated = heap_call_of_block(around->containing);
        pointer->released = heap_call_none();
    }
    if (pointer->where != HEAP_FATAL_ELSEWHERE)
        return;
    /* The block before ends at the address or before it. */
    const struct heap_block *before = around->before, *after = around->after;
    if (before && pointer->address - before->address - before->size <= near)
        pointer->neighbours.before = fatal_neighbour(before);
    if (after && after->address - pointer->address <= near)
        pointer->neighbours.after = fatal_neighbour(after);
    if (pointer->neighbours.before.address || pointer->neighbours.after.address)
        pointer->where = HEAP_FATAL_NEAR;
}

/* One look at the live blocks for all pointers. */
static void fatal_locate(struct heap_fatal *fatal, const struct heap_live *live)
{
    struct around around[TTD_REGISTERS_MAX + 1] = {{NULL, NULL, NULL}};
    const struct heap_block *block;
    size_t cursor = 0;
    while ((block = heap_live_each(live, &cursor))) {
        for (size_t i = 0; i < fatal->pointer_count; i++)
            fatal_see_block(&around[i], fatal->pointers[i].address, block);
    }
    for (size_t i = 0; i < fatal->pointer_count; i++)
        fatal_decide(&fatal->pointers[i], &around[i]);
}

/* Judges the certainty of each pointer. A block is certain if nothing was lost since it was
 * allocated or released. The absence of a block is certain only if nothing was lost at all, and no
 * block is unknown: neither older than the recording nor in the middle of a reallocation. */
static void fatal_judge(struct heap_fatal *fatal, const struct ttd_reader *reader)
{
    bool has_others = heap_has_early_blocks(reader) || fatal->outcome.in_flight;
    for (size_t i = 0; i < fatal->pointer_count; i++) {
        struct heap_fatal_pointer *pointer = &fatal->pointers[i];
        struct ttd_position begin = ttd_position_min();
        if (pointer->where == HEAP_FATAL_IN_LIVE)
            begin = pointer->allocated.position;
        if (pointer->where == HEAP_FATAL_IN_RELEASED)
            begin = pointer->released.position;
        bool has_block =
            pointer->where == HEAP_FATAL_IN_LIVE || pointer->where == HEAP_FATAL_IN_RELEASED;
        pointer->is_certain =
            !fatal->outcome.truncated && (has_block || !has_others) &&
            !heap_losses_between(&fatal->outcome.losses, begin, fatal->signal.position);
    }
}

static enum ttd_status fatal_replay(struct heap_fatal *fatal, const struct heap_trace *trace,
                                    struct ttd_error *error)
{
    struct heap_arrival arrival = {.has_losses = false};
    struct heap_observer observer = {.context = fatal,
                                     .effect = fatal_see_effect,
                                     .unwanted = HEAP_EFFECT_BIT(HEAP_ACQUIRED) |
                                                 HEAP_EFFECT_BIT(HEAP_UNKNOWN_RELEASE)};
    struct heap_route route = {.to = fatal->signal.position, .observer = &observer};
    enum ttd_status status = heap_replay_to(&arrival, trace, &route, error);
    if (status == TTD_OK) {
        /* It passes on the blocks of destroyed heaps. */
        heap_live_discard_stale(&arrival.cursor.replay.live);
        fatal_locate(fatal, &arrival.cursor.replay.live);
    }
    heap_arrival_end(&arrival, &fatal->outcome);
    return status;
}

enum ttd_status heap_fatal_find(const struct heap_trace *trace, struct heap_fatal *fatal,
                                struct ttd_error *error)
{
    memset(fatal, 0, sizeof *fatal);
    enum ttd_status status = fatal_find_signal(fatal, trace->reader, error);
    if (status == TTD_OK && !fatal->count)
        fatal_take_end(fatal, trace->reader);
    if (status != TTD_OK || !ttd_position_is_valid(fatal->signal.position) || !fatal->count)
        return status;
    fatal_list_pointers(fatal);
    status = fatal_find_snapshot(fatal, trace, error);
    if (status == TTD_OK)
        status = fatal_replay(fatal, trace, error);
    if (status == TTD_OK)
        fatal_judge(fatal, trace->reader);
    return status;
}
