/* SPDX-License-Identifier: MIT */
/** Messages of the recorder, all on stderr: stdout belongs to the recorded program. All
 * parts of the recorder but the preload library print by it. */
#ifndef RECORDER_MESSAGES_H
#define RECORDER_MESSAGES_H

#include <stdbool.h>

#include <ttdtrace/status.h>

/** Prints a line "ttdrecord: ...". */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Messages that are printed once for each reason, however many traces they are about. */
enum message_kind { MESSAGE_NOT_WHOLE, MESSAGE_UNNAMED, MESSAGE_NAMELESS, MESSAGE_KINDS };

/** Shares the counts of messages with processes forked later. */
void messages_share(void);

/** Counts a message. Returns true if it is the first of its kind and reason: it is then printed. */
bool message_is_first(enum message_kind kind, int reason);

/** Returns how many messages of a kind were counted. */
unsigned message_count(enum message_kind kind);

/** Returns a number that identifies a reason: an errno value, or one derived from the status. */
int message_reason(const struct ttd_error *error);

/** Prints a failure of the library with the path of the file concerned. */
void message_error(const char *path, const struct ttd_error *error);

#endif
