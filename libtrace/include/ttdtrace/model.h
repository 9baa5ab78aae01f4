/* SPDX-License-Identifier: MIT */
/**
 * All records of a trace (spec, "Model"): a header for each subject.
 *
 * A trace is a file with all calls that allocate and release memory in one process. The order of
 * its records is the order of their effects.
 *
 *     struct ttd_event event = {.action = TTD_ACTION_ALLOC, .api = TTD_API_MALLOC, .size = 24};
 *     printf("%s of %llu bytes\n", ttd_action_name((enum ttd_action)event.action),
 *            (unsigned long long)event.size);
 */
#ifndef TTDTRACE_MODEL_H
#define TTDTRACE_MODEL_H

#include <ttdtrace/definitions.h>
#include <ttdtrace/event.h>
#include <ttdtrace/heap_state.h>
#include <ttdtrace/ids.h>
#include <ttdtrace/snapshot.h>
#include <ttdtrace/trace.h>

#endif
