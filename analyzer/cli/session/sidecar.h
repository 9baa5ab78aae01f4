/* SPDX-License-Identifier: MIT */
/** The sidecar index of a trace, TRACE.idx beside it. It is a cache: all of it can be made again
 * from the trace. */
#ifndef ANALYZER_CLI_SIDECAR_H
#define ANALYZER_CLI_SIDECAR_H

#include "cli/session/session.h"
#include "travel/index.h"

/**
 * Returns the keyframes for going to a position; the session owns them; NULL to go there without.
 * An index that is missing, damaged or of another trace is made anew if the trace is long enough to
 * be worth it; if that fails, the command does without. An answer that uses keyframes is not
 * certain, since the rest of the trace is not read.
 *
 * For the start and the end of a trace the result is NULL: at the start keyframes would save
 * nothing, and at the end the whole trace is read, so that the answer is certain.
 */
const struct heap_keyframes *sidecar_use(struct session *session, struct ttd_position position);

/** Returns the keyframes of an existing index, or NULL; makes none. For a question that the index
 * answers, and that otherwise takes a replay of everything. */
const struct heap_keyframes *sidecar_use_existing(struct session *session);

/** Whether the trace is so long that the user wants an answer from a part of it, as an index gives
 * one: not with `--no-index`. */
bool sidecar_pays(const struct session *session);

/** Warns that a block in the index contradicts the trace, and closes the index. */
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
