/* SPDX-License-Identifier: MIT */
/** What an index says in text: numbers in decimal, one blank between (spec, "Derived files"). */
#ifndef ANALYZER_HEAP_RECORDS_H
#define ANALYZER_HEAP_RECORDS_H

#include "heap/replay.h"
#include "heap/tables.h"

/**
 * A state between two events: all that happened at `position` or before, and no call in flight.
 * Either all its blocks are listed, or it is a *summary*: then only those are that end before
 * `end`, and all others are summed up.
 */
typedef struct heap_keyframe {
    ttd_position position;
    /** What was replayed, and the number of the event that comes next. */
    heap_counts counts;
    uint64_t next;
    /** How many blocks are listed. */
    uint64_t blocks;
    bool is_summary;
    /** Of a summary: how many sums it has, and up to where it serves. */
    uint64_t sums;
    ttd_position end;
    /** Number in the sidecar of the first chunk of its sums or, if it has none, of its list. */
    uint64_t chunk;
} heap_keyframe;

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
size_t heap_keyframe_print(const heap_keyframe *keyframe, char text[HEAP_RECORD_MAX]);
size_t heap_peak_print(const heap_peak *peak, char text[HEAP_RECORD_MAX]);
/** `table` is an index in heap_tables.by. */
size_t heap_sums_print(size_t table, const heap_group *sum, char text[HEAP_RECORD_MAX]);

/** Each returns false if the text is no such record, or says what cannot be. */
bool heap_keyframe_parse(ttd_string text, bool is_summary, heap_keyframe *keyframe);
bool heap_peak_parse(ttd_string text, heap_peak *peak);
bool heap_sums_parse(ttd_string text, size_t *table, heap_group *sum);

#endif
