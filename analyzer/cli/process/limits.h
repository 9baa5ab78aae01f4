/* SPDX-License-Identifier: MIT */
/**
 * Limits of a command's memory, work and time. A trace of some kilobytes can be crafted to stand
 * for gigabytes: LZ4 alone compresses 255 to 1. Memory is limited by the system, so that whatever
 * allocates fails as it does without memory; steps through stacks are counted where stacks are
 * looked up.
 */
#ifndef ANALYZER_CLI_LIMITS_H
#define ANALYZER_CLI_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/process/output.h"

/** The default limit: this many bytes for each byte of the traces, but at least the minimum, and at
 * most three quarters of the machine's memory. */
#define LIMITS_MEMORY_RATIO   512
#define LIMITS_MEMORY_MINIMUM (UINT64_C(448) << 20)

/** Bytes of the memory limit that allow one step through a stack. */
#define LIMITS_STEP_BYTES 16

/** Parses the argument of --max-memory, a size; false if it is invalid. */
bool limits_parse(const char *text, uint64_t *memory);

/**
 * Limits the memory of this process from now on.
 *
 * @param memory  in bytes; 0 for the default
 * @param traces  the files to be read, `count` of them
 */
void limits_set(uint64_t memory, char *const *traces, size_t count);

/** Undoes limits_set(), in a child that runs another program. */
void limits_lift(void);

/** Returns the number of steps through stacks that a command may spend. */
uint64_t limits_steps(void);

/** Returns the size limit of a report: half the memory limit. */
uint64_t limits_output(void);

/** Returns the number of bytes that a command may write into temporary files: four times the memory
 * limit. */
uint64_t limits_files(void);

/** Size of the text of limits_format(), with its NUL. */
#define LIMITS_TEXT 32

/** Writes the memory limit for people, such as "448 MB". Returns the option that raises it, or
 * the shell's command if the system allows this process no more. */
const char *limits_format(char text[LIMITS_TEXT]);

/*
 * Ends work that takes too long, at a deadline or when the user interrupts it. Signals are the
 * process's, and so is an interruption: there is one piece of work at a time.
 */

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
