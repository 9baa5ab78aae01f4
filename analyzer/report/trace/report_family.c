/* SPDX-License-Identifier: MIT */
/* The report of `leaks --group` and its like: the sums of all processes of a recording. */
#include <stdio.h>
#include <stdlib.h>

#include "report/trace/info.h"
#include "report/trace/trace_reports.h"
#include "report/writers/escape.h"
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
    if (data->has_bytes) {
        report_count(report->output, bytes, "byte");
        out_text(report->output, " in ");
    }
    report_count(report->output, count, data->unit);
}

static void text_uncertain(struct text_output *output)
{
    out_alarm(output);
    out_text(output, "Uncertain");
    out_plain(output);
    out_text(output, ": ");
}

static void text_process(struct text_output *output, const struct report_family_member *member)
{
    out_text(output, "process ");
    out_unsigned(output, member->info.trace.process_id);
}

/* Writes the reasons why the sums are uncertain, by process. */
static void text_reasons(struct report *report, const struct report_family *data)
{
    struct text_output *output = report->output;
    size_t count = 0;
    for (size_t i = 0; i < data->member_count; i++) {
        const struct report_family_member *member = &data->members[i];
        if ((member->is_read && !member->reason) || ++count > MEMBERS_SHOWN)
            continue;
        text_uncertain(output);
        text_process(output, member);
        out_text(output, ": ");
        out_text(output, member->is_read ? member->reason : "its trace cannot be read");
        out_char(output, '\n');
    }
    if (count > MEMBERS_SHOWN) {
        text_uncertain(output);
        report_count(output, count - MEMBERS_SHOWN, "process");
        out_text(output, " more\n");
    }
    if (data->unreadable) {
        text_uncertain(output);
        report_count(output, data->unreadable, "damaged trace");
        out_text(output, " beside these may be of the same recording\n");
    }
    if (data->missing_parents) {
        text_uncertain(output);
        out_text(output, "the trace of the parent is not here, for ");
        report_count(output, data->missing_parents, "process");
        out_char(output, '\n');
    }
    if (data->unrecorded) {
        text_uncertain(output);
        report_count(output, data->unrecorded, "child process");
        out_text(output, " of the recording ran unrecorded\n");
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
    out_char(output, '\n');
    out_bold(output);
    text_family_sums(report, data, site->count, site->bytes);
    out_plain(output);
    if (*site->kind)
        out_char(output, ' ');
    /* The name that JSON has, as words. */
    for (const char *kind = site->kind; *kind; kind++)
        out_char(output, *kind == '_' ? ' ' : *kind);
    out_text(output, ", in ");
    report_count(output, site->share_count, "process");
    for (size_t i = 0; shares && i < site->share_count && i < MEMBERS_SHOWN; i++) {
        out_text(output, i ? ", " : ": ");
        out_unsigned(output, data->members[shares[i]->member].info.trace.process_id);
    }
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
static void text_members(struct report *report, const struct report_family *data)
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
        text_process(output, members[i]);
        out_text(output, ": ");
        text_family_sums(report, data, members[i]->count, members[i]->bytes);
        out_text(output, ", ");
        escape_text(output, escape_string(members[i]->info.path));
        out_char(output, '\n');
    }
    if (count > MEMBERS_SHOWN) {
        out_text(output, "  … and ");
        report_count(output, count - MEMBERS_SHOWN, "process");
        out_text(output, " more\n");
    }
    free(members);
}

void text_family(struct report *report, const struct report_family *data)
{
    struct text_output *output = report->output;
    out_bold(output);
    report_count(output, data->member_count, "process");
    out_format(output, ", %s: ", data->title);
    text_family_sums(report, data, data->count, data->bytes);
    out_text(output, ", from ");
    report_count(output, data->site_count, "call site");
    out_plain(output);
    out_char(output, '\n');
    if (data->suppressed || data->known) {
        out_grouped(output, data->suppressed);
        out_text(output, " suppressed and ");
        out_grouped(output, data->known);
        out_text(output, " in the baseline, not counted\n");
    }
    text_reasons(report, data);
    text_members(report, data);
    size_t count = report_shown(data->site_count, data->limit);
    for (size_t i = 0; i < count; i++)
        text_family_site(report, data, &data->sites[i]);
    if (data->site_count > count) {
        out_text(output, "\n… and ");
        report_count(output, data->site_count - count, "call site");
        out_text(output, " more (--limit 0 for all)\n");
    }
}

static void json_family_sums(struct json *json, const struct report_family *data, uint64_t count,
                             uint64_t bytes)
{
    json_unsigned(json, data->has_bytes ? "blocks" : "calls", count);
    json_count(json, "bytes", data->has_bytes ? bytes : TTD_UNKNOWN);
}

static void json_family_member(struct json *json, const struct report_family *data,
                               const struct report_family_member *member)
{
    json_begin_object(json, NULL);
    json_text(json, "path", member->info.path);
    json_unsigned(json, "process_id", member->info.trace.process_id);
    json_name(json, "command", member->info.command);
    json_family_sums(json, data, member->count, member->bytes);
    json_bool(json, "certain", member->is_read && !member->reason);
    json_text(json, "reason", member->is_read ? member->reason : "its trace cannot be read");
    json_end_object(json);
}

static void json_family_site(struct report *report, struct json *json,
                             const struct report_family *data,
                             const struct report_family_site *site)
{
    const struct report_share **shares = family_sort_shares(report, site);
    json_begin_object(json, NULL);
    json_text(json, "kind", *site->kind ? site->kind : NULL);
    json_family_sums(json, data, site->count, site->bytes);
    json_begin_array(json, "shares");
    for (size_t i = 0; shares && i < site->share_count; i++) {
        json_begin_object(json, NULL);
        json_unsigned(json, "process_id", data->members[shares[i]->member].info.trace.process_id);
        json_family_sums(json, data, shares[i]->count, shares[i]->bytes);
        json_end_object(json);
    }
    json_end_array(json);
    family_show_frames(report, site);
    report_frames_json(report, json, "stack", site->is_cut);
    json_end_object(json);
    free(shares);
}

void json_family(struct report *report, const struct report_family *data)
{
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    json_bool(&json, "certain", family_is_certain(data));
    json_unsigned(&json, "unreadable_traces", data->unreadable);
    json_unsigned(&json, "missing_parents", data->missing_parents);
    json_unsigned(&json, "unrecorded_processes", data->unrecorded);
    json_family_sums(&json, data, data->count, data->bytes);
    json_unsigned(&json, "suppressed", data->suppressed);
    json_unsigned(&json, "known", data->known);
    json_begin_array(&json, "processes");
    for (size_t i = 0; i < data->member_count; i++)
        json_family_member(&json, data, &data->members[i]);
    json_end_array(&json);
    json_unsigned(&json, "total_groups", data->site_count);
    json_begin_array(&json, "groups");
    for (size_t i = 0; i < data->site_count && i < data->limit; i++)
        json_family_site(report, &json, data, &data->sites[i]);
    json_end_array(&json);
    json_end_object(&json);
}

void csv_family(struct report *report, const struct report_family *data)
{
    struct csv csv;
    csv_init(&csv, report->output);
    csv.has_verdict = true;
    csv.is_certain = family_is_certain(data);
    csv_header(&csv, data->has_bytes ? "kind,blocks,bytes,processes,shares,stack"
                                     : "kind,calls,bytes,processes,shares,stack");
    size_t count = report_listed(report, data->site_count, data->limit);
    for (size_t i = 0; i < count; i++) {
        const struct report_family_site *site = &data->sites[i];
        const struct report_share **shares = family_sort_shares(report, site);
        csv_text(&csv, site->kind);
        csv_unsigned(&csv, site->count);
        csv_unsigned_if(&csv, data->has_bytes, site->bytes);
        csv_unsigned(&csv, site->share_count);
        csv_list_begin(&csv);
        for (size_t k = 0; shares && k < site->share_count; k++) {
            char text[64];
            const struct report_share *share = shares[k];
            int size =
                snprintf(text, sizeof text, "%llu:%llu",
                         (unsigned long long)data->members[share->member].info.trace.process_id,
                         (unsigned long long)(data->has_bytes ? share->bytes : share->count));
            csv_list_item(&csv, (struct ttd_string){text, (size_t)size}, !k);
        }
        csv_list_end(&csv);
        family_show_frames(report, site);
        report_frames_csv(report, &csv, site->is_cut);
        csv_end_row(&csv);
        free(shares);
    }
}

/* The report of `info --group`: the traces of a recording. */

/* Limit on the bytes of a command in text, so that a line fits a terminal. */
#define COMMAND_SHOWN 60

static struct report_info info_of(const struct report_member *member)
{
    return (struct report_info){
        .trace = &member->trace, .is_closed = member->is_closed, .end = &member->end};
}

static void text_command(struct text_output *output, struct ttd_string command, bool is_whole)
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

static void text_member(struct report *report, const struct report_member *member)
{
    struct text_output *output = report->output;
    struct report_info data = info_of(member);
    if (info_has_origin(&member->trace)) {
        out_unsigned(output, member->trace.process_id);
        out_tab(output, 10);
        out_unsigned(output, member->trace.parent_process_id);
    } else {
        out_text(output, "unknown");
    }
    out_tab(output, 20);
    out_grouped(output, member->events);
    out_tab(output, 34);
    if (!member->is_closed)
        out_char(output, '?');
    else
        out_grouped(output, member->end.lost_events);
    out_tab(output, 44);
    if (!member->is_closed)
        out_alarm(output);
    out_text(output, member->is_closed ? info_end_reason(&data) : "not closed");
    out_plain(output);
    if (info_has_end_code(&data))
        out_format(output, " %u", member->end.code);
    out_tab(output, 58);
    escape_text(output, escape_string(member->path));
    out_char(output, '\n');
    if (!member->command.size)
        return;
    out_text(output, "    ");
    text_command(output, member->command, report->shows_all);
    out_char(output, '\n');
}

void text_recording(struct report *report, const struct report_group *data)
{
    struct text_output *output = report->output;
    uint64_t events = 0, lost = 0;
    size_t open = 0;
    out_bold(output);
    out_text(output, "Process   Parent    Events        Lost      End           Trace, command\n");
    out_plain(output);
    for (size_t i = 0; i < data->count; i++) {
        const struct report_member *member = &data->members[i];
        text_member(report, member);
        events += member->events;
        /* Only an End states how many events were lost. */
        lost += member->is_closed ? member->end.lost_events : 0;
        open += !member->is_closed;
    }
    out_text(output, "\nAll: ");
    report_count(output, data->count, "trace");
    out_text(output, ", ");
    report_count(output, events, "event");
    out_text(output, ", ");
    out_grouped(output, lost);
    out_text(output, " lost");
    if (open) {
        out_text(output, "; ");
        out_grouped(output, open);
        out_text(output, " not closed, where more may be");
    }
    out_char(output, '\n');
}

static void json_group_member(struct json *json, const struct report_member *member)
{
    char text[INFO_TIME_SIZE];
    struct report_info data = info_of(member);
    const struct ttd_trace *trace = &member->trace;
    info_start_time(&data, text);
    json_begin_object(json, NULL);
    json_text(json, "path", member->path);
    json_hex(json, "trace_id", trace->trace_id);
    json_hex_if(json, "parent_trace_id", trace->parent_trace_id, trace->parent_trace_id);
    bool is_known = info_has_origin(trace);
    json_count(json, "process_id", is_known ? trace->process_id : TTD_UNKNOWN);
    json_count(json, "parent_process_id", is_known ? trace->parent_process_id : TTD_UNKNOWN);
    json_text(json, "start_time", is_known ? text : NULL);
    json_name(json, "command", member->command);
    json_unsigned(json, "events", member->events);
    json_count(json, "lost_events", member->is_closed ? member->end.lost_events : TTD_UNKNOWN);
    json_unsigned(json, "file_bytes", member->file_bytes);
    json_bool(json, "closed", member->is_closed);
    json_text(json, "end_reason", member->is_closed ? info_end_reason(&data) : NULL);
    json_count(json, "end_code", info_has_end_code(&data) ? member->end.code : TTD_UNKNOWN);
    json_end_object(json);
}

void json_recording(struct report *report, const struct report_group *data)
{
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    json_bytes(&json, "group", data->id->bytes, sizeof data->id->bytes);
    json_begin_array(&json, "traces");
    for (size_t i = 0; i < data->count; i++)
        json_group_member(&json, &data->members[i]);
    json_end_array(&json);
    json_end_object(&json);
}

void csv_recording(struct report *report, const struct report_group *data)
{
    struct csv csv;
    csv_init(&csv, report->output);
    csv_header(&csv, "path,trace_id,parent_trace_id,process_id,parent_process_id,command,events,"
                     "lost_events,file_bytes,closed,end_reason,end_code");
    for (size_t i = 0; i < data->count; i++) {
        const struct report_member *member = &data->members[i];
        struct report_info info = info_of(member);
        csv_text(&csv, member->path);
        csv_hex(&csv, member->trace.trace_id);
        csv_hex_if(&csv, member->trace.parent_trace_id, member->trace.parent_trace_id);
        bool is_known = info_has_origin(&member->trace);
        csv_count(&csv, is_known ? member->trace.process_id : TTD_UNKNOWN);
        csv_count(&csv, is_known ? member->trace.parent_process_id : TTD_UNKNOWN);
        csv_string(&csv, member->command);
        csv_unsigned(&csv, member->events);
        csv_count(&csv, member->is_closed ? member->end.lost_events : TTD_UNKNOWN);
        csv_unsigned(&csv, member->file_bytes);
        csv_bool(&csv, member->is_closed);
        csv_text(&csv, member->is_closed ? info_end_reason(&info) : "");
        csv_count(&csv, info_has_end_code(&info) ? member->end.code : TTD_UNKNOWN);
        csv_end_row(&csv);
    }
}
