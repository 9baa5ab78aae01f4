/* SPDX-License-Identifier: MIT */
/**
 * The shared memory between the recorded processes and the collector: its contract and structures.
 * channel_view.h lays all out in the file, channel_pool.h takes and gives back entries, and
 * channel_record.h describes what threads write into chunks.
 *
 * One sealed memfd serves a whole recording. It holds a table of processes, a table of threads and
 * a pool of chunks. A thread appends records to a chain of chunks of its own: single producer,
 * single consumer, published by a release store of the chunk's `committed`. The memory outlives
 * the processes, so whatever was published before a SIGKILL is collected.
 *
 * The file is sparse and has room for far more than one process needs. Each process maps it in
 * windows, and only those that it uses: the address space and the lockable memory that the recorder
 * takes are in proportion to the threads and to their chunks that are not collected yet. The first
 * few entries of each table lie in the first window: most processes need no other one.
 *
 * Positions. `sequence` is the number of the newest fragment. A thread whose own fragment is the
 * newest just counts a step; otherwise it takes the next number. Whatever happens after another
 * thread's stamp, in the sense of the memory model, finds `sequence` moved and so gets a larger
 * position: a free is always ordered before the allocation that gets its address again. A release
 * is stamped before the allocator runs, an acquisition after it, a reallocation both times. The
 * other end of a call is only counted: it is the thread's next step. See thread_stamp() of the
 * preload library.
 *
 * Completeness. A thread sets `pending` before it stamps and clears it after it has published. The
 * collector reads `sequence`, then makes every thread execute a memory barrier, then reads each
 * `pending`: no record below the smaller of these can still appear.
 *
 * The collector trusts nothing in here: a recorded program may overwrite it.
 */
#ifndef RECORDER_CHANNEL_H
#define RECORDER_CHANNEL_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The name of the channel's memory file, and as the system shows it in lists of mappings. */
#define CHANNEL_FILE "ttdrecord"
#define CHANNEL_NAME "/memfd:" CHANNEL_FILE

#define CHANNEL_MAGIC   UINT64_C(0x314c4e4843445454) /* "TTDCHNL1" */
#define CHANNEL_VERSION 12u

/** Names the channel to processes that start: a path that opens the memfd, and if these cannot open
 * it, '=' and the number of a descriptor that they inherit. */
#define CHANNEL_ENV "TTDRECORD_CHANNEL"

enum {
    CHANNEL_PROCESSES = 8192,
    /** Slots of the processes, then one for the copy of each: see channel_copy(). */
    CHANNEL_SLOTS = 2 * CHANNEL_PROCESSES,
    CHANNEL_THREADS = 32768,
    CHANNEL_CLAIMS = 256,
    CHANNEL_CHUNK_SIZE = 64 * 1024,
    /** The first chunk of a chain is a small one: many threads never fill it. */
    CHANNEL_SMALL_SIZE = 4 * 1024,
    /** Full chunks that are not collected yet, at most: a thread waits before it takes another one.
       16 MiB stay in the cache of some machines, and are collected in a moment when the program
       ends. Beyond these, there is one chunk of each size for every thread. */
    CHANNEL_BACKLOG = 256,
    /** Backlog that wakes waiting threads: waking them for every chunk costs the busiest programs
     * more than they gain. */
    CHANNEL_RELIEF = CHANNEL_BACKLOG - CHANNEL_BACKLOG / 16,
    CHANNEL_SMALL_CHUNKS = CHANNEL_THREADS + CHANNEL_SLOTS,
    CHANNEL_LARGE_CHUNKS = CHANNEL_SMALL_CHUNKS + CHANNEL_BACKLOG,
    CHANNEL_CHUNKS = CHANNEL_SMALL_CHUNKS + CHANNEL_LARGE_CHUNKS, /* small ones first */
    /** Entries in the first window, of processes, threads and small chunks. */
    CHANNEL_NEAR_PROCESSES = 12,
    CHANNEL_NEAR_THREADS = 64,
    CHANNEL_NEAR_CHUNKS = 36,
    CHANNEL_NONE = 0, /* indexes of chunks and processes in fields count from 1 */
};

enum channel_flags {
    CHANNEL_NO_CHILDREN = 1, /* only the first process records */
    CHANNEL_FEW_STACKS = 2,  /* not all stacks are recorded: see `stackless` and `stack_depth` */
    CHANNEL_CHOOSES =
        4, /* not all blocks are recorded: `only_above` and `sample` define the part */
    CHANNEL_LOSES = 1024, /* a thread without room loses its call, and does not wait */
};

/** Kinds of calls that may be recorded without their stacks. */
enum channel_calls {
    CALLS_ACQUIRE = 1,
    CALLS_REALLOCATE = 2,
    CALLS_RELEASE = 4,
    CALLS_OTHER = 8, /* of custom heaps */
    CALLS_ALL = 15
};

/**
 * A slot goes FREE -> CLAIMED -> READY by the target; a thread's then to KNOWN, and all back to
 * FREE by the collector, once the process or thread is gone. A process that the collector has no
 * memory for goes to REFUSED and stays there: it stops recording, but may not have noticed yet. A
 * thread's state has its process in the bits from SLOT_PROCESS on.
 */
enum slot_state {
    SLOT_FREE,
    SLOT_CLAIMED,
    SLOT_READY,
    SLOT_KNOWN,
    SLOT_REFUSED,
    SLOT_STATE = 0xff,
    SLOT_PROCESS = 8
};

enum process_flags {
    PROCESS_FORKED = 1, /* began as a copy of its parent, with the parent's live blocks */
    PROCESS_GUEST = 2,  /* runs in an emulator; that is recorded under the same process id */
    /** Ids that it states, of itself and of its threads, belong to another PID namespace than the
       collector's, or may. */
    PROCESS_ELSEWHERE = 4,
};

enum process_notes {
    NOTE_FOREIGN_MALLOC =
        1,              /* functions of the program itself allocate: their calls are not seen */
    NOTE_TOLD_ALL = 2,  /* of a copy: the runtimes have released all that they keep */
    NOTE_NAMESPACE = 4, /* modules have been loaded with a C library, and a heap, of their own */
    NOTE_ARENAS = 8,    /* it may have released all blocks of an arena at once */
    NOTE_EXECUTES = 16, /* another program is being executed; it attaches anew, if it can */
    NOTE_SNAPSHOT_LATE = 32, /* it has ended without the snapshot that it waited for */
    /** There are such functions, and when the program started they called the C library's each
       time. Cleared if they do so when it ends. */
    NOTE_FORWARDS = 64,
    NOTE_ALLOCATOR = 128, /* a plugin calls functions of the allocator that it brings */
    NOTE_BREAK = 256,     /* the program itself moves the program break */
    NOTE_WITHIN = 512,    /* by the collector: a module has an allocator under names of its own */
    /** It has asked for usable sizes, and may use a block beyond its size. */
    NOTE_USABLE_SIZES = 1024,
    /** Functions of the program itself allocate: their calls are seen from its start on, but for
       those that the compiler inlined. */
    NOTE_PATCHED = 2048,
    NOTE_STARTED = 4096,        /* functions are not patched any more */
    NOTE_PATCHED_WITHIN = 8192, /* calls of an allocator under names of its own are */
    NOTE_OF_PROGRAM = 16384,    /* by the collector: the program itself has such an allocator */
    NOTE_TRIED = 32768,         /* NOTE_FORWARDS was set once */
    /** Flags about calls that are not recorded. */
    NOTES_UNRECORDED = NOTE_FOREIGN_MALLOC | NOTE_NAMESPACE | NOTE_ARENAS | NOTE_ALLOCATOR |
                       NOTE_WITHIN | NOTE_PATCHED,
};

enum { COMMAND_SIZE = 1024, DIRECTORY_SIZE = 512 };

struct process_slot {
    alignas(64) _Atomic uint32_t state;
    uint32_t pid;
    /** By the collector, a futex: its id of a process that is elsewhere, and that process waits for
     * it. */
    _Atomic uint32_t seen_pid;
    uint32_t parent_pid;
    uint32_t parent; /* slot of the parent when forked; CHANNEL_NONE otherwise */
    uint32_t flags;
    _Atomic uint32_t notes;
    _Atomic uint32_t paused;  /* by the collector: threads that attach are not to record */
    uint64_t sequence;        /* taken when the slot was claimed */
    uint64_t clock;           /* at that time */
    uint64_t parent_sequence; /* where in the parent's thread it was forked */
    uint64_t parent_steps;
    uint64_t parent_image;   /* `sequence` of the parent's slot when forked: it may be used again */
    uint64_t heaps_sequence; /* when forked: of the newest change of the parent's custom heaps, or 0
                                if it has none */
    /** The address of a word of the process that holds `sequence` as long as this image runs. */
    uint64_t mark;
    uint64_t hooks_begin, hooks_end; /* code of the recorder that stacks do not have */
    _Atomic uint32_t free_next;
    _Atomic uint32_t log;  /* first chunk of the process's log */
    _Atomic uint64_t lost; /* calls of threads without a slot */
    /** Arguments, each with a NUL behind it, and the working directory, as far as there is room.
       The collector cannot ask the system about processes that lived for a moment. */
    uint32_t command_size;
    uint32_t directory_size;
    char command[COMMAND_SIZE];
    char directory[DIRECTORY_SIZE];
};

/** The path of a process's trace: see channel_trace_name(). The collector writes it when a thread
 * asks. */
enum { TRACE_NAME_SIZE = 256 };

struct trace_name {
    _Atomic uint32_t size; /* 0 if there is no room */
    char text[TRACE_NAME_SIZE];
};

/** LOSS_OFF counts calls of the allocator that were not recorded because the thread was suspended,
 * calls within calls included whose sites are not known to serve others: it may be more than the
 * events that are missing. */
enum loss_counter { LOSS_OVERFLOW, LOSS_REENTRANT, LOSS_OFF, LOSS_COUNTERS };

enum { THREAD_NAME_SIZE = 16 };

struct thread_slot {
    alignas(64) _Atomic uint32_t state;
    uint32_t tid;
    /** The slot of the thread whose inner level this is, or CHANNEL_NONE. Inner levels record calls
       within calls: see struct thread of the preload library. */
    uint32_t within;
    _Atomic uint32_t first; /* first chunk */
    _Atomic uint32_t free_next;
    uint64_t sequence;           /* its first fragment */
    char name[THREAD_NAME_SIZE]; /* as the thread was called last; empty if unknown */

    alignas(64) _Atomic uint64_t pending; /* 0, or 1 + the least sequence it may yet publish */
    _Atomic uint32_t in_release;          /* a published release has not returned yet */
    _Atomic uint32_t paused;              /* by the collector: the thread is not to record */
    _Atomic uint32_t answered; /* by the collector, a futex: the serial of the dump that the thread
                                  waits for, times 2, and 1 more if it was taken */
    _Atomic uint64_t lost[LOSS_COUNTERS];
};

struct chunk {
    alignas(64) _Atomic uint32_t committed; /* bytes of data that are complete */
    _Atomic uint32_t next;                  /* set once nothing more will be committed here */
    _Atomic uint32_t free_next;
    uint32_t counts; /* 1 for a full chunk: it is part of the backlog */
    alignas(64) uint64_t data[];
};

/**
 * A request for a descriptor of the channel, by a process that cannot open it any more, for the
 * program that it is about to execute: it is in another namespace, or is another user now. It has a
 * pair of sockets; the collector takes one of them out of the process, and sends the descriptor by
 * it. The process goes from FREE to CLAIMED to ASKED, the collector to GIVEN or REFUSED, the
 * process to FREE. It may withdraw the request, from ASKED to FREE.
 */
enum loan_state { LOAN_FREE, LOAN_CLAIMED, LOAN_ASKED, LOAN_GIVEN, LOAN_REFUSED };

enum { CHANNEL_LOANS = 8 };

struct loan {
    alignas(32) _Atomic uint32_t state;
    uint32_t pid;   /* in its own namespace */
    int32_t socket; /* descriptor of the process */
    /** A word that only this process has in its memory: its address and its value. */
    uint64_t address;
    uint64_t value;
};

/** Free entries of a table: those that were used before, and those that never were. */
struct channel_pool {
    alignas(64) _Atomic uint64_t free; /* stack of the former: tag << 32 | index of its top */
    _Atomic uint32_t used;             /* entries that were ever taken; no others are touched */
};

struct channel {
    uint64_t magic;
    uint32_t version;
    uint32_t flags;
    uint64_t size;
    uint32_t exit_contents; /* of the snapshot at the end of a process; 0 for no snapshot */
    uint32_t collector_pid;
    uint32_t launched_pid;
    uint64_t pid_namespace; /* inode of the namespace that process ids belong to */
    uint64_t start;         /* CLOCK_MONOTONIC at clock 0, nanoseconds */
    uint32_t control_size;  /* of the name of the control socket; 0 if there is none */
    char control_name[16];  /* as in sockaddr_un, from sun_path on: see control.h */
    /** Set by the collector, at any time. */
    _Atomic uint32_t stackless;   /* enum channel_calls, of calls that have no stacks */
    _Atomic uint32_t stack_depth; /* innermost frames that a stack has at most; 0 for all */
    uint64_t only_above; /* bytes that a block has at least that is recorded, if `sample` is 0 */
    uint64_t sample;     /* mean number of bytes from one recorded block to the next */

    alignas(64) _Atomic uint64_t sequence; /* number of the newest fragment */
    _Atomic uint64_t clock;                /* nanoseconds since the start: see channel_tick() */

    struct channel_pool free_processes;
    struct channel_pool free_threads;
    struct channel_pool free_small;
    struct channel_pool free_large;

    alignas(64) _Atomic uint32_t freed; /* futex: moves whenever a chunk is freed */
    _Atomic uint32_t waiters;           /* threads that wait for it */
    _Atomic uint32_t backlog;           /* full chunks that are not collected yet */

    _Atomic uint32_t slots_freed;  /* futex: moves whenever a process slot is freed */
    _Atomic uint32_t slot_waiters; /* processes that wait for one */
    _Atomic uint32_t is_full;      /* one has waited in vain, and no slot was freed since */

    alignas(64) _Atomic uint32_t attention; /* futex: the collector sleeps on it */
    _Atomic uint32_t heartbeat;             /* moves while the collector goes on */
    _Atomic uint32_t
        stopped; /* the collector takes no more records: no process records any longer */
    _Atomic uint32_t refused; /* processes that could not be recorded */
    _Atomic uint32_t answers; /* to requests for snapshots: moves while their turns come */

    /** The newest claim of a process slot, by the process id modulo CHANNEL_CLAIMS: the process id
     * in the upper half, the slot in the lower. It gives a new image the slot of the old one. */
    _Atomic uint64_t claims[CHANNEL_CLAIMS];

    struct loan loans[CHANNEL_LOANS];
};

/** All wall times are multiples of this: the clock moves less often anyway. */
enum { CLOCK_UNIT_NS = 1000 };

/**
 * Moves the clock on, never back: `now` is CLOCK_MONOTONIC. The collector does so about once a
 * millisecond when it gets a processor, and threads whenever they have filled a chunk: when they
 * are so busy that it does not.
 */
static inline uint64_t channel_tick(struct channel *channel, uint64_t now)
{
    uint64_t clock = atomic_load_explicit(&channel->clock, memory_order_relaxed);
    now -= channel->start;
    now -= now % CLOCK_UNIT_NS;
    while (now > clock && !atomic_compare_exchange_weak(&channel->clock, &clock, now))
        ;
    return now > clock ? now : clock;
}

/* How a process of the program asks the collector for a snapshot of its memory, and how it
 * describes this memory. */

/* System calls that the collector makes threads of the recorded process execute. */

/**
 * Code in the recorded process: a thread that the collector holds executes one system call by it.
 * The thread enters with the number and the arguments in its registers, and with a struct
 * borrowed_frame on top of its stack; its registers are restored from there. It has signals blocked
 * meanwhile, but for those that its own instructions cause.
 */
struct borrowed_code {
    uint64_t copy;        /* entry for a call that makes a process; that ends at once */
    uint64_t call;        /* entry for any other call */
    uint64_t stack_begin; /* of a stack that nothing else uses */
    uint64_t stack_end;   /* 0: there is no such code; or BORROWED_OWN_STACK */
};

struct borrowed_frame {
    uint64_t blocked; /* signals that the thread blocks */
    uint64_t rax, rdi, rsi, rdx, r10, r8, r9, rcx, r11;
    uint64_t rip, cs, flags, rsp, ss;
};

enum { BORROWED_RUN_OVER = 1 };

/** The thread's own stack is used, below the part that its function may use: a handler of a signal
 * (it may come once the collector has died) has room there as always. */
enum { BORROWED_OWN_STACK = 1 };

/**
 * A request for a snapshot, one for each process: see channel_request(). A thread that ends the
 * process goes from NONE to ASKED, once it has written the rest, and waits on `state` as a futex,
 * until the collector answers something else, or for a limited time: it then withdraws the request,
 * ASKED to NONE, and the process goes on. So the collector answers by a compare-exchange, before it
 * completes the snapshot in the trace: of a withdrawn request there is none. It expects the memory
 * of the process to vanish at any time. A process asks at most once in its life, not counting
 * SNAPSHOT_DENIED.
 */
enum snapshot_state {
    SNAPSHOT_NONE,
    SNAPSHOT_ASKED,
    SNAPSHOT_TAKEN,
    SNAPSHOT_REFUSED,
    /** The system does not let the collector look into the process. The thread permits it, if it
       can, and asks once more, now with `has_permitted` set: then this is no answer. */
    SNAPSHOT_DENIED
};

enum {
    SNAPSHOT_REGISTERS = 17, /* DWARF numbers 0 to 16 of x86-64; 16 is the program counter */
    SNAPSHOT_FRAMES = 256,
    SNAPSHOT_FRAMES_OUTERMOST = 32 /* of these, if there are more frames */
};

struct snapshot_request {
    alignas(64) _Atomic uint32_t state; /* enum snapshot_state */
    uint32_t tid;                       /* the thread that asks, and waits */
    uint32_t reason;                    /* enum ttd_snapshot_reason */
    uint32_t contents;                  /* sum of enum ttd_snapshot_contents */
    uint32_t has_permitted;             /* see SNAPSHOT_DENIED */
    /** The first word of the thread's stack that counts: everything below belongs to frames of the
     * C library and of the recorder. */
    uint64_t stack_pointer;
    uint64_t thread_pointer;  /* the base of fs */
    uint64_t coroutine_start; /* the return address of functions that makecontext() starts */
    /** Registers as they were at `stack_pointer`: bit n of `registers_valid` for DWARF number n. */
    uint64_t registers_valid;
    uint64_t registers[SNAPSHOT_REGISTERS];
    /** The address of the first struct own_memory of the process: set from its begin on. */
    uint64_t own_memory;
    struct borrowed_code borrowed; /* likewise */
    /** The fatal signal: its number (0 for none), si_code and si_addr. */
    uint32_t signal;
    int32_t code;
    uint64_t fault_address;
    /** The frames from `stack_pointer` on, innermost first: where each goes on, as in stacks of
       calls; and its canonical frame address, 0 if that is not known (the outermost frame). Frame i
       occupies [CFA of i - 1, CFA of i), and frame 0 begins at `stack_pointer`. */
    uint32_t frame_count;
    uint64_t frame_pcs[SNAPSHOT_FRAMES];
    uint64_t frame_cfas[SNAPSHOT_FRAMES];
};

/** Memory that the recorder has mapped for itself, in the recorded process: no pointer within it is
 * the program's. A list; entries of size 0 are unused. */
enum { OWN_RANGES = 255 };

struct own_memory {
    _Atomic uint64_t next; /* address of the next part of the list, or 0 */
    uint64_t reserved;
    struct own_range {
        _Atomic uint64_t begin;
        _Atomic uint64_t size;
    } ranges[OWN_RANGES];
};

#endif
