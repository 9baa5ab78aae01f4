/* SPDX-License-Identifier: MIT */
/** Chunks of references (spec, "References"). A large heap has tens of millions. */
#ifndef TTD_CODEC_SNAPSHOTS_REFERENCES_H
#define TTD_CODEC_SNAPSHOTS_REFERENCES_H

#include <ttdtrace/snapshot.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "layout.h"

/** Validates the values and the order of references, at least one. Returns a static description of
 * the first violation, or NULL. */
const char *ttd_check_references(const struct ttd_references *references);

/** Appends the payload; `columns` has one buffer per column. The references are valid. */
void ttd_encode_references(struct ttd_buffer *buffer, const struct ttd_references *references,
                           struct ttd_buffer columns[TTD_REFERENCE_COLUMN_COUNT]);

/** Decodes the payload. `list->count` is set before the call, and `references` has room for as
 * many.
 */
void ttd_decode_references(struct ttd_cursor *cursor, struct ttd_references *list,
                           struct ttd_reference *references);

#endif
