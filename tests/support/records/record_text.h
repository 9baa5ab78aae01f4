/* SPDX-License-Identifier: MIT */
/**
 * Records as text, one line each, with every field: what was written and what was read are the
 * same when their texts are. The second reader prints the same lines.
 */
#ifndef SUPPORT_RECORD_TEXT_H
#define SUPPORT_RECORD_TEXT_H

#include <ttdtrace/ttdtrace.h>

#include "support/records/text.h"

/** Appends the records of a batch, but for what a reader made up. */
void text_of_batch(struct text *to, const struct ttd_batch *batch);

/** The part of it for snapshots and their parts. */
void text_of_snapshots(struct text *to, const struct ttd_batch *batch);

#endif
