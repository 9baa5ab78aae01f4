/* SPDX-License-Identifier: MIT */
/** Positions as people give them on the command line. */
#ifndef ANALYZER_CLI_MOMENT_H
#define ANALYZER_CLI_MOMENT_H

#include "cli/source.h"

enum moment_kind {
    MOMENT_START,
    MOMENT_END,
    MOMENT_POSITION,
    MOMENT_EVENT,
    MOMENT_PERCENT,
    MOMENT_TIME
};

struct moment {
    enum moment_kind kind;
    struct ttd_position position;
    uint64_t event;
    double percent;
    /** Nanoseconds since the start. */
    uint64_t time;
};

/** The forms that moment_parse() takes, for help texts. */
#define MOMENT_FORMS                                                                               \
    "  FAB:17B1    sequence and steps, in hexadecimal\n"                                           \
    "  start, end  the beginning and the end of the trace\n"                                       \
    "  '#1234'     event number 1234, counted from 0 (quote it for the shell)\n"                   \
    "  50%         when half of the events have happened\n"                                        \
    "  +1.5s       1.5 seconds after the start; also ns, us, ms, min, h\n"                         \
    "A position need not exist: the nearest one before it is taken.\n"

/** Reads a text; false, with `result` untouched, if it is none of the forms. */
bool moment_parse(const char *text, struct moment *result);

/** What a moment is asked for: it matters for reallocations, which take effect twice. */
enum moment_purpose {
    /** The state after the event is complete. */
    MOMENT_STATE,
    /** The place of the event in the order of events. */
    MOMENT_ORDER
};

/**
 * Finds the position. Moves the reader, and leaves it anywhere.
 *
 * @return an exit status; on failure a message was printed
 */
int moment_resolve(const struct moment *when, enum moment_purpose purpose, struct source *source,
                   struct ttd_position *position);

#endif
