/* SPDX-License-Identifier: MIT */
/* The report of `leaks --group` and its like: the sums of all processes of a recording. */
#include <stdio.h>
#include <stdlib.h>

#include "report/trace/trace_reports.h"
#include "report/writers/out.h"
#include "symbols/frames.h"

/* Processes of a call site, and of the family, that text shows; and reasons. */
#define MEMBERS_SHOWN 5

static bool family_is_certain(const struct report_family *data)
{
    bool is_certain = !data->unreadable && !data->missing_parents && !data->unrecorded;
    for (size_t i = 0; i < data->member_count; i++)
        is_certain &= data->members[i].is_read && !data->members[i].reason;
    return is_certain;
}

static void text_family_sums(struct report *report, const struct report_family *data,
                             uint64_t count, uint64_t bytes)
{
    if (data->has_bytes)
        say(report->output, bytes(bytes), " in ");
    report_count(report->output, count, data->unit);
}

static void family_text_uncertain(struct text_output *output)
{
    say(output, ALARM, "Uncertain", PLAIN, ": ");
}

static void family_text_process(struct text_output *output,
                                const struct report_family_member *member)
{
    say(output, "process ", number(member->info.trace.process_id));
}

/* Writes the reasons why the sums are uncertain, by process. */
static void family_text_reasons(struct report *report, const struct report_family *data)
{
    struct text_output *output = report->output;
    size_t count = 0;
    for (size_t i = 0; i < data->member_count; i++) {
        const struct report_family_member *member = &data->members[i];
        if ((member->is_read && !member->reason) || ++count > MEMBERS_SHOWN)
            continue;
        family_text_uncertain(output);
        family_text_process(output, member);
        say(output, ": ", member->is_read ? member->reason : "its trace cannot be read", "\n");
    }
    if (count > MEMBERS_SHOWN) {
        family_text_uncertain(output);
        say(output, counted(count - MEMBERS_SHOWN, "process"), " more\n");
    }
    if (data->unreadable) {
        family_text_uncertain(output);
        say(output, counted(data->unreadable, "damaged trace"),
            " beside these may be of the same recording\n");
    }
    if (data->missing_parents) {
        family_text_uncertain(output);
        say(output, "the trace of the parent is not here, for ",
            counted(data->missing_parents, "process"), "\n");
    }
    if (data->unrecorded) {
        family_text_uncertain(output);
        say(output, counted(data->unrecorded, "child process"),
            " of the recording ran unrecorded\n");
    }
}

static int family_compare_shares(const void *a, const void *b)
{
    const struct report_share *x = *(const struct report_share *const *)a;
    const struct report_share *y = *(const struct report_share *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->member < y->member ? -1 : 1;
}

/* Sorts the shares of a site, the largest first. Returns an array to be freed; NULL without memory.
 */
static const struct report_share **family_sort_shares(struct report *report,
                                                      const struct report_family_site *site)
{
    const struct report_share **shares = malloc(site->share_count * sizeof *shares);
    size_t count = 0;
    if (!shares) {
        report->status = TTD_ERROR_NO_MEMORY;
        return NULL;
    }
    for (const struct report_share *share = site->shares; share; share = share->next)
        shares[count++] = share;
    qsort(shares, count, sizeof *shares, family_compare_shares);
    return shares;
}

/* Passes the frames of a site to the sections that write a report's frames. */
static void family_show_frames(struct report *report, const struct report_family_site *site)
{
    report->frames.count = 0;
    for (size_t i = 0; i < site->frame_count && report->status == TTD_OK; i++)
        report->status = frame_list_push(&report->frames, &site->frames[i]);
}

static void text_family_site(struct report *report, const struct report_family *data,
                             const struct report_family_site *site)
{
    struct text_output *output = report->output;
    const struct report_share **shares = family_sort_shares(report, site);
    say(output, "\n", BOLD);
    text_family_sums(report, data, site->count, site->bytes);
    out_plain(output);
    if (*site->kind)
        out_char(output, ' ');
    /* The name that JSON has, as words. */
    for (const char *kind = site->kind; *kind; kind++)
        out_char(output, *kind == '_' ? ' ' : *kind);
    say(output, ", in ", counted(site->share_count, "process"));
    for (size_t i = 0; shares && i < site->share_count && i < MEMBERS_SHOWN; i++)
        say(output, i ? ", " : ": ",
            number(data->members[shares[i]->member].info.trace.process_id));
    out_text(output, site->share_count > MEMBERS_SHOWN ? ", …\n" : "\n");
    family_show_frames(report, site);
    report_frames_text(report, site->is_cut);
    free(shares);
}

static int family_compare_members(const void *a, const void *b)
{
    const struct report_family_member *x = *(const struct report_family_member *const *)a;
    const struct report_family_member *y = *(const struct report_family_member *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    /* Members are in one array. */
    return x < y ? -1 : 1;
}

/* Writes the processes with most. */
static void family_text_members(struct report *report, const struct report_family *data)
{
    struct text_output *output = report->output;
    size_t count = 0;
    const struct report_family_member **members = malloc(data->member_count * sizeof *members + 1);
    if (!members) {
        report->status = TTD_ERROR_NO_MEMORY;
        return;
    }
    for (size_t i = 0; i < data->member_count; i++)
        if (data->members[i].count)
            members[count++] = &data->members[i];
    qsort(members, count, sizeof *members, family_compare_members);
    for (size_t i = 0; i < count && i < MEMBERS_SHOWN; i++) {
        out_text(output, "  ");
        family_text_process(output, members[i]);
        out_text(output, ": ");
        text_family_sums(report, data, members[i]->count, members[i]->bytes);
        say(output, ", ", escape_string(members[i]->info.path), "\n");
    }
    if (count > MEMBERS_SHOWN)
        say(output, "  … and ", counted(count - MEMBERS_SHOWN, "process"), " more\n");
    free(members);
}

static void text_family(struct report *report, const struct report_family *data)
{
    struct text_output *output = report->output;
    say(output, BOLD, counted(data->member_count, "process"), ", ", data->title, ": ");
    text_family_sums(report, data, data->count, data->bytes);
    say(output, ", from ", counted(data->site_count, "call site"), PLAIN, "\n");
    if (data->suppressed || data->known)
        say(output, grouped(data->suppressed), " suppressed and ", grouped(data->known),
            " in the baseline, not counted\n");
    if (data->left_blocks)
        say(output, bytes(data->left_bytes), " in ", blocks(data->left_blocks),
            " left by programs before, at exec: not searched\n");
    if (data->unsearched)
        say(output, counted(data->unsearched, "process"), " without a snapshot: what ",
            data->unsearched == 1 ? "it" : "they", " never released may be reachable\n");
    family_text_reasons(report, data);
    family_text_members(report, data);
    size_t count = report_shown(data->site_count, report->limit);
    for (size_t i = 0; i < count; i++)
        text_family_site(report, data, &data->sites[i]);
    if (data->site_count > count)
        say(output, "\n… and ", counted(data->site_count - count, "call site"),
            " more (--limit 0 for all)\n");
}

static void row_family_sums(struct row *row, const struct report_family *data, uint64_t count,
                            uint64_t bytes)
{
    row_unsigned(row, data->has_bytes ? "blocks" : "calls", count);
    row_count(row, "bytes", data->has_bytes ? bytes : TTD_UNKNOWN);
}

static void row_family_member(struct row *row, const struct report_family *data,
                              const struct report_family_member *member)
{
    row_begin_object(row, NULL);
    row_text(row, "path", member->info.path);
    row_unsigned(row, "process_id", member->info.trace.process_id);
    row_name(row, "command", member->info.command);
    row_family_sums(row, data, member->count, member->bytes);
    row_bool(row, "certain", member->is_read && !member->reason);
    row_text(row, "reason", member->is_read ? member->reason : "its trace cannot be read");
    row_end_object(row);
}

/* Writes the shares of the processes: in JSON as objects, in CSV as texts such as "1234:4096". */
static void family_row_shares(struct row *row, const struct report_family *data,
                              const struct report_family_site *site)
{
    const struct report_share **shares =
        row->is_header ? NULL : family_sort_shares(row->report, site);
    bool is_field = !row->is_json && row_begin_field(row, "shares");
    row_begin_array(row, "shares");
    for (size_t i = 0; shares && i < site->share_count; i++) {
        const struct report_share *share = shares[i];
        uint64_t process = data->members[share->member].info.trace.process_id;
        char text[64];
        row_begin_object(row, NULL);
        row_unsigned(row, "process_id", process);
        row_family_sums(row, data, share->count, share->bytes);
        row_end_object(row);
        int size = snprintf(text, sizeof text, "%llu:%llu", (unsigned long long)process,
                            (unsigned long long)(data->has_bytes ? share->bytes : share->count));
        if (is_field)
            row_field_text(row, (struct ttd_string){text, (size_t)size}, !i);
    }
    row_end_array(row);
    if (is_field)
        row_end_field(row);
    free(shares);
}

static void row_family_site(struct row *row, const struct report_family *data,
                            const struct report_family_site *site)
{
    row_text(row, "kind", site->kind && *site->kind ? site->kind : NULL);
    row_family_sums(row, data, site->count, site->bytes);
    if (!row->is_json)
        row_unsigned(row, "processes", site->share_count);
    family_row_shares(row, data, site);
    family_show_frames(row->report, site);
    row_frames(row, "stack", site->is_cut);
}

static void data_family(struct report *report, const struct report_family *data)
{
    struct row row;
    row_open(&row, report);
    row.is_certain = family_is_certain(data);
    row_bool(&row, "certain", row.is_certain);
    row_bool(&row, "judged", !data->unjudged);
    row_unsigned(&row, "unreadable_traces", data->unreadable);
    row_unsigned(&row, "missing_parents", data->missing_parents);
    row_unsigned(&row, "unrecorded_processes", data->unrecorded);
    row_family_sums(&row, data, data->count, data->bytes);
    row_unsigned(&row, "left_blocks", data->left_blocks);
    row_unsigned(&row, "left_bytes", data->left_bytes);
    row_unsigned(&row, "unsearched_processes", data->unsearched);
    row_unsigned(&row, "suppressed", data->suppressed);
    row_unsigned(&row, "known", data->known);
    row_begin_array(&row, "processes");
    for (size_t i = 0; i < data->member_count; i++)
        row_family_member(&row, data, &data->members[i]);
    row_end_array(&row);
    row_unsigned(&row, "total_groups", data->site_count);
    ROW_EACH(&row, "groups", struct report_family_site, site, data->sites,
             section_row_listed(&row, data->site_count))
    row_family_site(&row, data, site);
    row_end_object(&row);
}

void report_family(struct report *report, const struct report_family *data)
{
    if (report->form == REPORT_TEXT)
        text_family(report, data);
    else
        data_family(report, data);
}

/* The report of `info --group`: the traces of a recording. */

/* Limit on the bytes of a command in text, so that a line fits a terminal. */
#define COMMAND_SHOWN 60

static struct report_info family_info_of(const struct report_member *member)
{
    return (struct report_info){
        .trace = &member->trace, .is_closed = member->is_closed, .end = &member->end};
}

static void family_text_command(struct text_output *output, struct ttd_string command,
                                bool is_whole)
{
    struct ttd_string visible = command;
    if (!is_whole && visible.size > COMMAND_SHOWN) {
        visible.size = COMMAND_SHOWN;
        /* A character of several bytes is not cut. */
        while (visible.size && ((unsigned char)visible.data[visible.size] & 0xc0) == 0x80)
            visible.size--;
    }
    escape_text(output, visible);
    if (visible.size < command.size)
        out_text(output, " …");
}

static void family_text_member(struct report *report, const struct report_member *member)
{
    struct text_output *output = report->output;
    struct report_info data = family_info_of(member);
    if (info_has_origin(&member->trace)) {
        say(output, number(member->trace.process_id), tab(10),
            number(member->trace.parent_process_id));
    } else {
        out_text(output, "unknown");
    }
    say(output, tab(20), grouped(member->events), tab(34));
    if (!member->is_closed)
        out_char(output, '?');
    else
        out_grouped(output, member->end.lost_events);
    out_tab(output, 44);
    if (!member->is_closed)
        out_alarm(output);
    say(output, member->is_closed ? info_end_reason(&data) : "not closed", PLAIN);
    if (info_has_end_code(&data))
        out_format(output, " %u", member->end.code);
    say(output, tab(58), escape_string(member->path), "\n");
    if (!member->command.size)
        return;
    out_text(output, "    ");
    family_text_command(output, member->command, report->shows_all);
    out_char(output, '\n');
}

static void family_text_recording(struct report *report, const struct report_group *data)
{
    struct text_output *output = report->output;
    uint64_t events = 0, lost = 0;
    size_t open = 0;
    say(output, BOLD, "Process   Parent    Events        Lost      End           Trace, command\n",
        PLAIN);
    for (size_t i = 0; i < data->count; i++) {
        const struct report_member *member = &data->members[i];
        family_text_member(report, member);
        events += member->events;
        /* Only an End states how many events were lost. */
        lost += member->is_closed ? member->end.lost_events : 0;
        open += !member->is_closed;
    }
    say(output, "\nAll: ", counted(data->count, "trace"), ", ", counted(events, "event"), ", ",
        grouped(lost), " lost");
    if (open)
        say(output, "; ", grouped(open), " not closed, where more may be");
    out_char(output, '\n');
}

static void family_row_member(struct row *row, const struct report_member *member)
{
    char text[INFO_TIME_SIZE];
    struct report_info data = family_info_of(member);
    const struct ttd_trace *trace = &member->trace;
    bool is_known = info_has_origin(trace);
    row_text(row, "path", member->path);
    row_hex(row, "trace_id", trace->trace_id);
    row_hex_if(row, "parent_trace_id", trace->parent_trace_id, trace->parent_trace_id);
    row_count(row, "process_id", is_known ? trace->process_id : TTD_UNKNOWN);
    row_count(row, "parent_process_id", is_known ? trace->parent_process_id : TTD_UNKNOWN);
    if (row->is_json) {
        info_start_time(&data, text);
        row_text(row, "start_time", is_known ? text : NULL);
    }
    row_name(row, "command", member->command);
    row_unsigned(row, "events", member->events);
    row_count(row, "lost_events", member->is_closed ? member->end.lost_events : TTD_UNKNOWN);
    row_unsigned(row, "file_bytes", member->file_bytes);
    row_bool(row, "closed", member->is_closed);
    row_text(row, "end_reason", member->is_closed ? info_end_reason(&data) : NULL);
    row_count(row, "end_code", info_has_end_code(&data) ? member->end.code : TTD_UNKNOWN);
}

void report_recording(struct report *report, const struct report_group *data)
{
    struct row row;
    if (report->form == REPORT_TEXT) {
        family_text_recording(report, data);
        return;
    }
    row_open(&row, report);
    row.has_verdict = false;
    row_bytes(&row, "group", data->id->bytes, sizeof data->id->bytes);
    ROW_EACH(&row, "traces", struct report_member, member, data->members, data->count)
    family_row_member(&row, member);
    row_end_object(&row);
}
