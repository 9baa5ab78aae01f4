/* SPDX-License-Identifier: MIT */
/* Linked into a recorder for tests, in which the linker has these called instead: it meets the
 * bounds of a snapshot with little memory, and looks late. */
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "collect/collector.h"
#include "snapshot/search/scan.h"

struct scan *__real_scan_open(const struct scan_job *job);
struct scan *__wrap_scan_open(const struct scan_job *job);
void __real_memory_batch_read(struct memory_batch *batch, struct memory *memory);
void __wrap_memory_batch_read(struct memory_batch *batch, struct memory *memory);
void __real_launched_reap(struct collector *collector);
void __wrap_launched_reap(struct collector *collector);

/* Has no more than $REFERENCES_MAX references searched for. */
struct scan *__wrap_scan_open(const struct scan_job *job)
{
    struct scan_job bounded = *job;
    const char *max = getenv("REFERENCES_MAX");
    if (max)
        bounded.references_max = strtoull(max, NULL, 10);
    return __real_scan_open(&bounded);
}

/* Takes $READ_MILLISECONDS for each megabyte at least. */
void __wrap_memory_batch_read(struct memory_batch *batch, struct memory *memory)
{
    const char *milliseconds = getenv("READ_MILLISECONDS");
    struct timespec wait = {0, milliseconds ? atol(milliseconds) * 1000000 : 0};
    if (milliseconds)
        nanosleep(&wait, NULL);
    __real_memory_batch_read(batch, memory);
}

/* With $REAP_LATE, the program has ended whenever the recorder asks whether it has. */
void __wrap_launched_reap(struct collector *collector)
{
    siginfo_t info;
    if (getenv("REAP_LATE") && !collector->launched_has_ended)
        waitid(P_PID, (id_t)collector->launched, &info, WEXITED | WNOWAIT);
    __real_launched_reap(collector);
}
