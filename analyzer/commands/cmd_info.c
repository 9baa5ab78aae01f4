/* SPDX-License-Identifier: MIT */
/* ttdanalyze info */
#include <stdlib.h>

#include "base/grow.h"
#include "cli/process/exit.h"
#include "cli/process/output.h"
#include "cli/traces/trace_group.h"
#include "commands/findings.h"
#include "report/trace/trace_reports.h"

/* Facts of the recording that are kept; the format allows any number. */
#define METADATA_MAX 4096

#define INFO_KINDS                                                                                 \
    (TTD_KIND_BIT(TTD_KIND_STRINGS) | TTD_KIND_BIT(TTD_KIND_MODULES) |                             \
     TTD_KIND_BIT(TTD_KIND_THREADS) | TTD_KIND_BIT(TTD_KIND_METADATA))

static const char help[] =
    "Usage: ttdanalyze info [OPTIONS] [TRACE]\n"
    "\n"
    "Shows the contents of a trace: the recorded process, how it ended, how many events\n"
    "of which threads there are, how many were lost, the clients and the activities of the\n"
    "live API, the modules, and how well the file is compressed.\n"
    "\n"
    "      --group               list the traces that were recorded together with it, and\n"
    "                            are beside it: of the program and its child "
    "processes\n" COMMAND_COMMON_HELP;

/* Copies a text, which in a batch is valid only until the next one. */
static enum ttd_status info_keep_text(struct info_findings *findings, struct ttd_string string,
                                      struct ttd_string *copy)
{
    copy->size = string.size;
    copy->data = arena_copy(&findings->text, string.data, string.size);
    return copy->data ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

/* A crafted trace may have any number of metadata, so no more than METADATA_MAX are kept. */
static enum ttd_status info_add_metadata(struct info_findings *findings,
                                         const struct ttd_metadata *record)
{
    if (findings->metadata_count == METADATA_MAX)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&findings->metadata, &findings->metadata_capacity,
                                        findings->metadata_count + 1, sizeof *findings->metadata);
    if (status != TTD_OK)
        return status;
    struct ttd_metadata *kept_record = &findings->metadata[findings->metadata_count];
    status = info_keep_text(findings, record->key, &kept_record->key);
    if (status == TTD_OK)
        status = info_keep_text(findings, record->value, &kept_record->value);
    if (status == TTD_OK)
        findings->metadata_count++;
    return status;
}

/* Collects names and facts of the recording in the same reading that counts. */
static enum ttd_status info_see_batch(void *context, const struct ttd_batch *batch)
{
    struct info_findings *findings = context;
    enum ttd_status status = TTD_OK;
    if (findings->definitions)
        status = definitions_add(findings->definitions, batch);
    for (size_t i = 0; batch->kind == TTD_KIND_METADATA && i < batch->count; i++) {
        if (status == TTD_OK)
            status = info_add_metadata(findings, &batch->u.metadata[i]);
    }
    return status;
}

static void info_begin(struct session *session, struct info_findings *findings)
{
    *findings =
        (struct info_findings){.definitions = session->has_names ? NULL : &session->definitions};
}

void info_watch(struct session *session, struct info_findings *findings, struct heap_pass *pass)
{
    struct heap_watcher watcher = {.observer.context = findings,
                                   .to = ttd_position_max(),
                                   .batch = info_see_batch,
                                   .kinds = INFO_KINDS};
    info_begin(session, findings);
    heap_pass_add(pass, &watcher);
}

int info_print(struct session *session, const struct info_findings *findings)
{
    const struct heap_trace_stats *stats = &findings->stats;
    session_outcome(session, &stats->outcome, ttd_position_max());
    int status = session_output(session, true);
    if (status != STATUS_OK)
        return status;
    struct report_info data = {.stats = stats,
                               .trace = ttd_reader_trace(session->source.reader),
                               .is_closed = session->source.is_closed,
                               .end = &session->source.end,
                               .file_bytes = ttd_reader_size(session->source.reader),
                               .metadata = findings->metadata,
                               .metadata_count = findings->metadata_count};
    report_info(&session->report, &data);
    return STATUS_OK;
}

void info_free(struct info_findings *findings)
{
    heap_trace_stats_free(&findings->stats);
    free(findings->metadata);
    arena_free(&findings->text);
}

/* Chunks before the first unsupported one are reported all the same; the exit status still says
 * that the rest could not be read. */
static int report_stats(struct session *session, const struct info_findings *findings)
{
    const struct heap_trace_stats *stats = &findings->stats;
    int reading = STATUS_OK;
    if (stats->is_unsupported)
        reading = source_fail(&session->source, TTD_ERROR_UNSUPPORTED, &stats->outcome.error);
    session->source.is_closed = session->source.is_closed && stats->has_end;
    int status = info_print(session, findings);
    return status == STATUS_OK ? reading : status;
}

/* The hook of a reading that is no pass. */
struct collector {
    /** The hook of the source, which sees each batch first. */
    struct heap_batch_hook hook;
    struct info_findings *findings;
};

static enum ttd_status see_read(void *context, const struct ttd_batch *batch)
{
    struct collector *collector = context;
    enum ttd_status status = collector->hook.batch(collector->hook.context, batch);
    return status == TTD_OK ? info_see_batch(collector->findings, batch) : status;
}

static int info_execute(struct session *session, const void *options)
{
    (void)options;
    struct heap_trace trace = source_trace(&session->source);
    struct info_findings findings;
    struct collector collector = {.hook = trace.hook, .findings = &findings};
    struct heap_trace_stats_options query = {.kinds = INFO_KINDS};
    struct ttd_error error = {.what = NULL};
    info_begin(session, &findings);
    trace.hook = (struct heap_batch_hook){.context = &collector, .batch = see_read};
    enum ttd_status result = heap_trace_stats_find(&trace, &query, &findings.stats, &error);
    progress_end(&session->source.progress);
    int status = result == TTD_OK ? report_stats(session, &findings)
                                  : source_fail(&session->source, result, &error);
    info_free(&findings);
    return status;
}

/* Prints the traces of a recording. There is no session, because that belongs to one trace. */
static int print_group(const struct common_options *options, const struct group *group)
{
    struct output_file output;
    int status = output_open(&output, options->output, options->trace, options->has_pager);
    if (status != STATUS_OK)
        return status;
    struct report report = {.output = &output.text,
                            .form = options->form,
                            .path = options->trace,
                            .shows_all = options->has_full_stacks};
    struct report_group data = {&group->members[0].trace.group, group->members, group->count};
    report_recording(&report, &data);
    return output_close(&output, STATUS_OK, true);
}

static int list_group(const struct common_options *options)
{
    struct group group;
    int status = group_find(options->trace, &group);
    if (status == STATUS_OK)
        status = print_group(options, &group);
    group_free(&group);
    return status;
}

/* The one option: whether to list the traces that were recorded together. */
static const struct own_option own_options[] = {OWN_CHOICE("group", option_flag), OWN_OPTIONS_END};

static int info_run(const struct command *command, int count, char **arguments)
{
    struct common_options options;
    bool is_group = false;
    int status = command_options(&options, command, count, arguments, &is_group);
    if (status >= 0)
        return status;
    if (is_group)
        return list_group(&options);
    struct session session;
    status = session_open(&session, &options);
    if (status != STATUS_OK)
        return status;
    status = info_execute(&session, NULL);
    return session_close(&session, status, session.has_output);
}

const struct command command_info = {
    .name = "info",
    .summary = "contents of a trace, and its end",
    .help = help,
    .own = {.table = own_options},
    .reads_whole_chunks = true,
    .run = info_run,
    .execute = info_execute,
};
