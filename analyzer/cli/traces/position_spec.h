/* SPDX-License-Identifier: MIT */
/** Position specifications: the command line's forms of a position. The manual calls them
 * POSITION. */
#ifndef ANALYZER_CLI_POSITION_SPEC_H
#define ANALYZER_CLI_POSITION_SPEC_H

#include "cli/traces/source.h"

enum position_spec_kind {
    POSITION_SPEC_START,
    POSITION_SPEC_END,
    POSITION_SPEC_POSITION,
    POSITION_SPEC_EVENT,
    POSITION_SPEC_PERCENT,
    POSITION_SPEC_TIME,
    POSITION_SPEC_MARK
};

struct position_spec {
    enum position_spec_kind kind;
    struct ttd_position position;
    uint64_t event;
    double percent;
    /** Nanoseconds since the start of the recording. */
    uint64_t time;
    /** The text of a mark; not owned. */
    const char *mark;
};

/** The forms of a position, for help texts. */
#define POSITION_SPEC_FORMS                                                                        \
    "  FAB:17B1    sequence and steps, in hexadecimal\n"                                           \
    "  start, end  the beginning and the end of the trace\n"                                       \
    "  '#1234'     event number 1234, counted from 0 (quote it for the shell)\n"                   \
    "  50%         when half of the events have happened\n"                                        \
    "  +1.5s       1.5 seconds after the start; also ns, us, ms, min, h\n"                         \
    "  mark:TEXT   the first mark with that text, see 'ttdanalyze marks'\n"                        \
    "A position need not exist: the nearest one before it is taken.\n"

/** Parses a text; it must outlive `result`; false, with `result` untouched, if it has none of the
 * forms. */
bool position_spec_parse(const char *text, struct position_spec *result);

/** The use of a position. It matters for reallocations: they take effect at two positions. */
enum position_purpose {
    /** The state after the event is complete. */
    POSITION_FOR_STATE,
    /** The position of the event in the order of events. */
    POSITION_FOR_ORDER
};

/**
 * Finds the position. Leaves the reader at an undefined position.
 *
 * @return an exit status; on failure a message was printed
 */
int position_spec_resolve(const struct position_spec *spec, enum position_purpose purpose,
                          struct source *source, struct ttd_position *position);

/** The message for a range whose bounds leave no position between them. */
#define POSITION_RANGE_EMPTY "the range is empty: --to is not after --from"

/** Whether a range has a position. Returns an exit status; if it has none, a message was printed.
 */
int position_range_check(const char *command, const struct source *source,
                         struct ttd_position begin, struct ttd_position end);

#endif
