/* SPDX-License-Identifier: MIT */
/* Linked into a recorder for tests, in which the linker has these called instead: it meets the
 * bounds of a snapshot with little memory, and looks late. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "collect/collector.h"
#include "snapshot/search/scan.h"
#include "snapshot/stop/borrow.h"

struct scan *__real_scan_open(const struct scan_job *job);
struct scan *__wrap_scan_open(const struct scan_job *job);
void __real_memory_batch_read(struct memory_batch *batch, struct memory *memory);
void __wrap_memory_batch_read(struct memory_batch *batch, struct memory *memory);
enum borrow_result __real_borrow_by_any(struct threads *threads, struct borrowed_call *call);
enum borrow_result __wrap_borrow_by_any(struct threads *threads, struct borrowed_call *call);
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

/* With $BURY_LATE, none of a few threads can be made to wait for a copy that has ended. */
enum borrow_result __wrap_borrow_by_any(struct threads *threads, struct borrowed_call *call)
{
    if (getenv("BURY_LATE") && threads->are_some && call->number == SYS_wait4)
        return BORROW_REFUSED;
    return __real_borrow_by_any(threads, call);
}

/* With $REAP_LATE, the program has ended whenever the recorder asks whether it has. */
void __wrap_launched_reap(struct collector *collector)
{
    siginfo_t info;
    if (getenv("REAP_LATE") && !collector->launched_has_ended)
        waitid(P_PID, (id_t)collector->launched, &info, WEXITED | WNOWAIT);
    __real_launched_reap(collector);
}
