/* SPDX-License-Identifier: MIT */
/** Characters of untrusted texts, such as names of files: which ones a reader sees unchanged. */
#ifndef TTD_COMMON_VISIBLE_H
#define TTD_COMMON_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Decodes the UTF-8 sequence at `data` (`size` bytes, at least one). Returns its length, or 0 if
 * it is invalid: overlong, a surrogate, beyond U+10FFFF, cut off. */
size_t visible_decode(const unsigned char *data, size_t size, uint32_t *character);

/** Whether a reader could not see a character unchanged: controls, line separators, direction
 * marks, and characters without width such as tags and variation selectors. */
bool visible_is_hidden(uint32_t character);

/** Writes a text with each byte that is not of a visible character as \xNN, and a backslash as two,
 * so that different texts stay different. Ends it with a NUL, and cuts it off behind a whole
 * character where `room` bytes are too few; `room` is at least 1. */
void visible_escape(const char *text, size_t size, char *escaped, size_t room);

#endif
