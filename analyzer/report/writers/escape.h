/* SPDX-License-Identifier: MIT */
/** Escaping of texts from a trace, which are untrusted and may be any bytes. Each kind of output
 * has its function here, and no such text is written in another way. */
#ifndef ANALYZER_REPORT_WRITERS_ESCAPE_H
#define ANALYZER_REPORT_WRITERS_ESCAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "report/writers/out.h"

/** Writes text for terminals and other readers: valid UTF-8, without control characters and without
 * characters that change the direction of text or have no width. All other bytes are written as
 * \xNN each, and a backslash as two, so that different texts stay different. */
void escape_text(struct text_output *output, struct ttd_string text);

/** Escapes a frame of a folded stack: like escape_text(), and its separator ';' as \x3b. */
void escape_folded(struct text_output *output, struct ttd_string text);

/** Writes the inside of a quoted field of CSV, or of a record of a list there: as escape_folded(),
 * with quotes doubled, and with the first characters escaped that would make a spreadsheet read
 * a formula. */
void escape_csv(struct text_output *output, struct ttd_string text);

/** Writes the inside of a JSON string, exactly: characters that escape_text() would escape are \u
 * escapes. Bytes that are no UTF-8 become U+FFFD. */
void escape_json(struct text_output *output, struct ttd_string text);

/** Makes a string for the functions above. */
struct ttd_string escape_string(const char *text);

/* The GUID of a client as text. */

/** Size of a GUID's text, with hyphens and the terminator. */
enum { GUID_TEXT = 37 };

/** Writes a GUID with hyphens, and returns `text`. */
const char *guid_text(const uint8_t guid[16], char text[GUID_TEXT]);

/** Whether a GUID belongs to a client; zeros mean none. */
bool guid_is_given(const uint8_t guid[16]);

#endif
