/* SPDX-License-Identifier: MIT */
/* The file of a child's trace, which is open only while it is written to if descriptors are
 * scarce. */
#ifndef RECORDER_COLLECT_TRACE_CHILD_FILE_H
#define RECORDER_COLLECT_TRACE_CHILD_FILE_H

#include <ttdtrace/ttdtrace.h>

/*
 * Creates a file as ttd_output_file() does. `*place` is its path whenever the output is written to:
 * it may be renamed.
 */
enum ttd_status child_file_create(const char *path, char *const *place, struct ttd_output *output,
                                  struct ttd_error *error);

#endif
