/* SPDX-License-Identifier: MIT */
/** The recorded processes. */
#ifndef RECORDER_COLLECT_PROCESS_PROCESSES_H
#define RECORDER_COLLECT_PROCESS_PROCESSES_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "collect/channel/host.h"
#include "collect/process/heaps.h"
#include "collect/process/thread_stream.h"
#include "collect/trace/process_trace.h"
#include "control.h"
#include "snapshot/take.h"

/* A recorded process: merges the streams of its threads into its trace. */

/** An entry of the queue of a merge: a thread and the sequence of its next record. */
struct merge_entry {
    uint64_t sequence;
    struct thread_stream *thread;
};

/** An event from outside of the program: see user_events_write_outside(). Threads may yet publish
 * records that come before it. */
struct outside_event {
    uint64_t sequence;
    uint64_t wall_time;
    const char *client; /* static, of 16 bytes */
    size_t size;
    uint8_t data[CONTROL_TEXT_MAX];
};

enum { OUTSIDE_MAX = 256 };

/** Threads in calls that began before the recorder was attached: these are not recorded. */
struct unreturned {
    uint32_t *tids;
    size_t count;
    struct ttd_position begin, end; /* calls may be missing from here on; and up to here, so far */
};

struct process {
    uint32_t slot;
    uint64_t mark, sequence; /* of the slot: see process_has_image() */
    uint64_t calls_before;   /* number of calls, recorded or lost, of earlier images in the trace */
    uint64_t start;          /* the clock at its begin: its wall times count from there */
    uint32_t pid;
    uint32_t inner_pid; /* in its own namespace, if that is another one; else 0 */
    int pidfd;
    uint64_t start_time; /* if there is no pidfd: see origin_is_over() */
    uint64_t next_prepare,
        next_names; /* times of the next lookup of its names, and of writing them */
    struct interrupted_calls interrupted; /* by snapshots */
    struct copy_history copies;           /* for snapshots */
    struct take_stalls stalls;            /* likewise */
    unsigned requests;      /* for snapshots that this image has made: see snapshots_answer() */
    uint64_t still_since;   /* when its only thread was seen waiting for one; or 0 */
    bool has_end_snapshot;  /* the one of its end, or of the recording's, shows its pointers */
    bool is_at_rest;        /* it stands still, and all that it has published is merged */
    bool is_forked;         /* it began as a copy of its parent */
    uint64_t every;         /* interval of its snapshots, in nanoseconds; 0 for none */
    uint64_t next_snapshot; /* time of the next one at intervals; 0 before the first look */
    uint64_t reached;       /* sequence; all records up to it are merged */
    bool is_launched;       /* it is the launched program */
    bool is_gone;           /* it has ended: set by processes_poll() */
    bool has_exited;        /* `end` is set */
    bool is_dead;           /* it will publish nothing more */
    bool is_paused;         /* its threads are not to record: see user_events_pause() */
    bool has_modules;       /* one was logged */
    uint32_t pools;         /* that the trace states: see origin_pools() */
    uint32_t notes;         /* enum process_notes of its slot that the trace states */
    struct ttd_position checked; /* the trace's last position when `notes` was read */
    struct ttd_end end;
    struct trace *trace;
    struct stream log;
    struct record log_next; /* valid while `has_log_next` */
    bool has_log_next;
    uint64_t log_looks; /* host.look_count when the log was last found empty */
    struct silent_thread {
        uint32_t tid;
        ttd_id id;
    } * silent; /* threads that are defined in the trace but have made no call */
    size_t silent_count, silent_capacity;
    struct thread_stream **threads;
    size_t thread_count, thread_capacity;
    struct custom_heaps heaps; /* of the program's own: see heaps.h */
    struct dump_queue dumps;
    struct outside_event *outside; /* by sequence */
    size_t outside_count, outside_capacity;
    uint64_t gaps; /* gaps of recording of its threads with missing calls */
    struct unreturned unreturned;
    uint64_t last_sequence;    /* records of a larger one are not merged: see attach_unhook() */
    struct merge_entry *queue; /* scratch space of the merge, one entry for each thread */
};

/** Makes a process of a claimed slot. `claim` is a private copy of the slot. Takes over `trace`.
 * Returns NULL if memory ran out. */
struct process *process_new(uint32_t slot, const struct process_slot *claim, struct trace *trace);
void process_free(struct process *process);

/** Whether the present image has made no calls, recorded or lost. */
bool process_is_empty(const struct process *process);

/** Converts a time of the clock to a wall time of the process's trace. The program may have
 * overwritten both of its operands with anything, so the result is limited to valid values.
 */
static inline uint64_t process_time(const struct process *process, uint64_t clock)
{
    uint64_t time = clock > process->start ? clock - process->start : 0;
    time = time < INT64_MAX ? time : INT64_MAX;
    return time - time % CLOCK_UNIT_NS;
}

/**
 * Whether the program image that claimed the slot still runs: the process has neither ended nor
 * executed another program. An emulator runs a second image beside its own; that attaches as a
 * PROCESS_GUEST. Returns false also if the process's memory cannot be read.
 */
bool process_has_image(const struct process *process);

/** Writes everything that a dead process has published, and frees its slots. */
void process_drain(struct process *process, struct host *host);

/** Returns the id here of a thread that the process states; 0 if it has ended. */
uint32_t process_seen_tid(const struct process *process, uint32_t tid);

/** Adds the thread of a slot. Returns false if memory ran out. */
bool process_add_thread(struct process *process, struct host *host, uint32_t slot);

/**
 * Notes threads whose present calls are not recorded. Such a call may return a block that others
 * have released meanwhile; the thread's next call shows that it has returned. The calls that may be
 * missing until then are a loss.
 */
void process_begin_unreturned(struct process *process, const uint32_t *tids, size_t count,
                              struct ttd_position begin);

/** Notes that a thread has made a call. */
void process_end_unreturned(struct process *process, uint32_t tid, struct ttd_position position);

/**
 * Writes the published records of sequences up to `bound`, whose order is known. Returns how many.
 */
size_t process_merge(struct process *process, struct host *host, uint64_t bound);

/** Returns the trace's id of a thread, with or without calls. */
ttd_id process_thread_id(struct process *process, struct ttd_position position, uint32_t tid);

/** Removes threads that have ended, and frees their slots. */
void process_reap_threads(struct process *process, struct host *host);

/** Returns the least sequence that the process may still publish, or UINT64_MAX. */
uint64_t process_pending(const struct process *process);

/* Writes losses: calls that are missing in a trace. */

/**
 * Reports calls that a thread has lost since its counters were last read. The loss ends with the
 * newest fragment: any later stamp begins a fragment, or continues the newest.
 */
void losses_of_thread(struct process *process, struct thread_stream *thread,
                      const struct host *host);

/**
 * Notes, at an event that begins or ends an island of the thread, whether the thread is suspended
 * from there on. If it was suspended before, reports the calls that it did not record. `skipped` is
 * an upper bound of their number, because it includes calls within calls.
 */
void losses_of_gap(struct process *process, struct thread_stream *thread, bool is_off,
                   struct ttd_position position, uint64_t skipped);

/** Reports that calls of the process bypass the recorder, since some time after the last look. */
void losses_of_process(struct process *process, struct host *host);

/** All zero when empty. */
struct processes {
    struct process **items;
    struct pollfd *polled; /* scratch space, one for each process */
    size_t count, capacity;
    size_t looked_at; /* index, modulo the count, of the next process to look at without a pidfd */
    struct process *by_slot[CHANNEL_PROCESSES + 1];
};

/** Does not free the processes themselves. */
void processes_free(struct processes *processes);

/** Return the process, or NULL. `slot` may be any number. */
struct process *processes_by_slot(const struct processes *processes, uint32_t slot);
struct process *processes_by_pid(const struct processes *processes, uint32_t pid);
/** Returns the process whose image was replaced, by execution, by the image of `slot`: see
 * process_has_image(). NULL if there is none: a forked process and the guest of an emulator replace
 * no image. */
struct process *processes_replaced(const struct processes *processes, struct host *host,
                                   const struct process_slot *slot);

/** Returns the process that forked or started the process of `slot`; NULL if it is not recorded. */
struct process *processes_parent(const struct processes *processes,
                                 const struct process_slot *slot);

/** Makes room for one more. Returns false if memory ran out. */
bool processes_reserve(struct processes *processes);

/** Adds a process; room was made for it. */
void processes_add(struct processes *processes, struct process *process);

/** Gives a process another slot: see process_exec(). */
void processes_exec(struct processes *processes, struct process *process, struct host *host,
                    uint32_t slot);

/** Removes and returns the process at `index`. The last process takes its index. */
struct process *processes_take(struct processes *processes, size_t index);

/** Sets `is_gone` of the processes that have exited, with one system call for all, unless some have
 * no pidfd: these may have to wait for a few more calls. */
void processes_poll(struct processes *processes);

/* User events of a process: its own, from the live API, and those from outside of the program. */

/** Writes the event of an OP_EVENT record: its operands, then `words` words of data. False if it is
 * invalid: the program has overwritten it. */
bool user_events_write(struct process *process, struct thread_stream *thread,
                       struct ttd_position position, const volatile uint64_t *operands,
                       unsigned words);

/** Writes the events from outside of the program with sequences up to `bound`. */
void user_events_write_outside(struct process *process, uint64_t bound);

/** Does the same, faster where there are none, as in most traces. */
static inline void user_events_reach(struct process *process, uint64_t bound)
{
    if (__builtin_expect(process->outside_count != 0, 0))
        user_events_write_outside(process, bound);
}

/** Marks the present moment with a text. False if it cannot be written. */
bool user_events_mark(struct process *process, struct host *host, const char *text, size_t size);

/** Notes how much memory the process has, heap or not, at the newest position. Writes nothing if
 * the system does not say, or before the first call. */
void user_events_memory(struct process *process, struct host *host);

/** Pauses or resumes recording of all threads of the process. Returns false if recording is in that
 * state already, or if the event cannot be written. */
bool user_events_pause(struct process *process, struct host *host, bool is_paused);

/** Suspends all threads of a process for good: its trace is complete. */
void user_events_stop(struct process *process, struct host *host);

/*
 * Runs of usual calls: nearly all records are usual: calls that acquire or release a block, have
 * returned, and belong to the fragment and the time of the record before. They are written
 * together, at a third of the cost.
 */

/**
 * Writes the usual calls that come next in a thread, all of one sequence and all known to be
 * published. Returns how many: 0 if the next record is not one.
 */
size_t run_merge(struct process *process, struct thread_stream *thread);

#endif
