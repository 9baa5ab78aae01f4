/* SPDX-License-Identifier: MIT */
/* Ids of processes and threads in other PID namespaces, which these state: what they are here. */
#ifndef RECORDER_COLLECT_PROCESS_NAMESPACE_H
#define RECORDER_COLLECT_PROCESS_NAMESPACE_H

#include <stdint.h>

/* Returns the process that has this id in its own namespace, and the value at the address in its
 * memory, which no other has; 0 if there is none. */
uint32_t namespace_process(uint32_t inner, uint64_t address, uint64_t value);

/* Returns the thread of the process that has this id in its own namespace; 0 if it has ended. */
uint32_t namespace_thread(uint32_t pid, uint32_t inner);

#endif
