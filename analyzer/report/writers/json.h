/* SPDX-License-Identifier: MIT */
/** A writer of JSON, which keeps only the level of nesting. `key` is the member's name in an
 * object, NULL in an array. */
#ifndef ANALYZER_REPORT_WRITERS_JSON_H
#define ANALYZER_REPORT_WRITERS_JSON_H

#include "report/writers/out.h"

/** Limit on levels of nesting. */
#define JSON_DEPTH_MAX 16

struct json {
    struct text_output *output;
    /** One member a line, with a new line at the end; otherwise all in one line, without its end.
     */
    bool is_indented;
    unsigned depth;
    /** The level has a member already. */
    bool has_member[JSON_DEPTH_MAX + 1];
};

void json_init(struct json *json, struct text_output *output, bool is_indented);

void json_begin_object(struct json *json, const char *key);
void json_end_object(struct json *json);
void json_begin_array(struct json *json, const char *key);
void json_end_array(struct json *json);

void json_string(struct json *json, const char *key, struct ttd_string text);
/** Writes a string; null for NULL. */
void json_text(struct json *json, const char *key, const char *text);
/** Writes a string; null for size 0. */
void json_name(struct json *json, const char *key, struct ttd_string text);
/** Writes a number; from 2^53 on a string, since many readers lose digits of larger numbers. */
void json_unsigned(struct json *json, const char *key, uint64_t value);
/** Writes `new_value` - `old_value` as json_unsigned() does, with a sign if it is negative. */
void json_difference(struct json *json, const char *key, uint64_t old_value, uint64_t new_value);
/** Like json_unsigned(), but writes null for TTD_UNKNOWN. */
void json_count(struct json *json, const char *key, uint64_t value);
void json_double(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
/** Writes a string such as "0xb0cfd0". */
void json_hex(struct json *json, const char *key, uint64_t value);

/** Writes a hexadecimal member, or null unless `has`. */
void json_hex_if(struct json *json, const char *key, bool has, uint64_t value);
/** Writes a string such as "FAB:17B1"; null for an invalid position. */
void json_position(struct json *json, const char *key, struct ttd_position position);
/** Writes bytes as a string of hexadecimal digits. */
void json_bytes(struct json *json, const char *key, const uint8_t *data, size_t size);

#endif
