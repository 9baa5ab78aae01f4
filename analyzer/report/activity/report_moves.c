/* SPDX-License-Identifier: MIT */
/* Reallocations as JSON and as CSV. */
#include "report/activity/activity_reports.h"

/* Reallocations as text: the sums, the groups, the worst blocks, and inferred growth. */

static void text_growth(struct text_output *output, const struct heap_move_group *group)
{
    double measure;
    enum heap_growth growth = heap_move_growth(group, &measure);
    out_text(output, heap_growth_name(growth));
    if (growth == HEAP_GROWTH_LINEAR)
        out_format(output, ", by %.0f bytes each time", measure);
    if (growth == HEAP_GROWTH_GEOMETRIC)
        out_format(output, ", by a factor of %.2f each time", measure);
}

/* Results other than moved and in place are rare, so each is written only where it occurs. */
static void text_other(struct text_output *output, const struct heap_move_counts *counts)
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

/* The bytes are an upper limit where it is not known whether the pages of a block were mapped to
 * its new address. */
static void text_copied(struct text_output *output, const struct heap_copies *copies)
{
    if (copies->bytes != copies->bytes_at_most)
        out_text(output, "at most ");
    report_count(output, copies->bytes_at_most, "byte");
    out_text(output, " copied");
}

static void text_remapped(struct text_output *output, const struct heap_copies *copies)
{
    if (!copies->remapped)
        return;
    out_text(output, " (");
    out_grouped(output, copies->remapped);
    out_text(output, " by mapping, nothing copied)");
}

static void text_avoidable(struct text_output *output, uint64_t avoidable)
{
    if (!avoidable)
        return;
    out_text(output, ", ");
    out_grouped(output, avoidable);
    out_text(output, " of them avoidable by doubling");
}

static void text_move_counts(struct text_output *output, const struct heap_move_counts *counts)
{
    report_count(output, counts->reallocs, "reallocation");
    out_text(output, ": ");
    out_grouped(output, counts->moved);
    out_text(output, " moved");
    text_remapped(output, &counts->copies);
    out_text(output, ", ");
    out_grouped(output, counts->in_place);
    out_text(output, " in place");
    text_other(output, counts);
}

static void text_sizes(struct report *report, const struct heap_move_group *group)
{
    struct text_output *output = report->output;
    /* Without a reallocation of a known block, no size was seen: `smallest` is still the largest
     * number. */
    if (group->largest >= group->smallest) {
        out_text(output, "\n    sizes from ");
        out_grouped(output, group->smallest);
        out_text(output, " to ");
        out_grouped(output, group->largest);
        out_text(output, "; growth: ");
        text_growth(output, group);
    }
    out_char(output, '\n');
    report_site_text(report, group->key);
}

static void text_move_group(struct report *report, const struct heap_move_group *group)
{
    struct text_output *output = report->output;
    out_char(output, '\n');
    out_bold(output);
    text_copied(output, &group->counts.copies);
    text_avoidable(output, heap_move_avoidable(&group->counts));
    out_plain(output);
    out_text(output, "\n    by ");
    text_move_counts(output, &group->counts);
    text_sizes(report, group);
}

/* The bytes are an upper limit: a container copies only the elements that it has. */
static void text_regrown_sums(struct text_output *output, const struct heap_move_counts *counts)
{
    text_copied(output, &counts->copies);
    out_text(output, " when a block was replaced by a larger one, ");
    report_count(output, counts->reallocs, "time");
}

/* Inferred growth is a list of its own, after everything that was recorded, so that nobody adds it
 * to the reallocations. */
static void text_regrown(struct report *report, const struct report_moves *data)
{
    const struct heap_move_table *table = &data->moves->regrown;
    struct text_output *output = report->output;
    if (!table->count)
        return;
    out_bold(output);
    out_text(output,
             "\nInferred, and no reallocations: a larger block was allocated, and a smaller "
             "one of the same stack released soon\n");
    out_plain(output);
    for (size_t i = 0; i < report_shown(table->count, data->limit); i++) {
        out_char(output, '\n');
        text_regrown_sums(output, &table->groups[i].counts);
        text_sizes(report, &table->groups[i]);
    }
    report_site_more(report, table->count - report_shown(table->count, data->limit));
}

static void text_chains(struct report *report, const struct heap_moves *moves)
{
    struct text_output *output = report->output;
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
        text_remapped(output, &chain->copies);
        out_text(output, ",\n      ");
        text_copied(output, &chain->copies);
        text_avoidable(output, chain->avoidable);
        out_text(output, "\n      ");
        report_position_text(report, chain->first);
        out_text(output, " to ");
        report_position_text(report, chain->last);
        out_text(output, ", last at ");
        out_hex(output, chain->address);
        out_format(output, ", stack #%u\n", chain->stack);
    }
}

void text_moves(struct report *report, const struct report_moves *data)
{
    const struct heap_moves *moves = data->moves;
    out_bold(report->output);
    out_text(report->output, "All: ");
    text_move_counts(report->output, &moves->reallocs.total);
    out_text(report->output, "\n     ");
    text_copied(report->output, &moves->reallocs.total.copies);
    text_avoidable(report->output, heap_move_avoidable(&moves->reallocs.total));
    out_char(report->output, '\n');
    out_plain(report->output);
    if (moves->regrown.count) {
        out_text(report->output, "Inferred, not among these: ");
        text_regrown_sums(report->output, &moves->regrown.total);
        out_char(report->output, '\n');
    }
    report_certainty_text(report);
    const struct heap_move_table *table = &moves->reallocs;
    for (size_t i = 0; i < report_shown(table->count, data->limit); i++)
        text_move_group(report, &table->groups[i]);
    report_site_more(report, table->count - report_shown(table->count, data->limit));
    text_chains(report, moves);
    text_regrown(report, data);
}

static void json_copies(struct json *json, const struct heap_copies *copies, uint64_t avoidable)
{
    json_unsigned(json, "remapped", copies->remapped);
    json_unsigned(json, "unknown_moves", copies->unknown);
    json_unsigned(json, "bytes_copied", copies->bytes);
    json_unsigned(json, "bytes_copied_at_most", copies->bytes_at_most);
    json_unsigned(json, "bytes_avoidable", avoidable);
}

static void json_counts(struct json *json, const struct heap_move_counts *counts)
{
    json_unsigned(json, "reallocs", counts->reallocs);
    json_unsigned(json, "moved", counts->moved);
    json_unsigned(json, "in_place", counts->in_place);
    json_unsigned(json, "from_null", counts->from_null);
    json_unsigned(json, "to_zero", counts->to_zero);
    json_unsigned(json, "failed", counts->failed);
    json_unsigned(json, "unfinished", counts->unfinished);
    json_unsigned(json, "unknown_old", counts->unknown_old);
    json_copies(json, &counts->copies, heap_move_avoidable(counts));
}

static void json_move_sizes(struct report *report, struct json *json,
                            const struct heap_move_group *group)
{
    double measure;
    enum heap_growth growth = heap_move_growth(group, &measure);
    bool has_sizes = group->largest >= group->smallest;
    json_count(json, "smallest_size", has_sizes ? group->smallest : TTD_UNKNOWN);
    json_count(json, "largest_size", has_sizes ? group->largest : TTD_UNKNOWN);
    json_unsigned(json, "grown", group->grown);
    json_unsigned(json, "shrunk", group->shrunk);
    json_text(json, "growth", heap_growth_name(growth));
    if (growth == HEAP_GROWTH_LINEAR)
        json_double(json, "growth_bytes", measure);
    else
        json_null(json, "growth_bytes");
    if (growth == HEAP_GROWTH_GEOMETRIC)
        json_double(json, "growth_factor", measure);
    else
        json_null(json, "growth_factor");
    report_site_json(report, json, group->key);
    json_end_object(json);
}

/* An object of its own, with other names of members than reallocations have, so that a program
 * cannot take inferred growth for recorded calls. */
static void json_regrown(struct report *report, struct json *json, const struct report_moves *data)
{
    const struct heap_move_table *table = &data->moves->regrown;
    json_begin_object(json, "inferred");
    json_unsigned(json, "replaced", table->total.reallocs);
    json_unsigned(json, "bytes_copied_at_most", table->total.copies.bytes_at_most);
    json_unsigned(json, "total_groups", table->count);
    json_begin_array(json, "groups");
    for (size_t i = 0; i < report_shown(table->count, data->limit); i++) {
        json_begin_object(json, NULL);
        json_unsigned(json, "replaced", table->groups[i].counts.reallocs);
        json_unsigned(json, "bytes_copied_at_most", table->groups[i].counts.copies.bytes_at_most);
        json_move_sizes(report, json, &table->groups[i]);
    }
    json_end_array(json);
    json_end_object(json);
}

static void json_chain(struct json *json, const struct heap_chain *chain)
{
    json_begin_object(json, NULL);
    json_unsigned(json, "start_size", chain->start_size);
    json_unsigned(json, "final_size", chain->final_size);
    json_unsigned(json, "reallocs", chain->reallocs);
    json_unsigned(json, "moved", chain->moved);
    json_copies(json, &chain->copies, chain->avoidable);
    json_position(json, "first_position", chain->first);
    json_position(json, "last_position", chain->last);
    json_hex(json, "address", chain->address);
    json_unsigned(json, "stack_id", chain->stack);
    json_end_object(json);
}

void json_moves(struct report *report, const struct report_moves *data)
{
    const struct heap_moves *moves = data->moves;
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    report_certainty_json(report, &json);
    json_counts(&json, &moves->reallocs.total);
    json_text(&json, "by", view_key_name(report->view->options.by));
    const struct heap_move_table *table = &moves->reallocs;
    json_unsigned(&json, "total_groups", table->count);
    json_begin_array(&json, "groups");
    for (size_t i = 0; i < report_shown(table->count, data->limit); i++) {
        json_begin_object(&json, NULL);
        json_counts(&json, &table->groups[i].counts);
        json_move_sizes(report, &json, &table->groups[i]);
    }
    json_end_array(&json);
    json_begin_array(&json, "chains");
    for (size_t i = 0; i < moves->worst_count; i++)
        json_chain(&json, &moves->worst[i]);
    json_end_array(&json);
    json_regrown(report, &json, data);
    json_end_object(&json);
}

static void csv_counts(struct csv *csv, const struct heap_move_counts *counts)
{
    csv_unsigned(csv, counts->reallocs);
    csv_unsigned(csv, counts->moved);
    csv_unsigned(csv, counts->in_place);
    csv_unsigned(csv, counts->from_null);
    csv_unsigned(csv, counts->to_zero);
    csv_unsigned(csv, counts->failed);
    csv_unsigned(csv, counts->unfinished);
    csv_unsigned(csv, counts->unknown_old);
}

/* Writes the counts of inferred growth; the columns of reallocations stay empty. */
static void csv_regrown_counts(struct csv *csv, const struct heap_move_counts *counts)
{
    csv_empty(csv);
    csv_unsigned(csv, counts->moved);
    for (int i = 0; i < 6; i++)
        csv_empty(csv);
}

/* It is unknown how much was copied where growth is inferred. */
static void csv_copies(struct csv *csv, const struct heap_move_counts *counts, bool is_inferred)
{
    csv_unsigned_if(csv, !is_inferred, counts->copies.remapped);
    csv_unsigned_if(csv, !is_inferred, counts->copies.unknown);
    csv_unsigned_if(csv, !is_inferred, counts->copies.bytes);
    csv_unsigned(csv, counts->copies.bytes_at_most);
    csv_unsigned_if(csv, !is_inferred, heap_move_avoidable(counts));
}

static void csv_table(struct report *report, struct csv *csv, const struct report_moves *data,
                      const struct heap_move_table *table)
{
    bool is_inferred = table == &data->moves->regrown;
    size_t count = report_listed(report, table->count, data->limit);
    for (size_t i = 0; i < count; i++) {
        const struct heap_move_group *group = &table->groups[i];
        double measure;
        csv_text(csv, is_inferred ? "inferred" : "realloc");
        if (is_inferred)
            csv_regrown_counts(csv, &group->counts);
        else
            csv_counts(csv, &group->counts);
        csv_copies(csv, &group->counts, is_inferred);
        csv_text(csv, heap_growth_name(heap_move_growth(group, &measure)));
        report_site_csv(report, csv, group->key);
        csv_end_row(csv);
    }
}

void csv_moves(struct report *report, const struct report_moves *data)
{
    struct csv csv;
    report_csv_begin(report, &csv);
    report_site_header(report, &csv,
                       "kind,reallocs,moved,in_place,from_null,to_zero,failed,unfinished,"
                       "unknown_old,remapped,unknown_moves,bytes_copied,bytes_copied_at_most,"
                       "bytes_avoidable,growth");
    csv_table(report, &csv, data, &data->moves->reallocs);
    csv_table(report, &csv, data, &data->moves->regrown);
}
