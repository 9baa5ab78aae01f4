/* SPDX-License-Identifier: MIT */
#include "report/formats.h"

static size_t shown(const struct report_moves *data, const struct heap_move_table *table)
{
    return table->count < data->limit ? table->count : data->limit;
}

static void text_growth(struct out *output, const struct heap_move_group *group)
{
    double measure;
    enum heap_growth growth = heap_move_growth(group, &measure);
    out_text(output, heap_growth_name(growth));
    if (growth == HEAP_GROWTH_LINEAR)
        out_format(output, ", by %.0f bytes each time", measure);
    if (growth == HEAP_GROWTH_GEOMETRIC)
        out_format(output, ", by a factor of %.2f each time", measure);
}

static void text_other(struct out *output, const struct heap_move_counts *counts)
{
    const struct {
        uint64_t count;
        const char *text;
    } others[] = {{counts->from_null, " from NULL"},
                  {counts->to_zero, " to zero"},
                  {counts->failed, " failed"},
                  {counts->unfinished, " never returned"},
                  {counts->unknown_old, " of unknown blocks"}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (!others[i].count)
            continue;
        out_text(output, ", ");
        out_grouped(output, others[i].count);
        out_text(output, others[i].text);
    }
}

static void text_counts(struct out *output, const struct heap_move_counts *counts)
{
    report_count(output, counts->reallocs, "reallocation");
    out_text(output, ": ");
    out_grouped(output, counts->moved);
    out_text(output, " moved, ");
    out_grouped(output, counts->in_place);
    out_text(output, " in place");
    text_other(output, counts);
}

static void text_sizes(struct report *to, const struct heap_move_group *group)
{
    struct out *output = to->output;
    if (group->largest >= group->smallest) {
        out_text(output, "\n    sizes from ");
        out_grouped(output, group->smallest);
        out_text(output, " to ");
        out_grouped(output, group->largest);
        out_text(output, "; growth: ");
        text_growth(output, group);
    }
    out_char(output, '\n');
    report_site_text(to, group->key);
}

static void text_group(struct report *to, const struct heap_move_group *group)
{
    struct out *output = to->output;
    out_char(output, '\n');
    out_bold(output);
    report_count(output, group->counts.bytes_copied, "byte");
    out_text(output, " copied");
    out_plain(output);
    out_text(output, " by ");
    text_counts(output, &group->counts);
    text_sizes(to, group);
}

static void text_regrown_sums(struct out *output, const struct heap_move_counts *counts)
{
    out_text(output, "at most ");
    report_count(output, counts->bytes_copied, "byte");
    out_text(output, " copied when a block was replaced by a larger one, ");
    report_count(output, counts->reallocs, "time");
}

static void text_regrown(struct report *to, const struct report_moves *data)
{
    const struct heap_move_table *table = &data->moves->regrown;
    struct out *output = to->output;
    if (!table->count)
        return;
    out_bold(output);
    out_text(output,
             "\nInferred, and no reallocations: a larger block was allocated, and a smaller "
             "one of the same stack released soon\n");
    out_plain(output);
    for (size_t i = 0; i < shown(data, table); i++) {
        out_char(output, '\n');
        text_regrown_sums(output, &table->groups[i].counts);
        text_sizes(to, &table->groups[i]);
    }
    report_site_more(to, table->count - shown(data, table));
}

static void text_chains(struct report *to, const struct heap_moves *moves)
{
    struct out *output = to->output;
    if (!moves->worst_count)
        return;
    out_bold(output);
    out_text(output, "\nBlocks that were reallocated again and again, worst first\n");
    out_plain(output);
    for (size_t i = 0; i < moves->worst_count; i++) {
        const struct heap_chain *chain = &moves->worst[i];
        out_text(output, "  ");
        out_grouped(output, chain->start_size);
        out_text(output, " to ");
        report_count(output, chain->final_size, "byte");
        out_text(output, ": ");
        report_count(output, chain->reallocs, "reallocation");
        out_text(output, ", ");
        report_count(output, chain->moved, "move");
        out_text(output, ", ");
        report_count(output, chain->bytes_copied, "byte");
        out_text(output, " copied\n      ");
        report_position_text(to, chain->first);
        out_text(output, " to ");
        report_position_text(to, chain->last);
        out_text(output, ", last at ");
        out_hex(output, chain->address);
        out_format(output, ", stack #%u\n", chain->stack);
    }
}

void text_moves(struct report *to, const struct report_moves *data)
{
    const struct heap_moves *moves = data->moves;
    out_bold(to->output);
    out_text(to->output, "All: ");
    text_counts(to->output, &moves->reallocs.total);
    out_text(to->output, "; ");
    report_count(to->output, moves->reallocs.total.bytes_copied, "byte");
    out_text(to->output, " copied\n");
    out_plain(to->output);
    if (moves->regrown.count) {
        out_text(to->output, "Inferred, not among these: ");
        text_regrown_sums(to->output, &moves->regrown.total);
        out_char(to->output, '\n');
    }
    report_doubts_text(to);
    const struct heap_move_table *table = &moves->reallocs;
    for (size_t i = 0; i < shown(data, table); i++)
        text_group(to, &table->groups[i]);
    report_site_more(to, table->count - shown(data, table));
    text_chains(to, moves);
    text_regrown(to, data);
}

static void json_counts(struct json *writer, const struct heap_move_counts *counts)
{
    json_unsigned(writer, "reallocs", counts->reallocs);
    json_unsigned(writer, "moved", counts->moved);
    json_unsigned(writer, "in_place", counts->in_place);
    json_unsigned(writer, "from_null", counts->from_null);
    json_unsigned(writer, "to_zero", counts->to_zero);
    json_unsigned(writer, "failed", counts->failed);
    json_unsigned(writer, "unfinished", counts->unfinished);
    json_unsigned(writer, "unknown_old", counts->unknown_old);
    json_unsigned(writer, "bytes_copied", counts->bytes_copied);
}

static void json_sizes(struct report *to, struct json *writer, const struct heap_move_group *group)
{
    double measure;
    enum heap_growth growth = heap_move_growth(group, &measure);
    bool has_sizes = group->largest >= group->smallest;
    json_count(writer, "smallest_size", has_sizes ? group->smallest : TTD_UNKNOWN);
    json_count(writer, "largest_size", has_sizes ? group->largest : TTD_UNKNOWN);
    json_unsigned(writer, "grown", group->grown);
    json_unsigned(writer, "shrunk", group->shrunk);
    json_text(writer, "growth", heap_growth_name(growth));
    if (growth == HEAP_GROWTH_LINEAR)
        json_double(writer, "growth_bytes", measure);
    else
        json_null(writer, "growth_bytes");
    if (growth == HEAP_GROWTH_GEOMETRIC)
        json_double(writer, "growth_factor", measure);
    else
        json_null(writer, "growth_factor");
    report_site_json(to, writer, group->key);
    json_end_object(writer);
}

static void json_regrown(struct report *to, struct json *writer, const struct report_moves *data)
{
    const struct heap_move_table *table = &data->moves->regrown;
    json_begin_object(writer, "inferred");
    json_unsigned(writer, "replaced", table->total.reallocs);
    json_unsigned(writer, "bytes_copied_at_most", table->total.bytes_copied);
    json_unsigned(writer, "total_groups", table->count);
    json_begin_array(writer, "groups");
    for (size_t i = 0; i < shown(data, table); i++) {
        json_begin_object(writer, NULL);
        json_unsigned(writer, "replaced", table->groups[i].counts.reallocs);
        json_unsigned(writer, "bytes_copied_at_most", table->groups[i].counts.bytes_copied);
        json_sizes(to, writer, &table->groups[i]);
    }
    json_end_array(writer);
    json_end_object(writer);
}

static void json_chain(struct json *writer, const struct heap_chain *chain)
{
    json_begin_object(writer, NULL);
    json_unsigned(writer, "start_size", chain->start_size);
    json_unsigned(writer, "final_size", chain->final_size);
    json_unsigned(writer, "reallocs", chain->reallocs);
    json_unsigned(writer, "moved", chain->moved);
    json_unsigned(writer, "bytes_copied", chain->bytes_copied);
    json_position(writer, "first_position", chain->first);
    json_position(writer, "last_position", chain->last);
    json_hex(writer, "address", chain->address);
    json_unsigned(writer, "stack_id", chain->stack);
    json_end_object(writer);
}

void json_moves(struct report *to, const struct report_moves *data)
{
    const struct heap_moves *moves = data->moves;
    struct json writer;
    json_init(&writer, to->output, true);
    json_begin_object(&writer, NULL);
    report_doubts_json(to, &writer);
    json_counts(&writer, &moves->reallocs.total);
    json_text(&writer, "by", view_key_name(to->view->options.by));
    const struct heap_move_table *table = &moves->reallocs;
    json_unsigned(&writer, "total_groups", table->count);
    json_begin_array(&writer, "groups");
    for (size_t i = 0; i < shown(data, table); i++) {
        json_begin_object(&writer, NULL);
        json_counts(&writer, &table->groups[i].counts);
        json_sizes(to, &writer, &table->groups[i]);
    }
    json_end_array(&writer);
    json_begin_array(&writer, "chains");
    for (size_t i = 0; i < moves->worst_count; i++)
        json_chain(&writer, &moves->worst[i]);
    json_end_array(&writer);
    json_regrown(to, &writer, data);
    json_end_object(&writer);
}

static void csv_counts(struct csv *writer, const struct heap_move_counts *counts)
{
    csv_unsigned(writer, counts->reallocs);
    csv_unsigned(writer, counts->moved);
    csv_unsigned(writer, counts->in_place);
    csv_unsigned(writer, counts->from_null);
    csv_unsigned(writer, counts->to_zero);
    csv_unsigned(writer, counts->failed);
    csv_unsigned(writer, counts->unfinished);
    csv_unsigned(writer, counts->unknown_old);
}

/* Writes the counts of inferred growth; the columns of reallocations stay empty. */
static void csv_regrown_counts(struct csv *writer, const struct heap_move_counts *counts)
{
    csv_empty(writer);
    csv_unsigned(writer, counts->moved);
    for (int i = 0; i < 6; i++)
        csv_empty(writer);
}

static void csv_table(struct report *to, struct csv *writer, const struct report_moves *data,
                      const struct heap_move_table *table)
{
    bool is_inferred = table == &data->moves->regrown;
    for (size_t i = 0; i < shown(data, table); i++) {
        const struct heap_move_group *group = &table->groups[i];
        double measure;
        csv_text(writer, is_inferred ? "inferred" : "realloc");
        if (is_inferred)
            csv_regrown_counts(writer, &group->counts);
        else
            csv_counts(writer, &group->counts);
        csv_unsigned(writer, group->counts.bytes_copied);
        csv_text(writer, heap_growth_name(heap_move_growth(group, &measure)));
        report_site_csv(to, writer, group->key);
        csv_end_row(writer);
    }
}

void csv_moves(struct report *to, const struct report_moves *data)
{
    struct csv writer;
    report_csv_begin(to, &writer);
    report_site_header(to, &writer,
                       "kind,reallocs,moved,in_place,from_null,to_zero,failed,unfinished,"
                       "unknown_old,bytes_copied,growth");
    csv_table(to, &writer, data, &data->moves->reallocs);
    csv_table(to, &writer, data, &data->moves->regrown);
}
