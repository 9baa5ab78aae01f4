/* SPDX-License-Identifier: MIT */
/* Commands about the heap at a position: state, peak, fragmentation, history. */
#include <string.h>

#include "analyses/reachability/leaks.h"
#include "analyses/state/peak.h"
#include "cli/options/command.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "cli/session/sidecar.h"
#include "cli/traces/source.h"
#include "commands/family.h"
#include "report/state/state_reports.h"

/* Pointers to its block that are shown. */
#define POINTERS_SHOWN 8

static const char state_help[] =
    "Usage: ttdanalyze state [OPTIONS] [TRACE]\n"
    "\n"
    "Shows the heap as it was at a position: the live blocks by the stack that\n"
    "allocated them, by heap, by thread and by size.\n"
    "\n"
    "      --at POSITION       that position; the end if not given\n"
    "      --address A         the address A at that position: the block it lies in,\n"
    "                          who allocated and who will release it; or who released\n"
    "                          it before, and whose it will be next\n"
    "      --blocks            list all live blocks, by address (text and json)\n"
    "      --heaps             show the heaps as a tree, each below the one in whose\n"
    "                          blocks it lies, and which calls created them (text and\n"
    "                          json)\n"
    "      --show-runtime      list also the blocks that the C and C++ runtimes keep\n"
    "                          for themselves until the end\n" ISLAND_OPTIONS_HELP
        VIEW_HELP_WITH_CLASS COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

struct state_options {
    struct position_spec at;
    struct heap_island_filter island;
    struct given_number address;
    bool shows_blocks;
    bool shows_heaps;
    bool shows_runtime;
};

static const struct own_option state_own[] = {
    OWN_OPTION("at", option_position, struct state_options, at),
    ISLAND_OPTIONS(struct state_options, island),
    OWN_OPTION("address", option_given, struct state_options, address),
    OWN_OPTION("blocks", option_flag, struct state_options, shows_blocks),
    OWN_OPTION("heaps", option_flag, struct state_options, shows_heaps),
    OWN_OPTION("show-runtime", option_flag, struct state_options, shows_runtime),
    OWN_OPTIONS_END};

/* Leaves the blocks in the list whose stacks the options let through. */
static int state_view_blocks(struct session *session, struct heap_state *state)
{
    size_t kept = 0;
    int status = STATUS_OK;
    for (size_t i = 0; i < state->block_count && status == STATUS_OK; i++) {
        bool is_wanted = false;
        status = session_wants(session, state->blocks[i].stack, &is_wanted);
        if (is_wanted)
            state->blocks[kept++] = state->blocks[i];
    }
    state->block_count = kept;
    return status;
}

/* Shows all tables and the list with the same blocks. */
static int state_view_tables(struct session *session, struct heap_state *state)
{
    for (size_t i = HEAP_BY_STACK + 1; i < HEAP_TABLES; i++) {
        int status = session_filter_joined(session, &state->tables.by[i]);
        if (status != STATUS_OK)
            return status;
    }
    struct heap_site_table unknown = heap_groups_site_table(&state->unknown);
    int status = session_filter(session, &unknown);
    if (status == STATUS_OK)
        status = state_view_blocks(session, state);
    struct heap_site_table sites = heap_groups_site_table(&state->tables.by[HEAP_BY_STACK]);
    return status == STATUS_OK ? session_view(session, &sites) : status;
}

/* Finds the heaps of the blocks that the view has left. */
static int state_find_heaps(struct session *session, struct report_state *data,
                            struct heap_tree *heaps)
{
    struct ttd_error error = {.what = NULL};
    struct heap_trace trace = source_trace(&session->source);
    enum ttd_status result =
        heap_tree_find(&trace, data->at, &data->state->tables.by[HEAP_BY_HEAP], heaps, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    data->heaps = heaps;
    return STATUS_OK;
}

static int state_print(struct session *session, const struct state_options *options,
                       struct report_state *data)
{
    /* The fate of an address after the position depends on the whole trace. */
    if (data->owners)
        session_outcome(session, &data->owners->outcome, ttd_position_max());
    if (data->referrers)
        certainty_add_snapshot(&session->report.certainty, &data->referrers->reach.snapshot,
                               data->referrers->reach.misplaced);
    if (!data->owners)
        session_outcome(session, &data->state->outcome, data->at);
    if (!data->referrers)
        certainty_add_snapshot(&session->report.certainty, &session->classes.snapshot,
                               session->classes.misplaced);
    int status = session_names(session, options->address.is_given);
    if (status == STATUS_OK)
        status = session_runtime(session, &data->state->runtime, options->shows_runtime);
    if (status == STATUS_OK)
        status = state_view_tables(session, data->state);
    struct heap_tree heaps = {.nodes = NULL};
    if (status == STATUS_OK && options->shows_heaps)
        status = state_find_heaps(session, data, &heaps);
    if (status == STATUS_OK)
        status = session_output(session, true);
    session_lead_with_functions(session);
    if (status == STATUS_OK && !session_print_tree(session, "block", "bytes"))
        report_state(&session->report, data);
    heap_tree_free(&heaps);
    return status;
}

/* Finds who points at the block that the address lies in, if a snapshot shows it: the block was
 * there when the newest one was taken. */
static int state_find_pointers(struct session *session, const struct state_options *options,
                               struct report_state *data)
{
    struct heap_referrers_options query = {
        .at = data->at, .address = options->address.value, .depth = 1, .width = POINTERS_SHOWN};
    struct heap_referrers referrers;
    struct ttd_error error = {.what = NULL};
    struct heap_trace trace = source_trace(&session->source);
    if (!data->owners->has_live)
        return state_print(session, options, data);
    trace.keyframes = sidecar_use(session, data->at);
    enum ttd_status result = heap_referrers_find(&trace, &query, &referrers, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    bool is_there = referrers.target != GRAPH_NONE &&
                    heap_nodes_get(&referrers.reach.nodes, referrers.target, HEAP_NODE_EVENT) ==
                        data->owners->live.block.event;
    data->referrers = is_there ? &referrers : NULL;
    int status = state_print(session, options, data);
    heap_referrers_free(&referrers);
    return status;
}

static int state_find_address(struct session *session, const struct state_options *options,
                              struct report_state *data)
{
    if (!options->address.is_given)
        return state_print(session, options, data);
    struct heap_owners_options query = {.address = options->address.value, .at = data->at};
    struct heap_owners owners;
    struct ttd_error error = {.what = NULL};
    struct heap_trace trace = source_trace(&session->source);
    trace.keyframes = sidecar_use(session, data->at);
    enum ttd_status result = heap_owners_find(&trace, &query, &owners, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    data->owners = &owners;
    return state_find_pointers(session, options, data);
}

/* An option that would have no effect is refused. */
static int state_check_options(const struct session *session, const struct state_options *options)
{
    const struct view_options *view = &session->options.view;
    enum report_form form = session->options.form;
    bool is_text = form == REPORT_TEXT;
    bool has_more = options->shows_blocks || options->shows_heaps || options->address.is_given;
    if (has_more && !is_text && form != REPORT_JSON)
        return message_usage("state", "--blocks, --heaps and --address have no %s: try json",
                             command_form_name(form));
    if (is_text && options->address.is_given && !options->shows_blocks && !options->shows_heaps &&
        (view_has_filter(view) || view->skip.count || view->by != VIEW_BY_STACK))
        return message_usage("state", "with --address text shows no groups: options that choose "
                                      "them do not apply");
    int status = session_refuse_in_tree(session, has_more, "--blocks, --heaps and --address");
    return status == STATUS_OK
               ? session_refuse_in_tree(session, options->shows_runtime, "--show-runtime")
               : status;
}

static int state_execute(struct session *session, const void *context)
{
    const struct state_options *options = context;
    struct report_state data = {.state = NULL};
    struct question question;
    int status = state_check_options(session, options);
    if (status == STATUS_OK)
        status = session_ask_runtime(session, &options->at, &question);
    if (status != STATUS_OK)
        return status;
    struct heap_state state;
    data.at = question.at;
    const struct view_options *views = &session->options.view;
    struct heap_state_options query = {.at = data.at,
                                       .split = view_split(views),
                                       .has_stacks_in_tables =
                                           views->include.count || views->exclude.count,
                                       .tells_runtime = true,
                                       .keeps_blocks = options->shows_blocks,
                                       .has_address = options->address.is_given,
                                       .address = options->address.value,
                                       .confirms_blocks = true};
    status = session_islands(session, &options->island, &query.islands);
    if (status == STATUS_OK)
        status = session_classes(session, &question.trace, data.at, &query.classes);
    if (status != STATUS_OK)
        return status;
    enum ttd_status result = heap_state_find(&question.trace, &query, &state, &question.error);
    status = session_found(session, &question, result, &state.outcome);
    if (status != STATUS_OK)
        return status;
    data.state = &state;
    status = state_find_address(session, options, &data);
    heap_state_free(&state);
    return status;
}

static const struct state_options state_defaults = {.at = {.kind = POSITION_SPEC_END}};

const struct command command_state = {
    .name = "state",
    .summary = "the heap as it was at a position",
    .help = state_help,
    .shares = COMMAND_VIEWS | COMMAND_CLASSES,
    .own = {state_own, &state_defaults, sizeof state_defaults},
    .execute = state_execute,
};

/* ttdanalyze peak */

static const char peak_help[] =
    "Usage: ttdanalyze peak [OPTIONS] [TRACE]\n"
    "\n"
    "Finds the first position at which most bytes were live, and the stacks that had\n"
    "allocated them.\n"
    "\n"
    "      --show-runtime      list also the blocks that the C and C++ runtimes keep\n"
    "                          for themselves until the end\n" FAMILY_HELP ISLAND_OPTIONS_HELP
        VIEW_HELP COMMAND_COMMON_HELP;

struct peak_options {
    struct heap_island_filter island;
    bool is_group;
    bool shows_runtime;
};

static const struct own_option peak_own[] = {
    OWN_OPTION("group", option_flag, struct peak_options, is_group),
    OWN_OPTION("show-runtime", option_flag, struct peak_options, shows_runtime),
    ISLAND_OPTIONS(struct peak_options, island), OWN_OPTIONS_END};

static int peak_print(struct session *session, const struct peak_options *options,
                      struct heap_peak_state *state)
{
    struct heap_site_table sites = heap_groups_site_table(&state->groups);
    int status = session_runtime(session, &state->runtime, options->shows_runtime);
    if (status == STATUS_OK)
        status = session_view(session, &sites);
    if (status == STATUS_OK)
        status = session_output(session, true);
    session_lead_with_functions(session);
    if (status == STATUS_OK && !session_print_tree(session, "block", "bytes"))
        report_peak(&session->report, state);
    return status;
}

static int peak_ask(struct session *session, const struct peak_options *options,
                    struct heap_peak_state *peak)
{
    struct ttd_error error = {.what = NULL};
    struct heap_trace trace;
    int status = session_trace(session, &trace);
    if (status != STATUS_OK)
        return status;
    struct heap_peak_state_options query = {.split = view_split(&session->options.view)};
    status = session_islands(session, &options->island, &query.islands);
    if (status != STATUS_OK)
        return status;
    trace.keyframes = sidecar_use_existing(session);
    enum ttd_status result = heap_peak_state_find(&trace, &query, peak, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    session_outcome(session, &peak->outcome, ttd_position_max());
    return STATUS_OK;
}

static int peak_execute(struct session *session, const void *context)
{
    const struct peak_options *options = context;
    struct heap_peak_state peak;
    int status = session_refuse_in_tree(session, options->shows_runtime, "--show-runtime");
    if (status == STATUS_OK)
        status = peak_ask(session, options, &peak);
    if (status != STATUS_OK)
        return status;
    status = peak_print(session, options, &peak);
    heap_peak_state_free(&peak);
    return status;
}

/* Adds the blocks that one process had at its own peak. */
static int peak_add_member(struct session *session, const void *options, struct family *family,
                           bool *is_error)
{
    struct heap_peak_state peak;
    int status = peak_ask(session, options, &peak);
    (void)is_error;
    if (status != STATUS_OK)
        return status;
    struct heap_site_table sites = heap_groups_site_table(&peak.groups);
    status = session_view(session, &sites);
    for (size_t i = 0; i < peak.groups.count && status == STATUS_OK; i++) {
        const struct heap_group *group = &peak.groups.items[i];
        struct family_finding finding = {.kind = "",
                                         .stacks = {group->key.stack},
                                         .count = group->blocks,
                                         .bytes = group->bytes};
        status = session_check(session, family_add(family, session, &finding));
    }
    heap_peak_state_free(&peak);
    return status;
}

static const struct peak_options peak_defaults = {.shows_runtime = false};

static int peak_run(const struct command *command, int count, char **arguments)
{
    static const struct family_question question = {.unit = "block",
                                                    .has_bytes = true,
                                                    .title = "each at its own peak, at most",
                                                    .collect = peak_add_member};
    struct peak_options options = peak_defaults;
    struct common_options common;
    int status = command_options(&common, command, count, arguments, &options);
    if (status >= 0)
        return status;
    if (options.is_group && options.shows_runtime)
        return message_usage("peak", "--show-runtime is for one trace, not for --group");
    return options.is_group ? family_run(&common, &question, &options, 0)
                            : session_execute(&common, &options);
}

const struct command command_peak = {
    .name = "peak",
    .summary = "when most bytes were live, and whose",
    .help = peak_help,
    .shares = COMMAND_VIEWS,
    .own = {peak_own, &peak_defaults, sizeof peak_defaults},
    .run = peak_run,
    .execute = peak_execute,
};

/* ttdanalyze fragmentation */

static const char fragmentation_help[] =
    "Usage: ttdanalyze fragmentation [OPTIONS] [TRACE]\n"
    "\n"
    "Shows how densely the live blocks lie in memory: the regions that they are in,\n"
    "how much of them is used, and the gaps between blocks. Gaps under 32 bytes are\n"
    "what the allocator itself needs; larger ones are mostly free memory that it\n"
    "keeps. Pages of 4,096 bytes with less than a quarter in blocks are sparse: the\n"
    "call sites whose blocks keep most of them come last.\n"
    "\n"
    "      --at POSITION  at that position; the end if not given\n"
    "      --gap N        a gap of N bytes or more separates regions (1M)\n"
    "      --limit N      show at most N regions (50; 0 for all). Totals count "
    "all\n" COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

struct fragmentation_options {
    struct position_spec at;
    uint64_t gap;
    size_t limit;
};

static const struct own_option fragmentation_own[] = {
    OWN_OPTION("at", option_position, struct fragmentation_options, at),
    OWN_NUMBER("gap", option_size, struct fragmentation_options, gap, 1, UINT64_MAX),
    OWN_OPTION("limit", option_limit, struct fragmentation_options, limit), OWN_OPTIONS_END};

static int fragmentation_print(struct session *session, const struct fragmentation_options *options,
                               struct heap_fragmentation *fragmentation)
{
    session->report.limit = options->limit;
    struct heap_site_table sites = heap_sparse_site_table(&fragmentation->sparse);
    int status = session_view(session, &sites);
    if (status == STATUS_OK)
        status = session_output(session, true);
    if (status == STATUS_OK)
        report_fragmentation(&session->report, fragmentation);
    return status;
}

static int fragmentation_execute(struct session *session, const void *context)
{
    const struct fragmentation_options *options = context;
    struct question question;
    int status = session_ask(session, &options->at, &question);
    if (status != STATUS_OK)
        return status;
    struct heap_fragmentation_options query = {.at = question.at, .gap = options->gap};
    struct heap_fragmentation fragmentation;
    enum ttd_status result =
        heap_fragmentation_find(&question.trace, &query, &fragmentation, &question.error);
    status = session_answer(session, &question, result, &fragmentation.outcome);
    if (status != STATUS_OK)
        return status;
    status = fragmentation_print(session, options, &fragmentation);
    heap_fragmentation_free(&fragmentation);
    return status;
}

static const struct fragmentation_options fragmentation_defaults = {
    .at = {.kind = POSITION_SPEC_END}, .gap = UINT64_C(1) << 20, .limit = 50};

const struct command command_fragmentation = {
    .name = "fragmentation",
    .summary = "how densely live blocks lie in memory",
    .help = fragmentation_help,
    .own = {fragmentation_own, &fragmentation_defaults, sizeof fragmentation_defaults},
    .execute = fragmentation_execute,
};

/* ttdanalyze history */

/* More blocks than these are not kept. */
#define OWNERS_MAX 1000000

static const char history_help[] =
    "Usage: ttdanalyze history --address A [OPTIONS] [TRACE]\n"
    "\n"
    "Shows the history of an address: every block that ever covered it, when, where\n"
    "and by which thread it was allocated and released; and when it was lost, if a\n"
    "snapshot of references shows it.\n"
    "\n"
    "      --address A  the address\n"
    "      --size N     as well as the N - 1 addresses after it\n"
    "      --limit N    show the last N blocks (1000)\n" COMMAND_COMMON_HELP;

struct history_options {
    struct given_number address;
    uint64_t size;
    uint64_t limit;
};

static const struct own_option history_own[] = {
    OWN_OPTION("address", option_given, struct history_options, address),
    OWN_NUMBER("size", option_size, struct history_options, size, 1, UINT64_MAX),
    OWN_NUMBER("limit", option_number, struct history_options, limit, 1, OWNERS_MAX),
    OWN_OPTIONS_END};

static bool history_has_lost(const struct heap_history *history)
{
    for (size_t i = 0; i < history->count; i++)
        if (history->owners[i].lost)
            return true;
    return false;
}

static int history_print(struct session *session, const struct heap_history *history,
                         const struct heap_leaks *leaks)
{
    session_outcome(session, &history->outcome, ttd_position_max());
    if (history_has_lost(history))
        certainty_add_snapshot(&session->report.certainty, &leaks->snapshot, leaks->misplaced);
    int status = session_begin_report(session, history->count);
    if (status == STATUS_OK)
        report_history(&session->report, history);
    return status;
}

/* Finds the lost blocks, and prints them. */
static int history_print_with_lost(struct session *session, struct heap_history *history)
{
    struct heap_trace trace;
    struct heap_leaks leaks = {.snapshot = {.number = 0}};
    struct ttd_error error = {.what = NULL};
    if (!history->count)
        return history_print(session, history, &leaks);
    int status = session_trace(session, &trace);
    if (status != STATUS_OK)
        return status;
    trace.keyframes = sidecar_use_existing(session);
    enum ttd_status result = heap_lost_owners_find(&trace, history, &leaks, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    status = history_print(session, history, &leaks);
    heap_leaks_free(&leaks);
    return status;
}

static int history_execute(struct session *session, const void *context)
{
    const struct history_options *options = context;
    if (!options->address.is_given)
        return message_usage("history", "no address is given: use --address");
    bool is_beyond = options->size - 1 > UINT64_MAX - options->address.value;
    struct heap_history_options query = {
        .first = options->address.value,
        .last = is_beyond ? UINT64_MAX : options->address.value + options->size - 1,
        .max = (size_t)options->limit};
    struct heap_history history;
    struct question question = session_ask_all(session);
    question.trace.keyframes = sidecar_use_existing(session);
    enum ttd_status result = heap_history_find(&question.trace, &query, &history, &question.error);
    int status = session_found(session, &question, result, &history.outcome);
    if (status != STATUS_OK)
        return status;
    status = history_print_with_lost(session, &history);
    heap_history_free(&history);
    return status;
}

static const struct history_options history_defaults = {.size = 1, .limit = 1000};

const struct command command_history = {
    .name = "history",
    .summary = "every block that ever covered an address",
    .help = history_help,
    .own = {history_own, &history_defaults, sizeof history_defaults},
    .execute = history_execute,
};
