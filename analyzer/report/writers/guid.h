/* SPDX-License-Identifier: MIT */
/** The GUID of a client as text. */
#ifndef ANALYZER_REPORT_WRITERS_GUID_H
#define ANALYZER_REPORT_WRITERS_GUID_H

#include <stdbool.h>
#include <stdint.h>

/** Size of a GUID's text, with hyphens and the terminator. */
enum { GUID_TEXT = 37 };

/** Writes a GUID with hyphens, and returns `text`. */
const char *guid_text(const uint8_t guid[16], char text[GUID_TEXT]);

/** Whether a GUID is that of a client; zeros are of none. */
bool guid_is_given(const uint8_t guid[16]);

#endif
