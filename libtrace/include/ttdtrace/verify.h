/* SPDX-License-Identifier: MIT */
/**
 * Checking a whole trace, and recovering the intact parts of a damaged one (spec, "Damage").
 *
 * A trace is a file with all calls that allocate and release memory in one process. All of it has
 * checksums, and is readable up to any damage and behind it.
 *
 *     struct ttd_input input;
 *     struct ttd_verdict verdict;
 *     if (ttd_input_file("trace.bin", NULL, &input, NULL) != TTD_OK ||
 *         ttd_verify(&input, NULL, NULL, &verdict, NULL) != TTD_OK)
 *         return 1;
 *     printf("%s, %llu problems\n", verdict.ok ? "intact" : "not intact",
 *            (unsigned long long)verdict.problems);
 *
 * Threads: any number of calls may run at a time, with different inputs and outputs. The problem
 * function is called by the thread that made the call.
 */
#ifndef TTDTRACE_VERIFY_H
#define TTDTRACE_VERIFY_H

#include <stdbool.h>
#include <stddef.h>

#include <ttdtrace/allocator.h>
#include <ttdtrace/io.h>
#include <ttdtrace/model.h>
#include <ttdtrace/status.h>

TTD_BEGIN_DECLS

/** A problem found in a trace. */
struct ttd_problem {
    /** Status, offset, chunk and description. */
    struct ttd_error error;
    /** Bytes of the file that are unusable because of it; 0 if none. */
    uint64_t bytes;
    /** Chunks and events missing because of it; TTD_UNKNOWN if their number is not known. */
    uint64_t missing_chunks;
    uint64_t missing_events;
    /** Positions before and after the missing events; both 0:0 if none are. */
    struct ttd_position last_good;
    struct ttd_position first_good;
};

/**
 * Receives each problem, in file order, except that damage is reported only once the number of
 * missing events is known: a contradiction in an intact chunk may be reported before damage that
 * precedes it. Of several adjacent damaged parts the last one carries the number. Return false to
 * stop.
 */
typedef bool (*ttd_problem_function)(void *context, const struct ttd_problem *problem);

/** The receiver of problems. */
struct ttd_problem_observer {
    /** May be NULL. */
    ttd_problem_function function;
    /** Passed to the function. */
    void *context;
};

/** Result of a check. */
struct ttd_verdict {
    /** There is no problem, and the trace was closed cleanly. */
    bool ok;
    /** The last chunk is an End, and nothing follows it. */
    bool closed;
    uint64_t problems;
    uint64_t chunks;
    uint64_t events;
    /** Events that loss records count, and events missing by damage; a lower bound. */
    uint64_t lost_events;
    /** Size of the file, and bytes of it that belong to intact chunks. */
    uint64_t file_bytes;
    uint64_t intact_bytes;
};

/**
 * Checks a trace completely: every checksum, identity and padding; that every chunk decodes, every
 * id is defined before its use, positions do not decrease, and index and End agree with the chunks.
 * A trace that was not closed cleanly is a problem (TTD_ERROR_TRUNCATED), but not damage.
 *
 * @param input     copied; closed by this call in any case
 * @param allocator NULL for the default
 * @param observer  may be NULL
 * @param verdict   set on TTD_OK
 * @param error     detail on failure; may be NULL
 * @return TTD_OK if the check was completed, whatever it found. If no header is valid,
 *         TTD_ERROR_NOT_A_TRACE, or TTD_ERROR_CORRUPT if the file begins with the magic of a trace.
 *         TTD_ERROR_TRUNCATED if the only chunk is cut short; TTD_ERROR_UNSUPPORTED if the first
 *         chunk is of another major version; TTD_ERROR_ARGUMENT; TTD_ERROR_NO_MEMORY; TTD_ERROR_IO;
 *         TTD_END if the function stopped it.
 */
TTD_EXPORT enum ttd_status ttd_verify(const struct ttd_input *input,
                                      const struct ttd_allocator *allocator,
                                      const struct ttd_problem_observer *observer,
                                      struct ttd_verdict *verdict, struct ttd_error *error);

/**
 * Copies every intact chunk of a damaged or unfinished trace into a new one, with a loss record
 * for each gap, an index and an End. Chunks are renumbered; event numbers, positions and ids stay.
 *
 * Parameters and statuses as ttd_verify(). `output` is closed in any case; its failure gives
 * TTD_ERROR_IO.
 */
TTD_EXPORT enum ttd_status ttd_recover(const struct ttd_input *input,
                                       const struct ttd_output *output,
                                       const struct ttd_allocator *allocator,
                                       const struct ttd_problem_observer *observer,
                                       struct ttd_verdict *verdict, struct ttd_error *error);

TTD_END_DECLS

#endif
