/* SPDX-License-Identifier: MIT */
#include "symbols/names.h"

static bool has_module(const struct definitions *definitions, const struct names_matcher *matcher)
{
    for (size_t run = 0; run < definitions->modules.run_count; run++) {
        const struct definition_module *records = definitions->modules.runs[run].records;
        for (size_t i = 0; i < definitions->modules.runs[run].count; i++) {
            if (matcher->matches(matcher->context, definitions_text(definitions, records[i].path)))
                return true;
        }
    }
    return false;
}

/* The use of a string: one string may name a function and a file. */
enum { AS_FUNCTION, AS_FILE };

static enum ttd_status names_ask_matcher(struct definitions *definitions,
                                         const struct names_matcher *matcher,
                                         struct hash_map *asked, ttd_id id, unsigned purpose,
                                         bool *has_match)
{
    if (id == TTD_NONE || map_get(asked, id, purpose) != MAP_NONE)
        return TTD_OK;
    struct ttd_string name = purpose == AS_FUNCTION ? definitions_function(definitions, id)
                                                    : definitions_text(definitions, id);
    *has_match = matcher->matches(matcher->context, name);
    return map_set(asked, id, purpose, true);
}

enum ttd_status names_find(struct definitions *definitions, const struct names_matcher *matcher,
                           bool *has_match)
{
    struct hash_map asked;
    map_init(&asked);
    enum ttd_status status = TTD_OK;
    bool has = has_module(definitions, matcher);
    for (size_t i = 0; i < definitions->frame_count && status == TTD_OK && !has; i++) {
        const struct ttd_symbol_frame *symbol_frame = &definitions->frames[i];
        status = names_ask_matcher(definitions, matcher, &asked, symbol_frame->function,
                                   AS_FUNCTION, &has);
        if (status == TTD_OK && !has && matcher->takes_files)
            status =
                names_ask_matcher(definitions, matcher, &asked, symbol_frame->file, AS_FILE, &has);
    }
    map_free(&asked);
    if (status == TTD_OK)
        *has_match = has;
    return status;
}
