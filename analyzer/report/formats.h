/* SPDX-License-Identifier: MIT */
/** The functions of the table of formats: each writes the report of one command in one format. */
#ifndef ANALYZER_REPORT_FORMATS_H
#define ANALYZER_REPORT_FORMATS_H

#include "report/format.h"
#include "report/sections.h"

void text_info(struct report *report, const struct report_info *data);
void json_info(struct report *report, const struct report_info *data);
void csv_info(struct report *report, const struct report_info *data);

void text_recording(struct report *report, const struct report_group *data);
void json_recording(struct report *report, const struct report_group *data);
void csv_recording(struct report *report, const struct report_group *data);

void text_tree(struct report *report, const struct report_tree *data);
void json_tree(struct report *report, const struct report_tree *data);
void csv_tree(struct report *report, const struct report_tree *data);
void folded_tree(struct report *report, const struct report_tree *data);

void text_leaks(struct report *report, const struct report_leaks *data);
void json_leaks(struct report *report, const struct report_leaks *data);
void csv_leaks(struct report *report, const struct report_leaks *data);

void text_moves(struct report *report, const struct report_moves *data);
void json_moves(struct report *report, const struct report_moves *data);
void csv_moves(struct report *report, const struct report_moves *data);

void text_state(struct report *report, const struct report_state *data);
void json_state(struct report *report, const struct report_state *data);
void csv_state(struct report *report, const struct report_state *data);

void text_history(struct report *report, const struct heap_history *history);
void json_history(struct report *report, const struct heap_history *history);
void csv_history(struct report *report, const struct heap_history *history);

void text_peak(struct report *report, const struct report_peak *data);
void json_peak(struct report *report, const struct report_peak *data);
void csv_peak(struct report *report, const struct report_peak *data);

void text_diff(struct report *report, const struct report_diff *data);
void json_diff(struct report *report, const struct report_diff *data);
void csv_diff(struct report *report, const struct report_diff *data);

void text_compare(struct report *report, const struct report_compare *data);
void json_compare(struct report *report, const struct report_compare *data);
void csv_compare(struct report *report, const struct report_compare *data);
void folded_compare(struct report *report, const struct report_compare *data);

void text_hot(struct report *report, const struct report_usage *data);
void json_hot(struct report *report, const struct report_usage *data);
void csv_hot(struct report *report, const struct report_usage *data);
void text_temporary(struct report *report, const struct report_usage *data);

void text_lifetimes(struct report *report, const struct report_usage *data);
void json_lifetimes(struct report *report, const struct report_usage *data);
void csv_lifetimes(struct report *report, const struct report_usage *data);

void text_timeline(struct report *report, const struct report_timeline *data);
void json_timeline(struct report *report, const struct report_timeline *data);
void csv_timeline(struct report *report, const struct report_timeline *data);

void text_fragmentation(struct report *report, const struct report_fragmentation *data);
void json_fragmentation(struct report *report, const struct report_fragmentation *data);
void csv_fragmentation(struct report *report, const struct report_fragmentation *data);

void text_memory(struct report *report, struct report_memory *data);
void json_memory(struct report *report, struct report_memory *data);
void csv_memory(struct report *report, struct report_memory *data);

void text_snapshots(struct report *report, const struct heap_snapshot_list *list);
void json_snapshots(struct report *report, const struct heap_snapshot_list *list);
void csv_snapshots(struct report *report, const struct heap_snapshot_list *list);

void text_find(struct report *report, const struct report_search *data);
void json_find(struct report *report, const struct report_search *data);
void csv_find(struct report *report, const struct report_search *data);

void text_referrers(struct report *report, const struct report_referrers *data);
void json_referrers(struct report *report, const struct report_referrers *data);
void csv_referrers(struct report *report, const struct report_referrers *data);

void text_retained(struct report *report, const struct report_retained *data);
void json_retained(struct report *report, const struct report_retained *data);
void csv_retained(struct report *report, const struct report_retained *data);

void text_errors(struct report *report, const struct report_errors *data);
void json_errors(struct report *report, const struct report_errors *data);
void csv_errors(struct report *report, const struct report_errors *data);

void text_events_begin(struct report *report, const struct report_events *options);
void text_event(struct report *report, const struct report_event *data);
void text_events_end(struct report *report);
void json_events_begin(struct report *report, const struct report_events *options);
void json_event(struct report *report, const struct report_event *data);
void csv_events_begin(struct report *report, const struct report_events *options);
void csv_event(struct report *report, const struct report_event *data);

void text_verify_begin(struct report *report);
void text_problem(struct report *report, const struct ttd_problem *problem, uint64_t index);
void text_verify_end(struct report *report, const struct report_verification *data);
void json_verify_begin(struct report *report);
void json_problem(struct report *report, const struct ttd_problem *problem, uint64_t index);
void json_verify_end(struct report *report, const struct report_verification *data);
void csv_verify_begin(struct report *report);
void csv_problem(struct report *report, const struct ttd_problem *problem, uint64_t index);
void csv_verify_end(struct report *report, const struct report_verification *data);

void text_recover(struct report *report, const struct report_recovery *data);
void json_recover(struct report *report, const struct report_recovery *data);
void csv_recover(struct report *report, const struct report_recovery *data);

void text_redact(struct report *report, const struct report_redaction *data);
void json_redact(struct report *report, const struct report_redaction *data);
void csv_redact(struct report *report, const struct report_redaction *data);

void text_index(struct report *report, const struct report_index *data);
void json_index(struct report *report, const struct report_index *data);
void csv_index(struct report *report, const struct report_index *data);

#endif
