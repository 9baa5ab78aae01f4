/* SPDX-License-Identifier: MIT */
/**
 * Demangling of names of C++ and Rust, of any length.
 *
 * Usual names are demangled at once. The demangler of libiberty has no limit on time, and its use
 * of stack grows with a name, so long names go to a process of their own. A name whose text would
 * be too long, or too deeply nested, is shortened from within: its inner template arguments become
 * "…".
 */
#ifndef ANALYZER_SYMBOLS_DEMANGLE_H
#define ANALYZER_SYMBOLS_DEMANGLE_H

#include <stdint.h>
#include <sys/types.h>
#include <ttdtrace/model.h>

/* A process that demangles long names, and may be killed for it. */

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
 * Demangles a name of at most UINT32_MAX bytes.
 *
 * @param text  set to the result, at most `limit` bytes; not NUL-terminated
 * @return its length; 0 if the name could not be demangled
 */
size_t demangle_process_find(struct demangle_process *process, struct ttd_string name, char *text,
                             size_t limit);

/** Ends the process. */
void demangle_process_end(struct demangle_process *process);

/** Stack that a name may need, for each of its bytes. */
#define DEMANGLE_STACK_RATIO 2048

/**
 * Demangles a NUL-terminated name. If the text is longer than `limit`, or the demangler gives up on
 * it, inner template arguments are left out, as few levels as necessary.
 *
 * @param text  set to the result; not NUL-terminated
 * @return its length; 0 if the name is not mangled
 */
size_t demangle_long(const char *name, char *text, size_t limit);

/** Length limit of a demangled name; longer ones are shortened. */
#define DEMANGLE_MAX 262144

/** Length limit of each further long name, when those before have this many bytes together. */
#define DEMANGLE_MANY_BYTES (64u << 20)
#define DEMANGLE_MANY_MAX   2048

/** All zero at first. */
struct demangler {
    struct demangle_process process;
    /** Bytes of the long names so far. */
    size_t long_bytes;
    /** The last name. */
    char *text;
};

void demangler_free(struct demangler *demangler);

/**
 * Demangles a name that is NUL-terminated and may contain any bytes. A name that is mangled and
 * cannot be demangled within the limits becomes the part before its first template arguments,
 * "…", and a number that distinguishes such names.
 *
 * @return the text, valid until the next call; of size 0 if the name is not mangled, or without
 *         memory
 */
struct ttd_string demangler_find(struct demangler *demangler, struct ttd_string name);

#endif
