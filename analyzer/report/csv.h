/* SPDX-License-Identifier: MIT */
/** Writing rows of comma-separated values. */
#ifndef ANALYZER_REPORT_CSV_H
#define ANALYZER_REPORT_CSV_H

#include "report/out.h"

typedef struct csv {
    out *output;
    bool has_field;
    /** Rows end with a column of the verdict; whether it is certain may change from row to row. */
    bool has_verdict;
    bool is_certain;
} csv;

void csv_init(csv *writer, out *output);

/** A whole row of names, which need no escaping: "a,b,c"; the last of them is added if there is a
 * verdict. */
void csv_header(csv *writer, const char *names);
void csv_bool(csv *writer, bool value);
void csv_string(csv *writer, ttd_string text);
void csv_text(csv *writer, const char *text);
/** One field of several texts, with ';' between, which is escaped in each of them. What is written
 * to the output after an item and before the next belongs to the item. */
void csv_list_begin(csv *writer);
void csv_list_item(csv *writer, ttd_string text, bool is_first);
void csv_list_end(csv *writer);
void csv_unsigned(csv *writer, uint64_t value);
/** With a sign if need be: how much more `to` is than `from`. */
void csv_difference(csv *writer, uint64_t from, uint64_t to);
/** As csv_unsigned(), but empty for TTD_UNKNOWN. */
void csv_count(csv *writer, uint64_t value);
void csv_double(csv *writer, double value);
void csv_hex(csv *writer, uint64_t value);
/** Empty for an invalid position. */
void csv_position(csv *writer, ttd_position position);
void csv_empty(csv *writer);
void csv_end_row(csv *writer);

#endif
