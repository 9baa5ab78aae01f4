/* SPDX-License-Identifier: MIT */
/* ttdanalyze query: the tables, and the command. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "analyses/reachability/places.h"
#include "analyses/state/peak.h"
#include "cli/options/command.h"
#include "cli/process/limits.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "cli/session/sidecar.h"
#include "cli/traces/source.h"
#include "query/query.h"
#include "report/sections/sections.h"

/* Records of tables of `query` that no command lists: the pointers of a snapshot, and the peak. */

struct refs_options {
    struct position_spec at;
};

/* A pointer: a word of a block, or with GRAPH_NONE as the holder of another place. */
struct refs_pointer {
    uint32_t holder;
    uint32_t target;
    /** Number of the region of a word that is in no block. */
    uint32_t region;
    unsigned flags;
    uint64_t offset;
};

static void refs_write(struct row *row, const struct heap_reach *reach,
                       const struct heap_places *places, const struct refs_pointer *pointer)
{
    bool is_block = pointer->holder != GRAPH_NONE;
    row_begin_object(row, NULL);
    row_hex_if(row, "holder", is_block,
               is_block ? heap_nodes_address(&reach->nodes, pointer->holder) : 0);
    if (is_block) {
        row_null(row, "root");
    } else {
        struct heap_place place = heap_place_of(places, pointer->region, pointer->offset);
        row_place(row, "root", &place, true);
    }
    row_unsigned_if(row, "offset", pointer->offset < REACH_CONTINUES, pointer->offset);
    row_hex(row, "target", heap_nodes_address(&reach->nodes, pointer->target));
    row_bool(row, "interior", pointer->flags & GRAPH_INTERIOR);
    row_bool(row, "stale", pointer->flags & GRAPH_STALE);
    row_end_object(row);
}

static void refs_write_all(struct report *report, const struct heap_reach *reach,
                           const struct heap_places *places)
{
    const struct graph *graph = &reach->graph;
    struct row row;
    row_open(&row, report);
    row_begin_array(&row, "refs");
    for (uint32_t node = 0; node < graph->node_count; node++) {
        for (uint64_t edge = graph->first[node]; edge < graph->first[node + 1]; edge++)
            refs_write(
                &row, reach, places,
                &(struct refs_pointer){.holder = node,
                                       .target = graph->targets[edge],
                                       .flags = graph->flags[edge],
                                       .offset = edge_offset_in_source(&reach->offsets, edge)});
    }
    for (uint64_t root = 0; root < graph->root_count; root++) {
        const struct heap_root_word *word = &reach->roots[graph->root_ids[root]];
        refs_write(&row, reach, places,
                   &(struct refs_pointer){.holder = GRAPH_NONE,
                                          .target = graph->root_targets[root],
                                          .region = word->region,
                                          .flags = graph->root_flags[root],
                                          .offset = word->offset});
    }
    row_end_array(&row);
}

static int refs_print(struct session *session, const struct question *question,
                      const struct heap_reach *reach)
{
    struct heap_places places;
    struct ttd_error error = {.what = NULL};
    session_outcome(session, &reach->outcome, question->at);
    certainty_add_snapshot(&session->report.certainty, &reach->snapshot, reach->misplaced);
    certainty_add_missing_snapshot(&session->report.certainty, &reach->snapshot);
    int status = session_begin_report(session, true);
    if (status != STATUS_OK || !reach->snapshot.number)
        return status;
    enum ttd_status result = heap_places_read(&question->trace, reach, &places, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    refs_write_all(&session->report, reach, &places);
    heap_places_free(&places);
    return STATUS_OK;
}

static int refs_execute(struct session *session, const void *context)
{
    const struct refs_options *options = context;
    struct question question;
    int status = session_ask(session, &options->at, &question);
    if (status != STATUS_OK)
        return status;
    struct heap_reach_options query = {.at = question.at, .keeps_offsets = true};
    struct heap_reach reach;
    enum ttd_status result = heap_reach_find(&question.trace, &query, &reach, &question.error);
    status = session_found(session, &question, result, &reach.outcome);
    if (status != STATUS_OK)
        return status;
    status = refs_print(session, &question, &reach);
    heap_reach_free(&reach);
    return status;
}

static const struct own_option refs_own[] = {
    OWN_OPTION("at", option_position, struct refs_options, at), OWN_OPTIONS_END};

static const struct refs_options refs_defaults = {.at.kind = POSITION_SPEC_END};

const struct command command_query_refs = {
    .name = "query",
    .own = {refs_own, &refs_defaults, sizeof(struct refs_options)},
    .execute = refs_execute,
};

static void query_write_peak(struct report *report, const struct heap_peak_state *peak)
{
    struct row row;
    row_open(&row, report);
    row_begin_array(&row, "peaks");
    row_begin_object(&row, NULL);
    row_position(&row, "position", peak->peak.position);
    row_unsigned(&row, "live_bytes", peak->groups.bytes);
    row_unsigned(&row, "live_blocks", peak->groups.blocks);
    row_end_object(&row);
    row_end_array(&row);
}

static int query_execute_peak(struct session *session, const void *context)
{
    (void)context;
    struct heap_trace trace;
    struct heap_peak_state peak;
    struct ttd_error error = {.what = NULL};
    struct heap_peak_state_options query = {.islands = NULL};
    int status = session_trace(session, &trace);
    if (status != STATUS_OK)
        return status;
    trace.keyframes = sidecar_use_existing(session);
    enum ttd_status result = heap_peak_state_find(&trace, &query, &peak, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    session_outcome(session, &peak.outcome, ttd_position_max());
    status = session_begin_report(session, false);
    if (status == STATUS_OK)
        query_write_peak(&session->report, &peak);
    heap_peak_state_free(&peak);
    return status;
}

const struct command command_query_peak = {
    .name = "query",
    .execute = query_execute_peak,
};

/* The columns of each table are the members of its command's records: a test compares them. Some
 * records have estimates, and columns are in no order that matters. */

static const struct query_column query_blocks_columns[] = {
    {"address", QUERY_ADDRESS},      {"size", QUERY_INTEGER},
    {"allocated", QUERY_POSITION},   {"thread", QUERY_INTEGER},
    {"stack", QUERY_TEXT},           {"released", QUERY_POSITION},
    {"released_by", QUERY_TEXT},     {"released_thread", QUERY_INTEGER},
    {"released_stack", QUERY_TEXT},  {"lost_after", QUERY_POSITION},
    {"lost_before", QUERY_POSITION}, {"holder_released", QUERY_POSITION},
    {"unknown", QUERY_INTEGER},      {"previous_address", QUERY_ADDRESS},
    {"moved", QUERY_INTEGER},        {NULL, QUERY_INTEGER}};

static const struct query_column query_live_columns[] = {
    {"address", QUERY_ADDRESS},  {"size", QUERY_INTEGER},    {"allocated", QUERY_POSITION},
    {"number", QUERY_INTEGER},   {"heap_id", QUERY_INTEGER}, {"thread", QUERY_INTEGER},
    {"stack_id", QUERY_INTEGER}, {"unknown", QUERY_INTEGER}, {NULL, QUERY_INTEGER}};

static const struct query_column query_live_sites_columns[] = {{"blocks", QUERY_INTEGER},
                                                               {"bytes", QUERY_INTEGER},
                                                               {"first_position", QUERY_POSITION},
                                                               {"last_position", QUERY_POSITION},
                                                               {"estimated_blocks", QUERY_INTEGER},
                                                               {"estimated_bytes", QUERY_INTEGER},
                                                               {"stack_id", QUERY_INTEGER},
                                                               {"stack", QUERY_TEXT},
                                                               {NULL, QUERY_INTEGER}};

static const struct query_column query_heaps_columns[] = {
    {"heap_id", QUERY_INTEGER}, {"heap", QUERY_ADDRESS},
    {"name", QUERY_TEXT},       {"parent_heap_id", QUERY_INTEGER},
    {"blocks", QUERY_INTEGER},  {"bytes", QUERY_INTEGER},
    {NULL, QUERY_INTEGER}};

static const struct query_column query_sites_columns[] = {{"allocations", QUERY_INTEGER},
                                                          {"bytes", QUERY_INTEGER},
                                                          {"byte_seconds", QUERY_REAL},
                                                          {"temporary", QUERY_INTEGER},
                                                          {"temporary_bytes", QUERY_INTEGER},
                                                          {"never_released", QUERY_INTEGER},
                                                          {"destroyed", QUERY_INTEGER},
                                                          {"stack_id", QUERY_INTEGER},
                                                          {"stack", QUERY_TEXT},
                                                          {NULL, QUERY_INTEGER}};

static const struct query_column query_leaks_columns[] = {{"kind", QUERY_TEXT},
                                                          {"class", QUERY_TEXT},
                                                          {"blocks", QUERY_INTEGER},
                                                          {"bytes", QUERY_INTEGER},
                                                          {"total_blocks", QUERY_INTEGER},
                                                          {"total_bytes", QUERY_INTEGER},
                                                          {"first_position", QUERY_POSITION},
                                                          {"last_position", QUERY_POSITION},
                                                          {"lost_after", QUERY_POSITION},
                                                          {"lost_before", QUERY_POSITION},
                                                          {"first_release", QUERY_POSITION},
                                                          {"last_release", QUERY_POSITION},
                                                          {"way", QUERY_TEXT},
                                                          {"way_offset", QUERY_INTEGER},
                                                          {"group", QUERY_INTEGER},
                                                          {"address", QUERY_ADDRESS},
                                                          {"holder", QUERY_TEXT},
                                                          {"below", QUERY_TEXT},
                                                          {"estimated_blocks", QUERY_INTEGER},
                                                          {"estimated_bytes", QUERY_INTEGER},
                                                          {"stack_id", QUERY_INTEGER},
                                                          {"stack", QUERY_TEXT},
                                                          {NULL, QUERY_INTEGER}};

static const struct query_column query_errors_columns[] = {{"kind", QUERY_TEXT},
                                                           {"certain", QUERY_INTEGER},
                                                           {"count", QUERY_INTEGER},
                                                           {"address", QUERY_ADDRESS},
                                                           {"size", QUERY_INTEGER},
                                                           {"action", QUERY_TEXT},
                                                           {"api", QUERY_TEXT},
                                                           {"thread", QUERY_INTEGER},
                                                           {"position", QUERY_POSITION},
                                                           {"stack", QUERY_TEXT},
                                                           {"allocated_position", QUERY_POSITION},
                                                           {"allocated_stack", QUERY_TEXT},
                                                           {"released_position", QUERY_POSITION},
                                                           {"released_stack", QUERY_TEXT},
                                                           {"conflict_position", QUERY_POSITION},
                                                           {"conflict_stack", QUERY_TEXT},
                                                           {"signal", QUERY_TEXT},
                                                           {"place", QUERY_TEXT},
                                                           {NULL, QUERY_INTEGER}};

static const struct query_column query_moves_columns[] = {{"kind", QUERY_TEXT},
                                                          {"reallocs", QUERY_INTEGER},
                                                          {"moved", QUERY_INTEGER},
                                                          {"in_place", QUERY_INTEGER},
                                                          {"from_null", QUERY_INTEGER},
                                                          {"to_zero", QUERY_INTEGER},
                                                          {"failed", QUERY_INTEGER},
                                                          {"unfinished", QUERY_INTEGER},
                                                          {"unknown_old", QUERY_INTEGER},
                                                          {"remapped", QUERY_INTEGER},
                                                          {"unknown_moves", QUERY_INTEGER},
                                                          {"bytes_copied", QUERY_INTEGER},
                                                          {"bytes_copied_at_most", QUERY_INTEGER},
                                                          {"bytes_avoidable", QUERY_INTEGER},
                                                          {"growth", QUERY_TEXT},
                                                          {"stack_id", QUERY_INTEGER},
                                                          {"stack", QUERY_TEXT},
                                                          {NULL, QUERY_INTEGER}};

static const struct query_column query_timeline_columns[] = {
    {"first", QUERY_INTEGER},           {"position", QUERY_POSITION},
    {"peak_bytes", QUERY_INTEGER},      {"live_bytes", QUERY_INTEGER},
    {"live_blocks", QUERY_INTEGER},     {"allocations", QUERY_INTEGER},
    {"allocated_bytes", QUERY_INTEGER}, {"releases", QUERY_INTEGER},
    {"duration_ns", QUERY_INTEGER},     {"allocations_per_second", QUERY_REAL},
    {"bytes_per_second", QUERY_REAL},   {"resident_bytes", QUERY_INTEGER},
    {"mapped_bytes", QUERY_INTEGER},    {NULL, QUERY_INTEGER}};

static const struct query_column query_peak_columns[] = {{"position", QUERY_POSITION},
                                                         {"live_bytes", QUERY_INTEGER},
                                                         {"live_blocks", QUERY_INTEGER},
                                                         {NULL, QUERY_INTEGER}};

static const struct query_column query_diff_columns[] = {{"quadrant", QUERY_TEXT},
                                                         {"blocks", QUERY_INTEGER},
                                                         {"bytes", QUERY_INTEGER},
                                                         {"first_position", QUERY_POSITION},
                                                         {"last_position", QUERY_POSITION},
                                                         {"estimated_blocks", QUERY_INTEGER},
                                                         {"estimated_bytes", QUERY_INTEGER},
                                                         {"stack_id", QUERY_INTEGER},
                                                         {"stack", QUERY_TEXT},
                                                         {NULL, QUERY_INTEGER}};

static const struct query_column query_retained_columns[] = {{"depth", QUERY_INTEGER},
                                                             {"retained_blocks", QUERY_INTEGER},
                                                             {"retained_bytes", QUERY_INTEGER},
                                                             {"blocks", QUERY_INTEGER},
                                                             {"bytes", QUERY_INTEGER},
                                                             {"reachable_blocks", QUERY_INTEGER},
                                                             {"reachable_bytes", QUERY_INTEGER},
                                                             {"others", QUERY_INTEGER},
                                                             {"block", QUERY_ADDRESS},
                                                             {"root", QUERY_TEXT},
                                                             {"class", QUERY_TEXT},
                                                             {"stack", QUERY_TEXT},
                                                             {NULL, QUERY_INTEGER}};

static const struct query_column query_refs_columns[] = {
    {"holder", QUERY_ADDRESS}, {"root", QUERY_TEXT},        {"offset", QUERY_INTEGER},
    {"target", QUERY_ADDRESS}, {"interior", QUERY_INTEGER}, {"stale", QUERY_INTEGER},
    {NULL, QUERY_INTEGER}};

static const struct query_column query_fragmentation_columns[] = {
    {"begin", QUERY_ADDRESS},          {"last", QUERY_ADDRESS},        {"blocks", QUERY_INTEGER},
    {"used_bytes", QUERY_INTEGER},     {"gaps", QUERY_INTEGER},        {"gap_bytes", QUERY_INTEGER},
    {"overhead_bytes", QUERY_INTEGER}, {"largest_gap", QUERY_INTEGER}, {NULL, QUERY_INTEGER}};

static const struct query_column query_threads_columns[] = {
    {"thread", QUERY_INTEGER}, {"os_id", QUERY_INTEGER},  {"name", QUERY_TEXT},
    {"begun", QUERY_POSITION}, {"ended", QUERY_POSITION}, {"events", QUERY_INTEGER},
    {"allocs", QUERY_INTEGER}, {"frees", QUERY_INTEGER},  {"reallocs", QUERY_INTEGER},
    {NULL, QUERY_INTEGER}};

static const struct query_column query_modules_columns[] = {
    {"module", QUERY_INTEGER},  {"path", QUERY_TEXT},         {"build_id", QUERY_TEXT},
    {"begin", QUERY_ADDRESS},   {"end", QUERY_ADDRESS},       {"bias", QUERY_ADDRESS},
    {"loaded", QUERY_POSITION}, {"unloaded", QUERY_POSITION}, {NULL, QUERY_INTEGER}};

static const struct query_column query_losses_columns[] = {
    {"reason", QUERY_TEXT},        {"thread", QUERY_INTEGER},      {"events", QUERY_INTEGER},
    {"last_good", QUERY_POSITION}, {"first_good", QUERY_POSITION}, {NULL, QUERY_INTEGER}};

static const struct query_column query_marks_columns[] = {
    {"position", QUERY_POSITION}, {"wall_time_ns", QUERY_INTEGER},
    {"thread", QUERY_INTEGER},    {"kind", QUERY_TEXT},
    {"client", QUERY_TEXT},       {"keyframe", QUERY_INTEGER},
    {"activity", QUERY_INTEGER},  {"throttle", QUERY_TEXT},
    {"text", QUERY_TEXT},         {"data", QUERY_TEXT},
    {NULL, QUERY_INTEGER}};

static const struct query_column query_snapshots_columns[] = {
    {"number", QUERY_INTEGER},        {"position", QUERY_POSITION},
    {"wall_time_ns", QUERY_INTEGER},  {"reason", QUERY_TEXT},
    {"stopped", QUERY_INTEGER},       {"complete", QUERY_INTEGER},
    {"missing_bytes", QUERY_INTEGER}, {"held_ns", QUERY_INTEGER},
    {"copied", QUERY_INTEGER},        {"blocks", QUERY_INTEGER},
    {"references", QUERY_INTEGER},    {"memory", QUERY_INTEGER},
    {"stored_bytes", QUERY_INTEGER},  {"mapped_bytes", QUERY_INTEGER},
    {"page_bytes", QUERY_INTEGER},    {NULL, QUERY_INTEGER}};

static const struct query_table query_tables[] = {
    {.name = "events",
     .summary = "the heap calls",
     .command = &command_events,
     .columns = query_events_columns},
    {.name = "stacks",
     .summary = "the stacks, each with its caller's: a condition on stack_id looks one up",
     .columns = query_stacks_columns},
    {.name = "frames",
     .summary = "the frames of the stacks, the innermost first",
     .columns = query_frames_columns},
    {.name = "blocks",
     .summary = "every block, from its allocation to its release",
     .command = &command_history,
     .list = "blocks",
     .columns = query_blocks_columns,
     .options = {{"address", "0"}, {"size", "0xffffffffffffffff"}, {"limit", "1000000"}}},
    {.name = "history",
     .summary = "the blocks that ever covered an address: history('0x1000')",
     .command = &command_history,
     .list = "blocks",
     .columns = query_blocks_columns,
     .parameters = {{"of", "address"}},
     .options = {{"limit", "1000000"}}},
    {.name = "live",
     .summary = "the live blocks, at a position: live('50%')",
     .command = &command_state,
     .list = "blocks",
     .columns = query_live_columns,
     .parameters = {{"at", "at"}},
     .options = {{"blocks", NULL}}},
    {.name = "live_sites",
     .summary = "the call sites of live blocks, at a position",
     .command = &command_state,
     .list = "groups",
     .columns = query_live_sites_columns,
     .parameters = {{"at", "at"}}},
    {.name = "heaps",
     .summary = "the heaps with live blocks, at a position",
     .command = &command_state,
     .list = "heaps",
     .columns = query_heaps_columns,
     .parameters = {{"at", "at"}}},
    {.name = "sites",
     .summary = "the call sites that allocate",
     .command = &command_hot,
     .list = "groups",
     .columns = query_sites_columns},
    {.name = "leaks",
     .summary = "lost blocks by call site, at a position",
     .command = &command_leaks,
     .list = "groups",
     .columns = query_leaks_columns,
     .parameters = {{"at", "at"}},
     .options = {{"show", "all"}}},
    {.name = "errors",
     .summary = "calls that the program should not have made",
     .command = &command_errors,
     .list = "findings",
     .columns = query_errors_columns,
     .options = {{"limit", "0"}}},
    {.name = "moves",
     .summary = "what reallocation costs, by call site",
     .command = &command_moves,
     .list = "groups",
     .columns = query_moves_columns},
    {.name = "timeline",
     .summary = "live bytes and rates, in slices of time",
     .command = &command_timeline,
     .list = "points",
     .columns = query_timeline_columns,
     .parameters = {{"slices", "points"}}},
    {.name = "peak",
     .summary = "the first position at which most bytes were live",
     .command = &command_query_peak,
     .list = "peaks",
     .columns = query_peak_columns},
    {.name = "diff",
     .summary = "blocks by whether they were allocated and released in a range",
     .command = &command_diff,
     .list = "groups",
     .columns = query_diff_columns,
     .parameters = {{"begin", "from"}, {"end", "to"}}},
    {.name = "retained",
     .summary = "blocks, and what they keep, by the newest snapshot",
     .command = &command_retained,
     .list = "retainers",
     .columns = query_retained_columns,
     .parameters = {{"at", "at"}},
     .options = {{"limit", "0"}}},
    {.name = "refs",
     .summary = "the pointers to blocks, from blocks and other places, by the newest snapshot",
     .command = &command_query_refs,
     .list = "refs",
     .columns = query_refs_columns,
     .parameters = {{"at", "at"}}},
    {.name = "fragmentation",
     .summary = "runs of blocks, and the gaps between them",
     .command = &command_fragmentation,
     .list = "regions",
     .columns = query_fragmentation_columns,
     .parameters = {{"at", "at"}},
     .options = {{"limit", "0"}}},
    {.name = "threads",
     .summary = "the threads",
     .command = &command_info,
     .list = "thread_list",
     .columns = query_threads_columns},
    {.name = "modules",
     .summary = "the program and its libraries",
     .command = &command_info,
     .list = "module_list",
     .columns = query_modules_columns},
    {.name = "losses",
     .summary = "calls that were not recorded, or were damaged",
     .command = &command_info,
     .list = "loss_list",
     .columns = query_losses_columns},
    {.name = "marks",
     .summary = "marks of the program and of people",
     .command = &command_marks,
     .list = NULL,
     .columns = query_marks_columns},
    {.name = "snapshots",
     .summary = "the snapshots of memory",
     .command = &command_snapshots,
     .list = "snapshots",
     .columns = query_snapshots_columns},
    {.name = NULL}};

static const char query_help[] =
    "Usage: ttdanalyze query [OPTIONS] 'SELECT ...' [TRACE...]\n"
    "\n"
    "Answers a question in SQL. Each table has the records of a command: events,\n"
    "blocks, live, sites, leaks and more. Some take a position: SELECT * FROM\n"
    "live('50%'). The query .schema lists all tables with their columns. A query can\n"
    "only read.\n"
    "\n"
    "      --timeout SECONDS   give up after so many seconds\n"
    "      --interactive       read queries from standard input; all operands are\n"
    "                          traces\n"
    "      --explain           also print how many events were read for their "
    "table\n" COMMAND_COMMON_HELP "\n"
    "A FILE whose name ends in .db, .sqlite or .sqlite3 becomes a database of SQLite\n"
    "with the table 'result', and the reasons why it may be wrong in the table\n"
    "'uncertain'. One that ends in .jsonl or .ndjson has a line of JSON for each row.\n"
    "Positions are texts of a fixed width, printed short: compare them with\n"
    "pos('FAB:17B1'), pos('50%') and so on. Addresses are numbers, printed in\n"
    "hexadecimal.\n";

static const struct own_option query_own[] = {
    OWN_OPTION("timeout", option_number, struct query_options, timeout),
    OWN_OPTION("group", option_flag, struct query_options, is_group),
    OWN_OPTION("interactive", option_flag, struct query_options, is_interactive),
    OWN_OPTION("explain", option_flag, struct query_options, has_work), OWN_OPTIONS_END};

static int query_command(struct session *session, const void *context)
{
    return query_run(session, context, query_tables);
}

/* Takes the traces of the group, each once: a copy of one is not another process. */
static int query_take_group(struct group *group, const char **paths, struct query_options *own,
                            char missing[CERTAINTY_REASON_SIZE])
{
    size_t count = 0;
    for (size_t i = 0; i < group->count; i++) {
        size_t k = 0;
        while (k < i && group->members[k].trace.trace_id != group->members[i].trace.trace_id)
            k++;
        if (k == i && count == QUERY_TRACES_MAX)
            return message_usage("query", "the group has more than %d traces: name them",
                                 QUERY_TRACES_MAX);
        if (k == i)
            paths[count++] = group->members[i].path;
    }
    own->trace_count = count - 1;
    if (group->unreadable) {
        snprintf(missing, CERTAINTY_REASON_SIZE, "%zu traces of the group cannot be read",
                 group->unreadable);
        own->missing = missing;
    }
    return STATUS_OK;
}

/* Opens the first trace, and runs the query. */
static int query_ask(const struct common_options *options, const struct query_options *own)
{
    struct session session;
    int status = session_open(&session, options);
    if (status != STATUS_OK)
        return status;
    /* Rows up to a failure are no result. */
    return session_close(&session, query_command(&session, own), false);
}

/* Asks the traces of `paths`; the options name the first one. */
static int query_ask_traces(struct common_options *options, struct query_options *own,
                            const char **paths)
{
    struct group group = {.members = NULL};
    char missing[CERTAINTY_REASON_SIZE];
    int status = STATUS_OK;
    if (own->is_group && own->trace_count)
        return message_usage("query", "--group finds the other traces itself: name one");
    if (own->is_group)
        status = group_find(paths[0], &group);
    if (status == STATUS_OK && own->is_group)
        status = query_take_group(&group, paths, own, missing);
    own->traces = paths + 1;
    options->trace = paths[0];
    char *all[QUERY_TRACES_MAX];
    for (size_t i = 0; status == STATUS_OK && i <= own->trace_count; i++) {
        all[i] = (char *)(uintptr_t)paths[i];
        if (input_is_standard(paths[i]))
            status = message_usage("query", "a query needs the name of a file: each of its "
                                            "tables reads the trace by itself");
    }
    if (status == STATUS_OK) {
        limits_set(options->max_memory, all, own->trace_count + 1);
        status = query_ask(options, own);
    }
    group_free(&group);
    return status;
}

/* All operands are traces. */
static int query_start_typed(struct common_options *options, struct query_options *own,
                             const char **paths)
{
    if (options->output || options->form == REPORT_CSV)
        return message_usage("query", "--interactive writes text or JSON to standard output");
    if (options->other_count >= QUERY_TRACES_MAX)
        return message_usage("query", "not more than %d traces at a time", QUERY_TRACES_MAX);
    paths[0] = options->trace;
    for (size_t i = 0; i < options->other_count; i++)
        paths[1 + i] = options->others[i];
    own->trace_count = options->other_count;
    options->other_count = 0;
    return query_ask_traces(options, own, paths);
}

/* The first operand is the query, the others are traces. */
static int query_start(const struct command *command, int count, char **arguments)
{
    const char *paths[QUERY_TRACES_MAX] = {INPUT_DEFAULT};
    struct common_options options;
    struct query_options own = {.sql = NULL};
    int status = count < 2 ? message_usage(command->name, "no query is given")
                           : command_options(&options, command, count, arguments, &own);
    if (status >= 0)
        return status;
    if (own.is_interactive)
        return query_start_typed(&options, &own, paths);
    own.sql = options.trace;
    if (strcmp(own.sql, ".schema") == 0)
        return query_print_schema(&options, query_tables);
    for (size_t i = 0; i < options.other_count; i++)
        paths[i] = options.others[i];
    own.trace_count = options.other_count ? options.other_count - 1 : 0;
    options.other_count = 0;
    return query_ask_traces(&options, &own, paths);
}

const struct command command_query = {
    .name = "query",
    .summary = "any question, in SQL",
    .help = query_help,
    .own = {query_own, NULL, sizeof(struct query_options)},
    .traces_max = 1 + QUERY_TRACES_MAX,
    .run = query_start,
    .execute = query_command,
};
