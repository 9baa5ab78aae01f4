/* SPDX-License-Identifier: MIT */
/** Positions on a command line: their forms in help texts, and messages. Part of source.c, since
 * reading for a position may find damage of the source. */
#ifndef ANALYZER_CLI_POSITION_SPEC_H
#define ANALYZER_CLI_POSITION_SPEC_H

#include "cli/traces/source.h"
#include "travel/position_text.h"

/** The forms of a position, for help texts. */
#define POSITION_SPEC_FORMS                                                                        \
    "  FAB:17B1    sequence and steps, in hexadecimal\n"                                           \
    "  start, end  the beginning and the end of the trace\n"                                       \
    "  '#1234'     event number 1234, counted from 0 (quote it for the shell)\n"                   \
    "  50%         when half of the events have happened\n"                                        \
    "  +1.5s       1.5 seconds after the start; also ns, us, ms, min, h\n"                         \
    "  mark:TEXT   the first mark with that text, see 'ttdanalyze marks'\n"                        \
    "A position need not exist: the nearest one before it is taken.\n"

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
