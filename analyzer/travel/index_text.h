/* SPDX-License-Identifier: MIT */
/** What an index says in text: numbers in decimal, one blank between (spec, "Derived files"). */
#ifndef ANALYZER_TRAVEL_INDEX_TEXT_H
#define ANALYZER_TRAVEL_INDEX_TEXT_H

#include "heap/replay.h"
#include "heap/tables.h"

/**
 * A state between two events: all that happened at `position` or before, and no call in flight.
 * Either all its blocks are listed, or it is a *summary*: then only those are that end before
 * `end`, and all others are summed up.
 */
struct heap_keyframe {
    struct ttd_position position;
    /** What was replayed, and the number of the event that comes next. */
    struct heap_counts counts;
    uint64_t next;
    /** How many blocks are listed. */
    uint64_t blocks;
    bool is_summary;
    /** Of a summary: how many sums it has, and up to where it serves. */
    uint64_t sums;
    struct ttd_position end;
    /** Number in the sidecar of the first chunk of its sums or, if it has none, of its list. */
    uint64_t chunk;
};

/** The keys of the metadata records that come before the list of a keyframe or of a summary. */
#define HEAP_KEYFRAME_KEY "keyframe"
#define HEAP_SUMMARY_KEY  "summary"

/** The key of the metadata record that says when most bytes were live. */
#define HEAP_PEAK_KEY "peak"

/** The client of user events that are sums. */
#define HEAP_SUMS_CLIENT "ttdanalyze sums"

/** Room for the text of a record. */
#define HEAP_RECORD_MAX 512

/** Each writes the text, and returns its length. */
size_t heap_keyframe_print(const struct heap_keyframe *keyframe, char text[HEAP_RECORD_MAX]);
size_t heap_peak_print(const struct heap_peak *peak, char text[HEAP_RECORD_MAX]);
/** `table` is an index in heap_tables.by. */
size_t heap_sums_print(size_t table, const struct heap_group *sum, char text[HEAP_RECORD_MAX]);

/** Each returns false if the text is no such record, or says what cannot be. */
bool heap_keyframe_parse(struct ttd_string text, bool is_summary, struct heap_keyframe *keyframe);
bool heap_peak_parse(struct ttd_string text, struct heap_peak *peak);
bool heap_sums_parse(struct ttd_string text, size_t *table, struct heap_group *sum);

#endif
