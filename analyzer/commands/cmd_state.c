/* SPDX-License-Identifier: MIT */
/* ttdanalyze state */
#include <string.h>

#include "cli/options/own_options.h"
#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "cli/session/sidecar.h"
#include "cli/traces/position_spec.h"
#include "report/state/state_reports.h"

/* Pointers to its block that are shown. */
#define POINTERS_SHOWN 8

static const char help[] =
    "Usage: ttdanalyze state [OPTIONS] [TRACE]\n"
    "\n"
    "Shows the heap as it was at a position: the live blocks by the stack that allocated\n"
    "them, by heap, by thread and by size.\n"
    "\n"
    "      --at POSITION       that position; the end if not given\n"
    "      --address A         the address A at that position: the block it lies in, who\n"
    "                          allocated and who will release it; or who released it\n"
    "                          before, and whose it will be next\n"
    "      --blocks            list all live blocks, by address (text and json)\n"
    "      --heaps             show the heaps as a tree, each below the one in whose blocks\n"
    "                          it lies, and which calls created them (text and json)\n"
    "      --show-runtime      list also the blocks that the C and C++ runtimes keep for\n"
    "                          themselves until the end\n" ISLAND_OPTIONS_HELP VIEW_HELP_WITH_CLASS
        COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

struct state_options {
    struct position_spec at;
    struct heap_island_filter island;
    struct given_number address;
    bool shows_blocks;
    bool shows_heaps;
    bool shows_runtime;
};

static const struct own_option own_options[] = {
    OWN_OPTION("at", option_position, struct state_options, at),
    ISLAND_OPTIONS(struct state_options, island),
    OWN_OPTION("address", option_given, struct state_options, address),
    OWN_OPTION("blocks", option_flag, struct state_options, shows_blocks),
    OWN_OPTION("heaps", option_flag, struct state_options, shows_heaps),
    OWN_OPTION("show-runtime", option_flag, struct state_options, shows_runtime),
    OWN_OPTIONS_END};

/* Leaves the blocks in the list whose stacks the options let through. */
static int view_blocks(struct session *session, struct heap_state *state)
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
static int view_tables(struct session *session, struct heap_state *state)
{
    for (size_t i = HEAP_BY_STACK + 1; i < HEAP_TABLES; i++) {
        int status = session_filter_joined(session, &state->tables.by[i]);
        if (status != STATUS_OK)
            return status;
    }
    struct heap_site_table unknown = heap_groups_site_table(&state->unknown);
    int status = session_filter(session, &unknown);
    if (status == STATUS_OK)
        status = view_blocks(session, state);
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
        status = view_tables(session, data->state);
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
static int find_pointers(struct session *session, const struct state_options *options,
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
    return find_pointers(session, options, data);
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

static const struct state_options defaults = {.at = {.kind = POSITION_SPEC_END}};

const struct command command_state = {
    .name = "state",
    .summary = "the heap as it was at a position",
    .help = help,
    .shares = COMMAND_VIEWS | COMMAND_CLASSES,
    .own = {own_options, &defaults, sizeof defaults},
    .execute = state_execute,
};
