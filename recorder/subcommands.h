/* SPDX-License-Identifier: MIT */
/** The commands of ttdrecord: each says whether a command line is its own, and executes it. */
#ifndef RECORDER_SUBCOMMANDS_H
#define RECORDER_SUBCOMMANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "collect/collector.h"

/* The command `ttdrecord attach PID`. */

/** Whether the command line names the command. */
bool attach_is_command(int argc, char **argv);

/** Removes the remains of a killed recorder from a process. Returns an exit status, after a
 * message; -1 if there were none. */
int attach_clean_command(const char *text);

/** Starts a program that is linked statically, and begins to record it before its first allocation.
 * Returns an exit status, after a message if it was not started. */
int attach_launch(struct collector *collector, const struct options *options, const char *path,
                  char *const *arguments);

/** Records a process until it ends, or somebody wants it to be detached. Returns an exit status. */
int attach_command(int argc, char **argv);

/** Records a process that runs, or one that was suspended. Returns an exit status. */
int attach_process(const struct options *options, uint32_t pid);

/** Records a process and all that descend from it, each by a recorder of its own, until all have
 * ended or the first one is to be recorded no longer. Returns an exit status. */
int attach_tree(const struct options *options, uint32_t pid);

/* `ttdrecord session` and `ttdrecord enable|query|disable`: recordings of sets of processes. */

bool session_is_command(int argc, char **argv);

/** Returns an exit status. */
int session_command(int argc, char **argv);

/* `ttdrecord suspend PROGRAM` and `ttdrecord resume PID`: programs that wait for their recorder. */

bool suspend_is_command(int argc, char **argv);

/** Becomes the program, stopped before its first instruction. Returns an exit status on failure. */
int suspend_command(int argc, char **argv);

/** Waits until a process is suspended if it is about to be: shells start a program in the
 * background and go on at once. */
void suspend_await(uint32_t pid);

/** Lets a process go on that is stopped before its first instruction. Returns false, and does
 * nothing, if `text` names no such process. */
bool suspend_resume(const char *text);

/* `ttdrecord symbolize TRACE`: adds names to a trace that was recorded before. */

/** Whether the arguments of ttdrecord are this command. */
bool symbolize_is_command(int argc, char **argv);

/** Adds the names, and prints how many. Returns an exit status. */
int symbolize_command(int argc, char **argv);

/* Records a process from its first instruction on that was not started by this recorder. */

/**
 * Records a process that this thread traces, and that is stopped before its first instruction:
 * see arm/arm.h. Lets go of it once it is armed, or cannot be; `is_suspended` as for arm_release().
 * Returns an exit status, after a message if the process could not be recorded: it is then as it
 * was.
 */
int armed_record(const struct options *options, uint32_t pid, bool is_suspended);

/* The messages about a recording at its end. */

/** Prints a summary of the recording in the file `output` and the files beside it. */
void summary_print(const struct collector *collector, const char *output);

/** Whether summary_judge() can have an answer: the analyzer is installed, and the output is no pipe
 * or device. False after a message. */
bool summary_can_judge(const char *output);

/**
 * Asks the analyzer for findings in the trace `output`, or in the traces of all processes, and
 * prints its answers. Returns EXIT_FINDINGS, EXIT_SUCCESS, or EXIT_RECORDER, after a message, if
 * there is no answer.
 *
 * @param kinds  enum fail_on
 */
int summary_judge(unsigned kinds, const char *output, bool is_group);

/** Prints warnings about whatever is missing from the trace, also with --quiet. */
void summary_warn(struct collector *collector);

#endif
