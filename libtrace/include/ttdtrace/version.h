/* SPDX-License-Identifier: MIT */
/**
 * Version of the library and of the format it writes, and the guarantees from one version to the
 * next.
 *
 * The library reads and writes traces: files with all heap calls of a process.
 *
 *     printf("built with %s, runs with %s\n", TTD_VERSION_STRING, ttd_version());
 *
 * Before version 1.0 any minor version may change any interface: the soname has the number 0, and a
 * program must be built with the headers of the library that it runs with; ttd_version() returns
 * its version. From 1.0 on, as long as the soname stays the same:
 *
 * - Handles, such as struct ttd_reader, are opaque. Functions may be added; none changes.
 * - Structs of options begin with their size. They may grow at their end, and the library accepts
 *   every size they ever had: a program starts from the default of the header it was built with.
 * - All other structs keep their size and their members, since the library writes them into memory
 *   of the program. tests/lint/abi.c has the sizes.
 * - Enumerations and flags may get more values. A program preserves or ignores those that it does
 *   not know.
 * - Additions to the format appear as new kinds of batches: a reader returns only the kinds that it
 *   is asked for.
 *
 * Threads: any thread may call these functions at any time; they have no state.
 */
#ifndef TTDTRACE_VERSION_H
#define TTDTRACE_VERSION_H

#define TTD_VERSION_MAJOR  0
#define TTD_VERSION_MINOR  1
#define TTD_VERSION_PATCH  0
#define TTD_VERSION_STRING "0.1.0"

/** Version of the format (spec, "Versions"); it moves independently of the library's. */
#define TTD_FORMAT_MAJOR 1
#define TTD_FORMAT_MINOR 1

/* Visibility of the public functions. */
#if defined(_WIN32) && defined(TTD_BUILDING)
#define TTD_EXPORT __declspec(dllexport)
#elif defined(TTD_STATIC)
#define TTD_EXPORT
#elif defined(_WIN32)
#define TTD_EXPORT __declspec(dllimport)
#elif defined(__GNUC__)
#define TTD_EXPORT __attribute__((visibility("default")))
#else
#define TTD_EXPORT
#endif

#ifdef __cplusplus
#define TTD_BEGIN_DECLS extern "C" {
#define TTD_END_DECLS   }
#else
#define TTD_BEGIN_DECLS
#define TTD_END_DECLS
#endif

TTD_BEGIN_DECLS

/**
 * Returns the version of the library that is linked, as "MAJOR.MINOR.PATCH"; compare with
 * TTD_VERSION_STRING to find a header and a library that do not match. Static storage.
 */
TTD_EXPORT const char *ttd_version(void);

TTD_END_DECLS

#endif
