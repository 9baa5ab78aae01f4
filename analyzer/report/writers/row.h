/* SPDX-License-Identifier: MIT */
/**
 * A writer of records, each an object of JSON or a row of CSV. A *visitor* is a function that
 * passes the members of one record to a row by name, once for all forms.
 *
 * JSON has objects and arrays at any depth. CSV has only the members of the records between
 * row_begin_record() and row_end_record(), one column each; the objects and arrays around them and
 * within them are left out. `key` is the member's name, NULL in an array.
 */
#ifndef ANALYZER_REPORT_WRITERS_ROW_H
#define ANALYZER_REPORT_WRITERS_ROW_H

#include "report/writers/out.h"

/** Limit on levels of nesting. */
#define ROW_DEPTH_MAX 16

struct report;

/** Types of the values of records. */
enum row_type {
    ROW_NULL,
    /** A number; and one below zero, by its magnitude. */
    ROW_UNSIGNED,
    ROW_NEGATIVE,
    ROW_REAL,
    ROW_BOOL,
    /** An address, a handle or flags: a number that is written in hexadecimal. */
    ROW_ADDRESS,
    ROW_POSITION,
    ROW_TEXT
};

/** A typed value. A text is valid during the call that receives it. */
struct row_value {
    enum row_type type;
    uint64_t number;
    double real;
    struct ttd_position position;
    struct ttd_string text;
};

/** Receiver of typed values: the third form of a row, beside JSON and CSV. It gets the columns of
 * CSV, by name, from the records of one list. */
struct row_sink {
    /** Key of the array whose objects are the records. NULL for records that are in no array. */
    const char *list;
    void (*value)(struct row_sink *sink, const char *key, const struct row_value *value);
    void (*end_record)(struct row_sink *sink);
};

/** A list of records in an array, as row_first() begins it. */
struct row_list {
    /** The next record, the number of records from there on, and the size of each. */
    const char *next;
    size_t left;
    size_t size;
};

struct row {
    struct text_output *output;
    /** For visitors; NULL if none of them needs it. */
    struct report *report;
    bool is_json;
    /** CSV: names are written instead of values; and the header is complete. */
    bool is_header;
    bool has_header;
    /** JSON: one member a line, with a new line at the end; otherwise all in one line, without its
     * end. */
    bool is_indented;
    /** CSV: every row ends with the column of certainty, whose value may change from row to row. */
    bool has_verdict;
    bool is_certain;
    /** Levels of objects and arrays, and the level of the members of records. */
    unsigned depth;
    unsigned record_depth;
    /** The level has a member already; in CSV by level 0, the row has a column. */
    bool has_member[ROW_DEPTH_MAX + 1];
    struct row_list list;
    /** NULL if text is written. */
    struct row_sink *sink;
    /** Whether the list of the sink is open, and the level of the members of its records. */
    bool is_in_list;
    unsigned list_depth;
    /** Key of the field that is being composed. */
    const char *field_key;
};

/** Begins JSON. */
void row_init_json(struct row *row, struct text_output *output, bool is_indented);
/** Begins CSV. */
void row_init_csv(struct row *row, struct text_output *output);
/** Begins records for a sink. Fields are composed in the output, whose text is dropped. */
void row_init_sink(struct row *row, struct text_output *output, struct row_sink *sink);

/** CSV and sinks: whether members are left out here. */
static inline bool row_is_skipped(const struct row *row)
{
    if (row->sink)
        return !row->is_in_list || row->depth != row->list_depth;
    return !row->is_json && row->depth != row->record_depth;
}

void row_begin_object(struct row *row, const char *key);
void row_end_object(struct row *row);
void row_begin_array(struct row *row, const char *key);
void row_end_array(struct row *row);

/** Begin and end a record: an object in an array, or a row. */
void row_begin_record(struct row *row);
void row_end_record(struct row *row);

/** Begins the header of CSV; a record of any values and row_end_record() follow. Returns false for
 * JSON (it has none), and once there is a header. */
bool row_begin_header(struct row *row);

/** A loop over an array of records, whose body passes `record` to its visitor. In CSV an empty
 * record comes first, for the header. The body has no such loop in it. */
#define ROW_EACH(row, key, type, record, array, count)                                             \
    for (const type *record = row_first(row, key, true ? (array) : (const type *)NULL, count,      \
                                        sizeof(type), &(const type){0});                           \
         record; record = row_next(row))

/* Parts of ROW_EACH: the first record of a list and the next one; NULL at the end. */
const void *row_first(struct row *row, const char *key, const void *array, size_t count,
                      size_t size, const void *empty);
const void *row_next(struct row *row);

void row_string(struct row *row, const char *key, struct ttd_string text);
/** Writes a string; null for NULL. */
void row_text(struct row *row, const char *key, const char *text);
/** Writes a string; null for size 0. */
void row_name(struct row *row, const char *key, struct ttd_string text);
/** Writes a number; in JSON a string from 2^53 on, since many readers lose digits of larger
 * numbers. */
void row_unsigned(struct row *row, const char *key, uint64_t value);
/** Writes `new_value` - `old_value` as row_unsigned() does, with a sign if it is negative. */
void row_difference(struct row *row, const char *key, uint64_t old_value, uint64_t new_value);
/** Like row_unsigned(), but writes null for TTD_UNKNOWN. */
void row_count(struct row *row, const char *key, uint64_t value);
/** Writes six digits of a number; null if it is not finite. */
void row_double(struct row *row, const char *key, double value);
void row_bool(struct row *row, const char *key, bool value);
/** Writes null; in CSV an empty field, as for spreadsheets. */
void row_null(struct row *row, const char *key);
/** Writes a string such as "0xb0cfd0". */
void row_hex(struct row *row, const char *key, uint64_t value);
/** Writes a string such as "FAB:17B1"; null for an invalid position. */
void row_position(struct row *row, const char *key, struct ttd_position position);
/** Writes bytes as a string of hexadecimal digits. */
void row_bytes(struct row *row, const char *key, const uint8_t *data, size_t size);

/* Write null unless `has`. */
void row_unsigned_if(struct row *row, const char *key, bool has, uint64_t value);
void row_hex_if(struct row *row, const char *key, bool has, uint64_t value);

/** Returns `has`: whether the caller writes a member that only some records have. JSON leaves the
 * member out of the others; CSV has an empty field. */
bool row_has(struct row *row, const char *key, bool has);

/** Begins a list in one field of CSV: texts separated by ';'; it is escaped in each of them. Output
 * written directly after a text belongs to it. Returns false if nothing is to be written. */
bool row_begin_field(struct row *row, const char *key);
void row_field_text(struct row *row, struct ttd_string text, bool is_first);
void row_end_field(struct row *row);

#endif
