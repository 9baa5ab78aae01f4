/* SPDX-License-Identifier: MIT */
/* Groups of blocks, as several commands show them. */
#include "report/format.h"

static void text_positions(struct report *to, const struct heap_group *group)
{
    struct out *output = to->output;
    out_text(output, group->blocks == 1 ? ", allocated at " : ", allocated from ");
    report_position_text(to, group->first);
    if (group->blocks == 1)
        return;
    out_text(output, " to ");
    report_position_text(to, group->last);
}

void report_groups_text(struct report *to, const struct heap_groups *groups, size_t limit,
                        bool shows_positions)
{
    struct out *output = to->output;
    size_t count = groups->count < limit ? groups->count : limit;
    for (size_t i = 0; i < count; i++) {
        const struct heap_group *group = &groups->items[i];
        out_char(output, '\n');
        out_bold(output);
        report_count(output, group->bytes, "byte");
        out_text(output, " in ");
        report_count(output, group->blocks, "block");
        out_plain(output);
        if (shows_positions)
            text_positions(to, group);
        out_char(output, '\n');
        report_site_text(to, group->key);
    }
    report_site_more(to, groups->count - count);
}

void report_groups_json(struct report *to, struct json *writer, const char *key,
                        const struct heap_groups *groups, size_t limit)
{
    json_begin_array(writer, key);
    for (size_t i = 0; i < groups->count && i < limit; i++) {
        const struct heap_group *group = &groups->items[i];
        json_begin_object(writer, NULL);
        json_unsigned(writer, "blocks", group->blocks);
        json_unsigned(writer, "bytes", group->bytes);
        json_position(writer, "first_position", group->first);
        json_position(writer, "last_position", group->last);
        report_site_json(to, writer, group->key);
        json_end_object(writer);
    }
    json_end_array(writer);
}

void report_group_csv(struct report *to, struct csv *writer, const struct heap_group *group)
{
    csv_unsigned(writer, group->blocks);
    csv_unsigned(writer, group->bytes);
    csv_position(writer, group->first);
    csv_position(writer, group->last);
    report_site_csv(to, writer, group->key);
}

void report_kind_csv(struct report *to, struct csv *writer, const char *kind,
                     const struct heap_groups *groups, size_t limit)
{
    for (size_t i = 0; i < groups->count && i < limit; i++) {
        if (kind)
            csv_text(writer, kind);
        report_group_csv(to, writer, &groups->items[i]);
        csv_end_row(writer);
    }
}

void report_groups_csv(struct report *to, const struct heap_groups *groups, size_t limit)
{
    struct csv writer;
    bool has_kinds = to->runtime.is_shown;
    report_csv_begin(to, &writer);
    report_site_header(to, &writer,
                       has_kinds ? "kind,blocks,bytes,first_position,last_position"
                                 : "blocks,bytes,first_position,last_position");
    report_kind_csv(to, &writer, has_kinds ? "live" : NULL, groups, limit);
    report_runtime_csv(to, &writer, limit);
}
