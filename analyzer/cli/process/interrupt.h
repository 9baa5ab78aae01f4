/* SPDX-License-Identifier: MIT */
/**
 * Ends work that takes too long, at a deadline or when the user interrupts it. Signals are the
 * process's, and so is an interruption: there is one piece of work at a time.
 */
#ifndef ANALYZER_CLI_INTERRUPT_H
#define ANALYZER_CLI_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/process/output.h"

enum interrupt_cause { INTERRUPT_NONE, INTERRUPT_DEADLINE, INTERRUPT_USER };

/** Seconds that work has to end by itself after the deadline. Then the process ends. */
#define INTERRUPT_GRACE 1

struct interrupt_work {
    /** Until the deadline; 0 for none. A time that no clock reaches is none. */
    uint64_t seconds;
    /** SIGINT interrupts the work, not the process. */
    bool is_for_user;
    /** The message of a process that ends because its work went on after the deadline; one line. */
    const char *message;
    /** Makes a library end its work; called by a signal handler. May be NULL. */
    void (*notify)(void *context);
    void *context;
};

/** Begins a piece of work; `work` is copied. */
void interrupt_begin(const struct interrupt_work *work);

/** Ends it, and restores how signals were handled. */
void interrupt_end(void);

/** Names the output of the work, whose file is removed if the process must end; NULL for none. */
void interrupt_output(const struct output_file *output);

/** Returns why the present work is to end. Cheap. */
enum interrupt_cause interrupt_cause(void);

#endif
