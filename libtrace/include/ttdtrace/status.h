/* SPDX-License-Identifier: MIT */
/**
 * Statuses of functions, and details of a failure.
 *
 * Every function that can fail returns such a status.
 *
 *     struct ttd_input input;
 *     struct ttd_error error;
 *     if (ttd_input_file("missing.bin", NULL, &input, &error) != TTD_OK)
 *         printf("%s\n", ttd_status_text(error.status));
 *
 * Threads: any thread may call these functions at any time; they have no state.
 */
#ifndef TTDTRACE_STATUS_H
#define TTDTRACE_STATUS_H

#include <stdint.h>

#include <ttdtrace/version.h>

TTD_BEGIN_DECLS

/** Outcome of a function that can fail. Values are stable. */
enum ttd_status {
    TTD_OK = 0,
    /** Nothing more to read. Not an error. */
    TTD_END = 1,
    /** The input does not begin with the magic of a trace. */
    TTD_ERROR_NOT_A_TRACE = 2,
    /** A checksum, an identity or a value is wrong. */
    TTD_ERROR_CORRUPT = 3,
    /** The input ends inside a chunk. */
    TTD_ERROR_TRUNCATED = 4,
    /** Valid, but of a version, codec or critical kind that this library does not know. */
    TTD_ERROR_UNSUPPORTED = 5,
    /** A limit of the format was reached (spec, "Limits"). */
    TTD_ERROR_LIMIT = 6,
    /** The allocator returned NULL. */
    TTD_ERROR_NO_MEMORY = 7,
    /** The input or output function failed; `system_error` has its reason. */
    TTD_ERROR_IO = 8,
    /** An argument is invalid. The object is unchanged. */
    TTD_ERROR_ARGUMENT = 9,
    /** The call is not allowed in this state, such as writing after an error. */
    TTD_ERROR_MISUSE = 10,
    /** A function of the caller has asked to end the call. */
    TTD_ERROR_CANCELLED = 11
};

/** Offset or chunk of an error that has none. */
#define TTD_NOWHERE UINT64_MAX

/** Detail of a failure; the caller owns it. Written only when a function fails. */
struct ttd_error {
    enum ttd_status status;
    /** errno or its like for TTD_ERROR_IO, else 0. */
    int system_error;
    /** File offset in bytes of the chunk or field at fault, or TTD_NOWHERE. */
    uint64_t offset;
    /** Number of the chunk at fault, or TTD_NOWHERE. */
    uint64_t chunk;
    /** Description of the failure, such as "payload checksum"; static storage, never NULL, no final
     * period. */
    const char *what;
};

/**
 * Returns a short English text for a status, such as "corrupt"; static storage. An unknown value
 * gives "unknown status".
 */
TTD_EXPORT const char *ttd_status_text(enum ttd_status status);

TTD_END_DECLS

#endif
