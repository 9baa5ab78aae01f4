/* SPDX-License-Identifier: MIT */
/** Positions as people give them on the command line. */
#ifndef ANALYZER_CLI_POSITION_SPEC_H
#define ANALYZER_CLI_POSITION_SPEC_H

#include "cli/source.h"

enum position_spec_kind {
    POSITION_SPEC_START,
    POSITION_SPEC_END,
    POSITION_SPEC_POSITION,
    POSITION_SPEC_EVENT,
    POSITION_SPEC_PERCENT,
    POSITION_SPEC_TIME
};

struct position_spec {
    enum position_spec_kind kind;
    struct ttd_position position;
    uint64_t event;
    double percent;
    /** Nanoseconds since the start. */
    uint64_t time;
};

/** The forms that position_spec_parse() takes, for help texts. */
#define POSITION_SPEC_FORMS                                                                        \
    "  FAB:17B1    sequence and steps, in hexadecimal\n"                                           \
    "  start, end  the beginning and the end of the trace\n"                                       \
    "  '#1234'     event number 1234, counted from 0 (quote it for the shell)\n"                   \
    "  50%         when half of the events have happened\n"                                        \
    "  +1.5s       1.5 seconds after the start; also ns, us, ms, min, h\n"                         \
    "A position need not exist: the nearest one before it is taken.\n"

/** Reads a text; false, with `result` untouched, if it is none of the forms. */
bool position_spec_parse(const char *text, struct position_spec *result);

/** What a moment is asked for: it matters for reallocations, which take effect twice. */
enum position_purpose {
    /** The state after the event is complete. */
    POSITION_FOR_STATE,
    /** The place of the event in the order of events. */
    POSITION_FOR_ORDER
};

/**
 * Finds the position. Moves the reader, and leaves it anywhere.
 *
 * @return an exit status; on failure a message was printed
 */
int position_spec_resolve(const struct position_spec *spec, enum position_purpose purpose,
                          struct source *source, struct ttd_position *position);

#endif
