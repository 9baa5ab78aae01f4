/* SPDX-License-Identifier: MIT */
/** Version of the library and of the format it writes. */
#ifndef TTDTRACE_VERSION_H
#define TTDTRACE_VERSION_H

#define TTD_VERSION_MAJOR  0
#define TTD_VERSION_MINOR  1
#define TTD_VERSION_PATCH  0
#define TTD_VERSION_STRING "0.1.0"

/** Version of the format (spec, "Versions"); it moves independently of the library's. */
#define TTD_FORMAT_MAJOR 1
#define TTD_FORMAT_MINOR 0

/* Visibility of the public functions. */
#if defined(TTD_STATIC)
#define TTD_EXPORT
#elif defined(_WIN32)
#if defined(TTD_BUILDING)
#define TTD_EXPORT __declspec(dllexport)
#else
#define TTD_EXPORT __declspec(dllimport)
#endif
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
 * The version of the library that is linked, as "MAJOR.MINOR.PATCH"; compare with
 * TTD_VERSION_STRING to find a header and a library that do not match. Static storage.
 */
TTD_EXPORT const char *ttd_version(void);

TTD_END_DECLS

#endif
