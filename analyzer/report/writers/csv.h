/* SPDX-License-Identifier: MIT */
/** A writer of comma-separated values. */
#ifndef ANALYZER_REPORT_WRITERS_CSV_H
#define ANALYZER_REPORT_WRITERS_CSV_H

#include "report/writers/out.h"

struct csv {
    struct text_output *output;
    bool has_field;
    /** Every row ends with the column of certainty, whose value may change from row to row. */
    bool has_verdict;
    bool is_certain;
};

void csv_init(struct csv *csv, struct text_output *output);

/** Writes the header row: names without escaping, such as "a,b,c", and the column of certainty if
 * there is one. */
void csv_header(struct csv *csv, const char *names);
void csv_bool(struct csv *csv, bool value);
void csv_string(struct csv *csv, struct ttd_string text);
void csv_text(struct csv *csv, const char *text);
/** Writes a list: one field of several texts, separated by ';', which is escaped in each of them.
 * Output written directly after a record of the list belongs to that record. */
void csv_list_begin(struct csv *csv);
void csv_list_item(struct csv *csv, struct ttd_string text, bool is_first);
void csv_list_end(struct csv *csv);
void csv_unsigned(struct csv *csv, uint64_t value);
/** Writes `new_value` - `old_value`, with a sign if it is negative. */
void csv_difference(struct csv *csv, uint64_t old_value, uint64_t new_value);
/** Writes an unsigned field, or an empty one for TTD_UNKNOWN. */
void csv_count(struct csv *csv, uint64_t value);
void csv_double(struct csv *csv, double value);
void csv_hex(struct csv *csv, uint64_t value);
/** Writes a position; an empty field for an invalid one. */
void csv_position(struct csv *csv, struct ttd_position position);
void csv_empty(struct csv *csv);

/* Write an empty field unless `has`. */
void csv_unsigned_if(struct csv *csv, bool has, uint64_t value);
void csv_hex_if(struct csv *csv, bool has, uint64_t value);

void csv_end_row(struct csv *csv);

#endif
