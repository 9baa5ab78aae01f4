/* SPDX-License-Identifier: MIT */
/* What the recorder says, all of it on stderr: stdout is the recorded program's. */
#ifndef TTD_COLLECT_MESSAGES_H
#define TTD_COLLECT_MESSAGES_H

#include <stdbool.h>

#include <ttdtrace/status.h>

/* A line "ttdrecord: ...", printf-like. */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Messages that are printed once for each reason, however many traces they are about. */
enum message_kind { MESSAGE_NOT_WHOLE, MESSAGE_UNNAMED, MESSAGE_KINDS };

/* Lets the processes that are forked from now on know what was said. */
void messages_share(void);

/* Counts a message. Returns whether it is the first of its kind and reason, and is to be printed.
 */
bool message_is_first(enum message_kind kind, int reason);

/* How many of a kind were counted. */
unsigned message_count(enum message_kind kind);

/* The number that tells reasons apart: an errno value, or one for its status. */
int message_reason(const struct ttd_error *error);

/* Prints a failure of the library, with the file that it is about. */
void message_error(const char *path, const struct ttd_error *error);

#endif
