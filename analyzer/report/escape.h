/* SPDX-License-Identifier: MIT */
/**
 * Texts from a trace are untrusted: any bytes. Each kind of output has its function here, and no
 * such text goes out by another way.
 */
#ifndef ANALYZER_REPORT_ESCAPE_H
#define ANALYZER_REPORT_ESCAPE_H

#include "report/out.h"

/**
 * For terminals and other readers: valid UTF-8, without control characters, and without those
 * that change the direction of text. What is not is written as \xNN, a backslash as itself.
 */
void escape_text(out *output, ttd_string text);

/** The inside of a JSON string. Bytes that are no UTF-8 become U+FFFD. */
void escape_json(out *output, ttd_string text);

/** As escape_text(), with ':' instead of ';', which separates the frames of a folded stack. */
void escape_folded(out *output, ttd_string text);

/** A field of CSV, quoted if need be; escaped as for a terminal. */
void escape_csv(out *output, ttd_string text);

/** A string for those above. */
ttd_string escape_string(const char *text);

#endif
