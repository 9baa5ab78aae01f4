/* SPDX-License-Identifier: MIT */
/** Marks: the user events of a trace, interpreted. Events of the clients that the format reserves
 * tell of islands and of changes of recording. */
#ifndef ANALYZER_TRAVEL_MARKS_H
#define ANALYZER_TRAVEL_MARKS_H

#include <stdbool.h>

#include <ttdtrace/trace.h>

enum heap_mark_kind {
    /** An event of a client of the program. */
    HEAP_MARK_EVENT,
    /** A text from outside of the program. */
    HEAP_MARK_OUTSIDE,
    HEAP_MARK_OPENED,
    HEAP_MARK_CLOSED,
    /** A change of recording: see ttd_thread_event. */
    HEAP_MARK_STARTED,
    HEAP_MARK_STOPPED,
    HEAP_MARK_THROTTLED,
    HEAP_MARK_PAUSED,
    HEAP_MARK_RESUMED,
    HEAP_MARK_RESET
};

struct heap_mark {
    enum heap_mark_kind kind;
    const struct ttd_user_event *event;
    /** The client that the mark is about; zeros for none. */
    uint8_t client[16];
    /** The activity and the throttle of an island; 0 for marks of other kinds. */
    uint64_t activity;
    uint64_t maximum;
    /** The user's data. */
    struct ttd_string data;
};

/** Returns the static name of a kind, such as "event". */
const char *heap_mark_kind_name(enum heap_mark_kind kind);

/** Interprets a user event. The mark points into `event`. An event of a reserved client whose data
 * does not have the form that the spec gives is an ordinary HEAP_MARK_EVENT. */
struct heap_mark heap_mark_of(const struct ttd_user_event *event);

/** Whether a position written as `mark:TEXT` means this mark. */
bool heap_mark_is_named(const struct heap_mark *mark, const char *text);

#endif
