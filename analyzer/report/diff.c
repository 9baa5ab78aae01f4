/* SPDX-License-Identifier: MIT */
#include "report/formats.h"

static const char *quadrant_text(enum heap_quadrant quadrant)
{
    switch (quadrant) {
    case HEAP_AIFI:
        return "allocated inside the range, freed inside";
    case HEAP_AIFO:
        return "allocated inside the range, not freed in it";
    case HEAP_AOFI:
        return "allocated before the range, freed inside";
    default:
        return "allocated before the range, not freed in it";
    }
}

static const char *quadrant_title(enum heap_quadrant quadrant)
{
    static const char *const titles[HEAP_QUADRANTS] = {"AIFI", "AIFO", "AOFI", "AOFO"};
    return titles[quadrant];
}

/* Writes one quadrant: the blocks of the same fate. */
static void text_quadrant(struct report *to, const struct report_diff *data,
                          enum heap_quadrant quadrant)
{
    struct out *output = to->output;
    const struct heap_groups *groups = &data->diff->quadrants[quadrant];
    out_bold(output);
    out_text(output, quadrant_title(quadrant));
    out_plain(output);
    out_text(output, ", ");
    out_text(output, quadrant_text(quadrant));
    out_text(output, ": ");
    report_count(output, groups->blocks, "block");
    out_text(output, ", ");
    report_count(output, groups->bytes, "byte");
}

void text_diff(struct report *to, const struct report_diff *data)
{
    for (int i = 0; i < HEAP_QUADRANTS; i++) {
        text_quadrant(to, data, (enum heap_quadrant)i);
        out_char(to->output, '\n');
    }
    report_runtime_text(to);
    report_doubts_text(to);
    for (int i = 0; i < HEAP_QUADRANTS; i++) {
        if (!data->diff->quadrants[i].count)
            continue;
        out_char(to->output, '\n');
        text_quadrant(to, data, (enum heap_quadrant)i);
        out_text(to->output, ":\n");
        report_groups_text(to, &data->diff->quadrants[i], data->limit, false);
    }
    report_runtime_groups_text(to, data->limit, false);
}

void json_diff(struct report *to, const struct report_diff *data)
{
    struct json writer;
    json_init(&writer, to->output, true);
    json_begin_object(&writer, NULL);
    json_position(&writer, "position", data->diff->outcome.position);
    report_doubts_json(to, &writer);
    report_runtime_json(&to->runtime, &writer);
    json_text(&writer, "by", view_key_name(to->view->options.by));
    for (int i = 0; i < HEAP_QUADRANTS; i++) {
        const struct heap_groups *groups = &data->diff->quadrants[i];
        json_begin_object(&writer, heap_quadrant_name((enum heap_quadrant)i));
        json_unsigned(&writer, "blocks", groups->blocks);
        json_unsigned(&writer, "bytes", groups->bytes);
        json_unsigned(&writer, "total_groups", groups->count);
        report_groups_json(to, &writer, "groups", groups, data->limit);
        json_end_object(&writer);
    }
    report_runtime_groups_json(to, &writer, data->limit);
    json_end_object(&writer);
}

void csv_diff(struct report *to, const struct report_diff *data)
{
    struct csv writer;
    report_csv_begin(to, &writer);
    report_site_header(to, &writer, "quadrant,blocks,bytes,first_position,last_position");
    for (int i = 0; i < HEAP_QUADRANTS; i++) {
        report_kind_csv(to, &writer, heap_quadrant_name((enum heap_quadrant)i),
                        &data->diff->quadrants[i], data->limit);
    }
    report_runtime_csv(to, &writer, data->limit);
}
