/* SPDX-License-Identifier: MIT */
/**
 * Text of several pieces in one statement: say(output, bytes(size), " in ", blocks(count), "\n").
 * The type of a piece decides how it is written:
 *
 * - a C string, as it is: words of ours only;
 * - a struct ttd_string, which is untrusted, escaped by escape_text();
 * - a struct ttd_position, as "FAB:17B1";
 * - one of the pieces below.
 *
 * Numbers by themselves do not compile, since they have several forms.
 */
#ifndef ANALYZER_REPORT_SECTIONS_SAY_H
#define ANALYZER_REPORT_SECTIONS_SAY_H

#include <string.h>

#include "report/sections/report.h"
#include "report/writers/out.h"

/** A number, and the function that writes it. */
struct say_value {
    void (*write)(struct text_output *output, uint64_t value);
    uint64_t value;
};
/** "12345". */
#define number(VALUE) ((struct say_value){out_unsigned, VALUE})
/** "12,345". */
#define grouped(VALUE) ((struct say_value){out_grouped, VALUE})
/** "0x3039". */
#define hex(VALUE) ((struct say_value){out_hex, VALUE})
/** A number of bytes: "12.3 kB". */
#define rounded(BYTES) ((struct say_value){out_size, BYTES})
/** Nanoseconds: "12.3 ms". */
#define lasting(TIME) ((struct say_value){out_duration, TIME})
/** A number of bytes in a heading: "4,096 bytes", and from 100,000 on "154 kB (153,600 bytes)". */
#define sized(BYTES) ((struct say_value){report_size, BYTES})

/** A number and its unit: "12,345 calls". */
struct say_count {
    uint64_t value;
    const char *unit;
};
#define counted(VALUE, UNIT) ((struct say_count){VALUE, UNIT})
#define bytes(VALUE)         counted(VALUE, "byte")
#define blocks(VALUE)        counted(VALUE, "block")

/** "12 %". */
struct say_percent {
    double value;
};
#define percent(VALUE) ((struct say_percent){VALUE})

/** A position, and its wall time if that is known: "FAB:17B1 (+1.25s)". */
struct say_moment {
    struct report *report;
    struct ttd_position position;
};
#define moment(REPORT, POSITION) ((struct say_moment){REPORT, POSITION})

/** Spaces up to a column. */
struct say_tab {
    size_t column;
};
#define tab(COLUMN) ((struct say_tab){COLUMN})

/** The style of the text behind it. */
struct say_style {
    void (*write)(struct text_output *output);
};
#define BOLD  ((struct say_style){out_bold})
#define ALARM ((struct say_style){out_alarm})
#define DIM   ((struct say_style){out_dim})
#define PLAIN ((struct say_style){out_plain})

/* Most words are literals. One of a single character costs a third as out_char(). */
static inline void say_text(struct text_output *output, const char *text)
{
    if (__builtin_constant_p(strlen(text) == 1) && strlen(text) == 1)
        out_char(output, text[0]);
    else
        out_text(output, text);
}

static inline void say_value(struct text_output *output, struct say_value piece)
{
    piece.write(output, piece.value);
}

/** Writes a number and its unit, in the plural for all but 1: "2 blocks". */
void report_count(struct text_output *output, uint64_t count, const char *unit);

/** Writes a number of bytes, which are rounded first if they are many. */
void report_size(struct text_output *output, uint64_t size);

static inline void say_count(struct text_output *output, struct say_count piece)
{
    report_count(output, piece.value, piece.unit);
}

static inline void say_percent(struct text_output *output, struct say_percent piece)
{
    out_format(output, "%.0f %%", piece.value);
}

/** Writes a position, and in parentheses its wall time if that is known. */
void report_position_text(struct report *report, struct ttd_position position);

static inline void say_moment(struct text_output *output, struct say_moment piece)
{
    (void)output;
    report_position_text(piece.report, piece.position);
}

static inline void say_tab(struct text_output *output, struct say_tab piece)
{
    out_tab(output, piece.column);
}

static inline void say_style(struct text_output *output, struct say_style piece)
{
    piece.write(output);
}

#define SAY_PIECE(PIECE)                                                                           \
    _Generic((PIECE),                                                                              \
        char *: say_text,                                                                          \
        const char *: say_text,                                                                    \
        struct ttd_string: escape_text,                                                            \
        struct ttd_position: out_position,                                                         \
        struct say_value: say_value,                                                               \
        struct say_count: say_count,                                                               \
        struct say_percent: say_percent,                                                           \
        struct say_moment: say_moment,                                                             \
        struct say_tab: say_tab,                                                                   \
        struct say_style: say_style)(say_output, PIECE)

/* Each applies SAY_PIECE() to so many pieces. */
#define SAY_1(PIECE)       SAY_PIECE(PIECE)
#define SAY_2(PIECE, ...)  SAY_PIECE(PIECE), SAY_1(__VA_ARGS__)
#define SAY_3(PIECE, ...)  SAY_PIECE(PIECE), SAY_2(__VA_ARGS__)
#define SAY_4(PIECE, ...)  SAY_PIECE(PIECE), SAY_3(__VA_ARGS__)
#define SAY_5(PIECE, ...)  SAY_PIECE(PIECE), SAY_4(__VA_ARGS__)
#define SAY_6(PIECE, ...)  SAY_PIECE(PIECE), SAY_5(__VA_ARGS__)
#define SAY_7(PIECE, ...)  SAY_PIECE(PIECE), SAY_6(__VA_ARGS__)
#define SAY_8(PIECE, ...)  SAY_PIECE(PIECE), SAY_7(__VA_ARGS__)
#define SAY_9(PIECE, ...)  SAY_PIECE(PIECE), SAY_8(__VA_ARGS__)
#define SAY_10(PIECE, ...) SAY_PIECE(PIECE), SAY_9(__VA_ARGS__)
#define SAY_11(PIECE, ...) SAY_PIECE(PIECE), SAY_10(__VA_ARGS__)
#define SAY_12(PIECE, ...) SAY_PIECE(PIECE), SAY_11(__VA_ARGS__)

/* Names the macro above that has as many parameters as there are pieces. */
#define SAY_CHOOSE(P1, P2, P3, P4, P5, P6, P7, P8, P9, P10, P11, P12, NAME, ...) NAME

/** Writes up to twelve pieces, in their order. */
#define say(OUTPUT, ...)                                                                           \
    do {                                                                                           \
        struct text_output *say_output = (OUTPUT);                                                 \
        SAY_CHOOSE(__VA_ARGS__, SAY_12, SAY_11, SAY_10, SAY_9, SAY_8, SAY_7, SAY_6, SAY_5, SAY_4,  \
                   SAY_3, SAY_2, SAY_1, )                                                          \
        (__VA_ARGS__);                                                                             \
    } while (0)

#endif
