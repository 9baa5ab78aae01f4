/* SPDX-License-Identifier: MIT */
/** A process that demangles long names, and may be killed for it. */
#ifndef ANALYZER_SYMBOLS_DEMANGLE_PROCESS_H
#define ANALYZER_SYMBOLS_DEMANGLE_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#include <ttdtrace/model.h>

/** Processor time for one name, and for all names, in microseconds. */
#define DEMANGLE_TIME       UINT64_C(500000)
#define DEMANGLE_TOTAL_TIME UINT64_C(30000000)

/** Processes that may fail before no other one is started. */
#define DEMANGLE_FAILURES_MAX 8

/** All zero at first. The process is started when it is asked for the first time. */
struct demangle_process {
    /** 0: none. */
    pid_t id;
    int socket;
    unsigned failures;
    /** Processor time that answers took, in microseconds. */
    uint64_t time;
};

/**
 * Demangles a name (demangle_long.h) of at most UINT32_MAX bytes.
 *
 * @param text  set to the result, at most `limit` bytes; not NUL-terminated
 * @return its length; 0 if the name could not be demangled
 */
size_t demangle_process_find(struct demangle_process *process, struct ttd_string name, char *text,
                             size_t limit);

/** Ends the process. */
void demangle_process_end(struct demangle_process *process);

#endif
