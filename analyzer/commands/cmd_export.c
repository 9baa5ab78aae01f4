/* SPDX-License-Identifier: MIT */
/* ttdanalyze export */
#include <string.h>
#include <unistd.h>

#include "analyses/activity/usage.h"
#include "analyses/state/peak.h"
#include "cli/process/limits.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "cli/session/sidecar.h"
#include "cli/traces/input.h"
#include "report/state/report_profile.h"

static const char export_help[] =
    "Usage: ttdanalyze export [OPTIONS] FORMAT [TRACE]\n"
    "\n"
    "Writes blocks, by the stack that allocated them, for the viewer of another project.\n"
    "FORMAT is one of:\n"
    "\n"
    "  folded      folded stacks with their bytes, for flame graphs\n"
    "  pprof       for 'go tool pprof': blocks and bytes\n"
    "  speedscope  for speedscope.app: a profile of bytes and one of blocks\n"
    "  svg         a flame graph, for any browser\n"
    "\n"
    "None of them has times, threads or addresses of blocks. Blocks that the C and C++\n"
    "runtimes keep are among the others.\n"
    "\n"
    "      --measure WHAT      the blocks: live (the default), at a position; peak: live\n"
    "                          when most bytes were; allocated: ever; or temporary: freed\n"
    "                          by their thread's next call\n"
    "      --at POSITION       live at that position; the end if not given\n" VIEW_FILTERS_HELP
        COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

/** The form in which a format gets the blocks. */
enum export_shape {
    /** As folded stacks, which are a tree of calls. */
    EXPORT_FOLDED,
    EXPORT_TREE,
    EXPORT_STACKS
};

struct export_format {
    const char *name;
    enum export_shape shape;
    /** NULL for EXPORT_FOLDED. */
    void (*write)(struct report *report, const struct report_profile *data);
    bool is_binary;
};

static const struct export_format export_formats[] = {
    {"folded", EXPORT_FOLDED, NULL, false},
    {"pprof", EXPORT_STACKS, report_profile_pprof, true},
    {"speedscope", EXPORT_STACKS, report_profile_speedscope, false},
    {"svg", EXPORT_TREE, report_profile_svg, false},
};

struct export_options {
    struct position_spec at;
    enum report_measure measure;
    const struct export_format *format;
};

static bool export_parse_measure(const char *argument, void *measure)
{
    static const char *const names[] = {
        [REPORT_LIVE] = "live",
        [REPORT_PEAK] = "peak",
        [REPORT_ALLOCATED] = "allocated",
        [REPORT_TEMPORARY] = "temporary",
    };
    size_t index = 0;
    bool is_known = option_name(argument, names, sizeof names / sizeof names[0], &index);
    *(enum report_measure *)measure = (enum report_measure)index;
    return is_known;
}

static const struct own_option export_own[] = {
    OWN_OPTION("at", option_position, struct export_options, at),
    OWN_OPTION("measure", export_parse_measure, struct export_options, measure), OWN_OPTIONS_END};

/* Finding the blocks. Each of these sets `groups` to their sums by stack, and returns an exit
 * status; the caller releases the groups, also on failure. */

static int export_find_live(struct session *session, const struct export_options *options,
                            struct heap_groups *groups)
{
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
    *groups = state.tables.by[HEAP_BY_STACK];
    heap_groups_init(&state.tables.by[HEAP_BY_STACK]);
    heap_state_free(&state);
    return STATUS_OK;
}

static enum ttd_status export_add_groups(struct heap_groups *groups,
                                         const struct heap_groups *added)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < added->count && status == TTD_OK; i++)
        status = heap_groups_add_sum(groups, &added->items[i]);
    return status;
}

static int export_find_peak(struct session *session, struct heap_groups *groups)
{
    struct heap_peak_state_options query = {.islands = NULL};
    struct heap_peak_state peak;
    struct question question = session_ask_all(session);
    question.trace.keyframes = sidecar_use_existing(session);
    enum ttd_status result = heap_peak_state_find(&question.trace, &query, &peak, &question.error);
    int status = session_answer(session, &question, result, &peak.outcome);
    if (status != STATUS_OK)
        return status;
    result = export_add_groups(groups, &peak.groups);
    if (result == TTD_OK)
        result = export_add_groups(groups, &peak.runtime.groups);
    if (result == TTD_OK)
        result = heap_groups_sort(groups);
    heap_peak_state_free(&peak);
    return session_check(session, result);
}

static int export_find_usage(struct session *session, enum report_measure measure,
                             struct heap_groups *groups)
{
    bool is_temporary = measure == REPORT_TEMPORARY;
    struct heap_usage_options query = {.order = is_temporary ? HEAP_RANK_BY_TEMPORARY
                                                             : HEAP_RANK_BY_BYTES};
    struct heap_usage usage;
    struct question question = session_ask_all(session);
    enum ttd_status result = heap_usage_find(&question.trace, &query, &usage, &question.error);
    int status = session_answer(session, &question, result, &usage.outcome);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < usage.count && result == TTD_OK; i++) {
        const struct heap_site *site = &usage.sites[i];
        struct heap_group sum = {
            .key = site->key,
            .blocks = is_temporary ? site->temporary : site->allocations,
            .bytes = heap_sum_value(is_temporary ? site->temporary_bytes : site->bytes),
        };
        if (sum.blocks)
            result = heap_groups_add_sum(groups, &sum);
    }
    if (result == TTD_OK)
        result = heap_groups_sort(groups);
    heap_usage_free(&usage);
    return session_check(session, result);
}

static int export_find_groups(struct session *session, const struct export_options *options,
                              struct heap_groups *groups)
{
    if (options->measure == REPORT_LIVE)
        return export_find_live(session, options, groups);
    if (options->measure == REPORT_PEAK)
        return export_find_peak(session, groups);
    return export_find_usage(session, options->measure, groups);
}

static int export_print(struct session *session, const struct export_options *options,
                        struct heap_groups *groups)
{
    struct heap_site_table sites = heap_groups_site_table(groups);
    struct report_profile data = {.groups = groups,
                                  .trace = ttd_reader_trace(session->source.reader),
                                  .measure = options->measure,
                                  .tree = &session->tree};
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
    struct heap_groups groups;
    heap_groups_init(&groups);
    int status = export_find_groups(session, options, &groups);
    /* No form has room for all reasons: standard error has them as well. */
    session->has_reasons = false;
    if (status == STATUS_OK)
        status = export_print(session, options, &groups);
    heap_groups_free(&groups);
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

/* Checks options against each other and the format. Returns an exit status. */
static int export_check(const struct command *command, const struct common_options *options,
                        const struct export_options *own)
{
    if (!own->format)
        return message_usage(command->name, "%s is no format that can be written", options->trace);
    if (own->format->is_binary && !options->output && isatty(STDOUT_FILENO))
        return message_usage(command->name, "%s is binary: write it to a file, with --output",
                             own->format->name);
    if (options->form != REPORT_TEXT)
        return message_usage(command->name, "the name of a format takes the place of --format");
    if (own->measure != REPORT_LIVE && own->at.kind != POSITION_SPEC_END)
        return message_usage(command->name, "--at is only for --measure live");
    return STATUS_OK;
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
    status = export_check(command, &options, &own);
    if (status != STATUS_OK)
        return status;
    options.trace = options.other_count ? options.others[0] : default_name;
    options.other_count = 0;
    bool is_tree = own.format->shape != EXPORT_STACKS;
    options.form = is_tree ? REPORT_FOLDED : REPORT_JSON;
    options.view.shape = is_tree ? VIEW_TOP_DOWN : VIEW_FLAT;
    options.view.by = is_tree ? VIEW_BY_FUNCTION : VIEW_BY_STACK;
    char *traces[] = {(char *)(uintptr_t)options.trace};
    limits_set(options.max_memory, traces, 1);
    return session_execute(&options, &own);
}

const struct command command_export = {
    .name = "export",
    .summary = "blocks for the viewers of other projects",
    .help = export_help,
    .shares = COMMAND_FILTERS,
    .own = {export_own, NULL, sizeof(struct export_options)},
    .traces_max = 2,
    .run = export_run,
    .execute = export_execute,
};
