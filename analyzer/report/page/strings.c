/* SPDX-License-Identifier: MIT */
#include "report/page/strings.h"

#include <stdlib.h>

#include "base/grow.h"

void page_strings_init(struct page_strings *strings)
{
    *strings = (struct page_strings){.count = 0};
    map_init(&strings->index);
}

void page_strings_free(struct page_strings *strings)
{
    free(strings->texts);
    map_free(&strings->index);
}

enum ttd_status page_strings_add(struct page_strings *strings, struct ttd_string text,
                                 uint32_t *number)
{
    uint64_t address = text.size ? (uint64_t)(uintptr_t)text.data : 0;
    *number = map_get(&strings->index, address, text.size);
    if (*number != MAP_NONE)
        return TTD_OK;
    *number = (uint32_t)strings->count;
    enum ttd_status status = grow_array((void **)&strings->texts, &strings->capacity,
                                        strings->count + 1, sizeof *strings->texts);
    if (status == TTD_OK)
        status = map_set(&strings->index, address, text.size, *number);
    if (status == TTD_OK)
        strings->texts[strings->count++] = text;
    return status;
}

void page_strings_json(const struct page_strings *strings, struct json *json, const char *key)
{
    json_begin_array(json, key);
    for (size_t i = 0; i < strings->count; i++)
        json_string(json, NULL, strings->texts[i]);
    json_end_array(json);
}
