/* SPDX-License-Identifier: MIT */
/**
 * The signal that the program died of, and the blocks that its fault address and the registers of
 * the thread that died point at.
 */
#ifndef ANALYZER_ANALYSES_ERRORS_FATAL_H
#define ANALYZER_ANALYSES_ERRORS_FATAL_H

#include <ttdtrace/snapshot.h>

#include "analyses/state/neighbours.h"
#include "travel/replay_to.h"

/** Blocks up to this far from a fault address, or from what a register holds, are near it. */
#define HEAP_FATAL_NEAR_ADDRESS  (UINT64_C(1) << 20)
#define HEAP_FATAL_NEAR_REGISTER UINT64_C(4096)

enum heap_fatal_where {
    /** In no block, and near none. */
    HEAP_FATAL_ELSEWHERE,
    HEAP_FATAL_IN_LIVE,
    /** In no live block; the block is the one released last of those that had the address. */
    HEAP_FATAL_IN_RELEASED,
    /** In no block that is known, and beside live ones: the neighbours. */
    HEAP_FATAL_NEAR
};

/** Fatal signals before the last one that are kept. */
#define HEAP_FATAL_EARLIER 15

/** The target of the fault address or of a register: a block, or none. */
struct heap_fatal_place {
    uint64_t address;
    /** The address is the value of a register, whose DWARF number follows; else the fault
     * address. */
    bool is_register;
    uint32_t number;
    enum heap_fatal_where where;
    uint64_t block_address;
    uint64_t block_size;
    struct heap_call allocated;
    struct heap_call released;
    struct heap_neighbours neighbours;
    /** False if something missing in the trace may be the cause. */
    bool is_certain;
};

struct heap_fatal {
    /** All zero without a signal: nothing was replayed. */
    struct heap_outcome outcome;
    /** Records of fatal signals in the trace. All but `earlier` is about the last. */
    uint64_t count;
    /** Those before the last one, without registers; of more than there is room for the newest. */
    struct ttd_fatal_signal earlier[HEAP_FATAL_EARLIER];
    size_t earlier_count;
    struct ttd_fatal_signal signal;
    struct ttd_register registers[TTD_REGISTERS_MAX];
    /** Its snapshot; number 0 if none was taken, or it was cut short. */
    struct ttd_snapshot snapshot;
    /** The fault address, if the signal has one, then the registers. */
    bool has_address;
    struct heap_fatal_place places[TTD_REGISTERS_MAX + 1];
    size_t place_count;
    /** For the caller: false if the trace is damaged, or the place of the fault address is
     * uncertain. */
    bool is_certain;
};

/** Whether a signal has a fault address, which may be 0. */
bool heap_fatal_has_address(const struct ttd_fatal_signal *signal);

/**
 * Finds the last fatal signal of a trace, and replays the trace to it.
 *
 * @param fatal  set on TTD_OK; owns nothing, and stays where it is
 * @return as heap_replay_to().
 */
enum ttd_status heap_fatal_find(const struct heap_trace *trace, struct heap_fatal *fatal,
                                struct ttd_error *error);

#endif
