/* SPDX-License-Identifier: MIT */
#include "support/records/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_SIZE 1024

void text_append(struct text *to, const char *format, ...)
{
    if (to->capacity - to->size < LINE_MAX_SIZE) {
        to->capacity = to->capacity * 2 + LINE_MAX_SIZE;
        to->data = realloc(to->data, to->capacity);
        if (!to->data)
            abort();
    }
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(to->data + to->size, LINE_MAX_SIZE, format, arguments);
    va_end(arguments);
    if (size < 0 || size >= LINE_MAX_SIZE)
        abort();
    to->size += (size_t)size;
}

void text_free(struct text *of)
{
    free(of->data);
    *of = (struct text){0};
}

struct text *text_table_at(struct text_table *table, size_t number)
{
    if (number >= table->count) {
        table->texts = realloc(table->texts, (number + 1) * sizeof *table->texts);
        if (!table->texts)
            abort();
        memset(table->texts + table->count, 0, (number + 1 - table->count) * sizeof *table->texts);
        table->count = number + 1;
    }
    return &table->texts[number];
}

void text_table_free(struct text_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        text_free(&table->texts[i]);
    free(table->texts);
    *table = (struct text_table){0};
}

size_t text_table_difference(const struct text_table *a, const struct text_table *b)
{
    size_t count = a->count > b->count ? a->count : b->count;
    for (size_t i = 0; i < count; i++) {
        struct text none = {0};
        struct text one = i < a->count ? a->texts[i] : none;
        struct text other = i < b->count ? b->texts[i] : none;
        if (one.size != other.size || (one.size && memcmp(one.data, other.data, one.size) != 0))
            return i;
    }
    return SIZE_MAX;
}
