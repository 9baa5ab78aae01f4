/* SPDX-License-Identifier: MIT */
/* The messages about a recording at its end. */
#ifndef RECORDER_RECORDING_SUMMARY_H
#define RECORDER_RECORDING_SUMMARY_H

#include "collect/collector.h"

/* Prints a summary of the recording in the file `output` and the files beside it. */
void summary_print(const struct collector *collector, const char *output);

/* Prints warnings about whatever is missing from the trace, also with --quiet. */
void summary_warn(struct collector *collector);

#endif
