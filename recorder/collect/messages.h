/* SPDX-License-Identifier: MIT */
/* What the recorder says, all of it on stderr: stdout is the recorded program's. */
#ifndef TTD_COLLECT_MESSAGES_H
#define TTD_COLLECT_MESSAGES_H

#include <ttdtrace/status.h>

/* A line "ttdrecord: ...", printf-like. */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A failure of the library, with the file that it is about. */
void message_error(const char *path, const ttd_error *error);

#endif
