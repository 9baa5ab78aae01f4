/* SPDX-License-Identifier: MIT */
/* The collector: everything that the launched program and its children publish, into traces. */
#ifndef TTD_COLLECT_COLLECTOR_H
#define TTD_COLLECT_COLLECTOR_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace_closers.h"
#include "group.h"
#include "host.h"
#include "processes.h"

struct collector {
    struct host host;
    pid_t launched;
    int launched_status; /* as from waitpid(), once `launched_has_ended` */
    bool launched_has_ended;
    int launched_stop;           /* the signal that it is stopped by; 0 if it is not */
    volatile sig_atomic_t *done; /* set once the launched program has ended */
    /* Whether we are to stop with the program, even while other recorded processes run. */
    bool (*wants_stop)(void);
    void (*stop)(int number); /* stops this process, until it goes on */
    uint64_t launched_start;  /* see origin_start_time() */
    const char *command;      /* of the launched program, for people */
    struct group group;
    struct processes processes;
    uint32_t attention; /* the channel's, when it was last looked at */
    uint64_t next_flush;
    uint64_t next_reap;
    uint64_t next_prepare;
    uint64_t next_names;
    size_t names_turn; /* index of the process whose trace gets names next */
    struct trace_closers closers;
    bool was_held;         /* at its end the program had left processes that may yet record */
    unsigned unheld_looks; /* how often there were none since */
    bool is_left_alone;    /* some were there when nobody waited any more */
    /* For the summary. */
    struct trace *first; /* opened before the program starts; NULL once it has a process */
    bool has_attached_first;
    unsigned foreign_mallocs; /* children that have one of their own */
    unsigned images_left;     /* programs that were executed by recorded ones, and did not record */
    uint64_t events, acquisitions, releases, lost;
    unsigned children;
    uint32_t notes; /* enum process_notes of the launched process */
};

/*
 * Opens the launched program's trace in the file `output`, a path that must stay valid. False, with
 * the reason in `error`, if that is impossible; nothing is left behind then.
 */
bool collector_open(struct collector *collector, const char *output, struct ttd_error *error);

/* Collects until all recorded processes are gone, or `*detach` becomes non-zero. */
void collector_run(struct collector *collector, const volatile sig_atomic_t *detach);

/* Releases everything; a trace without a process is removed. */
void collector_close(struct collector *collector);

#endif
