/* SPDX-License-Identifier: MIT */
/** Writing rows of comma-separated values. */
#ifndef ANALYZER_REPORT_CSV_H
#define ANALYZER_REPORT_CSV_H

#include "report/out.h"

struct csv {
    struct out *output;
    bool has_field;
    /** Rows end with a column of the verdict; whether it is certain may change from row to row. */
    bool has_verdict;
    bool is_certain;
};

void csv_init(struct csv *csv, struct out *output);

/** A whole row of names, which need no escaping: "a,b,c"; the last of them is added if there is a
 * verdict. */
void csv_header(struct csv *csv, const char *names);
void csv_bool(struct csv *csv, bool value);
void csv_string(struct csv *csv, struct ttd_string text);
void csv_text(struct csv *csv, const char *text);
/** One field of several texts, with ';' between, which is escaped in each of them. What is written
 * to the output after an item and before the next belongs to the item. */
void csv_list_begin(struct csv *csv);
void csv_list_item(struct csv *csv, struct ttd_string text, bool is_first);
void csv_list_end(struct csv *csv);
void csv_unsigned(struct csv *csv, uint64_t value);
/** With a sign if need be: how much more `to` is than `from`. */
void csv_difference(struct csv *csv, uint64_t from, uint64_t to);
/** As csv_unsigned(), but empty for TTD_UNKNOWN. */
void csv_count(struct csv *csv, uint64_t value);
void csv_double(struct csv *csv, double value);
void csv_hex(struct csv *csv, uint64_t value);
/** Empty for an invalid position. */
void csv_position(struct csv *csv, struct ttd_position position);
void csv_empty(struct csv *csv);
void csv_end_row(struct csv *csv);

#endif
