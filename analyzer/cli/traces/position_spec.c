/* SPDX-License-Identifier: MIT */
#include "cli/traces/position_spec.h"

#include "cli/process/message.h"

int position_spec_resolve(const struct position_spec *spec, enum position_purpose purpose,
                          struct source *source, struct ttd_position *position)
{
    struct ttd_error error = {.what = NULL};
    struct position_found found = {.part_of = 0};
    struct heap_trace trace = source_trace(source);
    enum ttd_status status = position_spec_find(&trace, source->is_closed ? &source->end : NULL,
                                                spec, purpose, &found, &error);
    if (spec->kind == POSITION_SPEC_MARK)
        progress_end(&source->progress);
    if (found.ended.status != TTD_OK)
        source_truncated(source, &found.ended);
    if (found.part_of)
        source->part_of = found.part_of;
    if (status == TTD_ERROR_MISUSE)
        return source_fail_times(source);
    if (status == TTD_END) {
        message("%s: no mark has the text '%s'; 'ttdanalyze marks' lists them", source->path,
                spec->mark);
        return STATUS_USAGE;
    }
    if (status != TTD_OK)
        return source_fail(source, status, &error);
    *position = found.position;
    return STATUS_OK;
}

int position_range_check(const char *command, const struct source *source,
                         struct ttd_position begin, struct ttd_position end)
{
    if (ttd_position_compare(end, begin) > 0)
        return STATUS_OK;
    if (ttd_position_compare(begin, ttd_position_max()) != 0)
        return message_usage(command, POSITION_RANGE_EMPTY);
    message("%s: the range is empty: no event that can be read comes at --from or after it",
            source->path);
    return STATUS_USAGE;
}
