/* SPDX-License-Identifier: MIT */
/** The stream of one thread, or of one inner level of it, and the state of decoding it. */
#ifndef RECORDER_COLLECT_PROCESS_THREAD_STREAM_H
#define RECORDER_COLLECT_PROCESS_THREAD_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/channel/host.h"
#include "collect/channel/translate.h"
#include "collect/trace/process_trace.h"

enum { STACK_DEPTH_MAX = 4096 };

/** A stack that was looked up lately: a return address on top of its caller's stack. */
struct recent_stack {
    uint64_t pc;
    ttd_id parent;
    ttd_id id;     /* TTD_NONE if there is none */
    uint32_t hash; /* as stacks_hash() returns it */
};

enum { RECENT_BITS = 9, RECENT_STACKS = 1 << RECENT_BITS };

struct thread_stream {
    uint32_t slot;
    struct thread_slot *shared; /* the slot itself */
    uint32_t process;           /* slot of its process */
    uint32_t tid;
    struct thread_stream *outer; /* the thread that this is an inner level of; or NULL */
    uint32_t inner;              /* number of inner levels of this one */
    ttd_id id; /* in the trace; TTD_NONE before its first event, or if there is no trace */
    bool is_defined;
    char name[THREAD_NAME_SIZE]; /* its name in the trace, if the thread has set one itself */
    struct stream stream;
    struct record next; /* valid while `has_next` */
    bool has_next;
    /** Position and time after the last record, computed by the thread's rules for stamps.
     */
    uint64_t sequence;
    uint64_t steps;
    uint64_t wall_time;
    /** A call under way. Neither it nor anything after it can be written before it returns. */
    bool has_held;
    struct ttd_event held;
    uint64_t
        pressed_since; /* time since when many records have waited behind the call; 0 if few do */
    uint64_t operands[CALL_OPERANDS];
    uint64_t lost[LOSS_COUNTERS]; /* the counters of the slot that have been written as losses */
    bool is_off;                  /* the thread is suspended, by its last event of an island */
    struct ttd_position off;      /* since when */
    struct ttd_position checked;  /* the trace's last position when `lost` was read */
    /** Ids of the last record's stack and of its callers' stacks, outermost first; and their
     * hashes, as stacks_hash() returns them. */
    uint32_t depth;
    ttd_id path[STACK_DEPTH_MAX];
    uint32_t hashes[STACK_DEPTH_MAX];
    /** Loops come back to a few stacks: these are found without the trace's table. */
    struct recent_stack recent[RECENT_STACKS];
    uint64_t recent_removals; /* the table's `removals` when they were looked up */
};

/** Defines the thread in the trace of its process `pid`. An inner level has the id of its thread.
 */
void thread_stream_define(struct thread_stream *thread, struct trace *trace, uint32_t pid);

/** Whether the thread has another name now than thread->name; that becomes the new name. */
bool thread_stream_renamed(struct thread_stream *thread);

/** Defines a thread that has no stream. */
ttd_id thread_stream_begin(struct trace *trace, struct ttd_position position, uint32_t pid,
                           uint32_t tid);

/* The dumps that threads of a process have asked for by ttdtrace/live_dump.h, in their order. */

/** Limit on waiting dumps. More are refused, so that a program that asks without pause cannot
 * exhaust the collector's memory. */
enum { DUMPS_MAX = 1024 };

struct dump {
    uint32_t kind; /* enum dump_kind */
    uint32_t serial;
    uint64_t begin, end;
    uint32_t tid;
    ttd_id thread;              /* in the trace */
    struct thread_slot *waiter; /* NULL if the thread does not wait */
};

struct dump_queue {
    struct dump *items;
    size_t count, capacity;
    unsigned refused;
};

/** Adds the dump that an EVENT_OF_DUMP asks for, or refuses it. Returns false if the record is
 * invalid. */
bool dump_queue_add(struct dump_queue *queue, struct thread_stream *thread,
                    const uint64_t client[2], const uint64_t *fields, size_t size);

/** Answers the thread that waits for a dump; does nothing if none waits. */
void dump_answer(const struct dump *dump, bool is_taken);

/** Removes the oldest dump from the queue. Returns false if there is none. */
bool dump_queue_take(struct dump_queue *queue, struct dump *dump);

/** Refuses all dumps, after the memory of the process image is gone. */
void dump_queue_refuse(struct dump_queue *queue);

void dump_queue_free(struct dump_queue *queue);

#endif
