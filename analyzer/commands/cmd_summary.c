/* SPDX-License-Identifier: MIT */
/* ttdanalyze summary: the answers of a trace, in a line or two each. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "cli/options/command.h"
#include "cli/process/message.h"
#include "commands/report_pass.h"
#include "report/memory/memory_reports.h"
#include "report/trace/trace_reports.h"

static const char help[] =
    "Usage: ttdanalyze [summary] [OPTIONS] TRACE\n"
    "\n"
    "Sums up a trace in a dozen lines: how the program ended, errors, lost blocks,\n"
    "the peak, temporary blocks and the cost of reallocations, each with the function\n"
    "of the program that has most of it. The word at the beginning of an answer is\n"
    "the command that shows more of it.\n"
    "\n"
    "      --brief             only errors, what is lost and the peak, in a line each\n"
    "                          (text): what ttdrecord prints at its end\n" COMMAND_COMMON_HELP;

struct summary_options {
    bool is_brief;
};

static const struct own_option own_options[] = {
    OWN_OPTION("brief", option_flag, struct summary_options, is_brief), OWN_OPTIONS_END};

/* The records of one function. */
struct owner_sum {
    uint64_t weight;
    uint64_t largest;
    struct report_owner owner;
};

struct owners {
    struct owner_sum *sums;
    size_t count;
    size_t capacity;
};

/* Sets the amounts of a record: `blocks` and `bytes`, and the positions if it has some. */
typedef uint64_t owner_amounts(const void *record, struct report_owner *amounts);

static enum ttd_status summary_owners_grow(struct owners *owners, size_t label)
{
    size_t old = owners->count;
    if (label < old)
        return TTD_OK;
    enum ttd_status status =
        grow_array((void **)&owners->sums, &owners->capacity, label + 1, sizeof *owners->sums);
    if (status != TTD_OK)
        return status;
    memset(&owners->sums[old], 0, (label + 1 - old) * sizeof *owners->sums);
    for (size_t i = old; i <= label; i++)
        owners->sums[i].owner.first = ttd_position_invalid();
    owners->count = label + 1;
    return TTD_OK;
}

static void owner_add(struct owner_sum *sum, const struct report_owner *amounts, uint64_t weight,
                      ttd_id stack)
{
    struct report_owner *owner = &sum->owner;
    sum->weight = heap_add(sum->weight, weight);
    owner->blocks = heap_add(owner->blocks, amounts->blocks);
    owner->bytes = heap_add(owner->bytes, amounts->bytes);
    if (weight > sum->largest) {
        sum->largest = weight;
        owner->stack = stack;
    }
    if (ttd_position_compare(amounts->first, owner->first) < 0)
        owner->first = amounts->first;
    if (ttd_position_compare(amounts->last, owner->last) > 0)
        owner->last = amounts->last;
}

/* Sums up the records by function. If none has a weight, as blocks of no bytes, `by_blocks` has
 * them weigh by their number. */
static enum ttd_status summary_owners_sum(struct view *view, const struct heap_site_table *sites,
                                          owner_amounts *amounts_of, bool by_blocks,
                                          struct owners *owners, uint64_t *total)
{
    for (size_t i = 0; i < *sites->count; i++) {
        struct heap_key key = *heap_site_record(sites, i);
        struct report_owner amounts = {.first = ttd_position_invalid()};
        uint64_t weight = amounts_of(heap_site_record(sites, i), &amounts);
        weight = by_blocks ? amounts.blocks : weight;
        ttd_id stack = key.stack;
        if (!weight)
            continue;
        enum ttd_status status = view_find_key(view, &key);
        if (status == TTD_OK)
            status = summary_owners_grow(owners, key.property);
        if (status != TTD_OK)
            return status;
        owner_add(&owners->sums[key.property], &amounts, weight, stack);
        *total = heap_add(*total, weight);
    }
    return TTD_OK;
}

/* Whether an owner goes before the best one so far: of those with the same weight, the one with the
 * larger size, then the first stack, so that the order of labels does not decide. */
static bool owner_is_better(const struct owner_sum *a, const struct owner_sum *b)
{
    if (a->weight != b->weight)
        return a->weight > b->weight;
    if (a->owner.bytes != b->owner.bytes)
        return a->owner.bytes > b->owner.bytes;
    return a->owner.stack < b->owner.stack;
}

/* Finds the function with the largest weight. */
static int summary_find_owner(struct session *session, struct view *view,
                              const struct heap_site_table *sites, owner_amounts *amounts_of,
                              struct report_owner *owner)
{
    struct owners owners = {.sums = NULL};
    uint64_t total = 0;
    enum ttd_status status = summary_owners_sum(view, sites, amounts_of, false, &owners, &total);
    if (status == TTD_OK && !total)
        status = summary_owners_sum(view, sites, amounts_of, true, &owners, &total);
    size_t best = 0;
    for (size_t i = 1; i < owners.count && status == TTD_OK; i++)
        if (owners.sums[i].weight && owner_is_better(&owners.sums[i], &owners.sums[best]))
            best = i;
    *owner = (struct report_owner){.is_known = false};
    if (status == TTD_OK && total) {
        struct heap_key key = {TTD_NONE, (ttd_id)best};
        *owner = owners.sums[best].owner;
        owner->share = (double)owners.sums[best].weight / (double)total;
        owner->function = *view_find_label(view, key);
        owner->is_known = true;
    }
    free(owners.sums);
    return session_check(session, status);
}

static uint64_t summary_group_amounts(const void *record, struct report_owner *amounts)
{
    const struct heap_group *group = record;
    amounts->blocks = group->blocks;
    amounts->bytes = group->bytes;
    amounts->first = group->first;
    amounts->last = group->last;
    return group->bytes;
}

static uint64_t summary_temporary_amounts(const void *record, struct report_owner *amounts)
{
    const struct heap_site *site = record;
    amounts->blocks = site->temporary;
    amounts->bytes = heap_sum_value(site->temporary_bytes);
    return site->temporary;
}

static uint64_t summary_move_amounts(const void *record, struct report_owner *amounts)
{
    const struct heap_move_group *group = record;
    amounts->blocks = group->counts.moved;
    amounts->bytes = group->counts.copies.bytes_at_most;
    return group->counts.copies.bytes_at_most;
}

static struct report_sum summary_sum_of(const struct heap_groups *groups)
{
    return (struct report_sum){groups->blocks, groups->bytes};
}

static int summary_summarize_lost(struct session *session, struct view *view,
                                  struct heap_leaks *leaks, struct report_summary *summary)
{
    summary->has_snapshot = leaks->snapshot.number != 0;
    struct heap_groups *lost =
        &leaks->kinds[summary->has_snapshot ? HEAP_DEFINITELY_LOST : HEAP_NOT_SEEN];
    summary->lost = summary_sum_of(lost);
    summary->lost_groups = lost;
    summary->below = summary_sum_of(&leaks->kinds[HEAP_INDIRECTLY_LOST]);
    summary->unknown = summary_sum_of(&leaks->kinds[HEAP_UNKNOWN]);
    summary->possible = summary_sum_of(&leaks->kinds[HEAP_POSSIBLY_LOST]);
    summary->stale = summary_sum_of(&leaks->kinds[HEAP_HELD_BY_STALE]);
    struct heap_site_table sites = heap_groups_site_table(lost);
    return summary_find_owner(session, view, &sites, summary_group_amounts, &summary->lost_owner);
}

static int summary_summarize_activity(struct session *session, struct view *view,
                                      struct report_findings *findings,
                                      struct report_summary *summary)
{
    const struct heap_site *all = &findings->usage.total;
    const struct heap_move_counts *moves = &findings->moves.reallocs.total;
    struct heap_site_table usage = heap_usage_site_table(&findings->usage);
    struct heap_site_table reallocs = heap_move_site_table(&findings->moves.reallocs);
    summary->allocated = (struct report_sum){all->allocations, heap_sum_value(all->bytes)};
    summary->temporary = (struct report_sum){all->temporary, heap_sum_value(all->temporary_bytes)};
    summary->reallocs = moves->reallocs;
    summary->moved = moves->moved;
    summary->copied = moves->copies.bytes;
    summary->copied_at_most = moves->copies.bytes_at_most;
    int status = summary_find_owner(session, view, &usage, summary_temporary_amounts,
                                    &summary->temporary_owner);
    return status == STATUS_OK ? summary_find_owner(session, view, &reallocs, summary_move_amounts,
                                                    &summary->moves_owner)
                               : status;
}

/* Counts the calls of each kind of error. Inconsistencies of the trace are no errors. */
static size_t summary_count_errors(const struct heap_errors *errors,
                                   struct report_error_count counts[HEAP_ERROR_KINDS])
{
    size_t used = 0;
    for (int kind = 0; kind < HEAP_ERROR_TRACE_INCONSISTENCY; kind++) {
        struct report_error_count count = {.kind = heap_error_name((enum heap_error_kind)kind)};
        for (size_t i = 0; i < errors->count; i++) {
            if (errors->findings[i].kind != (enum heap_error_kind)kind)
                continue;
            count.calls += errors->findings[i].count;
            count.is_certain |= errors->findings[i].is_certain;
        }
        if (count.calls)
            counts[used++] = count;
    }
    return used;
}

static struct ttd_string summary_find_fact(const struct info_findings *info, const char *name)
{
    for (size_t i = 0; i < info->metadata_count; i++) {
        struct ttd_string key = info->metadata[i].key;
        if (key.size == strlen(name) && memcmp(key.data, name, key.size) == 0)
            return info->metadata[i].value;
    }
    return (struct ttd_string){"", 0};
}

/* Counts the threads. A process that runs another program in its place goes on with a main thread
 * that has a record of its own; the unknown thread of some calls is none. */
static void summary_count_threads(struct session *session, const struct report_findings *findings,
                                  struct report_summary *summary)
{
    uint64_t process = ttd_reader_trace(session->source.reader)->process_id;
    uint64_t none = findings->usage.has_unknown_thread;
    const struct definition_thread *thread;
    for (ttd_id id = 1; (thread = definitions_thread(&session->definitions, id)); id++)
        summary->programs += thread->os_id == process;
    if (summary->programs > 1)
        none += summary->programs - 1;
    summary->threads = findings->info.stats.thread_count;
    summary->threads -= none < summary->threads ? none : 0;
}

int summary_print(struct session *session, struct view *view, const struct page_facts *page,
                  struct report_findings *findings, bool is_brief)
{
    struct report_error_count counts[HEAP_ERROR_KINDS];
    struct heap_groups *at_peak = page ? &findings->ticks.at_peak : &findings->peak.groups;
    struct report_summary summary = {
        .is_brief = is_brief,
        .info = {.stats = &findings->info.stats,
                 .trace = ttd_reader_trace(session->source.reader),
                 .is_closed = session->source.is_closed && findings->info.stats.has_end,
                 .end = &session->source.end},
        .command = summary_find_fact(&findings->info, "command"),
        .before = summary_find_fact(&findings->info, "before"),
        .choice = &session->source.choice,
        .peak_position = page ? findings->ticks.peak.position : findings->peak.peak.position,
        .peak = summary_sum_of(at_peak),
        .peak_groups = at_peak};
    bool has_fatal = false;
    summary_count_threads(session, findings, &summary);
    struct heap_site_table peak_sites = heap_groups_site_table(at_peak);
    struct heap_site_table moves = heap_move_site_table(&findings->moves.reallocs);
    struct ttd_position position = page ? page->last : ttd_position_max();
    session_outcome(session, &findings->leaks.outcome, position);
    leaks_judge(session, &findings->leaks, position);
    summary.left = (struct report_sum){findings->leaks.outcome.left.blocks,
                                       heap_sum_value(findings->leaks.outcome.left.bytes)};
    summary.has_gap_before_peak =
        heap_losses_have_gap(&findings->leaks.outcome.losses, summary.peak_position);
    int status = session_filter(session, &moves);
    if (status == STATUS_OK)
        status = errors_judge(session, &findings->errors, &findings->fatal, &has_fatal);
    if (status == STATUS_OK)
        status = summary_find_owner(session, view, &peak_sites, summary_group_amounts,
                                    &summary.peak_owner);
    if (status == STATUS_OK)
        status = summary_summarize_lost(session, view, &findings->leaks, &summary);
    if (status == STATUS_OK)
        status = summary_summarize_activity(session, view, findings, &summary);
    if (status == STATUS_OK)
        status = session_output(session, false);
    if (status != STATUS_OK)
        return status;
    summary.errors = counts;
    summary.error_count = summary_count_errors(&findings->errors, counts);
    summary.fatal = has_fatal ? &findings->fatal.signal : NULL;
    report_summary(&session->report, &summary);
    return STATUS_OK;
}

static int summary_execute(struct session *session, const void *context)
{
    struct heap_trace trace;
    struct report_findings findings;
    struct ttd_error error = {.what = NULL};
    const struct summary_options *options = context;
    int status = session_trace(session, &trace);
    if (status != STATUS_OK)
        return status;
    enum ttd_status result = report_find(session, NULL, &trace, true, &findings, &error);
    status = result == TTD_OK
                 ? summary_print(session, &session->view, NULL, &findings, options->is_brief)
                 : source_fail(&session->source, result, &error);
    report_findings_free(&findings);
    return status;
}

static int summary_run(const struct command *command, int count, char **arguments)
{
    struct summary_options options = {.is_brief = false};
    struct common_options common;
    int status = command_options(&common, command, count, arguments, &options);
    if (status >= 0)
        return status;
    common.view.by = VIEW_BY_FUNCTION;
    return session_execute(&common, &options);
}

static const struct summary_options defaults = {.is_brief = false};

const struct command command_summary = {
    .name = "summary",
    .summary = "the trace in a dozen lines",
    .help = help,
    .own = {own_options, &defaults, sizeof defaults},
    .run = summary_run,
    .execute = summary_execute,
};
