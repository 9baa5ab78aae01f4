/* SPDX-License-Identifier: MIT */
/** A table of texts, each with a number from 0 on. */
#ifndef ANALYZER_REPORT_PAGE_STRINGS_H
#define ANALYZER_REPORT_PAGE_STRINGS_H

#include <ttdtrace/model.h>

#include "base/map.h"
#include "report/writers/json.h"

/** All zero but for the key of the map when empty. Texts belong to somebody else. */
struct page_strings {
    struct ttd_string *texts;
    size_t count;
    size_t capacity;
    /** By address and size: definitions hold each text once. */
    struct hash_map index;
};

void page_strings_init(struct page_strings *strings);
void page_strings_free(struct page_strings *strings);

/** Sets `number` to that of a text. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status page_strings_add(struct page_strings *strings, struct ttd_string text,
                                 uint32_t *number);

/** Writes the texts as an array. */
void page_strings_json(const struct page_strings *strings, struct json *json, const char *key);

#endif
