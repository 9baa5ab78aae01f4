/* SPDX-License-Identifier: MIT */
/**
 * Records as text, one line each, with every field: what was written and what was read are the
 * same when their texts are. The second reader prints the same lines.
 */
#ifndef SUPPORT_RECORD_TEXT_H
#define SUPPORT_RECORD_TEXT_H

#include <stddef.h>

#include <ttdtrace/ttdtrace.h>

/** A growing text, NUL-terminated unless empty. Begin with zeros. */
typedef struct text {
    char *data;
    size_t size;
    size_t capacity;
} text;

/** Appends; aborts without memory. */
void text_append(text *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_free(text *of);

/** Appends the records of a batch, but for what a reader made up. */
void text_of_batch(text *to, const ttd_batch *batch);

/** Texts by kind, or by chunk number. */
typedef struct text_table {
    text *texts;
    size_t count;
} text_table;

/** The text of that number, made if it is not there yet. */
text *text_table_at(text_table *table, size_t number);
void text_table_free(text_table *table);

/** The number of the first text in which the two differ, or SIZE_MAX. */
size_t text_table_difference(const text_table *a, const text_table *b);

#endif
