/* SPDX-License-Identifier: MIT */
/* ttdanalyze leaks */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyses/state/heap_tree.h"
#include "base/grow.h"
#include "cli/options/command.h"
#include "cli/process/message.h"
#include "cli/traces/source.h"
#include "commands/family.h"
#include "commands/findings.h"
#include "report/reachability/reachability_reports.h"
#include "report/sections/sections.h"

/** A set of kinds of leaks is a bit mask. */
#define KIND_BIT(kind) (1u << (kind))
#define KINDS_ALL      (KIND_BIT(HEAP_LEAK_KINDS) - 1)
#define KINDS_HELD                                                                                 \
    (KIND_BIT(HEAP_HELD_BY_STALE) | KIND_BIT(HEAP_HELD_WEAKLY) | KIND_BIT(HEAP_REACHABLE))
/** Kinds that a snapshot has proved. */
#define KINDS_PROVED                                                                               \
    (KIND_BIT(HEAP_DEFINITELY_LOST) | KIND_BIT(HEAP_INDIRECTLY_LOST) | KIND_BIT(HEAP_REACHABLE))
#define KINDS_LISTED (KIND_BIT(HEAP_DEFINITELY_LOST) | KIND_BIT(HEAP_POSSIBLY_LOST))
/** A bit that is no kind: text shows the possibly lost groups as one. */
#define KINDS_FOLDED KIND_BIT(HEAP_LEAK_KINDS)

static const char help[] =
    "Usage: ttdanalyze leaks [OPTIONS] [TRACE]\n"
    "\n"
    "Lists lost blocks: never released, and by a snapshot nothing points at them any\n"
    "more. Without a snapshot it lists all blocks that were never released. They are\n"
    "grouped by the stack that allocated them, the most bytes first.\n"
    "\n"
    "      --at POSITION       at that moment instead of at the end, by the newest\n"
    "                          snapshot before it\n"
    "      --show KINDS        list blocks of these kinds (definite,possible):\n"
    "                          definite, indirect, possible, reachable, stale, stack,\n"
    "                          unknown, all\n"
    "      --show-runtime      list the blocks that the C and C++ runtimes keep for\n"
    "                          themselves until the end, which are no leaks\n"
    "      --error-exitcode N  exit with status N if there are leaks\n"
    "      --errors-for KINDS  kinds of blocks that are leaks "
    "(definite,possible)\n" FAMILY_HELP ISLAND_OPTIONS_HELP KNOWN_FINDINGS_HELP VIEW_HELP_WITH_CLASS
        COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS "\n"
    "Lines that begin with \"Uncertain\" say what may be wrong.\n";

struct leaks_options {
    struct position_spec at;
    struct heap_island_filter island;
    uint64_t error_status;
    bool is_group;
    bool shows_runtime;
    /** Kinds to list, and those that --error-exitcode counts. */
    unsigned shown_kinds;
    unsigned errors;
};

/* Parses names of kinds, as valgrind has them, with commas between. */
bool leaks_parse_kinds(const char *text, void *member)
{
    unsigned *kinds = member;
    static const struct {
        const char *name;
        unsigned kinds;
    } names[] = {
        {"definite", KIND_BIT(HEAP_DEFINITELY_LOST)}, {"possible", KIND_BIT(HEAP_POSSIBLY_LOST)},
        {"indirect", KIND_BIT(HEAP_INDIRECTLY_LOST)}, {"reachable", KINDS_HELD},
        {"stale", KIND_BIT(HEAP_HELD_BY_STALE)},      {"stack", KIND_BIT(HEAP_HELD_WEAKLY)},
        {"unknown", KIND_BIT(HEAP_UNKNOWN)},          {"all", KINDS_ALL}};
    const size_t count = sizeof names / sizeof names[0];
    *kinds = 0;
    for (;;) {
        size_t length = strcspn(text, ",");
        size_t i = 0;
        while (i < count &&
               (strlen(names[i].name) != length || strncmp(names[i].name, text, length) != 0))
            i++;
        if (i == count)
            return false;
        *kinds |= names[i].kinds;
        if (!text[length])
            return true;
        text += length + 1;
    }
}

/* Parses kinds that are leaks. A block that may have been released is none. */
static bool cmd_leaks_parse_errors(const char *text, void *member)
{
    unsigned *kinds = member;
    if (strstr(text, "unknown") || !leaks_parse_kinds(text, kinds))
        return false;
    *kinds &= ~KIND_BIT(HEAP_UNKNOWN);
    return true;
}

static const struct own_option own_options[] = {
    OWN_OPTION("at", option_position, struct leaks_options, at),
    ISLAND_OPTIONS(struct leaks_options, island),
    OWN_NUMBER("error-exitcode", option_number, struct leaks_options, error_status, 0, 255),
    OWN_OPTION("errors-for", cmd_leaks_parse_errors, struct leaks_options, errors),
    OWN_OPTION("group", option_flag, struct leaks_options, is_group),
    OWN_OPTION("show", leaks_parse_kinds, struct leaks_options, shown_kinds),
    OWN_OPTION("show-runtime", option_flag, struct leaks_options, shows_runtime),
    OWN_OPTIONS_END};

static unsigned cmd_leaks_suppressed_kind(enum heap_leak_kind kind)
{
    static const unsigned kinds[] = {[HEAP_DEFINITELY_LOST] = SUPPRESS_DEFINITE,
                                     [HEAP_POSSIBLY_LOST] = SUPPRESS_POSSIBLE,
                                     [HEAP_INDIRECTLY_LOST] = SUPPRESS_INDIRECT,
                                     [HEAP_HELD_BY_STALE] = SUPPRESS_REACHABLE,
                                     [HEAP_HELD_WEAKLY] = SUPPRESS_REACHABLE,
                                     [HEAP_REACHABLE] = SUPPRESS_REACHABLE,
                                     [HEAP_NOT_SEEN] = SUPPRESS_LEAK,
                                     [HEAP_UNKNOWN] = SUPPRESS_LEAK};
    return kinds[kind];
}

/* Leaves out known findings. */
static int cmd_leaks_judge_groups(struct session *session, struct heap_groups *groups)
{
    size_t kept = 0;
    int status = STATUS_OK;
    for (size_t i = 0; i < groups->count && status == STATUS_OK; i++) {
        const struct heap_group *group = &groups->items[i];
        struct finding finding = {.kind =
                                      cmd_leaks_suppressed_kind((enum heap_leak_kind)group->kind),
                                  .api = group->api,
                                  .stacks = {group->key.stack},
                                  .count = group->blocks,
                                  .amount = group->bytes};
        bool is_new = false;
        status = session_judge(session, &finding, &is_new);
        if (is_new)
            groups->items[kept++] = *group;
    }
    groups->count = kept;
    struct heap_site_table sites = heap_groups_site_table(groups);
    sites.recount(groups);
    return status;
}

/* Kinds that are listed. Without a snapshot nothing is known of references, and every block that
 * was not released is listed. */
static unsigned cmd_leaks_kinds_of(const struct heap_leaks *leaks, unsigned kinds)
{
    return leaks->snapshot.number ? kinds : kinds | KIND_BIT(HEAP_NOT_SEEN);
}

/* Kinds that are findings. A block that was live when the recording ended may have been released
 * later, and one of a program that was killed may have been reachable: these are none. */
static unsigned cmd_leaks_findings_of(const struct session *session, const struct heap_leaks *leaks,
                                      unsigned kinds)
{
    return session->report.ending == ENDING_KNOWN ? cmd_leaks_kinds_of(leaks, kinds)
                                                  : kinds & ~KIND_BIT(HEAP_NOT_SEEN);
}

/* Whether a snapshot is the one that a process takes when it ends. */
static bool cmd_leaks_is_of_end(const struct ttd_snapshot *snapshot)
{
    return snapshot->number &&
           (snapshot->reason == TTD_SNAPSHOT_EXIT || snapshot->reason == TTD_SNAPSHOT_SIGNAL);
}

/* Whether blocks are live, at the program's end, that the newest snapshot is too old to show: the
 * program may have lost any of them since then, without a call. */
static bool cmd_leaks_is_old(const struct heap_leaks *leaks)
{
    return leaks->snapshot.number && !cmd_leaks_is_of_end(&leaks->snapshot) &&
           heap_leaks_blocks(leaks) != 0;
}

static const char cmd_leaks_no_end_snapshot[] = "no snapshot was taken when the program ended";

static const char cmd_leaks_merged[] =
    "'merge' has left out the snapshots: ask each trace, or 'leaks --group'";

/* Returns why no answer is possible: text of the session, or NULL if it is. A snapshot where the
 * recording ended shows the losses up to then; the recorder takes one before it lets a process go,
 * or states that it is missing. */
static const char *cmd_leaks_unjudged(struct session *session, const struct heap_leaks *leaks,
                                      bool is_end)
{
    const struct ttd_snapshot *snapshot = &leaks->snapshot;
    bool is_at_end =
        snapshot->number && ttd_position_compare(snapshot->position, leaks->outcome.position) >= 0;
    switch (session->report.ending) {
    case ENDING_UNSHOWN:
        return session->source.choice.is_merged ? cmd_leaks_merged : cmd_leaks_no_end_snapshot;
    case ENDING_UNTOLD:
        return "how the program ended is not known: it may have been killed";
    case ENDING_KILLED:
        return "the program was killed before it could release its blocks";
    case ENDING_DETACHED:
        return snapshot->number && !session->source.choice.lacks_end_snapshot
                   ? NULL
                   : report_early_end(ENDING_DETACHED);
    case ENDING_CUT:
        return is_at_end ? NULL : report_early_end(ENDING_CUT);
    case ENDING_UNSEEN:
        return report_early_end(ENDING_UNSEEN);
    case ENDING_NO_CALLS:
        return session_unrecorded(session);
    case ENDING_KNOWN:
        return is_end && cmd_leaks_is_old(leaks) ? cmd_leaks_no_end_snapshot : NULL;
    }
    return NULL;
}

/* Whether an end is as good as another, although the program may not have reached it by itself, or
 * its snapshot is missing. An earlier snapshot is not enough: the program may have lost a block
 * since then without a call. */
static bool cmd_leaks_shows_end(enum certainty_ending ending, const struct heap_leaks *leaks)
{
    bool has_snapshot = ending != ENDING_UNSHOWN && cmd_leaks_is_of_end(&leaks->snapshot);
    return certainty_knows_calls(ending) && (has_snapshot || heap_leaks_blocks(leaks) == 0);
}

void leaks_judge(struct session *session, const struct heap_leaks *leaks,
                 struct ttd_position position)
{
    struct report *report = &session->report;
    if (cmd_leaks_shows_end(report->ending, leaks))
        report->ending = ENDING_KNOWN;
    certainty_add_snapshot(&report->certainty, &leaks->snapshot, leaks->misplaced);
    bool is_end = leaks->outcome.reached_end && heap_is_end(position);
    report->unjudged = cmd_leaks_unjudged(session, leaks, is_end);
    /* Else something is missing, which is a reason. */
    if (report->unjudged && !report->certainty.count)
        certainty_add_reason(&report->certainty, report->unjudged);
}

/* Filters the blocks of a kind; leaves out known ones if they are findings; and groups them, unless
 * they belong into a tree. */
static int cmd_leaks_view_kind(struct session *session, struct heap_groups *groups,
                               bool are_findings)
{
    struct heap_site_table sites = heap_groups_site_table(groups);
    int status = session_filter(session, &sites);
    if (status == STATUS_OK && are_findings && known_findings_are_needed(&session->known_findings))
        status = cmd_leaks_judge_groups(session, groups);
    return status == STATUS_OK && !session_has_tree(session) ? session_group(session, &sites)
                                                             : status;
}

/* Lists the groups of the kinds that are shown, one kind after the other. */
static enum ttd_status cmd_leaks_list_groups(const struct heap_leaks *leaks, unsigned shown_kinds,
                                             struct heap_groups *list)
{
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++) {
        const struct heap_groups *groups = &leaks->kinds[kind];
        if (!(shown_kinds & KIND_BIT(kind)) || !groups->count)
            continue;
        enum ttd_status status = grow_array((void **)&list->items, &list->capacity,
                                            list->count + groups->count, sizeof *list->items);
        if (status != TTD_OK)
            return status;
        memcpy(&list->items[list->count], groups->items, groups->count * sizeof *list->items);
        list->count += groups->count;
    }
    struct heap_site_table sites = heap_groups_site_table(list);
    sites.recount(list);
    return TTD_OK;
}

/* Filters the leaks as the options say, groups and lists them. */
static int cmd_leaks_view_groups(struct session *session, unsigned listed_kinds, unsigned errors,
                                 struct heap_leaks *leaks, struct heap_groups *list)
{
    unsigned shown_kinds = cmd_leaks_kinds_of(leaks, listed_kinds);
    unsigned findings = shown_kinds | cmd_leaks_kinds_of(leaks, errors);
    int status = STATUS_OK;
    for (int kind = 0; kind < HEAP_LEAK_KINDS && status == STATUS_OK; kind++)
        status = cmd_leaks_view_kind(session, &leaks->kinds[kind], findings & KIND_BIT(kind));
    if (status == STATUS_OK && known_findings_are_needed(&session->known_findings))
        status = session_end_known_findings(session);
    if (status == STATUS_OK)
        status = session_check(session, cmd_leaks_list_groups(leaks, shown_kinds, list));
    struct heap_site_table sites = heap_groups_site_table(list);
    return status == STATUS_OK && session_has_tree(session) ? session_group(session, &sites)
                                                            : status;
}

/* Finds the heaps, and so who created the heaps that leaks are grouped by. */
static int leaks_find_heaps(struct session *session, struct ttd_position position,
                            struct heap_tree *heaps)
{
    static const struct heap_groups no_groups;
    struct ttd_error error = {.what = NULL};
    struct heap_trace trace = source_trace(&session->source);
    enum ttd_status result = heap_tree_find(&trace, position, &no_groups, heaps, &error);
    return result == TTD_OK ? STATUS_OK : source_fail(&session->source, result, &error);
}

/* Groups as findings for services that run tests. */
struct leaks_listed {
    const struct heap_groups *groups;
    unsigned errors;
    enum certainty_ending ending;
};

static void leaks_list_at(const void *context, size_t index, struct listed_finding *finding)
{
    const struct leaks_listed *listed = context;
    const struct heap_group *group = &listed->groups->items[index];
    static const char *const rules[] = {
        [HEAP_DEFINITELY_LOST] = "definitely-lost", [HEAP_POSSIBLY_LOST] = "possibly-lost",
        [HEAP_INDIRECTLY_LOST] = "indirectly-lost", [HEAP_HELD_BY_STALE] = "still-reachable",
        [HEAP_HELD_WEAKLY] = "still-reachable",     [HEAP_REACHABLE] = "still-reachable",
        [HEAP_NOT_SEEN] = "never-released",         [HEAP_UNKNOWN] = "unknown"};
    *finding = (struct listed_finding){.rule = rules[group->kind],
                                       .is_error = listed->errors & KIND_BIT(group->kind),
                                       .is_certain = KINDS_PROVED & KIND_BIT(group->kind),
                                       .stack = group->key.stack};
    snprintf(finding->text, sizeof finding->text, "%" PRIu64 " byte%s in %" PRIu64 " block%s %s",
             group->bytes, group->bytes == 1 ? "" : "s", group->blocks,
             group->blocks == 1 ? "" : "s",
             group->kind != HEAP_NOT_SEEN ? report_leak_kinds[group->kind].text
                                          : report_left_text(listed->ending));
    if (group->kind == HEAP_NOT_SEEN && listed->ending != ENDING_KNOWN)
        finding->rule = "live-at-end";
}

static void leaks_print_findings(struct session *session, const struct heap_leaks *leaks,
                                 const struct heap_groups *groups, unsigned errors)
{
    const struct leaks_listed listed = {groups, cmd_leaks_findings_of(session, leaks, errors),
                                        session->report.ending};
    const struct listed_findings findings = {"leaks",       "block", groups->count,
                                             leaks_list_at, &listed, &session->functions};
    report_findings(&session->report, &findings);
}

static int leaks_print_list(struct session *session, const struct leaks_options *options,
                            struct heap_leaks *leaks, struct heap_groups *list,
                            struct ttd_position position)
{
    session_outcome(session, &leaks->outcome, position);
    leaks_judge(session, leaks, position);
    bool is_by_heap = session->options.view.by == VIEW_BY_HEAP && !session_has_tree(session);
    struct heap_tree heaps = {.nodes = NULL};
    int status = session_runtime(session, &leaks->runtime, options->shows_runtime);
    if (status == STATUS_OK)
        status = cmd_leaks_view_groups(session, options->shown_kinds, options->errors, leaks, list);
    if (status == STATUS_OK && is_by_heap)
        status = leaks_find_heaps(session, position, &heaps);
    if (status == STATUS_OK)
        status = session_output(session, true);
    if (status != STATUS_OK || session_print_tree(session, "block", "bytes")) {
        heap_tree_free(&heaps);
        return status;
    }
    if (report_form_lists_findings(session->options.form)) {
        leaks_print_findings(session, leaks, list, options->errors);
        return STATUS_OK;
    }
    struct report_leaks data = {.leaks = leaks,
                                .groups = list,
                                .heaps = is_by_heap ? &heaps : NULL,
                                .folds_possible = options->shown_kinds & KINDS_FOLDED,
                                .is_at_end = heap_is_end(position),
                                .has_early_blocks = session->source.choice.is_made ||
                                                    heap_has_early_blocks(session->source.reader),
                                .is_attached = ttd_reader_trace(session->source.reader)->flags &
                                               TTD_TRACE_ATTACHED,
                                .choice = &session->source.choice};
    session_lead_with_functions(session);
    report_leaks(&session->report, &data);
    heap_tree_free(&heaps);
    return STATUS_OK;
}

static const struct leaks_options defaults = {.at = {.kind = POSITION_SPEC_END},
                                              .shown_kinds = KINDS_LISTED | KINDS_FOLDED,
                                              .errors = KINDS_LISTED};

int leaks_print(struct session *session, struct heap_leaks *leaks, struct ttd_position position)
{
    struct heap_groups list = {.items = NULL};
    int status = leaks_print_list(session, &defaults, leaks, &list, position);
    heap_groups_free(&list);
    return status;
}

/* Whether there are blocks of the kinds that --error-exitcode counts. */
static bool cmd_leaks_has_errors(const struct session *session, const struct heap_leaks *leaks,
                                 unsigned errors)
{
    unsigned findings = cmd_leaks_findings_of(session, leaks, errors);
    uint64_t blocks = 0;
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++)
        blocks += findings & KIND_BIT(kind) ? leaks->kinds[kind].blocks : 0;
    return blocks;
}

/* Asks for the leaks. */
static int leaks_find(struct session *session, const struct leaks_choice *choice, bool tells_when,
                      struct question *question, struct heap_leaks *leaks)
{
    int status = session_ask_runtime(session, choice->at, question);
    if (status != STATUS_OK)
        return status;
    struct heap_leaks_options query = {
        .at = question->at, .split = view_split(&session->options.view), .tells_when = tells_when};
    status = session_islands(session, choice->island, &query.islands);
    if (status == STATUS_OK)
        status = session_classes(session, &question->trace, question->at, &query.classes);
    if (status != STATUS_OK)
        return status;
    enum ttd_status result = heap_leaks_find(&question->trace, &query, leaks, &question->error);
    return session_found(session, question, result, &leaks->outcome);
}

unsigned leaks_default_kinds(void)
{
    return KINDS_LISTED;
}

/* Finds the largest group of blocks of any kind; false if there is none. */
static bool leaks_find_largest(const struct heap_groups *list, struct heap_group *group)
{
    for (size_t i = 0; i < list->count; i++)
        if (!i || list->items[i].bytes > group->bytes)
            *group = list->items[i];
    return list->count > 0;
}

int leaks_find_group(struct session *session, const struct leaks_choice *choice, uint64_t *number,
                     struct heap_group *group)
{
    struct question question;
    struct heap_leaks leaks;
    struct heap_groups list = {.items = NULL};
    int status = leaks_find(session, choice, false, &question, &leaks);
    if (status != STATUS_OK)
        return status;
    status = cmd_leaks_view_groups(session, choice->kinds, choice->kinds, &leaks, &list);
    progress_end(&session->source.progress);
    bool is_largest = status == STATUS_OK && !*number && !list.count;
    if (is_largest) {
        heap_groups_free(&list);
        list = (struct heap_groups){.items = NULL};
        status = cmd_leaks_view_groups(session, KIND_BIT(HEAP_LEAK_KINDS) - 1, 0, &leaks, &list);
        is_largest = status == STATUS_OK && leaks_find_largest(&list, group);
    }
    if (!is_largest && !*number)
        *number = 1;
    if (status == STATUS_OK && !is_largest && *number <= list.count)
        *group = list.items[*number - 1];
    else if (status == STATUS_OK && !is_largest)
        status = message_usage(session->options.command->name,
                               list.count ? "there is no group %llu: 'leaks' with these options "
                                            "has %zu"
                                          : "there is no group %llu: 'leaks' with these options "
                                            "lists none; see --show",
                               (unsigned long long)*number, list.count);
    heap_groups_free(&list);
    heap_leaks_free(&leaks);
    return status;
}

static int leaks_execute(struct session *session, const void *context)
{
    const struct leaks_options *options = context;
    struct leaks_choice choice = {&options->at, &options->island, options->shown_kinds};
    struct question question;
    struct heap_leaks leaks;
    struct heap_groups list = {.items = NULL};
    session->needs_known_patterns = options->error_status;
    int status = session_refuse_in_tree(session, options->shows_runtime, "--show-runtime");
    if (status != STATUS_OK)
        return status;
    status = leaks_find(session, &choice, !session_has_tree(session), &question, &leaks);
    if (status != STATUS_OK)
        return status;
    status = leaks_print_list(session, options, &leaks, &list, question.at);
    if (status == STATUS_OK)
        status = session_exit(session, cmd_leaks_has_errors(session, &leaks, options->errors),
                              options->error_status);
    heap_groups_free(&list);
    heap_leaks_free(&leaks);
    return status;
}

/* Adds the groups of one process. */
static int leaks_add_member(struct session *session, const void *context, struct family *family,
                            bool *is_error)
{
    const struct leaks_options *options = context;
    struct leaks_choice choice = {&options->at, &options->island, options->shown_kinds};
    struct question question;
    struct heap_leaks leaks;
    struct heap_groups list = {.items = NULL};
    int status = leaks_find(session, &choice, false, &question, &leaks);
    if (status != STATUS_OK)
        return status;
    session_outcome(session, &leaks.outcome, question.at);
    leaks_judge(session, &leaks, question.at);
    status = cmd_leaks_view_groups(session, options->shown_kinds, options->errors, &leaks, &list);
    for (size_t i = 0; i < list.count && status == STATUS_OK; i++) {
        const struct heap_group *group = &list.items[i];
        /* The program may have released it later, or may still have reached it. */
        if (group->kind == HEAP_NOT_SEEN && session->report.unjudged)
            continue;
        struct family_finding finding = {.kind =
                                             group->kind == HEAP_NOT_SEEN && !leaks.snapshot.number
                                                 ? "never_released"
                                                 : report_leak_kinds[group->kind].name,
                                         .rank = group->kind,
                                         .stacks = {group->key.stack},
                                         .count = group->blocks,
                                         .bytes = group->bytes};
        status = session_check(session, family_add(family, session, &finding));
    }
    if (!leaks.snapshot.number && !session->report.unjudged && leaks.kinds[HEAP_NOT_SEEN].count)
        family_add_unsearched(family);
    family_add_left(family, &leaks.outcome.left);
    *is_error = cmd_leaks_has_errors(session, &leaks, options->errors);
    heap_groups_free(&list);
    heap_leaks_free(&leaks);
    return status;
}

static int leaks_run(const struct command *command, int count, char **arguments)
{
    static const struct family_question question = {
        .unit = "block", .has_bytes = true, .title = "lost", .collect = leaks_add_member};
    struct leaks_options options = defaults;
    struct common_options common;
    int status = command_options(&common, command, count, arguments, &options);
    if (status >= 0)
        return status;
    if (options.errors != KINDS_LISTED && !options.error_status)
        message("warning: --errors-for says nothing without --error-exitcode");
    if (!options.is_group)
        return session_execute(&common, &options);
    if (options.at.kind != POSITION_SPEC_END || options.shows_runtime)
        return message_usage("leaks", "--at and --show-runtime are for one trace, not for --group");
    return family_run(&common, &question, &options, options.error_status);
}

const struct command command_leaks = {
    .name = "leaks",
    .summary = "blocks that are lost, or were never released, by stack",
    .help = help,
    .shares = COMMAND_VIEWS | COMMAND_CLASSES | COMMAND_KNOWN_FINDINGS,
    .own = {own_options, &defaults, sizeof defaults},
    .run = leaks_run,
    .execute = leaks_execute,
};
