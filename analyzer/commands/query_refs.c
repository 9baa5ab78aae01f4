/* SPDX-License-Identifier: MIT */
/* Records of tables of `query` that no command lists: the pointers of a snapshot, and the peak. */
#include "analyses/reachability/places.h"
#include "analyses/state/peak.h"
#include "cli/options/command.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "cli/session/sidecar.h"
#include "report/sections/sections.h"

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
