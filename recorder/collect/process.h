/* SPDX-License-Identifier: MIT */
/* One recorded process: its threads' streams, merged into its trace. */
#ifndef TTD_COLLECT_PROCESS_H
#define TTD_COLLECT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "host.h"
#include "stream.h"
#include "trace.h"
#include "translate.h"

enum { STACK_DEPTH_MAX = 4096 };

/* What is known of one of its threads. */
struct reader {
    uint32_t slot;
    struct thread_slot *shared; /* that slot */
    uint32_t process;           /* slot of its process */
    uint32_t tid;
    struct reader *outer; /* of the thread that this is an inner level of; or NULL */
    uint32_t inner;       /* how many are inner levels of this one */
    ttd_id thread; /* in the trace; TTD_NONE before its first event, or if there is no trace */
    bool is_defined;
    struct stream stream;
    struct record next; /* valid while `has_next` */
    bool has_next;
    /* As they were after the last record, by the same rules as in the thread itself. */
    uint64_t sequence;
    uint64_t steps;
    uint64_t wall_time;
    /* A call that is under way: it cannot be written, nor anything after it, before it returns. */
    bool holds;
    struct ttd_event held;
    uint64_t pressed_since; /* when much was first seen to wait behind it; 0 if not yet */
    uint64_t operands[CALL_OPERANDS];
    uint64_t lost[LOSS_COUNTERS];
    struct ttd_position checked; /* the trace's last position when `lost` was looked at */
    /* Ids of the stack and of all stacks below, outermost first. */
    uint32_t depth;
    ttd_id path[STACK_DEPTH_MAX];
};

/* A reader in the queue of a merge. */
struct queued {
    uint64_t sequence;
    struct reader *reader;
};

struct process {
    uint32_t slot;
    uint64_t mark, sequence; /* of the slot: see process_has_image() */
    uint64_t calls_before;   /* of the trace, recorded or lost, when the image began */
    uint64_t start;          /* the clock when it began: its wall times count from there */
    uint32_t pid;
    int pidfd;
    uint64_t next_prepare, next_names; /* when its names are looked up again, and written */
    bool is_launched;                  /* its trace is that which was asked for */
    bool is_gone;                      /* by processes_poll() */
    bool exited;                       /* as `end` says */
    bool dead;                         /* nothing more will be published */
    uint32_t notes;                    /* of its slot, that have been told */
    struct ttd_position checked;       /* the trace's last position when they were looked at */
    struct ttd_end end;
    struct trace *trace;
    struct stream log;
    struct record log_next; /* valid while `has_log_next` */
    bool has_log_next;
    uint64_t log_looks; /* host.looks when the log was last found to have nothing more */
    struct reader **readers;
    size_t reader_count, reader_capacity;
    struct queued *queue; /* scratch space of the merge, as large as the readers */
};

/* A process that has claimed a slot, of which `claim` is a copy that nobody changes meanwhile; NULL
 * when there is no memory. `trace` becomes its own. */
struct process *process_new(uint32_t slot, const struct process_slot *claim, struct trace *trace);
void process_free(struct process *process);

/* Whether its present image has made no calls, recorded or lost. */
bool process_is_empty(const struct process *process);

/* The wall time in the process's trace at a time of the clock, both as the program says: one that
 * can be written, whatever that is. */
static inline uint64_t process_time(const struct process *process, uint64_t clock)
{
    uint64_t time = clock > process->start ? clock - process->start : 0;
    time = time < INT64_MAX ? time : INT64_MAX;
    return time - time % CLOCK_UNIT_NS;
}

/*
 * Whether the image of a program that has claimed the slot still runs. It does not once the process
 * has executed another one; but emulators run a second one beside themselves, which attaches, too.
 * False as well where the system does not tell.
 */
bool process_has_image(const struct process *process);

/*
 * The process has a new image, in another slot: the old one's heap, modules and threads end.
 */
void process_exec(struct process *process, struct host *host, uint32_t slot);

/* Writes all that is left of a dead process. */
void process_drain(struct process *process, struct host *host);

/* Adds the thread of a slot. False when there is no memory. */
bool process_add_thread(struct process *process, struct host *host, uint32_t slot);

/*
 * Writes all that can be put in order by now, which is what has a sequence of at most `bound`.
 * Returns the number of records.
 */
size_t process_merge(struct process *process, struct host *host, uint64_t bound);

/* Forgets threads that are gone; their slots are free again. */
void process_reap_threads(struct process *process, struct host *host);

/* The least sequence that the process may still publish, or UINT64_MAX. */
uint64_t process_pending(const struct process *process);

#endif
