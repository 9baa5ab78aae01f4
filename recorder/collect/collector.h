/* SPDX-License-Identifier: MIT */
/** The collector: writes the records of the launched program and its children into traces. */
#ifndef RECORDER_COLLECT_COLLECTOR_H
#define RECORDER_COLLECT_COLLECTOR_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/trace/closers.h"
#include "collect/trace/process_trace.h"
#include "collect/trace/ring.h"
#include "collect/channel/host.h"
#include "collect/process/processes.h"
#include "control.h"
#include "attach/known_blocks.h"
#include "snapshot/take.h"

/* The collector's end of the control socket: see recorder/control.h. */

enum { CONTROL_CLIENTS = 8 };

/** A client that has connected and has not sent its request yet. */
struct control_client {
    int socket;
    uint64_t deadline; /* in nanoseconds of the channel's clock */
};

struct control {
    int listener; /* -1 if there is none */
    struct control_client clients[CONTROL_CLIENTS];
    unsigned count;
};

/** Answers a request. The text of the answer is empty at first, and may be filled with snprintf().
 */
typedef void control_function(void *context, const struct control_request *request,
                              struct control_answer *answer);

/** Opens the socket, and writes its name into the channel. If that is impossible, nobody can ask.
 */
void control_open(struct control *control, struct channel *channel);

/** Answers the requests that have arrived. Never waits. */
void control_step(struct control *control, uint64_t now, control_function *handle, void *context);

void control_close(struct control *control);

/* Hands the channel over to processes that cannot open it: see struct loan. */

/** The last known state of a loan, and its begin: all zero at first. */
struct loan_seen {
    uint32_t state;
    uint64_t since;
};

/** Answers the requests, and frees those whose processes have ended meanwhile. `seen` has an entry
 * for each loan. */
void loans_step(struct host *host, struct loan_seen *seen, uint64_t now);

/* The blocks that a process had before the recorder was attached to it. */

/**
 * Writes the blocks into the trace; it has no events yet: as allocations without a function, a
 * thread and a stack, from a position on that comes before all calls. `reason` says why there may
 * be more; NULL if these are all.
 */
void earlier_write(struct trace *trace, const struct known_blocks *blocks, const char *reason,
                   struct ttd_position position);

/** The snapshots to take. Contents are sums of enum ttd_snapshot_contents. */
struct snapshot_options {
    uint32_t at_exit;  /* contents of the snapshot at the end of each process; 0 for no snapshot */
    uint32_t contents; /* contents of all other snapshots */
    uint64_t every;    /* interval between the snapshots of a process, in nanoseconds; 0 for none */
};

/** The extent of a recording. */
struct recording_options {
    uint32_t flags;       /* enum channel_flags */
    uint32_t stackless;   /* enum channel_calls, of calls that are recorded without their stacks */
    uint32_t stack_depth; /* innermost frames of a stack; 0 for all */
    uint64_t max_size;    /* of a trace, in bytes; beyond it nothing is recorded; 0 for none */
    struct ring_limit keep; /* the past that a trace has; all 0 if it has all */
    bool blocks_only;       /* a trace has the blocks that are live at snapshots and at the end */
    uint64_t only_above;    /* size of the smallest blocks that are recorded */
    uint64_t sample;   /* mean number of bytes for one block that is recorded; 0 for all blocks */
    bool counts_sizes; /* of live blocks, for the status of a session */
};

struct collector {
    struct host host;
    struct control control;
    pid_t launched;                     /* or the process that was attached to */
    bool is_to_detach;                  /* somebody has asked for that */
    bool is_letting_go;                 /* not all calls are recorded any more: no snapshots */
    bool is_attached;                   /* no child of this process then */
    bool had_run;                       /* before it was attached to */
    const struct known_blocks *earlier; /* that process's, from before: see earlier_write() */
    const char *earlier_reason;
    const uint32_t *unreturned; /* its threads in calls: see process_begin_unreturned() */
    size_t unreturned_count;
    struct copy_history copies; /* of that process */
    /** Called in each round; detaches on request, and then sets the flag that ends
     * collector_run(). */
    void (*step)(struct collector *collector);
    int launched_status; /* as from waitpid(), once `launched_has_ended` */
    bool launched_has_ended;
    uint64_t launched_end; /* the clock then, or a moment later */
    bool has_told_waiting;
    bool is_quiet;               /* print warnings only */
    int launched_stop;           /* the signal that stopped it; 0 if it is running */
    volatile sig_atomic_t *done; /* set once the launched program has ended */
    /** Whether this process stops with the program, even while other recorded processes run. */
    bool (*wants_stop)(void);
    void (*stop)(int number); /* stops this process; returns when it is continued */
    uint64_t launched_start;  /* see origin_start_time() */
    const char *command;      /* of the launched program, as metadata */
    struct recording_options recording;
    struct snapshot_options snapshots;
    struct ttd_group wanted_group; /* the group's id; zeros for a new one */
    struct group group;
    struct processes processes;
    uint32_t attention; /* channel->attention at the last search for processes and threads */
    uint64_t next_flush;
    uint64_t next_reap;
    uint64_t next_prepare;
    uint64_t next_names;
    uint64_t next_control;
    size_t names_turn; /* index of the process whose trace gets names next */
    struct trace_closers closers;
    struct loan_seen loans[CHANNEL_LOANS];
    bool was_held;         /* other processes have held the channel */
    unsigned unheld_looks; /* number of looks since then that found no process holding it */
    bool is_left_alone;    /* processes still held it when the collector stopped waiting */
    /** For the summary. */
    struct trace *first; /* opened before the program starts; NULL once it has a process */
    bool has_attached_first;
    unsigned within;          /* children with an allocator under names of its own */
    unsigned foreign_mallocs; /* children with a malloc linked into the program */
    struct {
        unsigned denied, failed, late;
    } snapshots_missing;
    struct {
        unsigned torn, incomplete;
    } snapshots_doubtful;
    size_t snapshots_waiting; /* processes that wait for one, when the last one was taken */
    struct shared_pages *shared_pages; /* that others of them have in common; NULL at first */
    unsigned snapshots_stalled;        /* memory could not be read in time */
    size_t stacks_missing;  /* of threads in snapshots: there was no time to follow them */
    unsigned images_left;   /* programs executed by recorded ones that were not recorded */
    bool has_left_launched; /* the launched process executed one of them, and was that then */
    uint64_t events, acquisitions, releases, lost;
    uint64_t most_live;   /* blocks that a process never released, by the counts of its calls */
    char *most_live_path; /* its trace; NULL if there is none */
    uint64_t gaps;        /* of recording, asked for by the program or its user */
    uint64_t left_out;    /* calls before the past that was to be kept */
    unsigned full;        /* traces without the calls after the size that was asked for */
    unsigned children;
    unsigned refused_noted; /* of channel->refused, as far as traces state them */
    uint32_t notes;         /* enum process_notes of the launched process */
};

/**
 * Opens the launched program's trace in the file `output`, a path that must stay valid. Returns
 * false, with the reason in `error`, and leaves nothing behind, if that is impossible.
 */
bool collector_open(struct collector *collector, const char *output, struct ttd_error *error);

/** Collects the published records whose order is known. Returns the number of records written. */
size_t collector_collect(struct collector *collector);

/** Collects until all recorded processes are gone, or `*detach` becomes non-zero. */
void collector_run(struct collector *collector, const volatile sig_atomic_t *detach);

/** Releases everything, and removes a trace that no process has used. */
void collector_close(struct collector *collector);

/* Takes the dumps that processes ask for by ttdtrace/live_dump.h. */

/** Takes, and answers, all dumps that were asked for. */
void dumps_step(struct collector *collector);

/** The same for one process. */
void dumps_take(struct collector *collector, struct process *process);

/* The launched program, a child of the collector's process: its end, and its stops. */

/** Returns the process whose exit status this process waits for; 0 for none. */
uint32_t launched_child(const struct collector *collector);

/** Records that the launched program has stopped, continued or ended, and how. */
void launched_reap(struct collector *collector);

/**
 * Stops this process if the launched program has stopped, so that the shell sees it. All published
 * records are in the files by then. While stopped, it collects nothing, so it does not stop as long
 * as other recorded processes run, unless wants_stop() returns true.
 */
void launched_follow_stop(struct collector *collector);

/* The end of a recorded process: its exit status, and the last records of its trace. */

/** Whether a process has ended, as far as processes_poll() or waitpid() has found out. */
bool process_end_is_due(struct collector *collector, const struct process *process);

/** Returns how and when a process ended. The reason is unknown if the system does not give it. */
struct ttd_end process_end_reason(const struct collector *collector, const struct process *process);

/** Writes the rest of the process at `index`, hands its trace on to be closed, and removes it. */
void process_end(struct collector *collector, size_t index, const struct ttd_end *end);

/* Periodic tasks of the collector: names, flushing, removal of ended threads. */

/** Does the work that is due at `now`, a time of the channel's clock. */
void upkeep(struct collector *collector, uint64_t now);

/** Starts a lookup of the names that are missing in the trace of a process that asks for a
 * snapshot, since most of these are about to end. The names are found while its memory is searched.
 * Does nothing while there is another lookup, nor for a process that has just begun. */
void upkeep_at_end(struct collector *collector, struct process *process);

/** Likewise for the variables that the snapshot has found, while the process ends. */
void upkeep_after_snapshot(struct collector *collector, struct process *process);

/* Requests from outside: ttdrecord status PID, ttdrecord snapshot PID. */

/** Answers a request: a control_function, whose context is the collector. */
void requests_answer(void *context, const struct control_request *request,
                     struct control_answer *answer);

/* Takes snapshots of processes: those that they ask for, those at intervals, and others. */

/** Looks for requests of processes, and answers them. Returns true if some are left for the next
 * round. */
bool snapshots_answer(struct collector *collector);

/** Whether the process waits for a snapshot that it has asked for. */
bool snapshots_is_awaited(struct collector *collector, const struct process *process);

/** Takes the snapshots at intervals that are due. */
void snapshots_step(struct collector *collector, uint64_t now);

/**
 * Takes a snapshot of a process at once. `snapshot` has its contents, its reason and its thread.
 * Returns whether there is one, or why not.
 */
enum take_result snapshots_take(struct collector *collector, struct process *process,
                                const struct ttd_snapshot *snapshot);

/** Makes sure that a trace has a place for contents of memory. Returns false if memory ran out. */
bool snapshots_have_store(struct trace *trace);

/** Counts a snapshot that is missing, unless that is because its process or its trace has ended. */
void snapshots_note_missing(struct collector *collector, const struct process *process,
                            enum take_result result);

/** Takes the snapshot before the recorder lets go of the launched process; otherwise it would be
 * taken at the process's end. No other is taken from then on: it would show memory of calls that
 * are not recorded. */
void snapshots_take_last(struct collector *collector);

#endif
