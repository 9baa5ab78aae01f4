/* SPDX-License-Identifier: MIT */
/** Facts about a recorded process, from the system and from its slot. */
#ifndef RECORDER_COLLECT_PROCESS_ORIGIN_H
#define RECORDER_COLLECT_PROCESS_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "channel.h"
#include "collect/trace/process_trace.h"

/** Writes the metadata that all traces of a recording share. */
void origin_describe(struct trace *trace);

/** States which stacks are recorded from now on: `depth` frames of each, or all if that is 0; none
 * of the calls `stackless`, a sum of enum channel_calls. */
void origin_stacks(struct trace *trace, uint32_t stackless, uint32_t depth);

/** Writes command and directory of the image in a slot; `command`, if not NULL, replaces its own.
 */
void origin_image(struct trace *trace, const struct process_slot *slot, const char *command);

/** Whether the environment that a process began with has a variable that begins with this text,
 * NAME=VALUE. False if it cannot be read. */
bool origin_has_variable(uint32_t pid, const char *text);

/** Whether a process has the environment of its program, which may be empty: while a program is
 * being executed there is none yet. True if it cannot be read. */
bool origin_has_environment(uint32_t pid);

/** States that a module, by its path, keeps objects in pools of its own, unless the environment of
 * the process is seen to turn that off. `file` is the identity of the file at the path; its inode
 * is 0 if nothing is known. `stated` has a bit for each fact that the trace has already. */
void origin_pools(struct trace *trace, uint32_t pid, const char *path,
                  const struct symbolize_file *file, uint32_t *stated);

/** Returns the start time of a process in ticks since boot; 0 if unknown. */
uint64_t origin_start_time(uint32_t pid);

/** Returns the parent of a process; 0 if unknown. */
uint32_t origin_parent(uint32_t pid);

/** Whether a process id in shared memory cannot be a recorded process's: it is invalid, or names
 * the collector, a child of it, or a process older than `start`, the program's.
 */
bool origin_is_impossible(uint32_t pid, uint64_t start);

/** Whether a process exists and is neither stopped nor ended. */
bool origin_is_running(uint32_t pid);

/** Whether a process has ended that began at that time, by origin_start_time(). */
bool origin_is_over(uint32_t pid, uint64_t start);

/**
 * The exit status, as from waitpid(), of a process that has ended and is not our child: from the
 * kernel's record of it as long as its parent has not waited for it, or from its pidfd (Linux
 * 6.15). False if it cannot be known.
 */
bool origin_exit_status(uint32_t pid, int pidfd, int *status);

/* Ids of processes and threads in other PID namespaces, as these state them: their values here. */

/** Returns the process that has this id in its own namespace, and the value at the address in its
 * memory; no other has that; 0 if there is none. */
uint32_t namespace_process(uint32_t inner, uint64_t address, uint64_t value);

/** Returns the thread of the process that has this id in its own namespace; 0 if it has ended. */
uint32_t namespace_thread(uint32_t pid, uint32_t inner);

#endif
