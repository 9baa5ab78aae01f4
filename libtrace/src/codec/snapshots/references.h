/* SPDX-License-Identifier: MIT */
/** Chunks of references (spec, "References"). A large heap has tens of millions. */
#ifndef TTD_CODEC_SNAPSHOTS_REFERENCES_H
#define TTD_CODEC_SNAPSHOTS_REFERENCES_H

#include <ttdtrace/snapshot.h>

#include "base/cursor.h"
#include "layout.h"

/** Smallest encoded size of a packed reference, in bytes. */
#define TTD_PACKED_REFERENCE_BYTES_MIN 2

/* Each function decodes the payload. `list->count` is set before the call, and `references` has
 * room for as many. */

void ttd_decode_references(struct ttd_cursor *cursor, struct ttd_references *list,
                           struct ttd_reference *references);
void ttd_decode_packed_references(struct ttd_cursor *cursor, struct ttd_references *list,
                                  struct ttd_reference *references);

#endif
