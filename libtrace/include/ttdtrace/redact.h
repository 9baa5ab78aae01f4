/* SPDX-License-Identifier: MIT */
/**
 * Removing private data from a trace, so that it can be shared.
 *
 * A trace is a file with all calls that allocate and release memory in one process. With options of
 * the recorder it also has contents of memory, and always names of files and functions, which not
 * everybody may see.
 *
 *     struct ttd_input input;
 *     struct ttd_output output;
 *     struct ttd_redaction removed;
 *     if (ttd_input_file("trace.bin", NULL, &input, NULL) != TTD_OK ||
 *         ttd_output_file("redacted.bin", NULL, &output, NULL) != TTD_OK ||
 *         ttd_redact(&input, &output, NULL, TTD_REDACT_STRINGS, &removed, NULL) != TTD_OK)
 *         return 1;
 *     printf("%llu strings removed\n", (unsigned long long)removed.strings);
 *
 * Threads: any number of calls may run at a time, with different inputs and outputs.
 */
#ifndef TTDTRACE_REDACT_H
#define TTDTRACE_REDACT_H

#include <stdint.h>

#include <ttdtrace/allocator.h>
#include <ttdtrace/io.h>
#include <ttdtrace/ids.h>
#include <ttdtrace/status.h>

TTD_BEGIN_DECLS

/** Strings are removed as well; see ttd_redact(). */
#define TTD_REDACT_STRINGS 1u

/** The metadata key of the list of removed contents. */
#define TTD_REDACTED_KEY "redacted"

/** Counts of the contents that ttd_redact() removed. */
struct ttd_redaction {
    /** Bytes of pages. */
    uint64_t page_bytes;
    /** Snapshots that had contents of memory. */
    uint64_t memory_snapshots;
    /** Registers of fatal signals. */
    uint64_t registers;
    /** Chunks of kinds that this library does not know. */
    uint64_t unknown_chunks;
    /** With TTD_REDACT_STRINGS: strings, metadata records, user events with data, build-ids. */
    uint64_t strings;
    uint64_t metadata;
    uint64_t user_events;
    uint64_t build_ids;
};

/**
 * Copies an intact trace without the contents of memory: pages, memory maps, headers of blocks, the
 * registers of fatal signals, and chunks of kinds that this library does not know are left out.
 * Events, positions, ids, losses and references (addresses only) are kept. With TTD_REDACT_STRINGS,
 * each string becomes `redacted-ID`, so that equal names stay equal; metadata records are left out,
 * except `writer`, `unrecorded`, `chosen`, `before`, `stacks` and `redacted`; the data of user
 * events and the build-ids of modules become empty. A metadata record TTD_REDACTED_KEY lists the
 * removed parts.
 *
 * Refuses a trace that is damaged or was not closed, with the first problem that ttd_verify()
 * finds; ttd_recover() makes an intact trace of it. After a refusal the output is not a trace.
 *
 * @param input      copied; closed by this call in any case
 * @param output     closed by this call in any case
 * @param allocator  NULL for the default
 * @param parts      0, or TTD_REDACT_STRINGS
 * @param removed    set on TTD_OK
 * @param error      detail on failure; may be NULL
 * @return TTD_OK; TTD_ERROR_NOT_A_TRACE, TTD_ERROR_CORRUPT, TTD_ERROR_TRUNCATED,
 *         TTD_ERROR_UNSUPPORTED, TTD_ERROR_LIMIT, TTD_ERROR_ARGUMENT, TTD_ERROR_NO_MEMORY,
 *         TTD_ERROR_IO.
 */
TTD_EXPORT enum ttd_status ttd_redact(const struct ttd_input *input,
                                      const struct ttd_output *output,
                                      const struct ttd_allocator *allocator, unsigned parts,
                                      struct ttd_redaction *removed, struct ttd_error *error);

TTD_END_DECLS

#endif
