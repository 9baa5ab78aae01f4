/* SPDX-License-Identifier: MIT */
/** The sidecar index of a trace, TRACE.idx beside it. It is a cache: all of it can be made again
 * from the trace. */
#ifndef ANALYZER_CLI_SIDECAR_H
#define ANALYZER_CLI_SIDECAR_H

#include "cli/session/session.h"
#include "travel/index.h"

/**
 * Returns the keyframes for going to `at`; NULL where there are none. An index that is
 * missing, damaged or of an older trace is made, if the trace is so long that it pays; where that
 * fails, the command goes on without. The session owns the keyframes. An answer that uses them is
 * not certain, since the rest of the trace is not read.
 *
 * At the start none are needed. At the end none are given: the whole trace is read once, whatever
 * lies beside it, and the answer is certain.
 */
const struct heap_keyframes *sidecar_use(struct session *session, struct ttd_position at);

/** Returns the keyframes of an index that is there already, or NULL: for what only a whole replay,
 * or the index, can tell. */
const struct heap_keyframes *sidecar_use_existing(struct session *session);

/** Warns that a block in the index is not as the trace says, and closes the index. */
void sidecar_refute(struct source *source);

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

enum sidecar_verdict {
    /** There is no index of this trace, or none that could be used. */
    SIDECAR_NONE,
    SIDECAR_AGREES,
    SIDECAR_DIFFERS
};

/**
 * Compares the index of an intact trace with the trace, by a replay. Checksums of the index are not
 * all verified.
 *
 * @param path        of the index
 * @param verdict     set on STATUS_OK
 * @param difference  set if it differs: the first difference, with its place in the index
 * @return an exit status; on failure a message was printed.
 */
int sidecar_check(const char *trace, const char *path, enum sidecar_verdict *verdict,
                  struct ttd_error *difference);

#endif
