/* SPDX-License-Identifier: MIT */
/** All records of a trace (spec, "Model"): a header for each subject. */
#ifndef TTDTRACE_MODEL_H
#define TTDTRACE_MODEL_H

#include <ttdtrace/definitions.h>
#include <ttdtrace/event.h>
#include <ttdtrace/heap_state.h>
#include <ttdtrace/ids.h>
#include <ttdtrace/snapshot.h>
#include <ttdtrace/trace.h>

#endif
