/* SPDX-License-Identifier: MIT */
/** Filling in error details. Apart, since nearly all files need it. */
#ifndef TTD_BASE_FAIL_H
#define TTD_BASE_FAIL_H

#include <ttdtrace/status.h>

/** Fills in `error` (may be NULL), and returns `status`. */
enum ttd_status ttd_fail(struct ttd_error *error, enum ttd_status status, const char *what,
                         uint64_t offset, uint64_t chunk);

/** Fills in `error` for a failure of the system, and returns TTD_ERROR_IO. */
enum ttd_status ttd_fail_system(struct ttd_error *error, int system_error, const char *what,
                                uint64_t offset);

#endif
