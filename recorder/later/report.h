/* SPDX-License-Identifier: MIT */
/* Tells which names were added to a trace, and why others were not. */
#ifndef RECORDER_LATER_REPORT_H
#define RECORDER_LATER_REPORT_H

#include "later/add_names.h"

/* Shows on the terminal, in one line that is overwritten, which of `count` lookups has begun. */
void report_progress(const struct wanted_module *module, size_t index, size_t count);
void report_progress_end(void);

/* Prints how many names were added to the trace `path`, and the modules that have none. */
void report_names(const struct names_to_add *adding, const char *path);

#endif
