/* SPDX-License-Identifier: MIT */
/* ttdanalyze digest: each trace in one line of JSON, for a database of many. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "cli/options/command.h"
#include "cli/process/message.h"
#include "commands/report_pass.h"
#include "report/sections/sections.h"
#include "report/trace/trace_reports.h"

/* Traces of one command line. */
#define DIGEST_TRACES_MAX 1000000

static const char digest_help[] =
    "Usage: ttdanalyze digest [OPTIONS] [TRACE]...\n"
    "\n"
    "Writes each trace as one line of JSON: the process and its host, how certain the\n"
    "answers are, the sums of other commands, and the call sites with the largest\n"
    "shares of them. A site has a fingerprint that is the same in other runs and\n"
    "builds, so that a database can compare the traces of many machines.\n"
    "\n"
    "      --sites N           list N call sites (50; 0 for all); the others are one\n"
    "                          sum\n"
    "\n"
    "  -f, --format FORMAT  json, the only one\n"
    "  -o, --output FILE    write there instead of to standard output; the file is\n"
    "                       readable by you only, and replaced only when complete\n"
    "      --max-memory SIZE  give up on a trace rather than use more memory\n"
    "  -h, --help           this text\n"
    "  -V, --version        the version\n";

struct digest_options {
    size_t sites;
};

static const struct own_option digest_own[] = {
    OWN_OPTION("sites", option_limit, struct digest_options, sites), OWN_OPTIONS_END};

/* The sites of a trace, while they are summed up. All zero but `by_fingerprint` at first. */
struct digest_table {
    struct report_digest_site *sites;
    size_t count;
    size_t capacity;
    struct hash_map by_fingerprint;
    struct fingerprinter fingerprinter;
    uint64_t sums[DIGEST_SUMS];
};

static void digest_table_free(struct digest_table *table)
{
    free(table->sites);
    map_free(&table->by_fingerprint);
    fingerprinter_free(&table->fingerprinter);
}

/* Finds the site of a stack, or adds it. */
static enum ttd_status digest_find_site(struct digest_table *table, struct session *session,
                                        ttd_id stack, struct report_digest_site **site)
{
    struct fingerprint key;
    enum ttd_status status =
        fingerprint_stack(&table->fingerprinter, &session->definitions, stack, &key);
    if (status != TTD_OK)
        return status;
    uint32_t index = map_get(&table->by_fingerprint, key.high, key.low);
    if (index == MAP_NONE) {
        index = (uint32_t)table->count;
        status = grow_array((void **)&table->sites, &table->capacity, table->count + 1,
                            sizeof *table->sites);
        if (status == TTD_OK)
            status = map_set(&table->by_fingerprint, key.high, key.low, index);
        if (status != TTD_OK)
            return status;
        table->sites[table->count++] =
            (struct report_digest_site){.fingerprint = key, .stack = stack};
    }
    *site = &table->sites[index];
    return TTD_OK;
}

static void digest_count(struct digest_table *table, struct report_digest_site *site,
                         enum report_digest_sum sum, uint64_t value)
{
    site->sums[sum] = heap_add(site->sums[sum], value);
    table->sums[sum] = heap_add(table->sums[sum], value);
}

static enum ttd_status digest_add_usage(struct digest_table *table, struct session *session,
                                        const struct heap_usage *usage)
{
    for (size_t i = 0; i < usage->count; i++) {
        const struct heap_site *from = &usage->sites[i];
        struct report_digest_site *site;
        enum ttd_status status = digest_find_site(table, session, from->key.stack, &site);
        if (status != TTD_OK)
            return status;
        digest_count(table, site, DIGEST_ALLOCATIONS, from->allocations);
        digest_count(table, site, DIGEST_ALLOCATED_BYTES, heap_sum_value(from->bytes));
        digest_count(table, site, DIGEST_TEMPORARY, from->temporary);
        digest_count(table, site, DIGEST_TEMPORARY_BYTES, heap_sum_value(from->temporary_bytes));
    }
    return TTD_OK;
}

/* Adds the blocks of one kind that are live at the end. */
static enum ttd_status digest_add_live(struct digest_table *table, struct session *session,
                                       const struct heap_leaks *leaks, enum heap_leak_kind kind)
{
    bool is_lost = kind == HEAP_DEFINITELY_LOST || kind == HEAP_INDIRECTLY_LOST;
    for (size_t i = 0; i < leaks->kinds[kind].count; i++) {
        const struct heap_group *group = &leaks->kinds[kind].items[i];
        struct report_digest_site *site;
        enum ttd_status status = digest_find_site(table, session, group->key.stack, &site);
        if (status != TTD_OK)
            return status;
        digest_count(table, site, DIGEST_LIVE_BLOCKS, group->blocks);
        digest_count(table, site, DIGEST_LIVE_BYTES, group->bytes);
        if (is_lost) {
            digest_count(table, site, DIGEST_LOST_BLOCKS, group->blocks);
            digest_count(table, site, DIGEST_LOST_BYTES, group->bytes);
        }
        if (kind == HEAP_POSSIBLY_LOST) {
            digest_count(table, site, DIGEST_POSSIBLE_BLOCKS, group->blocks);
            digest_count(table, site, DIGEST_POSSIBLE_BYTES, group->bytes);
        }
    }
    return TTD_OK;
}

/* Orders sites by share, the largest first; sites of equal share by fingerprint, which is the same
 * in each run. */
static int digest_compare_sites(const void *a, const void *b)
{
    const struct report_digest_site *x = a, *y = b;
    if (x->share != y->share)
        return x->share > y->share ? -1 : 1;
    if (x->fingerprint.high != y->fingerprint.high)
        return x->fingerprint.high < y->fingerprint.high ? -1 : 1;
    return x->fingerprint.low < y->fingerprint.low ? -1 : x->fingerprint.low > y->fingerprint.low;
}

static void digest_rank(struct digest_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        struct report_digest_site *site = &table->sites[i];
        for (int k = 0; k < DIGEST_SUMS; k++) {
            double share = table->sums[k] ? (double)site->sums[k] / (double)table->sums[k] : 0;
            site->share = share > site->share ? share : site->share;
        }
    }
    if (table->count)
        qsort(table->sites, table->count, sizeof *table->sites, digest_compare_sites);
}

/* Sets the names of the sites that are listed. */
static enum ttd_status digest_name_sites(struct digest_table *table, struct session *session,
                                         size_t count)
{
    struct report *report = &session->report;
    for (size_t i = 0; i < count && report->status == TTD_OK; i++) {
        struct report_digest_site *site = &table->sites[i];
        const struct frame *frame = report_own_frame(report, &session->functions, site->stack);
        if (!frame)
            continue;
        site->module = frame->module;
        if (frame->function.size)
            site->function = definitions_canonical(&session->definitions, frame->name);
    }
    return report->status;
}

static enum ttd_status digest_sum_up(struct digest_table *table, struct session *session,
                                     const struct report_findings *findings, size_t listed)
{
    enum ttd_status status = digest_add_usage(table, session, &findings->usage);
    for (int kind = 0; kind < HEAP_LEAK_KINDS && status == TTD_OK; kind++)
        status = digest_add_live(table, session, &findings->leaks, (enum heap_leak_kind)kind);
    if (status != TTD_OK)
        return status;
    digest_rank(table);
    return digest_name_sites(table, session, listed < table->count ? listed : table->count);
}

static uint64_t digest_errors(const struct heap_errors *errors)
{
    uint64_t calls = 0;
    for (size_t i = 0; i < errors->count; i++)
        if (errors->findings[i].kind != HEAP_ERROR_TRACE_INCONSISTENCY)
            calls = heap_add(calls, errors->findings[i].count);
    return heap_add(calls, errors->omitted);
}

static void digest_write(struct session *session, const struct report_findings *findings,
                         const struct digest_table *table, size_t listed)
{
    const struct heap_move_counts *moves = &findings->moves.reallocs.total;
    const struct heap_groups *peak = &findings->peak.groups;
    struct report_digest data = {
        .info = {.stats = &findings->info.stats,
                 .trace = ttd_reader_trace(session->source.reader),
                 .is_closed = session->source.is_closed && findings->info.stats.has_end,
                 .end = &session->source.end,
                 .file_bytes = ttd_reader_size(session->source.reader),
                 .metadata = findings->info.metadata,
                 .metadata_count = findings->info.metadata_count},
        .program = definitions_module(&session->definitions, 1),
        .has_snapshot = findings->leaks.snapshot.number != 0,
        .peak = {peak->blocks, peak->bytes},
        .reallocs = moves->reallocs,
        .moved = moves->moved,
        .copied_bytes = moves->copies.bytes,
        .errors = digest_errors(&findings->errors),
        .sites = table->sites,
        .site_count = table->count,
        .listed = listed < table->count ? listed : table->count};
    memcpy(data.sums, table->sums, sizeof data.sums);
    progress_end(&session->source.progress);
    report_digest(&session->report, &data);
}

static int digest_print(struct session *session, struct report_findings *findings, size_t listed)
{
    struct digest_table table = {.count = 0};
    bool has_fatal = false;
    map_init(&table.by_fingerprint);
    session_outcome(session, &findings->leaks.outcome, ttd_position_max());
    leaks_judge(session, &findings->leaks, ttd_position_max());
    int status = errors_judge(session, &findings->errors, &findings->fatal, &has_fatal);
    if (status == STATUS_OK)
        status = session_names(session, true);
    if (status == STATUS_OK)
        status = session_check(session, digest_sum_up(&table, session, findings, listed));
    if (status == STATUS_OK)
        digest_write(session, findings, &table, listed);
    digest_table_free(&table);
    return status;
}

/* Writes the line of one trace to the output of all traces. */
static int digest_trace(const struct common_options *common, const char *path, size_t listed,
                        struct text_output *output)
{
    struct common_options options = *common;
    struct session session;
    struct heap_trace trace;
    struct report_findings findings;
    struct ttd_error error = {.what = NULL};
    options.trace = path;
    int status = session_open(&session, &options);
    if (status != STATUS_OK)
        return status;
    session.report.output = output;
    status = session_trace(&session, &trace);
    if (status == STATUS_OK) {
        enum ttd_status result = report_find(&session, NULL, &trace, false, &findings, &error);
        status = result == TTD_OK ? digest_print(&session, &findings, listed)
                                  : source_fail(&session.source, result, &error);
        report_findings_free(&findings);
    }
    return session_close(&session, status, false);
}

/* Whether the output would replace one of the traces. */
static int digest_spare_traces(const struct common_options *options)
{
    int status = output_spare(options->output, options->trace);
    for (size_t i = 0; i < options->other_count && status == STATUS_OK; i++)
        status = output_spare(options->output, options->others[i]);
    return status;
}

/* A trace that cannot be read has no line, and makes the status a failure; the others are read. */
static int digest_run(const struct command *command, int count, char **arguments)
{
    struct common_options options;
    struct digest_options own = {.sites = 50};
    struct output_file output;
    int status = command_options(&options, command, count, arguments, &own);
    if (status >= 0)
        return status;
    if (options.form != REPORT_TEXT && options.form != REPORT_JSON)
        return message_usage(command->name, "its only format is json");
    options.form = REPORT_JSON;
    status = digest_spare_traces(&options);
    if (status == STATUS_OK)
        status = output_open(&output, options.output, options.trace, false);
    if (status != STATUS_OK)
        return status;
    int failure = STATUS_OK;
    for (size_t i = 0; i <= options.other_count; i++) {
        const char *path = i == 0 ? options.trace : options.others[i - 1];
        status = digest_trace(&options, path, own.sites, &output.text);
        failure = status == STATUS_OK ? failure : status;
    }
    return output_close(&output, failure, true);
}

const struct command command_digest = {
    .name = "digest",
    .summary = "a line of JSON for each trace, for a database of many",
    .help = digest_help,
    .own = {digest_own, NULL, sizeof(struct digest_options)},
    .traces_max = DIGEST_TRACES_MAX,
    .run = digest_run,
};
