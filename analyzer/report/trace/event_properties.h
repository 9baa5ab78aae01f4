/* SPDX-License-Identifier: MIT */
/** Properties of an event: each exists only for some actions, and a report leaves the others empty.
 */
#ifndef ANALYZER_REPORT_TRACE_EVENT_PROPERTIES_H
#define ANALYZER_REPORT_TRACE_EVENT_PROPERTIES_H

#include <stdbool.h>

#include <ttdtrace/model.h>

bool event_has_address(const struct ttd_event *event);
bool event_has_base_address(const struct ttd_event *event);
bool event_has_previous_address(const struct ttd_event *event);
bool event_has_size(const struct ttd_event *event);

/** Whether the event has the sizes that a heap reserves and commits. */
bool event_has_limits(const struct ttd_event *event);
bool event_has_read_only(const struct ttd_event *event);

#endif
