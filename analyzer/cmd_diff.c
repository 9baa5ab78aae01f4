/* SPDX-License-Identifier: MIT */
/* ttdanalyze diff */
#include "cmd_compare.h"

#include <string.h>

#include "cli/exit.h"
#include "cli/message.h"
#include "cli/position_spec.h"
#include "cli/session.h"
#include "cli/sidecar.h"

enum { OPTION_FROM = OPTION_FIRST, OPTION_TO, OPTION_CHANGES, OPTION_QUADRANT, OPTION_RUNTIME };

static const struct option own_options[] = {{"from", required_argument, NULL, OPTION_FROM},
                                            {"to", required_argument, NULL, OPTION_TO},
                                            {"changes", no_argument, NULL, OPTION_CHANGES},
                                            {"quadrant", required_argument, NULL, OPTION_QUADRANT},
                                            {"show-runtime", no_argument, NULL, OPTION_RUNTIME},
                                            {NULL, 0, NULL, 0}};

static const char help[] =
    "Usage: ttdanalyze diff [--from POSITION] [--to POSITION] [OPTIONS] [TRACE]\n"
    "       ttdanalyze diff [--from POSITION] [--to POSITION] [OPTIONS] OLD NEW\n"
    "\n"
    "Tells what became of blocks in a range of positions, by the stack that allocated:\n"
    "AIFI, allocated inside the range and freed inside; AIFO, allocated inside and not\n"
    "freed in it: what the range has added; AOFI, allocated before and freed inside; and\n"
    "AOFO, allocated before and not freed in it.\n"
    "\n"
    "Of two traces, which live blocks are more or fewer in NEW than in OLD: the largest\n"
    "changes first. Stacks are the same if the functions of the program in them are, or\n"
    "without names their places in modules, wherever these were loaded; lines do not\n"
    "matter.\n"
    "\n"
    "      --from POSITION     the first position of the range (start); of two traces,\n"
    "                          the position in OLD (end)\n"
    "      --to POSITION       the first position after it (end); of two traces, the\n"
    "                          position in NEW (end)\n"
    "      --changes           of one trace, compare the heap at --to with that at\n"
    "                          --from, as if of two\n"
    "      --quadrant NAME     of a range, make the tree of --tree of aifi, aifo (the\n"
    "                          default), aofi or aofo\n"
    "      --show-runtime      list as well what the C and C++ runtimes keep for\n"
    "                          themselves until the end, or of two heaps count it\n" VIEW_HELP
        COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

struct diff_options {
    struct position_spec from;
    struct position_spec to;
    bool has_from;
    bool has_changes;
    bool has_quadrant;
    bool shows_runtime;
    enum heap_quadrant quadrant;
};

static bool take_quadrant(struct diff_options *options, const char *name)
{
    options->has_quadrant = true;
    for (int i = 0; i < HEAP_QUADRANTS; i++) {
        options->quadrant = (enum heap_quadrant)i;
        if (strcmp(heap_quadrant_name(options->quadrant), name) == 0)
            return true;
    }
    return false;
}

static bool parse_option(void *context, int option, const char *argument)
{
    struct diff_options *options = context;
    switch (option) {
    case OPTION_CHANGES:
        options->has_changes = true;
        return true;
    case OPTION_FROM:
        options->has_from = true;
        return position_spec_parse(argument, &options->from);
    case OPTION_RUNTIME:
        options->shows_runtime = true;
        return true;
    case OPTION_QUADRANT:
        return take_quadrant(options, argument);
    default:
        return position_spec_parse(argument, &options->to);
    }
}

static int print(struct session *session, const struct diff_options *options,
                 struct heap_diff *diff, struct ttd_position last)
{
    session_outcome(session, &diff->outcome, last);
    int status = session_runtime(session, &diff->runtime, options->shows_runtime);
    for (int i = 0; i < HEAP_QUADRANTS && status == STATUS_OK; i++) {
        struct heap_site_table sites = heap_groups_site_table(&diff->quadrants[i]);
        if (!session_has_tree(session) || options->quadrant == (enum heap_quadrant)i)
            status = session_view(session, &sites);
    }
    if (status == STATUS_OK)
        status = session_output(session, true);
    if (status != STATUS_OK || session_print_tree(session, "block", "bytes"))
        return status;
    struct report_diff data = {.diff = diff, .limit = session->options.view.limit};
    session->options.format->diff(&session->report, &data);
    return STATUS_OK;
}

static int execute(struct session *session, const struct diff_options *options)
{
    struct ttd_position from, to;
    int status = position_spec_resolve(&options->from, POSITION_FOR_ORDER, &session->source, &from);
    if (status == STATUS_OK)
        status = position_spec_resolve(&options->to, POSITION_FOR_ORDER, &session->source, &to);
    if (status != STATUS_OK)
        return status;
    if (ttd_position_compare(to, from) <= 0)
        return message_usage("diff", "the range is empty: --to is not after --from");
    bool is_end = ttd_position_compare(to, ttd_position_max()) == 0;
    struct ttd_position last = is_end ? to : heap_position_before(to);
    struct heap_diff diff;
    struct ttd_error error = {.what = NULL};
    struct heap_trace trace;
    status = session_trace(session, &trace);
    if (status != STATUS_OK)
        return status;
    trace.keyframes = sidecar_use(session, from);
    struct heap_diff_options query = {
        .from = from, .last = last, .split = view_split(&session->options.view)};
    enum ttd_status result = heap_diff_find(&trace, &query, &diff, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    status = print(session, options, &diff, last);
    heap_diff_free(&diff);
    return status;
}

static int compare(const struct common_options *common, const struct diff_options *options)
{
    struct compare_options two = {.specs = {options->from, options->to},
                                  .limit = common->view.limit,
                                  .shows_runtime = options->shows_runtime};
    bool is_by_id = common->view.by == VIEW_BY_THREAD || common->view.by == VIEW_BY_HEAP;
    if (options->has_quadrant)
        return message_usage(
            "diff", "--quadrant applies to a range of one trace, not to a comparison of two heaps");
    if (common->other && is_by_id)
        return message_usage("diff", "no thread or heap of one trace is one of another");
    if (common->other && !options->has_from)
        two.specs[HEAP_OLD].kind = POSITION_SPEC_END;
    return compare_heaps(common, &two);
}

static int run(const struct command *command, int count, char **arguments)
{
    struct diff_options options = {.from = {.kind = POSITION_SPEC_START},
                                   .to = {.kind = POSITION_SPEC_END},
                                   .quadrant = HEAP_AIFO};
    struct common_options common_options;
    int status = command_options(&common_options, command, count, arguments, &options);
    if (status >= 0)
        return status;
    if (common_options.other || options.has_changes)
        return compare(&common_options, &options);
    if (options.has_quadrant && common_options.view.shape == VIEW_FLAT)
        return message_usage("diff", "--quadrant needs --tree");
    struct session session;
    status = session_open(&session, &common_options);
    if (status != STATUS_OK)
        return status;
    return session_close(&session, execute(&session, &options), false);
}

const struct command command_diff = {
    .name = "diff",
    .summary = "what a range of positions has added and freed; what two heaps differ in",
    .help = help,
    .shares = COMMAND_VIEWS,
    .own_options = own_options,
    .parse_option = parse_option,
    .takes_two_traces = true,
    .run = run,
};
