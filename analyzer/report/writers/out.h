/* SPDX-License-Identifier: MIT */
/** Buffered output to a descriptor. After the first failure nothing more is written, so that
 * callers check once, at the end. */
#ifndef ANALYZER_REPORT_WRITERS_OUT_H
#define ANALYZER_REPORT_WRITERS_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/model.h>

#define OUT_BUFFER 65536

/** Fewer columns than these are taken for none: nothing would fit. */
#define OUT_WIDTH_MIN 20

struct text_output {
    int descriptor;
    /** The errno of the first failure, or 0. */
    int error;
    /** Bytes that may still be written, UINT64_MAX for no limit; and whether the limit was
     * exceeded: an error. */
    uint64_t room;
    bool is_full;
    /** Whether escape sequences for colours may be used. */
    bool has_color;
    /** Whether the reader's locale is UTF-8. */
    bool has_utf8;
    /** The columns of a line, from OUT_WIDTH_MIN on: a longer one goes on in lines that are
     * indented further. 0 for lines of any length. */
    size_t width;
    size_t used;
    /** Where the current line begins in the buffer; and whether a part of it was written already,
     * so that it cannot be broken. */
    size_t line;
    bool is_line_begun;
    /** Characters since the last new line. */
    size_t column;
    char buffer[OUT_BUFFER];
};

void out_init(struct text_output *output, int descriptor, bool has_color);

/** Writes the buffer to the descriptor. False if anything has failed so far. */
bool out_flush(struct text_output *output);

/** Writes the whole pages in the buffer: parts of pages take the system much longer. Less than a
 * page remains. For output without a width. */
void out_flush_pages(struct text_output *output);

/** Writes characters without a new line. */
void out_write(struct text_output *output, const char *data, size_t size);

/** For out_char(): ends a line, or makes room. */
void out_char_slowly(struct text_output *output, char c);

static inline void out_char(struct text_output *output, char c)
{
    if (c == '\n' || output->used == OUT_BUFFER) {
        out_char_slowly(output, c);
        return;
    }
    output->buffer[output->used++] = c;
    output->column++;
}

void out_text(struct text_output *output, const char *text);
void out_unsigned(struct text_output *output, uint64_t value);
/** Writes a number with thousands separated by commas. */
void out_grouped(struct text_output *output, uint64_t value);
/** Writes a number of bytes with three significant digits: "15.6 MB"; below 1,000 "12 bytes". */
void out_size(struct text_output *output, uint64_t bytes);
/** Writes nanoseconds with three significant digits: "65.2 ms"; from 1,000 seconds on all digits
 * before the point: "86,400 s". */
void out_duration(struct text_output *output, uint64_t time);
/** Writes lower-case hexadecimal with 0x. */
void out_hex(struct text_output *output, uint64_t value);
void out_position(struct text_output *output, struct ttd_position position);

/** Nanoseconds of a second; and the size of any text that time_text() writes. */
#define TIME_SECOND UINT64_C(1000000000)
#define TIME_TEXT   32

/** Writes a time since the start as "+1.25s", rounded to three significant digits, but no coarser
 * than to seconds: a later time never looks earlier. */
void time_text(char text[TIME_TEXT], uint64_t time);
__attribute__((format(printf, 2, 3))) void out_format(struct text_output *output,
                                                      const char *format, ...);

/** Writes spaces up to `column`, counted from 0; at least one unless the line is empty. */
void out_tab(struct text_output *output, size_t column);

/** Writes a bar of `columns` columns if the share is 1, with spaces up to these: in eighths of a
 * column, in whole columns without UTF-8. */
void out_bar(struct text_output *output, double share, size_t columns);

/** Starts bold text, until out_plain(), if there are colours. */
void out_bold(struct text_output *output);
/** Starts text about errors and uncertainty. */
void out_alarm(struct text_output *output);
void out_dim(struct text_output *output);
void out_plain(struct text_output *output);

/* Escaping of texts from a trace: they are untrusted and may be any bytes. Each kind of output has
 * its function here, and no such text is written in another way. */

/** Writes text for terminals and other readers: valid UTF-8, without control characters and without
 * characters that change the direction of text or have no width. All other bytes are written as
 * \xNN each, and a backslash as two, so that different texts stay different. */
void escape_text(struct text_output *output, struct ttd_string text);

/** Returns the columns in which escape_text() writes the character at an offset below text.size,
 * and moves the offset behind it. */
size_t escape_columns(struct ttd_string text, size_t *offset);

/** Escapes a frame of a folded stack: like escape_text(), and its separator ';' as \x3b. */
void escape_folded(struct text_output *output, struct ttd_string text);

/** Writes the inside of a quoted field of CSV, or of a record of a list there: as escape_folded(),
 * with quotes doubled, and with the first characters escaped that would make a spreadsheet read
 * a formula. */
void escape_csv(struct text_output *output, struct ttd_string text);

/** Writes the inside of a JSON string, exactly: characters that escape_text() would escape are \u
 * escapes. Bytes that are no UTF-8 become U+FFFD. */
void escape_json(struct text_output *output, struct ttd_string text);

/** Writes text in an element or a quoted attribute of XML. */
void escape_xml(struct text_output *output, struct ttd_string text);

/** Writes text in a line of a format in which a comment begins with '#'. */
void escape_comment(struct text_output *output, struct ttd_string text);

/** Write a property of a workflow command of GitHub Actions, and its message. */
void escape_property(struct text_output *output, struct ttd_string text);
void escape_message(struct text_output *output, struct ttd_string text);

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
