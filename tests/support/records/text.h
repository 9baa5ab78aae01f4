/* SPDX-License-Identifier: MIT */
/** Growing texts, and tables of them. */
#ifndef SUPPORT_TEXT_H
#define SUPPORT_TEXT_H

#include <stddef.h>

/** A growing text, NUL-terminated unless empty. Begin with zeros. */
struct text {
    char *data;
    size_t size;
    size_t capacity;
};

/** Appends; aborts without memory. */
void text_append(struct text *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_free(struct text *of);

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
