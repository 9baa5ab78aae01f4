/* SPDX-License-Identifier: MIT */
/**
 * Snapshots of a process (spec, "Snapshots"): the words of its memory that hold addresses of heap
 * memory, the regions of these words, the names of those regions, and the sizes that an allocator
 * keeps in front of its blocks. Contents of memory are in pages and in memory maps with the number
 * of the snapshot: see <ttdtrace/heap_state.h>.
 *
 * A trace is a file with all calls that allocate and release memory in one process. A snapshot adds
 * which memory pointed at which blocks at some moment, such as the end of the program: from it
 * follows which blocks were lost.
 *
 *     struct ttd_input input;
 *     struct ttd_reader *reader;
 *     struct ttd_batch batch;
 *     if (ttd_input_file("trace.bin", NULL, &input, NULL) != TTD_OK ||
 *         ttd_reader_open(&input, NULL, NULL, &reader, NULL) != TTD_OK)
 *         return 1;
 *     while (ttd_reader_next(reader, &batch, NULL) == TTD_OK)
 *         for (size_t i = 0; batch.kind == TTD_KIND_SNAPSHOTS && i < batch.count; i++)
 *             printf("snapshot %u: %llu pointers\n", (unsigned)batch.u.snapshots[i].number,
 *                    (unsigned long long)batch.u.snapshots[i].references);
 *     ttd_reader_close(reader);
 *
 * A snapshot consists of any number of parts, all with its number, and then of its ttd_snapshot.
 * Ignore the parts of a snapshot that was cut short: it has no ttd_snapshot: a part with a larger
 * number follows them, or the end of the trace.
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
    /** The blocks that are live at the position. They are computed from events and not stored. */
    TTD_SNAPSHOT_BLOCKS = 1,
    /** Regions and references. */
    TTD_SNAPSHOT_REFERENCES = 2,
    /** Pages and memory maps. */
    TTD_SNAPSHOT_MEMORY = 4
};

/** Why a snapshot was taken. */
enum ttd_snapshot_reason {
    TTD_SNAPSHOT_UNKNOWN = 0,
    /** It was requested from outside the program. */
    TTD_SNAPSHOT_REQUESTED = 1,
    /** It is one of those taken at intervals. */
    TTD_SNAPSHOT_INTERVAL = 2,
    /** The program requested it. */
    TTD_SNAPSHOT_PROGRAM = 3,
    /** The program ends. */
    TTD_SNAPSHOT_EXIT = 4,
    /** The program dies of a signal. */
    TTD_SNAPSHOT_SIGNAL = 5
};

/** Flag of a snapshot: all threads were stopped while it was taken. Without it, parts may be from
 * different moments, and words may be torn. */
#define TTD_SNAPSHOT_STOPPED 1u
/** Flag of a snapshot: something was left out. */
#define TTD_SNAPSHOT_INCOMPLETE 2u
/** Flag of a snapshot: memory was read from a copy of the process, made while its threads were
 * stopped. */
#define TTD_SNAPSHOT_COPIED 4u

/** A snapshot. It follows all of its parts. */
struct ttd_snapshot {
    /** Number of the snapshot, from 1; each is greater than the one before. */
    uint32_t number;
    struct ttd_position position;
    /** Nanoseconds from the start of the recording to the start of the snapshot. */
    uint64_t wall_time;
    /** Nanoseconds that the program was stopped. */
    uint64_t duration;
    /** Sum of TTD_SNAPSHOT_BLOCKS, TTD_SNAPSHOT_REFERENCES and TTD_SNAPSHOT_MEMORY; not 0. */
    uint32_t contents;
    /** A ttd_snapshot_reason, or an unknown value of at most INT32_MAX. */
    uint32_t reason;
    /** Sum of TTD_SNAPSHOT_STOPPED, TTD_SNAPSHOT_INCOMPLETE and TTD_SNAPSHOT_COPIED. */
    uint32_t flags;
    /** Bytes that should have been searched or stored and were left out. */
    uint64_t missing;
    /** The thread that requested it, ended the program or died; TTD_NONE if none or not known. */
    ttd_id thread;
    /** Numbers of regions and references written; the writer fills them in. A reader that found
     * fewer has lost chunks: blocks without a reference may have had one there. */
    uint64_t regions;
    uint64_t references;
};

/** Kinds of regions. */
enum ttd_region_kind {
    /** Memory that holds or has held blocks; the whole mapping if the recorder does not know the
     * allocator. */
    TTD_REGION_HEAP = 1,
    /** Data of a module. */
    TTD_REGION_MODULE = 2,
    /** The part of a thread's stack that is in use. */
    TTD_REGION_STACK = 3,
    /** Registers of a thread. `begin` is 0; the offset of a register is 8 times its DWARF number.
     */
    TTD_REGION_REGISTERS = 4,
    /** Thread-local storage. */
    TTD_REGION_TLS = 5,
    /** Any other anonymous private mapping. */
    TTD_REGION_ANONYMOUS = 6,
    /** A shared mapping, or a private one of a file. */
    TTD_REGION_FILE = 7
};

/** Memory that was searched for references. */
struct ttd_region {
    enum ttd_region_kind kind;
    uint64_t begin;
    /** Size in bytes, not 0; `begin + size` is at most 2^64. */
    uint64_t size;
    /** The owner of a stack, registers or thread-local storage; TTD_NONE otherwise or if unknown.
     */
    ttd_id thread;
    /** The module of data or thread-local storage. Of a heap, the module of its allocator, if the
     * recorder knows by its structures that all of the region is that allocator's. TTD_NONE
     * otherwise or if unknown. */
    ttd_id module;
    /** A string: name of the section, such as ".bss", or of the mapping; or TTD_NONE. */
    ttd_id name;
};

/** Regions of a snapshot, with the numbers `first`, `first` + 1, … Numbers begin with 1 in each
 * snapshot. */
struct ttd_regions {
    uint32_t snapshot;
    uint32_t first;
    const struct ttd_region *regions;
    size_t count;
};

/** A word of memory that holds an address. */
struct ttd_reference {
    /** Number of the word's region. */
    uint32_t region;
    /** Offset of the word in bytes from the begin of the region. Not validated: the word may extend
     * beyond the region in a hostile file. */
    uint64_t offset;
    /** The word, not 0. */
    uint64_t value;
};

/** References of a snapshot, sorted by region and offset; no word appears twice. */
struct ttd_references {
    uint32_t snapshot;
    const struct ttd_reference *references;
    size_t count;
};

/** Bit set in offsets of thread-local variables. Their other bits are the offset from the begin of
 * the region that holds the module's variables of a thread. */
#define TTD_THREAD_LOCAL (UINT64_C(1) << 63)

/** The name of a variable of a module: `size` bytes, 0 if not known, at `offset` from the load bias
 * or, with TTD_THREAD_LOCAL, in thread-local storage. */
struct ttd_variable {
    ttd_id module;
    uint64_t offset;
    uint64_t size;
    /** A string: the name as the module has it, mangled; for data outside any variable a part of a
     * section, such as ".got+0x18". */
    ttd_id name;
};

/** The largest ttd_frames.count. */
#define TTD_FRAMES_MAX 4096

/**
 * Addresses of the frames of a thread's stack. `addresses` holds canonical frame addresses, the
 * stack pointers before each call, innermost frame first: frame i extends from addresses[i - 1], or
 * for i = 0 from the stack pointer, up to addresses[i]. If there are fewer than the stack has
 * frames, the outermost ones are not known.
 */
struct ttd_frames {
    uint32_t snapshot;
    ttd_id thread;
    ttd_id stack;
    const uint64_t *addresses;
    size_t count;
};

/** The class whose objects begin with the address of this vtable. */
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

/** Flag of block headers: the last of them is wrong, as the allocator's own structures show. */
#define TTD_HEADERS_BROKEN 1u
/** Flag of block headers, beside TTD_HEADERS_BROKEN: the allocator may have derived the last header
 * from another one that is wrong, or was. */
#define TTD_HEADERS_DERIVED 4u
/** Flag of block headers: a thread may have been changing them. */
#define TTD_HEADERS_BUSY 2u

/**
 * Words that an allocator keeps in front of its blocks, live ones and others: the size of the
 * block's memory, a multiple of 16, plus flags below 16. The first header lies at `begin`; each
 * other one as far behind the one before it as that one's size.
 */
struct ttd_block_headers {
    uint32_t snapshot;
    /** Sum of TTD_HEADERS_BROKEN, TTD_HEADERS_DERIVED and TTD_HEADERS_BUSY. */
    uint32_t flags;
    uint64_t begin;
    const uint64_t *headers;
    size_t count;
};

/** The size in a header of a block: the distance to the next header. */
#define TTD_BLOCK_HEADER_SIZE(header) ((header) & ~UINT64_C(15))

/** The value of a register, by its DWARF number on the trace's architecture. */
struct ttd_register {
    uint32_t number;
    uint64_t value;
};

/** The largest ttd_fatal_signal.count. */
#define TTD_REGISTERS_MAX 64

/** The signal that killed the program. */
struct ttd_fatal_signal {
    struct ttd_position position;
    /** Nanoseconds since the start of the recording. */
    uint64_t wall_time;
    /** The thread that received the signal, and its stack. */
    ttd_id thread;
    ttd_id stack;
    /** Number of the signal, from 1 to INT32_MAX, and its si_code, as the system counts them. */
    uint32_t signal;
    int64_t code;
    /** The fault address, if the signal has one; otherwise 0. */
    uint64_t address;
    /** Number of the snapshot taken at that moment; 0 if none. It may have been cut short. */
    uint32_t snapshot;
    const struct ttd_register *registers;
    size_t count;
};

TTD_END_DECLS

#endif
