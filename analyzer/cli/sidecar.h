/* SPDX-License-Identifier: MIT */
/**
 * The sidecar index of a trace: TRACE.idx beside it. It holds only what can be made again from the
 * trace.
 */
#ifndef ANALYZER_CLI_SIDECAR_H
#define ANALYZER_CLI_SIDECAR_H

#include "cli/session.h"
#include "travel/index.h"

/**
 * The keyframes for going to `at`, or NULL where there are none to be had. An index that is
 * missing, damaged or of an older trace is made, if the trace is so long that it pays, and `at` is
 * neither its start, which needs none, nor its end, to which it takes one replay anyway; where that
 * fails, the command goes on without. They are the session's.
 */
const struct heap_keyframes *sidecar_use(struct session *session, struct ttd_position at);

/** The name of the index of a trace, to be freed; NULL without memory. */
char *sidecar_path(const char *trace);

/**
 * Makes the index of a trace anew, in place of one that is there.
 *
 * @param path    where
 * @param silent  print no message on failure, but a warning if there is something that is no index
 * @param facts   set on success
 * @return an exit status
 */
int sidecar_make(struct source *source, const char *path, bool silent,
                 struct heap_index_facts *facts);

#endif
