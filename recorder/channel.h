/* SPDX-License-Identifier: MIT */
/*
 * The shared memory between the recorded processes and the collector.
 *
 * One sealed memfd serves a whole recording. It holds a table of processes, a table of threads and
 * a pool of chunks. A thread appends records to a chain of chunks of its own: single producer,
 * single consumer, published by a release store of the chunk's `committed`. The memory outlives
 * the processes, so whatever was published before a SIGKILL is collected.
 *
 * The file is sparse and has room for far more than one process needs. Each process maps it in
 * windows, and only those that it uses: what the recorder takes of its address space, and of memory
 * that it may lock, is in proportion to its threads and to what they have not had collected. The
 * first few entries of each table lie in the first window: most processes need no other one.
 *
 * Positions. `sequence` is the number of the newest fragment. A thread whose own fragment is the
 * newest just counts a step; otherwise it takes the next number. Whatever happens after another
 * thread's stamp, in the sense of the memory model, finds `sequence` moved and so gets a larger
 * position: a free is always ordered before the allocation that gets its address again. A release
 * is stamped before the allocator runs, an acquisition after it, a reallocation both times. The
 * other end of a call is only counted: it is the thread's next step. See position_* below.
 *
 * Completeness. A thread sets `pending` before it stamps and clears it after it has published. The
 * collector reads `sequence`, then makes every thread execute a memory barrier, then reads each
 * `pending`: no record below the smaller of these can still appear.
 *
 * The collector trusts nothing in here: a recorded program may overwrite it.
 */
#ifndef TTD_RECORDER_CHANNEL_H
#define TTD_RECORDER_CHANNEL_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/model.h>

#define CHANNEL_MAGIC   UINT64_C(0x314c4e4843445454) /* "TTDCHNL1" */
#define CHANNEL_VERSION 3u

/* Names the channel to processes that start: a path that opens the memfd. */
#define CHANNEL_ENV "TTDRECORD_CHANNEL"

enum {
    CHANNEL_PROCESSES = 8192,
    /* Behind those of all processes one for the copy of each: see channel_copy(). */
    CHANNEL_SLOTS = 2 * CHANNEL_PROCESSES,
    CHANNEL_THREADS = 32768,
    CHANNEL_CHUNK_SIZE = 64 * 1024,
    /* The first chunk of a chain is a small one: many threads never fill it. */
    CHANNEL_SMALL_SIZE = 4 * 1024,
    /* 16 MiB of full chunks that are not collected yet: so much stays in the cache of some
       machines, and what is left when the program ends is collected in a moment. Beyond that, a
       thread waits before it takes another one; but one of each size is there for every thread. */
    CHANNEL_BACKLOG = 256,
    /* Those who wait are woken when no more is left: waking them for every chunk costs the busiest
       programs more than they gain. */
    CHANNEL_RELIEF = CHANNEL_BACKLOG - CHANNEL_BACKLOG / 16,
    CHANNEL_SMALL_CHUNKS = CHANNEL_THREADS + CHANNEL_SLOTS,
    CHANNEL_LARGE_CHUNKS = CHANNEL_SMALL_CHUNKS + CHANNEL_BACKLOG,
    CHANNEL_CHUNKS = CHANNEL_SMALL_CHUNKS + CHANNEL_LARGE_CHUNKS, /* small ones first */
    /* Entries in the first window, of processes, threads and small chunks. */
    CHANNEL_NEAR_PROCESSES = 12,
    CHANNEL_NEAR_THREADS = 64,
    CHANNEL_NEAR_CHUNKS = 48,
    CHANNEL_NONE = 0, /* indexes of chunks and processes in fields count from 1 */
};

enum channel_flags {
    CHANNEL_NO_CHILDREN = 1, /* only the first process records */
};

/*
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
};

enum process_notes {
    NOTE_FOREIGN_MALLOC = 1, /* the program brings its own malloc: its calls are not seen */
    NOTE_TOLD_ALL = 2,       /* a copy: the runtimes have released all that they keep */
    NOTE_NAMESPACE = 4,  /* modules have been loaded with a C library, and a heap, of their own */
    NOTE_EXTENSIONS = 8, /* modules may call mallocx() and its like */
    NOTE_EXECUTES = 16,  /* another program is being executed; it attaches anew, if it can */
    /* Calls are made that are not recorded. */
    NOTES_UNRECORDED = NOTE_FOREIGN_MALLOC | NOTE_NAMESPACE | NOTE_EXTENSIONS,
};

enum { COMMAND_SIZE = 1024, DIRECTORY_SIZE = 512 };

struct process_slot {
    alignas(64) _Atomic uint32_t state;
    uint32_t pid;
    uint32_t parent_pid;
    uint32_t parent; /* slot of the parent when forked; CHANNEL_NONE otherwise */
    uint32_t flags;
    _Atomic uint32_t notes;
    uint64_t sequence;        /* taken when the slot was claimed */
    uint64_t clock;           /* at that time */
    uint64_t parent_sequence; /* where in the parent's thread it was forked */
    uint64_t parent_steps;
    /* The address of a word of the process that holds `sequence` as long as this image runs. */
    uint64_t mark;
    _Atomic uint32_t free_next;
    _Atomic uint32_t log;  /* first chunk of the process's log */
    _Atomic uint64_t lost; /* calls of threads for which there was no slot */
    /* Arguments, each with a NUL behind it, and the working directory, as far as there is room. The
       system does not tell of processes that lived for a moment. */
    uint32_t command_size;
    uint32_t directory_size;
    char command[COMMAND_SIZE];
    char directory[DIRECTORY_SIZE];
};

enum loss_counter { LOSS_OVERFLOW, LOSS_REENTRANT, LOSS_COUNTERS };

struct thread_slot {
    alignas(64) _Atomic uint32_t state;
    uint32_t tid;
    /* CHANNEL_NONE, or the slot of the thread that this is an inner level of: calls within calls of
       that thread, see the preload library's struct thread. */
    uint32_t within;
    _Atomic uint32_t first; /* first chunk */
    _Atomic uint32_t free_next;
    uint64_t sequence; /* its first fragment */

    alignas(64) _Atomic uint64_t pending; /* 0, or 1 + the least sequence it may yet publish */
    _Atomic uint32_t in_release;          /* a published release has not returned yet */
    _Atomic uint64_t lost[LOSS_COUNTERS];
};

struct chunk {
    alignas(64) _Atomic uint32_t committed; /* bytes of data that are complete */
    _Atomic uint32_t next;                  /* set once nothing more will be committed here */
    _Atomic uint32_t free_next;
    uint32_t counts; /* in the backlog: it is full */
    alignas(64) uint64_t data[];
};

/* The entries of a table that nobody uses: those that were used before, and those that never were.
 */
struct channel_pool {
    alignas(64) _Atomic uint64_t free; /* stack of the former: tag << 32 | index of its top */
    _Atomic uint32_t used;             /* entries that were ever taken; no others are touched */
};

struct channel {
    uint64_t magic;
    uint32_t version;
    uint32_t flags;
    uint64_t size;
    uint32_t collector_pid;
    uint32_t launched_pid;
    uint64_t pid_namespace; /* inode: process ids mean the same only within */
    uint64_t start;         /* CLOCK_MONOTONIC at clock 0, nanoseconds */

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
    _Atomic uint32_t stopped;               /* the collector has let go: nobody records any more */
    _Atomic uint32_t refused;               /* processes that could not be recorded */
};

/* The layout of the file. No entry lies across the border of two windows. */
#define CHANNEL_PAGE              4096
#define CHANNEL_WINDOW            (256 * 1024)
#define CHANNEL_NEAR_PROCESSES_AT UINT64_C(4096)
#define CHANNEL_NEAR_THREADS_AT                                                                    \
    (CHANNEL_NEAR_PROCESSES_AT + CHANNEL_NEAR_PROCESSES * UINT64_C(4096))
#define CHANNEL_NEAR_CHUNKS_AT (CHANNEL_WINDOW - CHANNEL_NEAR_CHUNKS * (uint64_t)CHANNEL_SMALL_SIZE)
/* These have room for all entries, and do not use that of the near ones. */
#define CHANNEL_PROCESSES_AT (uint64_t) CHANNEL_WINDOW /* a page for each, with its copy */
#define CHANNEL_THREADS_AT                                                                         \
    CHANNEL_WINDOWS_UP(CHANNEL_PROCESSES_AT + CHANNEL_PROCESSES * UINT64_C(4096))
#define CHANNEL_SMALL_AT                                                                           \
    CHANNEL_WINDOWS_UP(CHANNEL_THREADS_AT + CHANNEL_THREADS * sizeof(struct thread_slot))
#define CHANNEL_LARGE_AT                                                                           \
    CHANNEL_WINDOWS_UP(CHANNEL_SMALL_AT + CHANNEL_SMALL_CHUNKS * UINT64_C(4096))
#define CHANNEL_SIZE                                                                               \
    CHANNEL_WINDOWS_UP(CHANNEL_LARGE_AT + CHANNEL_LARGE_CHUNKS * (uint64_t)CHANNEL_CHUNK_SIZE)
#define CHANNEL_WINDOWS_UP(size) (((size) + CHANNEL_WINDOW - 1) / CHANNEL_WINDOW * CHANNEL_WINDOW)
#define CHANNEL_WINDOWS          (CHANNEL_SIZE / CHANNEL_WINDOW)

_Static_assert(sizeof(struct channel) <= CHANNEL_NEAR_PROCESSES_AT,
               "the tables are behind the header");
_Static_assert(CHANNEL_NEAR_THREADS_AT + CHANNEL_NEAR_THREADS * sizeof(struct thread_slot) <=
                   CHANNEL_NEAR_CHUNKS_AT,
               "all that is near has room in a window");
_Static_assert(2 * sizeof(struct process_slot) <= CHANNEL_PAGE, "a process and its copy");
_Static_assert(CHANNEL_WINDOW % sizeof(struct thread_slot) == 0, "slots tile the windows");

/* The file as one process sees it: its windows, NULL where they are not mapped yet. */
struct channel_view {
    _Atomic(char *) windows[CHANNEL_WINDOWS];
};

/* Maps a window, as each side does it; NULL if that cannot be done. */
char *channel_map(struct channel_view *view, uint32_t window);

static inline void *channel_at(struct channel_view *view, uint64_t offset)
{
    uint32_t index = (uint32_t)(offset / CHANNEL_WINDOW);
    char *window = atomic_load_explicit(&view->windows[index], memory_order_acquire);
    if (__builtin_expect(window == NULL, 0) && (window = channel_map(view, index)) == NULL)
        return NULL;
    return window + offset % CHANNEL_WINDOW;
}

/* All wall times are multiples of this: the clock moves less often anyway. */
enum { CLOCK_UNIT_NS = 1000 };

/*
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

/*
 * Records are whole words. The first one is
 *
 *     bits  0..7   operation: a ttd_api_function or one of enum operation
 *     bits  8..15  enum record_flags
 *     bits 16..31  frames kept of the thread's last stack, counted from the outermost
 *     bits 32..47  frames added
 *     bits 48..63  words of the record, this one included
 *
 * then, in this order: the new sequence if RECORD_SEQUENCE, the clock if RECORD_CLOCK, the
 * operation's arguments and results (see enum operation), the added frames, outermost first.
 */
enum record_flags {
    RECORD_SEQUENCE = 1, /* the synchronised end of the call began a new fragment */
    RECORD_CLOCK = 2,    /* the clock moved since the thread's last record */
};

/*
 * Calls of the C library and of C++ are recorded under their ttd_api_function, arguments as they
 * were passed, then the result (none for releases; posix_memalign: its status, then the address):
 * see call_shapes.
 * Reallocations are recorded without a result when they begin, and then:
 */
enum operation {
    OP_REALLOC_END = 0xe0, /* result */
    /* In a process's log; there is no stack: */
    OP_MODULE_LOAD = 0xe1,   /* sequence, steps, bias, begin, end, build-id bytes, path bytes, both
                                padded to words */
    OP_MODULE_UNLOAD = 0xe2, /* sequence, steps, begin */
};

static inline uint64_t record_head(unsigned operation, unsigned flags, unsigned kept,
                                   unsigned added, unsigned words)
{
    return (uint64_t)operation | (uint64_t)flags << 8 | (uint64_t)kept << 16 |
           (uint64_t)added << 32 | (uint64_t)words << 48;
}

static inline unsigned record_operation(uint64_t head)
{
    return head & 0xff;
}

static inline unsigned record_flags(uint64_t head)
{
    return head >> 8 & 0xff;
}

/* Words of what has changed since the record before. */
static inline unsigned record_changes(uint64_t head)
{
    unsigned flags = record_flags(head);
    return (flags & RECORD_SEQUENCE ? 1 : 0) + (flags & RECORD_CLOCK ? 1 : 0);
}

static inline unsigned record_kept(uint64_t head)
{
    return head >> 16 & 0xffff;
}

static inline unsigned record_added(uint64_t head)
{
    return head >> 32 & 0xffff;
}

static inline unsigned record_words(uint64_t head)
{
    return (unsigned)(head >> 48);
}

/* The slot of the copy of a process, which only tells which of its parent's blocks the runtimes
 * would release. */
static inline uint32_t channel_copy(uint32_t process)
{
    return CHANNEL_PROCESSES + process;
}

/* Indexes count from 1; the caller has checked them. NULL if the window cannot be mapped. */
static inline struct process_slot *channel_process(struct channel_view *view, uint32_t index)
{
    bool is_copy = index > CHANNEL_PROCESSES;
    uint64_t page = is_copy ? index - CHANNEL_PROCESSES - 1 : index - 1;
    uint64_t table =
        page < CHANNEL_NEAR_PROCESSES ? CHANNEL_NEAR_PROCESSES_AT : CHANNEL_PROCESSES_AT;
    return (struct process_slot *)channel_at(view, table + page * CHANNEL_PAGE +
                                                       is_copy * sizeof(struct process_slot));
}

static inline struct thread_slot *channel_thread(struct channel_view *view, uint32_t index)
{
    uint64_t table = index <= CHANNEL_NEAR_THREADS ? CHANNEL_NEAR_THREADS_AT : CHANNEL_THREADS_AT;
    return (struct thread_slot *)channel_at(view, table + (index - 1) * sizeof(struct thread_slot));
}

static inline bool channel_chunk_is_small(uint32_t index)
{
    return index <= CHANNEL_SMALL_CHUNKS;
}

static inline struct chunk *channel_chunk(struct channel_view *view, uint32_t index)
{
    uint64_t table = index <= CHANNEL_NEAR_CHUNKS ? CHANNEL_NEAR_CHUNKS_AT : CHANNEL_SMALL_AT;
    uint64_t small = table + (index - 1) * (uint64_t)CHANNEL_SMALL_SIZE;
    uint64_t large =
        CHANNEL_LARGE_AT + (index - CHANNEL_SMALL_CHUNKS - 1) * (uint64_t)CHANNEL_CHUNK_SIZE;
    return (struct chunk *)channel_at(view, channel_chunk_is_small(index) ? small : large);
}

/* Words of data that a chunk has room for. */
static inline uint32_t channel_chunk_words(uint32_t index)
{
    uint32_t size = channel_chunk_is_small(index) ? CHANNEL_SMALL_SIZE : CHANNEL_CHUNK_SIZE;
    return (size - (uint32_t)offsetof(struct chunk, data)) / 8;
}

/* Returns the field that names the next free entry after one; NULL if it cannot be mapped. */
typedef _Atomic uint32_t *channel_link(struct channel_view *view, uint32_t entry);

static inline _Atomic uint32_t *channel_process_link(struct channel_view *view, uint32_t entry)
{
    struct process_slot *slot = channel_process(view, entry);
    return slot != NULL ? &slot->free_next : NULL;
}

static inline _Atomic uint32_t *channel_thread_link(struct channel_view *view, uint32_t entry)
{
    struct thread_slot *slot = channel_thread(view, entry);
    return slot != NULL ? &slot->free_next : NULL;
}

static inline _Atomic uint32_t *channel_small_link(struct channel_view *view, uint32_t entry)
{
    struct chunk *chunk = channel_chunk(view, entry);
    return chunk != NULL ? &chunk->free_next : NULL;
}

static inline _Atomic uint32_t *channel_large_link(struct channel_view *view, uint32_t entry)
{
    return channel_small_link(view, entry + CHANNEL_SMALL_CHUNKS);
}

/*
 * Takes a free entry out of a pool of `count`; CHANNEL_NONE if there is none, or none that can be
 * mapped. The tag keeps a stale top from matching.
 */
static inline uint32_t channel_take(struct channel_view *view, struct channel_pool *pool,
                                    uint32_t count, channel_link *link)
{
    uint64_t top = atomic_load_explicit(&pool->free, memory_order_acquire);
    while ((uint32_t)top != CHANNEL_NONE && (uint32_t)top <= count) {
        const _Atomic uint32_t *next = link(view, (uint32_t)top);
        if (next == NULL)
            return CHANNEL_NONE;
        uint64_t wanted =
            ((top >> 32) + 1) << 32 | atomic_load_explicit(next, memory_order_relaxed);
        if (atomic_compare_exchange_weak_explicit(&pool->free, &top, wanted, memory_order_acquire,
                                                  memory_order_acquire))
            return (uint32_t)top;
    }
    uint32_t used = atomic_load_explicit(&pool->used, memory_order_relaxed);
    while (used < count && link(view, used + 1) != NULL)
        if (atomic_compare_exchange_weak(&pool->used, &used, used + 1))
            return used + 1;
    return CHANNEL_NONE;
}

/* Gives an entry back. One that cannot be mapped is lost. */
static inline void channel_put(struct channel_view *view, struct channel_pool *pool, uint32_t entry,
                               channel_link *link)
{
    _Atomic uint32_t *next = link(view, entry);
    uint64_t top = atomic_load_explicit(&pool->free, memory_order_relaxed);
    uint64_t wanted;
    if (next == NULL)
        return;
    do {
        atomic_store_explicit(next, (uint32_t)top, memory_order_relaxed);
        wanted = ((top >> 32) + 1) << 32 | entry;
    } while (!atomic_compare_exchange_weak_explicit(&pool->free, &top, wanted, memory_order_release,
                                                    memory_order_relaxed));
}

/* How many entries, from the first, were ever taken from a pool of `count`. */
static inline uint32_t channel_used(const struct channel_pool *pool, uint32_t count)
{
    uint32_t used = atomic_load_explicit(&pool->used, memory_order_acquire);
    return used < count ? used : count;
}

/* A free chunk; CHANNEL_NONE if there is none. */
static inline uint32_t channel_take_chunk(struct channel_view *view, struct channel *channel,
                                          bool is_small)
{
    if (is_small)
        return channel_take(view, &channel->free_small, CHANNEL_SMALL_CHUNKS, channel_small_link);
    uint32_t entry =
        channel_take(view, &channel->free_large, CHANNEL_LARGE_CHUNKS, channel_large_link);
    return entry != CHANNEL_NONE ? entry + CHANNEL_SMALL_CHUNKS : CHANNEL_NONE;
}

static inline void channel_put_chunk(struct channel_view *view, struct channel *channel,
                                     uint32_t index)
{
    struct chunk *chunk = channel_chunk(view, index);
    if (chunk == NULL)
        return;
    atomic_store_explicit(&chunk->committed, 0, memory_order_relaxed);
    atomic_store_explicit(&chunk->next, CHANNEL_NONE, memory_order_relaxed);
    if (channel_chunk_is_small(index))
        channel_put(view, &channel->free_small, index, channel_small_link);
    else
        channel_put(view, &channel->free_large, index - CHANNEL_SMALL_CHUNKS, channel_large_link);
}

#endif
