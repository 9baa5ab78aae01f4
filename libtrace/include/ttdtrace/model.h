/* SPDX-License-Identifier: MIT */
/** What a trace records: heap events and all that they refer to (spec, "Model"). */
#ifndef TTDTRACE_MODEL_H
#define TTDTRACE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/position.h>

TTD_BEGIN_DECLS

/**
 * Identifiers of strings, modules, stacks, threads and heaps: dense, in order of definition,
 * counted from 1. TTD_NONE means none. An identifier never changes its meaning.
 */
typedef uint32_t ttd_id;
#define TTD_NONE ((ttd_id)0)

/** Payload codecs (spec, "Payload"). */
enum ttd_codec { TTD_CODEC_RAW = 0, TTD_CODEC_LZ4 = 1, TTD_CODEC_ZSTD = 2 };

/** A count that is not known. */
#define TTD_UNKNOWN UINT64_MAX

/** What a heap call does. Values are those of the format. */
enum ttd_action {
    TTD_ACTION_ALLOC = 1,
    TTD_ACTION_REALLOC = 2,
    TTD_ACTION_FREE = 3,
    TTD_ACTION_CREATE = 4,
    TTD_ACTION_PROTECT = 5,
    TTD_ACTION_LOCK = 6,
    TTD_ACTION_UNLOCK = 7,
    TTD_ACTION_DESTROY = 8
};

/** The function that was called. Values are those of the format (spec, "APIs"). */
typedef enum ttd_api {
    TTD_API_OTHER = 0,
    TTD_API_MALLOC = 1,
    TTD_API_CALLOC = 2,
    TTD_API_REALLOC = 3,
    TTD_API_REALLOCARRAY = 4,
    TTD_API_FREE = 5,
    TTD_API_CFREE = 6,
    TTD_API_MEMALIGN = 7,
    TTD_API_POSIX_MEMALIGN = 8,
    TTD_API_ALIGNED_ALLOC = 9,
    TTD_API_VALLOC = 10,
    TTD_API_PVALLOC = 11,
    TTD_API_FREE_SIZED = 12,
    TTD_API_FREE_ALIGNED_SIZED = 13,
    /* C++: plain, array, aligned and nothrow forms; deletes also sized. */
    TTD_API_NEW = 16,
    TTD_API_NEW_NOTHROW = 17,
    TTD_API_NEW_ALIGNED = 18,
    TTD_API_NEW_ALIGNED_NOTHROW = 19,
    TTD_API_NEW_ARRAY = 20,
    TTD_API_NEW_ARRAY_NOTHROW = 21,
    TTD_API_NEW_ARRAY_ALIGNED = 22,
    TTD_API_NEW_ARRAY_ALIGNED_NOTHROW = 23,
    TTD_API_DELETE = 24,
    TTD_API_DELETE_NOTHROW = 25,
    TTD_API_DELETE_SIZED = 26,
    TTD_API_DELETE_ALIGNED = 27,
    TTD_API_DELETE_ALIGNED_NOTHROW = 28,
    TTD_API_DELETE_SIZED_ALIGNED = 29,
    TTD_API_DELETE_ARRAY = 30,
    TTD_API_DELETE_ARRAY_NOTHROW = 31,
    TTD_API_DELETE_ARRAY_SIZED = 32,
    TTD_API_DELETE_ARRAY_ALIGNED = 33,
    TTD_API_DELETE_ARRAY_ALIGNED_NOTHROW = 34,
    TTD_API_DELETE_ARRAY_SIZED_ALIGNED = 35,
    /* Windows. */
    TTD_API_HEAP_ALLOC = 48,
    TTD_API_HEAP_REALLOC = 49,
    TTD_API_HEAP_FREE = 50,
    TTD_API_HEAP_CREATE = 51,
    TTD_API_HEAP_PROTECT = 52,
    TTD_API_HEAP_LOCK = 53,
    TTD_API_HEAP_UNLOCK = 54,
    TTD_API_HEAP_DESTROY = 55,
    /** One more than the largest value known. Unknown values are allowed and kept. */
    TTD_API_COUNT = 56
} ttd_api_function;

/** Name of an action as the reference spells it, such as "ReAlloc"; "?" if unknown. Static. */
TTD_EXPORT const char *ttd_action_name(enum ttd_action action);

/** Name of a function as C or C++ spells it, such as "operator new[]"; "?" if unknown. Static. */
TTD_EXPORT const char *ttd_api_name(unsigned api);

/** Raw arguments that an event can have at most. */
#define TTD_PARAMETERS_MAX 8

/**
 * One heap call. Events are ordered by *effect position*: time_end for Alloc and Create, time_start
 * for every other action; effect positions never decrease. A ReAlloc releases its old block at
 * time_start and acquires the new one at time_end.
 */
struct ttd_event {
    /** Ordinal in the trace, from 0, in order of effect position. Set by the reader. */
    uint64_t number;
    struct ttd_position time_start;
    /** Invalid when the call never returned. */
    struct ttd_position time_end;
    /** Nanoseconds since the trace's start_time, as far as its time_unit resolves; 0 if that is 0.
     */
    uint64_t wall_time;
    ttd_id thread;
    ttd_id stack;
    /**
     * Set by the reader: ordinals of address and base_address among those that the event's chunk
     * spells out, from 0; without meaning where the address is 0. Within a chunk equal ordinals
     * mean equal addresses, so that who follows blocks need not look most of them up: see
     * ttd_batch.addresses. The same address may have several.
     */
    uint32_t address_ordinal;
    uint32_t base_ordinal;
    /** Alloc, ReAlloc: the address returned; 0 if none. Otherwise 0. */
    uint64_t address;
    /** ReAlloc: the address before; equal to base_address. Otherwise 0. */
    uint64_t previous_address;
    /** Free, ReAlloc: the address given to the call. Otherwise 0. */
    uint64_t base_address;
    /** Alloc, ReAlloc: bytes requested. Sized Free: the size given. Otherwise 0. */
    uint64_t size;
    /**
     * Raw arguments as the program passed them, `parameter_count` of them; NULL with a count of 0
     * if they are not recorded. They come back from a reader as they were written. For an API whose
     * template consists of other properties (spec, "APIs") they need not be recorded:
     * ttd_event_parameters() gives them all the same. What a template gives costs no space. Of an
     * event from a reader, and of copies of it, they are valid as long as its batch.
     */
    const uint64_t *parameters;
    /** Flags as the API defines them. */
    uint64_t flags;
    /** Non-zero is success, zero is failure. 0 as well when the call never returned. */
    uint64_t result;
    /** Create: bytes to reserve, and to commit at once. Otherwise 0. */
    uint64_t reserve_size;
    uint64_t commit_size;
    /** Protect: non-zero makes the heap read-only, zero read-write. */
    uint64_t make_read_only;
    uint32_t parameter_count;
    ttd_id heap;
    /** A ttd_action. */
    uint8_t action;
    /** A ttd_api_function, or a value unknown to this library. */
    uint8_t api;
};

/** Whether the call returned. */
static inline bool ttd_event_returned(const struct ttd_event *event)
{
    return ttd_position_is_valid(event->time_end);
}

/** Where the event stands in the order of the trace; see ttd_event. */
static inline struct ttd_position ttd_event_position(const struct ttd_event *event)
{
    bool acquires = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_CREATE;
    return acquires && ttd_event_returned(event) ? event->time_end : event->time_start;
}

/**
 * The raw arguments of an event, recorded or by its API's template, in order.
 *
 * @return how many there are, at most TTD_PARAMETERS_MAX; 0 if they are not known. Thread-safe.
 */
TTD_EXPORT size_t ttd_event_parameters(const struct ttd_event *event,
                                       uint64_t parameters[TTD_PARAMETERS_MAX]);

/** A string of `size` bytes, not NUL-terminated, of any content: escape it before display. */
struct ttd_string {
    const char *data;
    size_t size;
};

/** Definition of a string. */
struct ttd_string_definition {
    ttd_id id;
    struct ttd_string text;
};

/**
 * A call stack: a frame and the stack it was called from. The frame is an address relative to a
 * module's load bias, or an absolute one when module is TTD_NONE. It is a *return* address: look
 * up names at offset - 1.
 */
struct ttd_stack {
    ttd_id id;
    /** The caller's stack, smaller than id; TTD_NONE for an outermost frame. */
    ttd_id parent;
    ttd_id module;
    uint64_t offset;
};

/** Longest build-id that is kept, in bytes. */
#define TTD_BUILD_ID_MAX 64

/** What a module record says. */
enum ttd_module_action { TTD_MODULE_LOAD = 1, TTD_MODULE_UNLOAD = 2 };

/** A module was loaded (this defines its id, never used again for another load), or unloaded. */
struct ttd_module {
    enum ttd_module_action action;
    ttd_id id;
    struct ttd_position position;
    /* The rest only for a load. */
    ttd_id path;
    /** Load bias: run-time address minus address in the file; and the range it occupies. */
    uint64_t bias;
    uint64_t begin;
    uint64_t end;
    uint8_t build_id[TTD_BUILD_ID_MAX];
    uint32_t build_id_size;
};

/** What a thread record says. */
enum ttd_thread_action { TTD_THREAD_BEGIN = 1, TTD_THREAD_END = 2 };

/** A thread was first seen (this defines its id), or ended. */
struct ttd_thread {
    enum ttd_thread_action action;
    ttd_id id;
    struct ttd_position position;
    /** The operating system's id, which may be used again. Begin only. */
    uint64_t os_id;
    /** A string, or TTD_NONE. An end may tell a name that was given later. */
    ttd_id name;
};

/** A heap: what `heap` of an event refers to. */
struct ttd_heap {
    ttd_id id;
    /** The handle as the program sees it; 0 for the C library's. */
    uint64_t handle;
    /** A string, such as "malloc". */
    ttd_id name;
};

/** A source place; frames of one address are listed innermost first, inlined ones before. */
struct ttd_symbol_frame {
    /** Mangled name as the module has it; a string or TTD_NONE. */
    ttd_id function;
    ttd_id file;
    /** From 1; 0 if unknown. */
    uint32_t line;
};

/** Names for one address. */
struct ttd_symbol {
    ttd_id module;
    /** As in ttd_stack: a return address; the names are those of offset - 1. */
    uint64_t offset;
    const struct ttd_symbol_frame *frames;
    uint32_t frame_count;
};

/** Why events are missing. */
enum ttd_loss_reason {
    TTD_LOSS_UNKNOWN = 0,
    /** The recorder's buffers were full. */
    TTD_LOSS_OVERFLOW = 1,
    /** A call from a signal handler that interrupted the recorder. */
    TTD_LOSS_REENTRANT = 2,
    /** Recording was off, such as before attaching, or calls are made that the recorder does not
       see. */
    TTD_LOSS_NOT_RECORDING = 3,
    /** A part of the file is damaged or missing. Readers make such a record up for a gap. */
    TTD_LOSS_DAMAGE = 4,
    /** The recorder could not put the event in order. */
    TTD_LOSS_LATE = 5
};

/** Events are missing between two positions. */
struct ttd_loss {
    enum ttd_loss_reason reason;
    /** TTD_NONE if of any thread. */
    ttd_id thread;
    /** Events lost, or TTD_UNKNOWN. */
    uint64_t count;
    /** Last position before and first after the gap at which the trace is complete: last_good is
     * not after first_good, which is invalid if there is none. */
    struct ttd_position last_good;
    struct ttd_position first_good;
};

/** Something that the program itself wanted in the trace. */
struct ttd_user_event {
    /** A GUID that the client's author has made at random (spec, "User events"). */
    uint8_t client[16];
    struct ttd_position position;
    uint64_t wall_time;
    /** TTD_NONE for a global event. */
    ttd_id thread;
    uint32_t flags;
    const uint8_t *data;
    size_t size;
};

/** A user event that asks for a keyframe at its position. */
#define TTD_USER_EVENT_KEYFRAME 1u

/** What a list of blocks is. */
enum ttd_block_list {
    /** All blocks live at the position, computed from events; only in derived files. */
    TTD_BLOCKS_KEYFRAME = 1,
    /** All blocks live at the position, as the recorder saw them. */
    TTD_BLOCKS_SNAPSHOT = 2,
    /**
     * Blocks that the C and C++ runtimes keep for themselves and would release if asked to, at
     * the end of the program: not leaks of the program.
     */
    TTD_BLOCKS_RUNTIME = 3
};

/** One block of a list. */
struct ttd_block {
    uint64_t address;
    uint64_t size;
    /** Number of the event that allocated it, or TTD_UNKNOWN. */
    uint64_t event;
    /** When it was acquired: time_end of that event. */
    struct ttd_position allocated;
    ttd_id thread;
    ttd_id heap;
    ttd_id stack;
    uint8_t api;
};

/** Blocks of one chunk of a list; a list is as many chunks as needed, `last` on the last one. */
struct ttd_live_blocks {
    enum ttd_block_list list;
    /** Number of the list within its file, from 1; not 0. */
    uint32_t list_id;
    bool last;
    struct ttd_position position;
    const struct ttd_block *blocks;
    size_t count;
};

/** Pages of memory content: `count` pages with the ids first_page, first_page + 1, …; the first of
 * a trace is TTD_PAGE_FIRST. */
struct ttd_pages {
    uint64_t first_page;
    /** A power of two from 512 to 65536. */
    uint32_t page_size;
    uint32_t count;
    const uint8_t *data;
};

/** Page ids of runs whose content is not in the trace. Others are those of ttd_pages, plus these.
 */
#define TTD_PAGE_ZERO         0u
#define TTD_PAGE_UNREADABLE   1u
#define TTD_PAGE_NOT_CAPTURED 2u
#define TTD_PAGE_FIRST        3u

/** Protection bits of a run. */
#define TTD_MEMORY_READ    1u
#define TTD_MEMORY_WRITE   2u
#define TTD_MEMORY_EXECUTE 4u
#define TTD_MEMORY_SHARED  8u

/** `page_count` pages from `address` on. */
struct ttd_memory_run {
    uint64_t address;
    uint64_t page_count;
    uint32_t protection;
    /** First page id; a stored run has consecutive ids, a reserved id holds for all its pages. */
    uint64_t page;
};

/** Memory of the process at a position. */
struct ttd_memory_map {
    /** Number of the snapshot, from 1; not 0. */
    uint32_t snapshot;
    bool last;
    struct ttd_position position;
    uint32_t page_size;
    const struct ttd_memory_run *runs;
    size_t count;
};

/** A fact about the recording, such as "command" or "host". Keys: spec, "Metadata". */
struct ttd_metadata {
    struct ttd_string key;
    struct ttd_string value;
};

/** Forms of a state of the heap. */
enum ttd_state_form {
    /** A list of all live blocks follows. */
    TTD_STATE_KEYFRAME = 1,
    /** Sums follow, and a list of those blocks that are not in them. */
    TTD_STATE_SUMMARY = 2,
    /** The first state with the largest number of live bytes. */
    TTD_STATE_PEAK = 3
};

/** Number of counts by action: from 0, unknown, to TTD_ACTION_DESTROY. */
#define TTD_STATE_ACTIONS 9

/** A state of the heap of another trace, in a derived file (spec, "States"). */
struct ttd_state {
    enum ttd_state_form form;
    struct ttd_position position;
    /** Blocks in the list that follows; of the peak, live ones. */
    uint64_t blocks;

    /** Keyframe and summary: the number of the event that comes next, and what was replayed. */
    uint64_t next_event;
    uint64_t events;
    uint64_t failed;
    uint64_t unfinished;
    /** Releases of addresses that were not live, and acquisitions where a block was live. */
    uint64_t unknown_releases;
    uint64_t overlaps;
    uint64_t actions[TTD_STATE_ACTIONS];

    /** Summary: how many sums follow, and the first position after those that it serves; the
     * invalid one if it serves all. */
    uint64_t sums;
    struct ttd_position end;

    /** Peak: live bytes, and how many times 2^64 in addition. */
    uint64_t bytes;
    uint64_t bytes_high;
};

/** Point of view of a sum. */
enum ttd_sum_table {
    TTD_SUMS_BY_STACK = 0,
    TTD_SUMS_BY_HEAP = 1,
    TTD_SUMS_BY_THREAD = 2,
    /** By number of binary digits of the size. */
    TTD_SUMS_BY_SIZE = 3
};

/** The blocks of a summary that have one stack, heap, thread or class of sizes. */
struct ttd_sum {
    enum ttd_sum_table table;
    /** The id; or the number of binary digits, up to 64. */
    uint32_t key;
    /** An api that allocated one of the blocks, perhaps one that has ended since. */
    uint8_t api;
    uint64_t blocks;
    uint64_t bytes;
    /** By stack: when the first and the last of the blocks were allocated. */
    struct ttd_position first;
    struct ttd_position last;
};

/** A group id: one for all traces that were recorded together. */
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

/** What the first chunk says of the whole trace. */
struct ttd_trace {
    /** Random and non-zero; ties all chunks together. */
    uint64_t trace_id;
    struct ttd_group group;
    /** Id of the parent process's trace in the group, or 0; and where in it the process began,
     * invalid if that is not known. */
    uint64_t parent_trace_id;
    struct ttd_position parent_position;
    /** Wall clock at wall_time 0: nanoseconds since 1970-01-01T00:00:00Z. */
    int64_t start_time;
    /** All wall_times are multiples of this many nanoseconds. 0 if that is not known, since a first
     * chunk was lost: then wall_times of events are not known either, and 0. */
    uint64_t time_unit;
    uint64_t process_id;
    uint64_t parent_process_id;
    uint32_t flags;
    uint32_t architecture;
    /** Bytes in a pointer of the process: 4 or 8, mandatory. A writer refuses 0. */
    uint32_t pointer_size;
    /** Derived files: the trace they belong to, its size in bytes and its End chunk's header hash.
     */
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
    /** The recorder let go of a process that went on. */
    TTD_END_REASON_DETACHED = 3,
    /** The file was recovered or derived; nothing is known of the process. */
    TTD_END_REASON_NOT_RECORDED = 4
};

/** What the last chunk says. */
struct ttd_end {
    enum ttd_end_reason reason;
    uint32_t code;
    /** Duration of the recording in nanoseconds. */
    uint64_t wall_time;
    /** Totals; the writer fills these in, and readers compare. */
    uint64_t events;
    uint64_t lost_events;
    uint64_t chunks;
    /** Offset of the last index chunk, or 0 if none. */
    uint64_t index_offset;
};

TTD_END_DECLS

#endif
