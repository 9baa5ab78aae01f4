/* SPDX-License-Identifier: MIT */
/**
 * The signal that the program died of, and the blocks that its fault address and the registers of
 * the thread that died point at.
 */
#ifndef ANALYZER_ANALYSES_ERRORS_FATAL_H
#define ANALYZER_ANALYSES_ERRORS_FATAL_H

#include <ttdtrace/snapshot.h>

#include "analyses/state/state.h"
#include "travel/replay_to.h"

/** Distance in bytes up to which a block is near a fault address, or near the value of a register.
 */
#define HEAP_FATAL_NEAR_ADDRESS  (UINT64_C(1) << 20)
#define HEAP_FATAL_NEAR_REGISTER UINT64_C(4096)

/** Location of an address relative to blocks. */
enum heap_fatal_where {
    /** In no block, and near none. */
    HEAP_FATAL_ELSEWHERE,
    HEAP_FATAL_IN_LIVE,
    /** In no live block, but in released ones; the one released last is named. */
    HEAP_FATAL_IN_RELEASED,
    /** In no known block, but near live ones: the neighbours. */
    HEAP_FATAL_NEAR
};

/** Limit on the fatal signals before the last one that are kept. */
#define HEAP_FATAL_EARLIER 15

/** The fault address or the value of a register, and the block that it points at. */
struct heap_fatal_pointer {
    uint64_t address;
    /** The address is the value of the register with this DWARF number; otherwise it is the fault
     * address. */
    bool is_register;
    uint32_t number;
    enum heap_fatal_where where;
    /** The block, for HEAP_FATAL_IN_LIVE and HEAP_FATAL_IN_RELEASED. */
    uint64_t block_address;
    uint64_t block_size;
    struct heap_call allocated;
    struct heap_call released;
    struct heap_neighbours neighbours;
    /** False if events that are missing in the trace may have changed the answer. */
    bool is_certain;
};

/** The last fatal signal of a trace; signals that ask the program to end are left out. */
struct heap_fatal {
    /** All zero if there is no fatal signal, since then nothing is replayed. */
    struct heap_outcome outcome;
    /** Number of fatal signals in the trace. */
    uint64_t count;
    /** The fatal signals before the last one, without registers; if there are too many, the newest
     * of them. */
    struct ttd_fatal_signal earlier[HEAP_FATAL_EARLIER];
    size_t earlier_count;
    /** If only the end of the trace has it: its number, at an invalid position. */
    struct ttd_fatal_signal signal;
    struct ttd_register registers[TTD_REGISTERS_MAX];
    /** The snapshot taken at the signal; number 0 if there is none or it was cut short. */
    struct ttd_snapshot snapshot;
    /** `pointers` begins with the fault address; the registers follow. */
    bool has_address;
    struct heap_fatal_pointer pointers[TTD_REGISTERS_MAX + 1];
    size_t pointer_count;
    /** Set by the caller: false if the trace is damaged, or the target of the fault address is
     * uncertain. */
    bool is_certain;
};

/** Whether a signal, by its number, shows a mistake of the program: SIGSEGV and its like. Any
 * other one asks the program to end. */
bool heap_fatal_is_fault(uint32_t signal);

/** Whether a signal has a fault address. The address may be 0. */
bool heap_fatal_has_address(const struct ttd_fatal_signal *signal);

/** The cause of a fatal signal, by its address and registers. */
enum heap_fatal_cause {
    HEAP_FATAL_UNKNOWN_CAUSE,
    /** A jump to an address that holds no code, such as the call of a null pointer. */
    HEAP_FATAL_JUMP,
    /** The thread has used up its stack. */
    HEAP_FATAL_OVERFLOW
};

/** Judges the cause. `regions` belong to a snapshot taken at the signal. */
enum heap_fatal_cause heap_fatal_cause(const struct heap_fatal *fatal,
                                       const struct ttd_region *regions, size_t region_count);

/**
 * Finds the last fatal signal of a trace, and replays the trace to it.
 *
 * @param fatal  set on TTD_OK; owns nothing, and must not be moved
 * @return as heap_replay_to().
 */
enum ttd_status heap_fatal_find(const struct heap_trace *trace, struct heap_fatal *fatal,
                                struct ttd_error *error);

#endif
