/* SPDX-License-Identifier: MIT */
/** Positions as text, in the forms that the manual calls POSITION, and the positions of a trace
 * that they stand for. */
#ifndef ANALYZER_TRAVEL_POSITION_TEXT_H
#define ANALYZER_TRAVEL_POSITION_TEXT_H

#include <stdbool.h>

#include "travel/heap_trace.h"

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

/** Parses a text; it must outlive `result`; false, with `result` untouched, if it has none of the
 * forms. Does not depend on the locale. */
bool position_spec_parse(const char *text, struct position_spec *result);

/** The use of a position. It matters for reallocations: they take effect at two positions. */
enum position_purpose {
    /** The state after the event is complete. */
    POSITION_FOR_STATE,
    /** The position of the event in the order of events. */
    POSITION_FOR_ORDER
};

/** A position that was found. */
struct position_found {
    struct ttd_position position;
    /** Number of readable events, if a position in percent was based on it because the trace does
     * not state its total; else 0. */
    uint64_t part_of;
    /** The reason why a search for a mark ended before the trace does; status TTD_OK if it did not.
     */
    struct ttd_error ended;
};

/**
 * Finds the position of a trace. Leaves the reader at an undefined position.
 *
 * @param trace  its hook sees the batches of a search for a mark
 * @param end    the End of the trace; NULL if it has none
 * @param found  set on TTD_OK and TTD_END
 * @return TTD_OK; TTD_END (no mark has the text); TTD_ERROR_MISUSE (wall times are not known);
 *         TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, the hook's status, and others of a reader.
 */
enum ttd_status position_spec_find(const struct heap_trace *trace, const struct ttd_end *end,
                                   const struct position_spec *spec, enum position_purpose purpose,
                                   struct position_found *found, struct ttd_error *error);

#endif
