/* SPDX-License-Identifier: MIT */
/* Facts about a process by which it cannot be attached to. */
#ifndef RECORDER_ATTACH_PROCESS_H
#define RECORDER_ATTACH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the reason why the process cannot be attached to, as far as the system's files show it.
 * Returns false if there is one. `is_filtered` is set if seccomp filters have to be suspended. */
bool attach_process_check(uint32_t pid, bool *is_filtered, char *reason, size_t size);

/* Returns the id of a thread in the PID namespace of its process. */
uint32_t attach_process_inner(uint32_t pid, uint32_t tid);

/* Returns a number in the status of a thread, such as "TracerPid"; -1 if it is not there. */
long attach_process_status(uint32_t pid, uint32_t tid, const char *field);

/* Returns a living thread of the process: the first one, if it has not ended. 0 for none. */
uint32_t attach_process_thread(uint32_t pid);

/* Calls `visit` for each thread, until it returns false. Returns whether it never did. */
bool attach_process_threads(uint32_t pid, bool (*visit)(uint32_t pid, uint32_t tid, void *context),
                            void *context);

#endif
