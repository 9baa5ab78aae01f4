/* SPDX-License-Identifier: MIT */
/** The sidecar index of a trace, TRACE.idx beside it. It is a cache: all of it can be made again
 * from the trace. */
#ifndef ANALYZER_CLI_SIDECAR_H
#define ANALYZER_CLI_SIDECAR_H

#include "cli/session.h"
#include "travel/index.h"

/**
 * Returns the keyframes for going to `at`; NULL where there are none. An index that is missing,
 * damaged or of an older trace is made if the trace is so long that it pays, unless `at` is the
 * start, which needs none, or the end, which takes one replay anyway. If making it fails, the
 * command goes on without. The session owns the keyframes.
 */
const struct heap_keyframes *sidecar_use(struct session *session, struct ttd_position at);

/** Returns the name of the index of a trace, to be freed; NULL without memory. */
char *sidecar_path(const char *trace);

/**
 * Makes the index of a trace, in place of an existing one.
 *
 * @param path    of the index
 * @param silent  print no message on failure, only a warning if the file is no index
 * @param facts   set on success
 * @return an exit status
 */
int sidecar_make(struct source *source, const char *path, bool silent,
                 struct heap_index_facts *facts);

#endif
