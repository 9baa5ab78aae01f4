/* SPDX-License-Identifier: MIT */
/** Writing JSON as it comes. `key` is the member's name in an object, NULL in an array. */
#ifndef ANALYZER_REPORT_JSON_H
#define ANALYZER_REPORT_JSON_H

#include "report/out.h"

/** Levels of nesting that are indented. */
#define JSON_DEPTH_MAX 16

struct json {
    struct out *output;
    /** One member a line, and a new line at the end; otherwise all in one line, without its end. */
    bool is_indented;
    unsigned depth;
    /** The level has a member already. */
    bool has_member[JSON_DEPTH_MAX + 1];
};

void json_init(struct json *json, struct out *output, bool is_indented);

void json_begin_object(struct json *json, const char *key);
void json_end_object(struct json *json);
void json_begin_array(struct json *json, const char *key);
void json_end_array(struct json *json);

void json_string(struct json *json, const char *key, struct ttd_string text);
/** NULL gives null. */
void json_text(struct json *json, const char *key, const char *text);
/** A string of size 0 gives null. */
void json_name(struct json *json, const char *key, struct ttd_string text);
/** A number, or a string from 2^53 on, where other readers lose digits. */
void json_unsigned(struct json *json, const char *key, uint64_t value);
/** As json_unsigned(), with a sign if need be: how much more `to` is than `from`. */
void json_difference(struct json *json, const char *key, uint64_t from, uint64_t to);
/** As json_unsigned(), but null for TTD_UNKNOWN. */
void json_count(struct json *json, const char *key, uint64_t value);
void json_double(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
/** A string such as "0xb0cfd0". */
void json_hex(struct json *json, const char *key, uint64_t value);
/** A string such as "FAB:17B1", or null for an invalid position. */
void json_position(struct json *json, const char *key, struct ttd_position position);
/** Bytes as a string of hexadecimal digits. */
void json_bytes(struct json *json, const char *key, const uint8_t *data, size_t size);

#endif
