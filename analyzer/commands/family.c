/* SPDX-License-Identifier: MIT */
#include "commands/family.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "cli/process/message.h"
#include "cli/traces/source.h"
#include "report/sections/sections.h"
#include "report/trace/trace_reports.h"
#include "symbols/fingerprint.h"

/* Sessions are open one at a time: of each process there remain sums, and of each call site the
 * names of its frames. */
struct family {
    struct report_family data;
    size_t member_capacity;
    size_t site_capacity;
    /** Index of the site, by kind and fingerprints. */
    struct hash_map by_key;
    struct fingerprinter fingerprinter;
    struct arena text;
    /** Index of the member whose session is open. */
    size_t member;
};

static bool family_copy_text(struct family *family, struct ttd_string *text)
{
    if (!text->size)
        return true;
    text->data = arena_copy(&family->text, text->data, text->size);
    return text->data;
}

/* Copies the frames of a stack, with their names. */
static enum ttd_status family_copy_frames(struct family *family, struct session *session,
                                          ttd_id stack, struct report_family_site *site)
{
    report_expand(&session->report, stack);
    const struct frame_list *list = &session->report.frames;
    site->frames = arena_take(&family->text, list->count * sizeof *site->frames + 1);
    if (!site->frames)
        return TTD_ERROR_NO_MEMORY;
    site->frame_count = list->count;
    site->is_cut = report_stack_is_cut(&session->report);
    for (size_t i = 0; i < list->count; i++) {
        struct frame *frame = &site->frames[i];
        *frame = list->frames[i];
        if (!family_copy_text(family, &frame->function) ||
            !family_copy_text(family, &frame->symbol) || !family_copy_text(family, &frame->file) ||
            !family_copy_text(family, &frame->module))
            return TTD_ERROR_NO_MEMORY;
    }
    return session->report.status;
}

/* Makes one key of the kind and all stacks. */
static enum ttd_status family_key(struct family *family, struct session *session,
                                  const struct family_finding *finding, struct fingerprint *key)
{
    *key = (struct fingerprint){finding->rank, 0};
    for (int i = 0; i < FAMILY_STACKS; i++) {
        struct fingerprint part = {0, 0};
        enum ttd_status status = TTD_OK;
        if (finding->stacks[i])
            status = fingerprint_stack(&family->fingerprinter, &session->definitions,
                                       finding->stacks[i], &part);
        if (status != TTD_OK)
            return status;
        /* Odd factors, so that the order of the stacks counts. */
        key->high = key->high * UINT64_C(0x9E3779B97F4A7C15) + part.high;
        key->low = key->low * UINT64_C(0xC2B2AE3D27D4EB4F) + part.low;
    }
    return TTD_OK;
}

static enum ttd_status family_site(struct family *family, struct session *session,
                                   const struct family_finding *finding,
                                   struct report_family_site **site)
{
    struct report_family *data = &family->data;
    struct fingerprint key;
    enum ttd_status status = family_key(family, session, finding, &key);
    if (status != TTD_OK)
        return status;
    uint32_t index = map_get(&family->by_key, key.high, key.low);
    if (index == MAP_NONE) {
        index = (uint32_t)data->site_count;
        status = grow_array((void **)&data->sites, &family->site_capacity, data->site_count + 1,
                            sizeof *data->sites);
        if (status != TTD_OK)
            return status;
        data->sites[index] = (struct report_family_site){
            .kind = finding->kind, .rank = finding->rank, .number = index};
        status = family_copy_frames(family, session, finding->stacks[0], &data->sites[index]);
        if (status == TTD_OK)
            status = map_set(&family->by_key, key.high, key.low, index);
        if (status != TTD_OK)
            return status;
        data->site_count++;
    }
    *site = &data->sites[index];
    return TTD_OK;
}

enum ttd_status family_add(struct family *family, struct session *session,
                           const struct family_finding *finding)
{
    struct report_family_member *member = &family->data.members[family->member];
    struct report_family_site *site;
    enum ttd_status status = family_site(family, session, finding, &site);
    if (status != TTD_OK)
        return status;
    struct report_share *share = site->shares;
    if (!share || share->member != family->member) {
        share = arena_take(&family->text, sizeof *share);
        if (!share)
            return TTD_ERROR_NO_MEMORY;
        *share = (struct report_share){.next = site->shares, .member = family->member};
        site->shares = share;
        site->share_count++;
    }
    share->count += finding->count;
    share->bytes = heap_add(share->bytes, finding->bytes);
    site->count += finding->count;
    site->bytes = heap_add(site->bytes, finding->bytes);
    member->count += finding->count;
    member->bytes = heap_add(member->bytes, finding->bytes);
    family->data.count += finding->count;
    family->data.bytes = heap_add(family->data.bytes, finding->bytes);
    return TTD_OK;
}

void family_add_left(struct family *family, const struct heap_left *left)
{
    family->data.left_blocks = heap_add(family->data.left_blocks, left->blocks);
    family->data.left_bytes = heap_add(family->data.left_bytes, heap_sum_value(left->bytes));
}

void family_add_unsearched(struct family *family)
{
    family->data.unsearched++;
}

/* Keeps the first reason for uncertainty, and the parts that were left out on purpose. */
static enum ttd_status family_end_member(struct family *family, const struct session *session)
{
    struct report_family_member *member = &family->data.members[family->member];
    const struct certainty *certainty = &session->report.certainty;
    const struct report_known_findings *known = &session->known_findings.summary;
    family->data.suppressed += known->suppressed;
    family->data.known += known->in_baseline;
    member->is_read = true;
    if (!certainty->count)
        return TTD_OK;
    const char *reason =
        session->report.unjudged ? session->report.unjudged : certainty->reasons[0];
    member->reason = arena_copy(&family->text, reason, strlen(reason));
    return member->reason ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

/* Keeps the reason why the current member has no answer, after family_end_member(). A child whose
 * calls are not recorded is as one that ran unrecorded, and makes the answer of the others
 * uncertain. */
static void family_note_unjudged(struct family *family, const struct session *session,
                                 const struct common_options *common)
{
    const struct report_family_member *member = &family->data.members[family->member];
    enum certainty_ending ending = session->report.ending;
    if (session->report.unjudged &&
        (ending < ENDING_UNSEEN || strcmp(member->info.path, common->trace) == 0))
        family->data.unjudged = member->reason;
}

/* Asks the current member. */
static int family_ask(struct family *family, const struct common_options *common,
                      const struct family_question *question, const void *options, bool *is_error)
{
    struct common_options member_options = *common;
    struct session session;
    member_options.trace = family->data.members[family->member].info.path;
    int status = session_open(&session, &member_options);
    if (status != STATUS_OK)
        return status;
    session.is_member = true;
    bool is_member_error = false;
    status = question->collect(&session, options, family, &is_member_error);
    progress_end(&session.source.progress);
    *is_error |= is_member_error;
    if (status == STATUS_OK)
        status = session_check(&session, family_end_member(family, &session));
    family_note_unjudged(family, &session, common);
    /* The reasons are in the report of the family. */
    session.has_reasons = true;
    return session_close(&session, status, false);
}

static bool family_has_trace(const struct group *group, size_t count, uint64_t trace_id)
{
    for (size_t i = 0; i < count; i++)
        if (group->members[i].trace.trace_id == trace_id)
            return true;
    return false;
}

/* Takes the members of the group, each trace once: a copy of one is not another process. */
static enum ttd_status family_take_members(struct family *family, const struct group *group)
{
    struct report_family *data = &family->data;
    data->members = calloc(group->count + 1, sizeof *data->members);
    if (!data->members)
        return TTD_ERROR_NO_MEMORY;
    data->unreadable = group->unreadable;
    for (size_t i = 0; i < group->count; i++) {
        const struct ttd_trace *trace = &group->members[i].trace;
        if (family_has_trace(group, i, trace->trace_id)) {
            message("warning: %s: a copy of another trace beside it, not counted",
                    group->members[i].path);
            continue;
        }
        data->members[data->member_count++].info = group->members[i];
        data->unrecorded = heap_add(data->unrecorded, group->members[i].unrecorded);
        if (trace->parent_trace_id &&
            !family_has_trace(group, group->count, trace->parent_trace_id))
            data->missing_parents++;
    }
    return TTD_OK;
}

static int family_compare_sites(const void *a, const void *b)
{
    const struct report_family_site *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

static int family_print(const struct common_options *common, struct family *family)
{
    struct output_file output;
    struct report_family *data = &family->data;
    int status = STATUS_OK;
    for (size_t i = 0; i < data->member_count && status == STATUS_OK; i++)
        status = output_spare(common->output, data->members[i].info.path);
    if (status == STATUS_OK)
        status = output_open(&output, common->output, common->trace, common->has_pager);
    if (status != STATUS_OK)
        return status;
    if (data->site_count)
        qsort(data->sites, data->site_count, sizeof *data->sites, family_compare_sites);
    struct report report = {.output = &output.text,
                            .form = common->form,
                            .limit = common->view.limit,
                            .path = common->trace,
                            .shows_all = common->has_full_stacks};
    report_family(&report, data);
    frame_list_free(&report.frames);
    if (report.status != TTD_OK)
        return output_close(&output, message_status(common->trace, report.status), false);
    if (report.left_out)
        message("warning: %llu more call sites are not listed: see --limit",
                (unsigned long long)report.left_out);
    return output_close(&output, STATUS_OK, true);
}

/* Options that would say something else of each process, or write a file for each. */
static int family_check(const struct common_options *common)
{
    const char *name = common->command->name;
    const struct known_findings_options *known = &common->known_findings;
    if (common->view.by != VIEW_BY_STACK || common->view.shape != VIEW_FLAT)
        return message_usage(name, "--group is by call site: --by and --tree do not apply");
    if (report_form_lists_findings(common->form))
        return message_usage(name, "format '%s' is for one trace, not for --group",
                             command_form_name(common->form));
    if (known->written_baseline || known->fails_on_growth)
        return message_usage(name, "--write-baseline and --fail-on-growth are for one trace, not "
                                   "for --group");
    return STATUS_OK;
}

static int family_unjudged(const struct common_options *common, const struct family *family)
{
    return family->data.unjudged
               ? message_unjudged(common->trace, common->command->name, family->data.unjudged)
               : STATUS_OK;
}

int family_run(const struct common_options *common, const struct family_question *question,
               const void *options, uint64_t error_status)
{
    struct family family = {.data = {.unit = question->unit,
                                     .has_bytes = question->has_bytes,
                                     .title = question->title}};
    struct group group = {.members = NULL};
    bool is_error = false;
    int failure = STATUS_OK;
    map_init(&family.by_key);
    int status = family_check(common);
    if (status == STATUS_OK)
        status = group_find(common->trace, &group);
    if (status == STATUS_OK && family_take_members(&family, &group) != TTD_OK)
        status = message_status(common->trace, TTD_ERROR_NO_MEMORY);
    for (; status == STATUS_OK && family.member < family.data.member_count; family.member++) {
        int asked = family_ask(&family, common, question, options, &is_error);
        /* A trace that cannot be read is said to be missing; other failures are of all. */
        if (asked == STATUS_USAGE || asked == STATUS_INTERNAL)
            status = asked;
        else if (asked != STATUS_OK)
            failure = asked;
    }
    if (status == STATUS_OK)
        status = family_print(common, &family);
    if (status == STATUS_OK)
        status = failure;
    if (status == STATUS_OK && error_status)
        status = is_error ? (int)error_status : family_unjudged(common, &family);
    group_free(&group);
    fingerprinter_free(&family.fingerprinter);
    map_free(&family.by_key);
    arena_free(&family.text);
    free(family.data.members);
    free(family.data.sites);
    return status;
}
