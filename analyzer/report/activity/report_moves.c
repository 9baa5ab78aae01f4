/* SPDX-License-Identifier: MIT */
/* The report of `moves`: the sums, the groups, the worst blocks, and inferred growth. */
#include "report/activity/activity_reports.h"

#include <math.h>

static void moves_text_growth(struct text_output *output, const struct heap_move_group *group)
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
static void moves_text_other(struct text_output *output, const struct heap_move_counts *counts)
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
        say(output, ", ", grouped(others[i].count), others[i].text);
    }
}

/* The bytes are an upper limit where it is not known whether the pages of a block were mapped to
 * its new address. */
static void moves_text_copied(struct text_output *output, const struct heap_copies *copies)
{
    if (copies->bytes != copies->bytes_at_most)
        out_text(output, "at most ");
    say(output, sized(copies->bytes_at_most), " copied");
}

static void moves_text_remapped(struct text_output *output, const struct heap_copies *copies)
{
    if (!copies->remapped)
        return;
    say(output, " (", grouped(copies->remapped), " by mapping, nothing copied)");
}

static void moves_text_avoidable(struct text_output *output, uint64_t avoidable)
{
    if (!avoidable)
        return;
    say(output, ", ", grouped(avoidable), " of them avoidable by doubling");
}

static void text_move_counts(struct text_output *output, const struct heap_move_counts *counts)
{
    say(output, counted(counts->reallocs, "reallocation"), ": ", grouped(counts->moved), " moved");
    moves_text_remapped(output, &counts->copies);
    say(output, ", ", grouped(counts->in_place), " in place");
    moves_text_other(output, counts);
}

static void moves_text_sizes(struct report *report, const struct heap_move_group *group)
{
    struct text_output *output = report->output;
    /* Without a reallocation of a known block, no size was seen: `smallest` is still the largest
     * number. */
    if (group->largest >= group->smallest) {
        say(output, "\n    sizes from ", grouped(group->smallest), " to ", grouped(group->largest),
            "; growth: ");
        moves_text_growth(output, group);
    }
    out_char(output, '\n');
    report_site_text(report, group->key);
}

static void text_move_group(struct report *report, const struct heap_move_group *group)
{
    struct text_output *output = report->output;
    say(output, "\n", BOLD);
    moves_text_copied(output, &group->counts.copies);
    moves_text_avoidable(output, heap_move_avoidable(&group->counts));
    say(output, PLAIN, "\n    by ");
    text_move_counts(output, &group->counts);
    moves_text_sizes(report, group);
}

/* The bytes are an upper limit: a container copies only the elements that it has. */
static void moves_text_regrown_sums(struct text_output *output,
                                    const struct heap_move_counts *counts)
{
    moves_text_copied(output, &counts->copies);
    say(output, " when a block was replaced by a larger one, ", counted(counts->reallocs, "time"));
}

/* Inferred growth is a list of its own, after everything that was recorded, so that nobody adds it
 * to the reallocations. */
static void moves_text_regrown(struct report *report, const struct heap_moves *moves)
{
    const struct heap_move_table *table = &moves->regrown;
    struct text_output *output = report->output;
    if (!table->count)
        return;
    say(output, BOLD,
        "\nInferred, and no reallocations: a larger block was allocated, and a smaller one of the "
        "same stack released soon\n",
        PLAIN);
    for (size_t i = 0; i < report_shown(table->count, report->limit); i++) {
        out_char(output, '\n');
        moves_text_regrown_sums(output, &table->groups[i].counts);
        moves_text_sizes(report, &table->groups[i]);
    }
    report_site_more(report, table->count - report_shown(table->count, report->limit));
}

static void moves_text_chains(struct report *report, const struct heap_moves *moves)
{
    struct text_output *output = report->output;
    if (!moves->worst_count)
        return;
    say(output, BOLD, "\nBlocks that were reallocated again and again, worst first\n", PLAIN);
    for (size_t i = 0; i < moves->worst_count; i++) {
        const struct heap_chain *chain = &moves->worst[i];
        say(output, "  ", grouped(chain->start_size), " to ", bytes(chain->final_size), ": ",
            counted(chain->reallocs, "reallocation"), ", ", counted(chain->moved, "move"));
        moves_text_remapped(output, &chain->copies);
        out_text(output, ",\n      ");
        moves_text_copied(output, &chain->copies);
        moves_text_avoidable(output, chain->avoidable);
        say(output, "\n      ", moment(report, chain->first), " to ", moment(report, chain->last),
            ", last at ", hex(chain->address), ", stack #", number(chain->stack), "\n");
    }
}

static struct report_amount moves_amount_at(const void *table, size_t index)
{
    const struct heap_move_group *group = &((const struct heap_move_table *)table)->groups[index];
    return (struct report_amount){group->key, group->counts.moved,
                                  group->counts.copies.bytes_at_most};
}

/* Writes the functions by the bytes that their reallocations copied, if these are many. */
static void moves_text_functions(struct report *report, const struct heap_move_table *table)
{
    const struct report_amounts amounts = {table->count, moves_amount_at, table};
    const struct heap_copies *copies = &table->total.copies;
    const struct report_functions functions = {
        .groups = &amounts,
        .unit = "move",
        .limit = report->limit,
        .title = copies->bytes == copies->bytes_at_most ? "Bytes copied, by function:\n"
                                                        : "Bytes copied at most, by function:\n"};
    if (report->functions)
        report_functions_text(report, &functions);
}

static void text_moves(struct report *report, const struct heap_moves *moves)
{
    say(report->output, BOLD, "All: ");
    text_move_counts(report->output, &moves->reallocs.total);
    out_text(report->output, "\n     ");
    moves_text_copied(report->output, &moves->reallocs.total.copies);
    moves_text_avoidable(report->output, heap_move_avoidable(&moves->reallocs.total));
    say(report->output, "\n", PLAIN);
    if (moves->regrown.count) {
        out_text(report->output, "Inferred, not among these: ");
        moves_text_regrown_sums(report->output, &moves->regrown.total);
        out_char(report->output, '\n');
    }
    report_certainty_text(report);
    const struct heap_move_table *table = &moves->reallocs;
    moves_text_functions(report, table);
    if (table->count > 1 && heap_move_avoidable(&table->groups[0].counts))
        say(report->output, BOLD, "\nBy ", view_key_name(report->view->options.by),
            ", those first where doubling would avoid most\n", PLAIN);
    for (size_t i = 0; i < report_shown(table->count, report->limit); i++)
        text_move_group(report, &table->groups[i]);
    report_site_more(report, table->count - report_shown(table->count, report->limit));
    moves_text_chains(report, moves);
    moves_text_regrown(report, moves);
}

static void moves_row_copies(struct row *row, const struct heap_copies *copies, uint64_t avoidable)
{
    row_unsigned(row, "remapped", copies->remapped);
    row_unsigned(row, "unknown_moves", copies->unknown);
    row_unsigned(row, "bytes_copied", copies->bytes);
    row_unsigned(row, "bytes_copied_at_most", copies->bytes_at_most);
    row_unsigned(row, "bytes_avoidable", avoidable);
}

static void row_move_counts(struct row *row, const struct heap_move_counts *counts)
{
    row_unsigned(row, "reallocs", counts->reallocs);
    row_unsigned(row, "moved", counts->moved);
    row_unsigned(row, "in_place", counts->in_place);
    row_unsigned(row, "from_null", counts->from_null);
    row_unsigned(row, "to_zero", counts->to_zero);
    row_unsigned(row, "failed", counts->failed);
    row_unsigned(row, "unfinished", counts->unfinished);
    row_unsigned(row, "unknown_old", counts->unknown_old);
    moves_row_copies(row, &counts->copies, heap_move_avoidable(counts));
}

/* Inferred growth has other members than reallocations have, so that a program cannot take it for
 * recorded calls. In CSV the columns of reallocations stay empty. */
static void moves_row_regrown_counts(struct row *row, const struct heap_move_counts *counts)
{
    if (row->is_json) {
        row_unsigned(row, "replaced", counts->reallocs);
        row_unsigned(row, "bytes_copied_at_most", counts->copies.bytes_at_most);
        return;
    }
    row_null(row, "reallocs");
    row_unsigned(row, "moved", counts->moved);
    for (int i = 0; i < 9; i++)
        row_null(row, NULL);
    row_unsigned(row, "bytes_copied_at_most", counts->copies.bytes_at_most);
    row_null(row, "bytes_avoidable");
}

static void row_move_group(struct row *row, const struct heap_move_group *group, bool is_inferred)
{
    double measure;
    enum heap_growth growth = heap_move_growth(group, &measure);
    bool has_sizes = group->largest >= group->smallest;
    if (!row->is_json)
        row_text(row, "kind", is_inferred ? "inferred" : "realloc");
    if (is_inferred)
        moves_row_regrown_counts(row, &group->counts);
    else
        row_move_counts(row, &group->counts);
    if (row->is_json) {
        row_count(row, "smallest_size", has_sizes ? group->smallest : TTD_UNKNOWN);
        row_count(row, "largest_size", has_sizes ? group->largest : TTD_UNKNOWN);
        row_unsigned(row, "grown", group->grown);
        row_unsigned(row, "shrunk", group->shrunk);
    }
    row_text(row, "growth", heap_growth_name(growth));
    if (row->is_json) {
        row_double(row, "growth_bytes", growth == HEAP_GROWTH_LINEAR ? measure : NAN);
        row_double(row, "growth_factor", growth == HEAP_GROWTH_GEOMETRIC ? measure : NAN);
    }
    row_site(row, group->key);
}

static void row_move_table(struct row *row, const struct heap_move_table *table, bool is_inferred)
{
    row_unsigned(row, "total_groups", table->count);
    ROW_EACH(row, "groups", struct heap_move_group, group, table->groups,
             section_row_listed(row, table->count))
    row_move_group(row, group, is_inferred);
}

static void moves_row_chain(struct row *row, const struct heap_chain *chain)
{
    row_begin_object(row, NULL);
    row_unsigned(row, "start_size", chain->start_size);
    row_unsigned(row, "final_size", chain->final_size);
    row_unsigned(row, "reallocs", chain->reallocs);
    row_unsigned(row, "moved", chain->moved);
    moves_row_copies(row, &chain->copies, chain->avoidable);
    row_position(row, "first_position", chain->first);
    row_position(row, "last_position", chain->last);
    row_hex(row, "address", chain->address);
    row_unsigned(row, "stack_id", chain->stack);
    row_end_object(row);
}

void report_moves(struct report *report, const struct heap_moves *moves)
{
    struct row row;
    if (report->form == REPORT_TEXT) {
        text_moves(report, moves);
        return;
    }
    row_open(&row, report);
    row_certainty(&row);
    row_move_counts(&row, &moves->reallocs.total);
    row_text(&row, "by", view_key_name(report->view->options.by));
    row_move_table(&row, &moves->reallocs, false);
    row_begin_array(&row, "chains");
    for (size_t i = 0; i < moves->worst_count; i++)
        moves_row_chain(&row, &moves->worst[i]);
    row_end_array(&row);
    row_begin_object(&row, "inferred");
    row_unsigned(&row, "replaced", moves->regrown.total.reallocs);
    row_unsigned(&row, "bytes_copied_at_most", moves->regrown.total.copies.bytes_at_most);
    row_move_table(&row, &moves->regrown, true);
    row_end_object(&row);
    row_end_object(&row);
}
