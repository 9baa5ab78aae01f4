/* SPDX-License-Identifier: MIT */
/**
 * Snapshots of a process (spec, "Snapshots"): which words of its memory hold addresses of heap
 * memory, where these words lie, and what a person calls that place. Contents of memory are in
 * pages and memory maps, see <ttdtrace/heap_state.h>, with the number of the snapshot.
 *
 * A snapshot is as many parts as needed, all with its number, and then its ttd_snapshot. Parts that
 * no ttd_snapshot follows are of a snapshot that was cut short, and are not to be used: the first
 * part of a snapshot with a larger number shows it, or the end of the trace.
 */
#ifndef TTDTRACE_SNAPSHOT_H
#define TTDTRACE_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/ids.h>
#include <ttdtrace/position.h>

TTD_BEGIN_DECLS

/** The contents of a snapshot; bits. */
enum ttd_snapshot_contents {
    /** The blocks that are live at the position. Nothing is stored for it: events tell. */
    TTD_SNAPSHOT_BLOCKS = 1,
    /** Regions and references. */
    TTD_SNAPSHOT_REFERENCES = 2,
    /** Pages and memory maps. */
    TTD_SNAPSHOT_MEMORY = 4
};

/** Why a snapshot was taken. */
enum ttd_snapshot_reason {
    TTD_SNAPSHOT_UNKNOWN = 0,
    /** It was asked for from outside of the program. */
    TTD_SNAPSHOT_REQUESTED = 1,
    /** Snapshots are taken at intervals. */
    TTD_SNAPSHOT_INTERVAL = 2,
    /** The program asked for it. */
    TTD_SNAPSHOT_PROGRAM = 3,
    /** The program ends. */
    TTD_SNAPSHOT_EXIT = 4,
    /** The program dies of a signal. */
    TTD_SNAPSHOT_SIGNAL = 5
};

/** Flag of a snapshot: all threads were stopped meanwhile. Otherwise its parts may be from
 * different moments, and a word may be torn. */
#define TTD_SNAPSHOT_STOPPED 1u
/** Flag of a snapshot: something was left out. */
#define TTD_SNAPSHOT_INCOMPLETE 2u
/** Flag of a snapshot: memory was read from a copy of the process, which was made while the program
 * was held. */
#define TTD_SNAPSHOT_COPIED 4u

/** A snapshot, all parts of which come before it. */
struct ttd_snapshot {
    /** From 1, rising from snapshot to snapshot. */
    uint32_t number;
    struct ttd_position position;
    /** When it was begun, and for how long the program was held; in nanoseconds. */
    uint64_t wall_time;
    uint64_t duration;
    /** Sum of TTD_SNAPSHOT_BLOCKS, TTD_SNAPSHOT_REFERENCES and TTD_SNAPSHOT_MEMORY; not 0. */
    uint32_t contents;
    /** A ttd_snapshot_reason; another value, up to INT32_MAX, is an unknown one. */
    uint32_t reason;
    /** Sum of TTD_SNAPSHOT_STOPPED, TTD_SNAPSHOT_INCOMPLETE and TTD_SNAPSHOT_COPIED. */
    uint32_t flags;
    /** Bytes that were to be searched or stored and were not. */
    uint64_t missing;
    /** The thread that asked for it, ended or died; TTD_NONE if none or not known. */
    ttd_id thread;
    /** How many regions and references were written for it; the writer fills these in. If a reader
     * has found fewer, chunks of it were lost, and what is not referred to may be. */
    uint64_t regions;
    uint64_t references;
};

/** Kinds of regions. */
enum ttd_region_kind {
    /** Memory that holds blocks, or has held some; of an allocator that the recorder does not know,
     * all of the mapping. */
    TTD_REGION_HEAP = 1,
    /** Data of a module. */
    TTD_REGION_MODULE = 2,
    /** Stack of a thread, as far as it is in use. */
    TTD_REGION_STACK = 3,
    /** Registers of a thread: begins at 0; the offset of a register is 8 times its DWARF number. */
    TTD_REGION_REGISTERS = 4,
    /** Thread-local storage. */
    TTD_REGION_TLS = 5,
    /** Another anonymous private mapping. */
    TTD_REGION_ANONYMOUS = 6,
    /** A shared mapping, or a private one of a file. */
    TTD_REGION_FILE = 7
};

/** Memory that was searched for references. */
struct ttd_region {
    enum ttd_region_kind kind;
    uint64_t begin;
    /** In bytes, not 0. The last byte is below 2^64. */
    uint64_t size;
    /** The thread of a stack, registers or thread-local storage; else, or if unknown, TTD_NONE. */
    ttd_id thread;
    /** The module of data or thread-local storage; else, or if unknown, TTD_NONE. */
    ttd_id module;
    /** A string: the section, such as ".bss", or the mapping's name; or TTD_NONE. */
    ttd_id name;
};

/** Regions of a snapshot: those with the numbers `first`, `first` + 1, …; the first one of a
 * snapshot has number 1. */
struct ttd_regions {
    uint32_t snapshot;
    uint32_t first;
    const struct ttd_region *regions;
    size_t count;
};

/** A word that holds an address. */
struct ttd_reference {
    /** Number of the region in which the word lies. */
    uint32_t region;
    /** Offset of the word, in bytes from the begin of the region. It should lie in the region with
     * all its bytes; a file may say something else. */
    uint64_t offset;
    /** The word, not 0. */
    uint64_t value;
};

/** References of a snapshot, in the order of region and offset: no word is there twice. */
struct ttd_references {
    uint32_t snapshot;
    const struct ttd_reference *references;
    size_t count;
};

/** Set in offsets of thread-local variables, whose other bits count from the begin of the region of
 * a thread that has the module's variables. */
#define TTD_THREAD_LOCAL (UINT64_C(1) << 63)

/** The name of data of a module: `size` bytes, 0 if not known, at `offset` from the load bias, or
 * with TTD_THREAD_LOCAL. */
struct ttd_variable {
    ttd_id module;
    uint64_t offset;
    uint64_t size;
    /** A string, mangled as the module has it; of data in no variable a part of a section, such as
     * ".got+0x18". */
    ttd_id name;
};

/** The largest ttd_frames.count. */
#define TTD_FRAMES_MAX 4096

/**
 * The places of the frames of a thread's stack. `addresses` are the canonical frame addresses,
 * which are stack pointers before calls, innermost frame first: frame i lies from addresses[i - 1],
 * or for i = 0 from the stack pointer, up to addresses[i]. There may be fewer than the stack has
 * frames; those of the outermost are then not known.
 */
struct ttd_frames {
    uint32_t snapshot;
    ttd_id thread;
    ttd_id stack;
    const uint64_t *addresses;
    size_t count;
};

/** The class of the objects that begin with the address of this table of virtual functions. */
struct ttd_class {
    uint64_t address;
    /** A string: the name of the type as in its std::type_info, such as "6Server"; TTD_NONE if it
     * has none. */
    ttd_id name;
};

/** Classes of a snapshot. */
struct ttd_classes {
    uint32_t snapshot;
    const struct ttd_class *classes;
    size_t count;
};

/** The value of a register, by its DWARF number on the trace's architecture. */
struct ttd_register {
    uint32_t number;
    uint64_t value;
};

/** The largest ttd_fatal_signal.count. */
#define TTD_REGISTERS_MAX 64

/** The program died of a signal. */
struct ttd_fatal_signal {
    struct ttd_position position;
    /** In nanoseconds. */
    uint64_t wall_time;
    /** The thread that died, and where. */
    ttd_id thread;
    ttd_id stack;
    /** Number of the signal, from 1 to INT32_MAX, and its si_code, as the system counts them. */
    uint32_t signal;
    int64_t code;
    /** The address at fault, if the signal has one; else 0. */
    uint64_t address;
    /** Number of the snapshot that was taken then; 0 if none was. It may have been cut short. */
    uint32_t snapshot;
    const struct ttd_register *registers;
    size_t count;
};

TTD_END_DECLS

#endif
