/* SPDX-License-Identifier: MIT */
/**
 * Positions: where in a trace something is (spec, "Positions").
 *
 * A trace is a file with all calls that allocate and release memory in one process. A position is a
 * moment in it: it orders the events of all threads, and is written as two hexadecimal numbers.
 *
 *     struct ttd_position position;
 *     char text[TTD_POSITION_TEXT];
 *     if (!ttd_position_parse("FAB:17B1", &position))
 *         return 1;
 *     position.steps++;
 *     ttd_position_format(position, text);
 *     printf("%s\n", text);
 *
 * Threads: any thread may call these functions at any time; they have no state.
 */
#ifndef TTDTRACE_POSITION_H
#define TTDTRACE_POSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/version.h>

TTD_BEGIN_DECLS

/** The sequence ID of the last sequence event of a thread, and the steps counted since. */
struct ttd_position {
    uint64_t sequence;
    uint64_t steps;
};

/** Sequence of the invalid position; stands for events that never happened. */
#define TTD_SEQUENCE_INVALID UINT64_MAX
/** The largest valid sequence. */
#define TTD_SEQUENCE_MAX (UINT64_MAX - 1)

/** Bytes that ttd_position_format() needs at most, with the final NUL. */
#define TTD_POSITION_TEXT 34

/** Returns 0:0, before everything. */
static inline struct ttd_position ttd_position_min(void)
{
    struct ttd_position position = {0, 0};
    return position;
}

/** Returns the largest valid position, after everything. */
static inline struct ttd_position ttd_position_max(void)
{
    struct ttd_position position = {TTD_SEQUENCE_MAX, UINT64_MAX};
    return position;
}

/** Returns the invalid position, such as the end of a call that did not return. */
static inline struct ttd_position ttd_position_invalid(void)
{
    struct ttd_position position = {TTD_SEQUENCE_INVALID, UINT64_MAX};
    return position;
}

/** Returns whether a position is valid: whether its event happened. */
static inline bool ttd_position_is_valid(struct ttd_position position)
{
    return position.sequence != TTD_SEQUENCE_INVALID;
}

/** Returns a value below, equal to or above 0 if `a` is before, at or after `b`. */
static inline int ttd_position_compare(struct ttd_position a, struct ttd_position b)
{
    if (a.sequence != b.sequence)
        return a.sequence < b.sequence ? -1 : 1;
    if (a.steps != b.steps)
        return a.steps < b.steps ? -1 : 1;
    return 0;
}

/**
 * Writes `SEQUENCE:STEPS` in upper-case hexadecimal without padding, such as "1A29:3F7", and a
 * NUL to `text`. An invalid position gives "Invalid". Returns the length without the NUL.
 */
TTD_EXPORT size_t ttd_position_format(struct ttd_position position, char text[TTD_POSITION_TEXT]);

/**
 * Reads the text of ttd_position_format(), in either case. Returns true and sets `*position` if the
 * whole NUL-terminated text is one valid position; otherwise leaves it unchanged.
 */
TTD_EXPORT bool ttd_position_parse(const char *text, struct ttd_position *position);

TTD_END_DECLS

#endif
