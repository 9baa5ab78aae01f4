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
struct text {
    char *data;
    size_t size;
    size_t capacity;
};

/** Appends; aborts without memory. */
void text_append(struct text *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_free(struct text *of);

/** Appends the records of a batch, but for what a reader made up. */
void text_of_batch(struct text *to, const struct ttd_batch *batch);

/** The part of it for snapshots and their parts. */
void text_of_snapshots(struct text *to, const struct ttd_batch *batch);

/** Texts by kind, or by chunk number. */
struct text_table {
    struct text *texts;
    size_t count;
};

/** The text of that number, made if it is not there yet. */
struct text *text_table_at(struct text_table *table, size_t number);
void text_table_free(struct text_table *table);

/** The number of the first text in which the two differ, or SIZE_MAX. */
size_t text_table_difference(const struct text_table *a, const struct text_table *b);

#endif
