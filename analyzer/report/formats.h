/* SPDX-License-Identifier: MIT */
/** The functions that the table of formats lists. */
#ifndef ANALYZER_REPORT_FORMATS_H
#define ANALYZER_REPORT_FORMATS_H

#include "report/format.h"

void text_info(report *to, const report_info *data);
void json_info(report *to, const report_info *data);
void csv_info(report *to, const report_info *data);

void text_recording(report *to, const report_group *data);
void json_recording(report *to, const report_group *data);
void csv_recording(report *to, const report_group *data);

void text_tree(report *to, const report_tree *data);
void json_tree(report *to, const report_tree *data);
void csv_tree(report *to, const report_tree *data);
void folded_tree(report *to, const report_tree *data);

void text_leaks(report *to, const report_leaks *data);
void json_leaks(report *to, const report_leaks *data);
void csv_leaks(report *to, const report_leaks *data);

void text_moves(report *to, const report_moves *data);
void json_moves(report *to, const report_moves *data);
void csv_moves(report *to, const report_moves *data);

void text_state(report *to, const report_state *data);
void json_state(report *to, const report_state *data);
void csv_state(report *to, const report_state *data);

void text_history(report *to, const heap_history *data);
void json_history(report *to, const heap_history *data);
void csv_history(report *to, const heap_history *data);

void text_peak(report *to, const report_peak *data);
void json_peak(report *to, const report_peak *data);
void csv_peak(report *to, const report_peak *data);

void text_diff(report *to, const report_diff *data);
void json_diff(report *to, const report_diff *data);
void csv_diff(report *to, const report_diff *data);

void text_compare(report *to, const report_compare *data);
void json_compare(report *to, const report_compare *data);
void csv_compare(report *to, const report_compare *data);
void folded_compare(report *to, const report_compare *data);

void text_hot(report *to, const report_usage *data);
void json_hot(report *to, const report_usage *data);
void csv_hot(report *to, const report_usage *data);
void text_temporary(report *to, const report_usage *data);

void text_lifetimes(report *to, const report_usage *data);
void json_lifetimes(report *to, const report_usage *data);
void csv_lifetimes(report *to, const report_usage *data);

void text_timeline(report *to, const report_timeline *data);
void json_timeline(report *to, const report_timeline *data);
void csv_timeline(report *to, const report_timeline *data);

void text_fragmentation(report *to, const report_fragmentation *data);
void json_fragmentation(report *to, const report_fragmentation *data);
void csv_fragmentation(report *to, const report_fragmentation *data);

void text_errors(report *to, const report_errors *data);
void json_errors(report *to, const report_errors *data);
void csv_errors(report *to, const report_errors *data);

void text_events_begin(report *to, const report_events *options);
void text_event(report *to, const report_event *data);
void text_events_end(report *to);
void json_events_begin(report *to, const report_events *options);
void json_event(report *to, const report_event *data);
void csv_events_begin(report *to, const report_events *options);
void csv_event(report *to, const report_event *data);

void text_verify_begin(report *to);
void text_problem(report *to, const ttd_problem *problem, uint64_t index);
void text_verify_end(report *to, const ttd_verdict *verdict);
void json_verify_begin(report *to);
void json_problem(report *to, const ttd_problem *problem, uint64_t index);
void json_verify_end(report *to, const ttd_verdict *verdict);
void csv_verify_begin(report *to);
void csv_problem(report *to, const ttd_problem *problem, uint64_t index);
void csv_verify_end(report *to, const ttd_verdict *verdict);

void text_recover(report *to, const report_recovery *data);
void json_recover(report *to, const report_recovery *data);
void csv_recover(report *to, const report_recovery *data);

void text_index(report *to, const report_index *data);
void json_index(report *to, const report_index *data);
void csv_index(report *to, const report_index *data);

#endif
