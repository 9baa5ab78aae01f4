/* SPDX-License-Identifier: MIT */
/* The collector: writes the records of the launched program and its children into traces. */
#ifndef RECORDER_COLLECT_COLLECTOR_H
#define RECORDER_COLLECT_COLLECTOR_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/collector_control.h"
#include "collect/earlier.h"
#include "collect/loans.h"
#include "collect/trace/closers.h"
#include "collect/trace/group.h"
#include "collect/channel/host.h"
#include "collect/process/processes.h"

/* The snapshots to take. Contents are sums of enum ttd_snapshot_contents. */
struct snapshot_options {
    uint32_t at_exit;  /* contents of the snapshot at the end of each process; 0 for no snapshot */
    uint32_t contents; /* contents of all other snapshots */
    uint64_t every;    /* interval between the snapshots of a process, in nanoseconds; 0 for none */
};

/* The extent of a recording. */
struct recording_options {
    uint32_t flags;      /* enum channel_flags */
    uint64_t max_size;   /* of a trace, in bytes, beyond which nothing is recorded; 0 for none */
    bool blocks_only;    /* a trace has the blocks that are live at snapshots and at the end */
    uint64_t only_above; /* size of the smallest blocks that are recorded */
    uint64_t sample;     /* mean number of bytes for one block that is recorded; 0 for all blocks */
};

struct collector {
    struct host host;
    struct control control;
    pid_t launched;                     /* or the process that was attached to */
    bool is_to_detach;                  /* somebody has asked for that */
    bool is_attached;                   /* which is no child of this process then */
    bool had_run;                       /* before it was attached to */
    const struct known_blocks *earlier; /* that process's, from before: see earlier.h */
    const char *earlier_reason;
    /* Called in each round; detaches on request, and then sets the flag that ends
     * collector_run(). */
    void (*step)(struct collector *collector);
    int launched_status; /* as from waitpid(), once `launched_has_ended` */
    bool launched_has_ended;
    uint64_t launched_end; /* the clock then, or a moment later */
    bool has_told_waiting;
    bool is_quiet;               /* print warnings only */
    int launched_stop;           /* the signal that stopped it; 0 if it is running */
    volatile sig_atomic_t *done; /* set once the launched program has ended */
    /* Whether this process stops with the program, even while other recorded processes run. */
    bool (*wants_stop)(void);
    void (*stop)(int number); /* stops this process; returns when it is continued */
    uint64_t launched_start;  /* see origin_start_time() */
    const char *command;      /* of the launched program, as metadata */
    struct recording_options recording;
    struct snapshot_options snapshots;
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
    unsigned unheld_looks; /* number of looks since then at which no process held it */
    bool is_left_alone;    /* processes still held it when the collector stopped waiting */
    /* For the summary. */
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
    size_t snapshots_waiting;   /* processes that wait for one, when the last one was taken */
    unsigned snapshots_stalled; /* memory could not be read in time */
    size_t stacks_missing;      /* of threads in snapshots: there was no time to follow them */
    unsigned images_left;       /* programs executed by recorded ones that were not recorded */
    bool has_left_launched;     /* the launched process executed one of them, and was that then */
    uint64_t events, acquisitions, releases, lost;
    uint64_t most_live;   /* blocks that a process never released, by the counts of its calls */
    char *most_live_path; /* its trace; NULL if there is none */
    uint64_t gaps;        /* of recording, asked for by the program or its user */
    unsigned full;        /* traces that have reached the size that was asked for */
    unsigned children;
    unsigned refused_noted; /* of channel->refused, as far as traces state them */
    uint32_t notes;         /* enum process_notes of the launched process */
};

/*
 * Opens the launched program's trace in the file `output`, a path that must stay valid. Returns
 * false, with the reason in `error`, and leaves nothing behind, if that is impossible.
 */
bool collector_open(struct collector *collector, const char *output, struct ttd_error *error);

/* Collects the published records whose order is known. Returns the number of records written. */
size_t collector_collect(struct collector *collector);

/* Collects until all recorded processes are gone, or `*detach` becomes non-zero. */
void collector_run(struct collector *collector, const volatile sig_atomic_t *detach);

/* Releases everything, and removes a trace that no process has used. */
void collector_close(struct collector *collector);

#endif
