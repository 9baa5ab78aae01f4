/* SPDX-License-Identifier: MIT */
/* ttdanalyze export */
#include <string.h>
#include <unistd.h>

#include "analyses/state/state.h"
#include "cli/process/limits.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "cli/traces/input.h"
#include "report/state/report_profile.h"

static const char export_help[] =
    "Usage: ttdanalyze export [OPTIONS] FORMAT [TRACE]\n"
    "\n"
    "Writes the live blocks at a position, by stack, for the viewer of another project.\n"
    "FORMAT is one of:\n"
    "\n"
    "  folded      folded stacks with their bytes, for flame graphs\n"
    "  pprof       for 'go tool pprof': blocks and bytes\n"
    "  speedscope  for speedscope.app: a profile of bytes and one of blocks\n"
    "\n"
    "None of them has times, threads or addresses of blocks. Blocks that the C and C++\n"
    "runtimes keep are among the others.\n"
    "\n"
    "      --at POSITION       at that position; the end if not given\n" VIEW_FILTERS_HELP
        COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

struct export_format {
    const char *name;
    /** NULL for folded stacks, which are a tree of calls. */
    void (*write)(struct report *report, const struct report_profile *data);
    bool is_binary;
};

static const struct export_format export_formats[] = {
    {"folded", NULL, false},
    {"pprof", report_profile_pprof, true},
    {"speedscope", report_profile_speedscope, false},
};

struct export_options {
    struct position_spec at;
    const struct export_format *format;
};

static const struct own_option export_own[] = {
    OWN_OPTION("at", option_position, struct export_options, at), OWN_OPTIONS_END};

static int export_print(struct session *session, const struct export_options *options,
                        struct heap_groups *groups)
{
    struct heap_site_table sites = heap_groups_site_table(groups);
    struct report_profile data = {.groups = groups,
                                  .trace = ttd_reader_trace(session->source.reader)};
    int status = session_view(session, &sites);
    if (status == STATUS_OK)
        status = session_output(session, false);
    if (status != STATUS_OK)
        return status;
    if (options->format->write)
        options->format->write(&session->report, &data);
    else
        session_print_tree(session, "block", "bytes");
    return STATUS_OK;
}

static int export_execute(struct session *session, const void *context)
{
    const struct export_options *options = context;
    struct question question;
    int status = session_ask(session, &options->at, &question);
    if (status != STATUS_OK)
        return status;
    struct heap_state_options query = {.at = question.at};
    struct heap_state state;
    enum ttd_status result = heap_state_find(&question.trace, &query, &state, &question.error);
    status = session_answer(session, &question, result, &state.outcome);
    if (status != STATUS_OK)
        return status;
    /* No form has room for all reasons: standard error has them as well. */
    session->has_reasons = false;
    status = export_print(session, options, &state.tables.by[HEAP_BY_STACK]);
    heap_state_free(&state);
    return status;
}

static const struct export_format *export_find(const char *name)
{
    for (size_t i = 0; i < sizeof export_formats / sizeof export_formats[0]; i++) {
        if (strcmp(export_formats[i].name, name) == 0)
            return &export_formats[i];
    }
    return NULL;
}

/* The first operand is the format, the second one the trace. */
static int export_run(const struct command *command, int count, char **arguments)
{
    static char default_name[] = INPUT_DEFAULT;
    struct common_options options;
    struct export_options own = {.at = {.kind = POSITION_SPEC_END}};
    int status = count < 2 ? message_usage(command->name, "no format is given")
                           : command_options(&options, command, count, arguments, &own);
    if (status >= 0)
        return status;
    own.format = export_find(options.trace);
    if (!own.format)
        return message_usage(command->name, "%s is no format that can be written", options.trace);
    if (own.format->is_binary && !options.output && isatty(STDOUT_FILENO))
        return message_usage(command->name, "%s is binary: write it to a file, with --output",
                             own.format->name);
    if (options.form != REPORT_TEXT)
        return message_usage(command->name, "the name of a format takes the place of --format");
    options.trace = options.other_count ? options.others[0] : default_name;
    options.other_count = 0;
    options.form = own.format->write ? REPORT_JSON : REPORT_FOLDED;
    options.view.shape = own.format->write ? VIEW_FLAT : VIEW_TOP_DOWN;
    options.view.by = own.format->write ? VIEW_BY_STACK : VIEW_BY_FUNCTION;
    char *traces[] = {(char *)(uintptr_t)options.trace};
    limits_set(options.max_memory, traces, 1);
    return session_execute(&options, &own);
}

const struct command command_export = {
    .name = "export",
    .summary = "live blocks for the viewers of other projects",
    .help = export_help,
    .shares = COMMAND_FILTERS,
    .own = {export_own, NULL, sizeof(struct export_options)},
    .traces_max = 2,
    .run = export_run,
    .execute = export_execute,
};
