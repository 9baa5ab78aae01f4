/* SPDX-License-Identifier: MIT */
/*
 * An output before that of a file: it gathers the chunks of a trace, most of which are small, so
 * that a flush is one call of the system.
 */
#ifndef RECORDER_COLLECT_TRACE_GATHERED_H
#define RECORDER_COLLECT_TRACE_GATHERED_H

#include <ttdtrace/io.h>

struct gathered;

/* Puts the new output in the place of `output`, which it takes over: it closes it when it is closed
 * itself, and is freed then. Returns NULL, with `output` as it was, if memory ran out. */
struct gathered *gathered_put_before(struct ttd_output *output);

/* Writes what was gathered. Returns 0 or an errno value. */
int gathered_flush(struct gathered *gathered);

#endif
