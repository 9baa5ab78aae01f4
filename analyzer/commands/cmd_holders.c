/* SPDX-License-Identifier: MIT */
/* Commands about the holders of blocks: referrers, retained. */
#include <string.h>

#include "cli/options/command.h"
#include "cli/process/message.h"
#include "commands/findings.h"
#include "report/reachability/reachability_reports.h"

/* ttdanalyze referrers */

static const char referrers_help[] =
    "Usage: ttdanalyze referrers [--address A | --group N] [OPTIONS] [TRACE]\n"
    "\n"
    "Shows who points at the block that the address A lies in, who points at those,\n"
    "and so on up to the variables, stacks, registers and mappings that hold it; the\n"
    "shortest path first. It takes a snapshot of references: the newest at the\n"
    "position or before.\n"
    "\n"
    "      --at POSITION  as of that position; the end if not given\n"
    "      --address A    the address\n"
    "      --group N      the first block of group N of 'leaks', with the same\n"
    "                     options as below; if neither is given group 1, or if\n"
    "                     'leaks' lists none the largest group of live blocks\n"
    "      --depth N      at most N levels (32)\n"
    "      --limit N      at most N pointers to the block (8), and on each level\n"
    "                     above half as many, but one at least\n"
    "\n"
    "What leaks takes, and chooses its groups by: --show, --by, --skip, --include,\n"
    "--exclude, --suppressions, --baseline, --client and --activity.\n" COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

#define WIDTH_MAX 65536

struct referrers_options {
    struct position_spec at;
    struct given_number address;
    uint64_t group;
    struct heap_island_filter island;
    /** Kinds of blocks, for the group; 0 if not given. */
    unsigned kinds;
    uint64_t depth;
    uint64_t limit;
};

static const struct own_option referrers_own[] = {
    OWN_OPTION("at", option_position, struct referrers_options, at),
    OWN_OPTION("address", option_given, struct referrers_options, address),
    OWN_NUMBER("group", option_number, struct referrers_options, group, 1, UINT32_MAX),
    OWN_OPTION("show", leaks_parse_kinds, struct referrers_options, kinds),
    ISLAND_OPTIONS(struct referrers_options, island),
    OWN_NUMBER("depth", option_number, struct referrers_options, depth, 1,
               HEAP_REFERRERS_DEPTH_MAX),
    OWN_NUMBER("limit", option_number, struct referrers_options, limit, 1, WIDTH_MAX),
    OWN_OPTIONS_END};

/* Whether an option is given that chooses groups. */
static bool referrers_chooses_groups(const struct session *session,
                                     const struct referrers_options *options)
{
    const struct view_options *view = &session->options.view;
    return options->kinds || heap_island_filter_is_given(&options->island) ||
           view_has_filter(view) || view->skip.count || view->by != VIEW_BY_STACK ||
           known_findings_are_needed(&session->known_findings);
}

/* An option that has no effect is refused. */
static int referrers_check(const struct session *session, const struct referrers_options *options)
{
    const struct known_findings_options *known = &session->options.known_findings;
    if (options->address.is_given && options->group)
        return message_usage("referrers", "either --address or --group: not both");
    if (options->address.is_given && referrers_chooses_groups(session, options))
        return message_usage("referrers", "options that choose groups are for --group, and do "
                                          "not apply to --address");
    if (known->written_baseline || known->fails_on_growth)
        return message_usage("referrers", "--write-baseline and --fail-on-growth are for leaks");
    return STATUS_OK;
}

/* Finds the address of the first block of the group. */
static int referrers_find_address(struct session *session, const struct referrers_options *options,
                                  struct report_referrers *data, struct heap_group *group)
{
    struct leaks_choice choice = {&options->at, &options->island,
                                  options->kinds ? options->kinds : leaks_default_kinds()};
    data->address = options->address.value;
    if (options->address.is_given)
        return STATUS_OK;
    data->number =
        options->group || !referrers_chooses_groups(session, options) ? options->group : 1;
    int status = leaks_find_group(session, &choice, &data->number, group);
    data->group = group;
    data->address = group->address;
    return status;
}

/* Adds the reasons why pointers may be missing. A text says in place of its list that there is no
 * snapshot; in records an empty list would mean that nothing holds the blocks. */
static void holders_add_snapshot(struct session *session, const struct heap_reach *reach)
{
    struct certainty *certainty = &session->report.certainty;
    certainty_add_snapshot(certainty, &reach->snapshot, reach->misplaced);
    if (session->report.form != REPORT_TEXT)
        certainty_add_missing_snapshot(certainty, &reach->snapshot);
}

static int referrers_print(struct session *session, struct report_referrers *data)
{
    const struct heap_referrers *referrers = data->referrers;
    holders_add_snapshot(session, &referrers->reach);
    int status = session_begin_report(session, referrers->target != GRAPH_NONE);
    if (status == STATUS_OK)
        report_referrers(&session->report, data);
    return status;
}

static int referrers_execute(struct session *session, const void *context)
{
    const struct referrers_options *options = context;
    struct question question;
    struct report_referrers data = {.group = NULL};
    struct heap_group group = {.address = 0};
    int status = referrers_check(session, options);
    if (status == STATUS_OK)
        status = referrers_find_address(session, options, &data, &group);
    if (status == STATUS_OK)
        status = session_ask_runtime(session, &options->at, &question);
    if (status != STATUS_OK)
        return status;
    struct heap_referrers_options query = {.at = question.at,
                                           .address = data.address,
                                           .depth = (size_t)options->depth,
                                           .width = (size_t)options->limit};
    struct heap_referrers referrers;
    enum ttd_status result =
        heap_referrers_find(&question.trace, &query, &referrers, &question.error);
    status = session_answer(session, &question, result, &referrers.outcome);
    if (status != STATUS_OK)
        return status;
    data.referrers = &referrers;
    status = referrers_print(session, &data);
    heap_referrers_free(&referrers);
    return status;
}

static const struct referrers_options referrers_defaults = {
    .at = {.kind = POSITION_SPEC_END}, .depth = 32, .limit = 8};

const struct command command_referrers = {
    .name = "referrers",
    .summary = "pointers to a block, up to the root that holds it",
    .help = referrers_help,
    .shares = COMMAND_FILTERS | COMMAND_KEYS | COMMAND_KNOWN_FINDINGS,
    .own = {referrers_own, &referrers_defaults, sizeof referrers_defaults},
    .execute = referrers_execute,
};

/* ttdanalyze retained and roots */

static const char retained_help[] =
    "Usage: ttdanalyze retained [OPTIONS] [TRACE]\n"
    "\n"
    "Shows the blocks that would become free if something went away: every path to\n"
    "them from variables, stacks, registers and mappings leads through it. It takes a\n"
    "snapshot of references: the newest at the position or before.\n"
    "\n"
    "      --at POSITION  as of that position; the end if not given\n"
    "      --by KEY       the thing that goes away: block (the default); all blocks\n"
    "                     of a stack, function, file, module, thread, heap or class;\n"
    "                     or root, a variable, stack or mapping\n"
    "      --tree         the dominator tree: below each root the blocks that only it\n"
    "                     holds\n"
    "      --depth N      at most N levels of the tree (16)\n"
    "      --limit N      at most N of them (50; 0 for all, but at most 4096 groups\n"
    "                     or roots); in a tree at the top (8), and on each level\n"
    "                     below half as many, but one at least\n" COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

static const char roots_help[] =
    "Usage: ttdanalyze roots [OPTIONS] [TRACE]\n"
    "\n"
    "Shows the blocks that each variable, stack, register and mapping holds: all that\n"
    "it leads to, and those that nothing else leads to. It takes a snapshot of\n"
    "references: the newest at the position or before.\n"
    "\n"
    "      --at POSITION  as of that position; the end if not given\n"
    "      --limit N      at most N of them (20; 0 for all, but at most 4096)\n" COMMAND_COMMON_HELP
    "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

struct retained_options {
    struct position_spec at;
    enum heap_retained_by by;
    /** By label. */
    enum view_key labels;
    bool has_key;
    bool is_tree;
    uint64_t depth;
    struct given_number limit;
};

static bool retained_parse_key(const char *argument, void *context)
{
    static const struct {
        const char *name;
        enum heap_retained_by by;
        enum view_key labels;
    } keys[] = {
        {"block", HEAP_RETAINED_BY_BLOCK, VIEW_BY_STACK},
        {"stack", HEAP_RETAINED_BY_STACK, VIEW_BY_STACK},
        {"function", HEAP_RETAINED_BY_LABEL, VIEW_BY_FUNCTION},
        {"file", HEAP_RETAINED_BY_LABEL, VIEW_BY_FILE},
        {"module", HEAP_RETAINED_BY_LABEL, VIEW_BY_MODULE},
        {"thread", HEAP_RETAINED_BY_LABEL, VIEW_BY_THREAD},
        {"heap", HEAP_RETAINED_BY_LABEL, VIEW_BY_HEAP},
        {"class", HEAP_RETAINED_BY_CLASS, VIEW_BY_STACK},
        {"root", HEAP_RETAINED_BY_ROOT, VIEW_BY_STACK},
    };
    struct retained_options *options = context;
    options->has_key = true;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(argument, keys[i].name) != 0)
            continue;
        options->by = keys[i].by;
        options->labels = keys[i].labels;
        return true;
    }
    return false;
}

static const struct own_option retained_own[] = {
    OWN_OPTION("at", option_position, struct retained_options, at),
    OWN_CHOICE("by", retained_parse_key),
    OWN_OPTION("tree", option_flag, struct retained_options, is_tree),
    OWN_NUMBER("depth", option_number, struct retained_options, depth, 1, HEAP_RETAINED_DEPTH_MAX),
    OWN_OPTION("limit", option_given, struct retained_options, limit),
    OWN_OPTIONS_END};

static const struct own_option roots_own[] = {
    OWN_OPTION("at", option_position, struct retained_options, at),
    OWN_OPTION("limit", option_given, struct retained_options, limit), OWN_OPTIONS_END};

int retained_print(struct session *session, const struct heap_retained_options *options,
                   const struct heap_retained *retained)
{
    const struct heap_reach *reach = &retained->held.reach;
    struct report_retained data = {.retained = retained, .options = options};
    session_outcome(session, &retained->outcome, options->at);
    holders_add_snapshot(session, reach);
    int status = session_begin_report(session, reach->snapshot.number);
    if (status == STATUS_OK)
        report_retained(&session->report, &data);
    return status;
}

/* Finds the label of a block, for its group. */
static enum ttd_status retained_find_label(void *context, const struct heap_block *block,
                                           uint32_t *label)
{
    struct view *view = context;
    struct heap_key key = heap_key_of_block(view_split(&view->options), block);
    enum ttd_status status = view_find_key(view, &key);
    *label = key.property;
    return status;
}

/* Reads the names before the query: it asks for the label of each block. */
static int retained_prepare_labels(struct session *session, const struct retained_options *options,
                                   struct heap_retained_options *query)
{
    if (options->by != HEAP_RETAINED_BY_LABEL)
        return STATUS_OK;
    session->view.options.by = options->labels;
    query->labels = (struct heap_retained_labels){&session->view, retained_find_label};
    return session_names(session, true);
}

static int retained_execute(struct session *session, const void *context)
{
    const struct retained_options *options = context;
    struct heap_retained_options query = {.by = options->by};
    if (options->is_tree && options->has_key)
        return message_usage(session->options.command->name, "--tree and --by exclude each other");
    query.depth = options->is_tree ? (size_t)options->depth : 0;
    query.limit = options->limit.value ? (size_t)options->limit.value : SIZE_MAX;
    /* The limit of a tree holds for each node, so the default of a list would fill many screens. */
    if (options->is_tree && !options->limit.is_given)
        query.limit = 8;
    struct question question;
    int status = session_ask(session, &options->at, &question);
    if (status == STATUS_OK)
        status = retained_prepare_labels(session, options, &query);
    if (status != STATUS_OK)
        return status;
    struct heap_retained retained;
    query.at = question.at;
    enum ttd_status result =
        heap_retained_find(&question.trace, &query, &retained, &question.error);
    status = session_found(session, &question, result, &retained.outcome);
    if (status != STATUS_OK)
        return status;
    status = retained_print(session, &query, &retained);
    heap_retained_free(&retained);
    return status;
}

static const struct retained_options retained_defaults = {
    .at = {.kind = POSITION_SPEC_END}, .depth = 16, .limit.value = 50};
static const struct retained_options roots_defaults = {
    .at = {.kind = POSITION_SPEC_END}, .by = HEAP_RETAINED_BY_ROOT, .limit.value = 20};

const struct command command_retained = {
    .name = "retained",
    .summary = "blocks that would become free if something went away",
    .help = retained_help,
    .own = {retained_own, &retained_defaults, sizeof retained_defaults},
    .execute = retained_execute,
};

const struct command command_roots = {
    .name = "roots",
    .summary = "blocks that each variable, stack and mapping holds",
    .help = roots_help,
    .own = {roots_own, &roots_defaults, sizeof roots_defaults},
    .execute = retained_execute,
};
