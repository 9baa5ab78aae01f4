/* SPDX-License-Identifier: MIT */
/**
 * The trace as a whole: its beginning and end, facts about the recording, losses and user events.
 *
 * A trace is a file with all calls that allocate and release memory in one process. How a program
 * ended:
 *
 *     struct ttd_input input;
 *     struct ttd_reader *reader;
 *     struct ttd_end end;
 *     if (ttd_input_file("trace.bin", NULL, &input, NULL) != TTD_OK ||
 *         ttd_reader_open(&input, NULL, NULL, &reader, NULL) != TTD_OK)
 *         return 1;
 *     if (ttd_reader_end(reader, &end) == TTD_OK && end.reason == TTD_END_REASON_EXITED)
 *         printf("exited with status %u\n", (unsigned)end.code);
 *     ttd_reader_close(reader);
 */
#ifndef TTDTRACE_TRACE_H
#define TTDTRACE_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/definitions.h>
#include <ttdtrace/ids.h>
#include <ttdtrace/position.h>

TTD_BEGIN_DECLS

/** A group id, shared by all traces that were recorded together. */
struct ttd_group {
    uint8_t bytes[16];
};

/** Flags of a trace. */
#define TTD_TRACE_DERIVED   1u /**< computed from another trace: a sidecar index */
#define TTD_TRACE_INHERITS  2u /**< the process began with its parent's live blocks */
#define TTD_TRACE_RECOVERED 4u /**< written by recover from a damaged file */
#define TTD_TRACE_ATTACHED  8u /**< the process had run before recording began */

/** Architectures of recorded processes. */
enum ttd_architecture {
    TTD_ARCH_UNKNOWN = 0,
    TTD_ARCH_X86_64 = 1,
    TTD_ARCH_AARCH64 = 2,
    TTD_ARCH_X86 = 3,
    TTD_ARCH_ARM = 4,
    TTD_ARCH_RISCV64 = 5
};

/** Properties of the whole trace, from its first chunk. */
struct ttd_trace {
    /** Random and non-zero; ties all chunks together. */
    uint64_t trace_id;
    struct ttd_group group;
    /** trace_id of the parent process's trace in the same group, or 0. */
    uint64_t parent_trace_id;
    /** Position in that trace where the process began; invalid if not known. */
    struct ttd_position parent_position;
    /** Wall clock at wall_time 0: nanoseconds since 1970-01-01T00:00:00Z. */
    int64_t start_time;
    /** Resolution of all wall_times, in nanoseconds. 0 if not known because the first chunk was
     * lost; wall_times of events are then 0 as well. */
    uint64_t time_unit;
    uint64_t process_id;
    uint64_t parent_process_id;
    uint32_t flags;
    uint32_t architecture;
    /** Bytes in a pointer of the process: 4 or 8. Mandatory: a writer refuses 0. */
    uint32_t pointer_size;
    /** Derived files: trace_id of the source, its size in bytes, and the header hash of its End
     * chunk. */
    uint64_t source_trace_id;
    uint64_t source_size;
    uint64_t source_hash;
};

/** How a recording ended. */
enum ttd_end_reason {
    TTD_END_REASON_UNKNOWN = 0,
    /** The process exited; `code` is its exit status. */
    TTD_END_REASON_EXITED = 1,
    /** The process was killed; `code` is the signal. */
    TTD_END_REASON_SIGNALED = 2,
    /** The recorder detached; the process went on. */
    TTD_END_REASON_DETACHED = 3,
    /** The file was recovered or derived; the end of the process is not known. */
    TTD_END_REASON_NOT_RECORDED = 4
};

/** End of the recording, and totals, from the last chunk. */
struct ttd_end {
    enum ttd_end_reason reason;
    uint32_t code;
    /** Duration of the recording in nanoseconds. */
    uint64_t wall_time;
    /** Totals. The writer fills them in; readers compare them with their own. */
    uint64_t events;
    uint64_t lost_events;
    uint64_t chunks;
    /** Offset of the last index chunk, or 0 if none. */
    uint64_t index_offset;
};

/** A fact about the recording, such as "command" or "host". Keys: spec, "Metadata". */
struct ttd_metadata {
    struct ttd_string key;
    struct ttd_string value;
};

/** Why events are missing. */
enum ttd_loss_reason {
    TTD_LOSS_UNKNOWN = 0,
    /** The recorder's buffers were full. */
    TTD_LOSS_OVERFLOW = 1,
    /** A call from a signal handler that interrupted the recorder. */
    TTD_LOSS_REENTRANT = 2,
    /** Recording was off, for example before the recorder attached, or the program made calls that
     * the recorder does not see. */
    TTD_LOSS_NOT_RECORDING = 3,
    /** A part of the file is damaged or missing. Readers synthesise such a record for each gap. */
    TTD_LOSS_DAMAGE = 4,
    /** The recorder could not put the event in order. */
    TTD_LOSS_LATE = 5,
    /** Left out to bound the trace: it was full, or was to have no older events. */
    TTD_LOSS_LIMIT = 6
};

/** Events are missing between two positions. */
struct ttd_loss {
    enum ttd_loss_reason reason;
    /** The thread whose events are missing; TTD_NONE for any thread. */
    ttd_id thread;
    /** Number of missing events, or TTD_UNKNOWN. */
    uint64_t count;
    /** The trace is complete up to last_good and again from first_good on. last_good is not after
     * first_good; first_good is invalid if nothing complete follows. */
    struct ttd_position last_good;
    struct ttd_position first_good;
};

/** An event that the recorded program added to the trace. */
struct ttd_user_event {
    /** GUID of the client, chosen at random by its author (spec, "User events"). */
    uint8_t client[16];
    struct ttd_position position;
    uint64_t wall_time;
    /** TTD_NONE for a global event. */
    ttd_id thread;
    uint32_t flags;
    const uint8_t *data;
    size_t size;
};

/** Flag of a user event: asks for a keyframe at its position. */
#define TTD_USER_EVENT_KEYFRAME 1u

/** Clients whose events the format defines, 16 bytes each with the NUL (spec, "User events"): the
 * opening and closing of the program's clients, changes in the recording of a thread, text from
 * outside the program, and samples of the memory of the process. */
#define TTD_CLIENT_CLIENTS "ttdtrace.client"
#define TTD_CLIENT_THREADS "ttdtrace.thread"
#define TTD_CLIENT_MARKS   "ttdtrace.mark\0\0"
#define TTD_CLIENT_MEMORY  "ttdtrace.memory"

/** Kinds of events of TTD_CLIENT_CLIENTS. */
enum ttd_client_event { TTD_CLIENT_OPENED = 1, TTD_CLIENT_CLOSED = 2 };

/** Recording state of a thread. */
enum ttd_island_state {
    TTD_ISLAND_NOT_STARTED = 0,
    TTD_ISLAND_RECORDING = 1,
    TTD_ISLAND_PAUSED = 2,
    TTD_ISLAND_THROTTLED = 3
};

/** Number of 64-bit fields that precede the user data in events of TTD_CLIENT_CLIENTS and of
 * TTD_CLIENT_THREADS. */
#define TTD_CLIENT_EVENT_FIELDS 3
#define TTD_THREAD_EVENT_FIELDS 7

/** The 64-bit fields that events of TTD_CLIENT_MEMORY consist of: resident bytes, the bytes of all
 * mappings, and the most bytes that were resident so far. */
enum ttd_memory_field { TTD_MEMORY_RESIDENT, TTD_MEMORY_MAPPED, TTD_MEMORY_MOST_RESIDENT };
#define TTD_MEMORY_EVENT_FIELDS 3

/** Kinds of events of TTD_CLIENT_THREADS. */
enum ttd_thread_event {
    /** An island begins. */
    TTD_THREAD_STARTED = 1,
    /** The program ended the island. */
    TTD_THREAD_STOPPED = 2,
    /** The island reached its throttle; recording is off until the throttle is reset. */
    TTD_THREAD_THROTTLED = 3,
    /** Recording is paused; an event without a thread pauses all of them. */
    TTD_THREAD_PAUSED = 4,
    TTD_THREAD_RESUMED = 5,
    /** The throttle was reset: it counts from 0 again. */
    TTD_THREAD_RESET = 6
};

/** Payload codecs (spec, "Payload"). */
enum ttd_codec { TTD_CODEC_RAW = 0, TTD_CODEC_LZ4 = 1, TTD_CODEC_ZSTD = 2 };

TTD_END_DECLS

#endif
