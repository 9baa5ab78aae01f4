/* SPDX-License-Identifier: MIT */
#include "symbols/names.h"

static bool has_module(const struct definitions *all, const struct names_matcher *matcher)
{
    for (size_t run = 0; run < all->modules.run_count; run++) {
        const struct definition_module *items = all->modules.runs[run].records;
        for (size_t i = 0; i < all->modules.runs[run].count; i++) {
            if (matcher->matches(matcher->context, definitions_text(all, items[i].path)))
                return true;
        }
    }
    return false;
}

/* The use of a string: one string may name a function and a file. */
enum { AS_FUNCTION, AS_FILE };

static enum ttd_status ask(struct definitions *all, const struct names_matcher *matcher,
                           struct hash_map *asked, ttd_id id, unsigned as, bool *has_match)
{
    if (id == TTD_NONE || map_get(asked, id, as) != MAP_NONE)
        return TTD_OK;
    struct ttd_string name =
        as == AS_FUNCTION ? definitions_function(all, id) : definitions_text(all, id);
    *has_match = matcher->matches(matcher->context, name);
    return map_set(asked, id, as, true);
}

enum ttd_status names_find(struct definitions *all, const struct names_matcher *matcher,
                           bool *has_match)
{
    struct hash_map asked;
    map_init(&asked);
    enum ttd_status status = TTD_OK;
    bool has = has_module(all, matcher);
    for (size_t i = 0; i < all->frame_count && status == TTD_OK && !has; i++) {
        const struct ttd_symbol_frame *item = &all->frames[i];
        status = ask(all, matcher, &asked, item->function, AS_FUNCTION, &has);
        if (status == TTD_OK && !has && matcher->takes_files)
            status = ask(all, matcher, &asked, item->file, AS_FILE, &has);
    }
    map_free(&asked);
    if (status == TTD_OK)
        *has_match = has;
    return status;
}
