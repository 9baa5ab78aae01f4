/* SPDX-License-Identifier: MIT */
/**
 * Texts from a trace are untrusted: any bytes. Each kind of output has its function here, and no
 * such text goes out by another way.
 */
#ifndef ANALYZER_REPORT_ESCAPE_H
#define ANALYZER_REPORT_ESCAPE_H

#include "report/out.h"

/**
 * For terminals and other readers: valid UTF-8, without control characters, and without those that
 * change the direction of text or have no width. Each byte of what is not is written as \xNN, and a
 * backslash as two, so that every text is written in a way of its own.
 */
void escape_text(struct out *output, struct ttd_string text);

/** As escape_text(), and ';', which separates the frames of a folded stack, as \x3b. */
void escape_folded(struct out *output, struct ttd_string text);

/**
 * The inside of a quoted field of CSV, or of an element of a list there: as escape_folded(), quotes
 * doubled. What begins a formula in spreadsheets is escaped at the beginning.
 */
void escape_csv(struct out *output, struct ttd_string text);

/** The inside of a JSON string, exact: what escape_text() would escape is a \u escape. Bytes that
 * are no UTF-8 become U+FFFD. */
void escape_json(struct out *output, struct ttd_string text);

/** A string for those above. */
struct ttd_string escape_string(const char *text);

#endif
