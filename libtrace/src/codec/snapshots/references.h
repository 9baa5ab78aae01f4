/* SPDX-License-Identifier: MIT */
/** Chunks of references (spec, "References"). A large heap has tens of millions. */
#ifndef TTD_CODEC_SNAPSHOTS_REFERENCES_H
#define TTD_CODEC_SNAPSHOTS_REFERENCES_H

#include <stdbool.h>
#include <ttdtrace/snapshot.h>

#include "base/buffer.h"
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

/* A chunk of packed references in the making (spec, "Packed references"). */

/** References of one snapshot, sorted by region and offset. */
struct ttd_reference_encoder {
    /** All but the run at the end. */
    struct ttd_buffer columns[TTD_PACKED_REFERENCE_COLUMN_COUNT];
    uint32_t snapshot;
    size_t count;
    /** Unset if there is none; the last one is zeros then. */
    struct ttd_reference first;
    struct ttd_reference last;
    /** The run of references of one region at the end: how many, and the region of the run before.
     */
    size_t run;
    uint32_t region_before;
};

/** Prepares an empty encoder; the allocator must outlive it. */
void ttd_reference_encoder_init(struct ttd_reference_encoder *encoder,
                                const struct ttd_allocator *allocator);
void ttd_reference_encoder_free(struct ttd_reference_encoder *encoder);

/** Empties the encoder; keeps its memory. */
void ttd_reference_encoder_clear(struct ttd_reference_encoder *encoder);

/** Validates references, at least one, that are to be added next. Returns a static description of
 * the first violation, or NULL. */
const char *ttd_reference_encoder_check(const struct ttd_reference_encoder *encoder,
                                        const struct ttd_references *references);

/** Adds valid references, at least one. Returns false if memory is exhausted: nothing was added,
 * and the encoder can only be freed. */
bool ttd_reference_encoder_add(struct ttd_reference_encoder *encoder,
                               const struct ttd_references *references);

/** Appends the payload, of at least one reference. Afterwards the encoder can only be cleared. */
void ttd_reference_encoder_finish(struct ttd_reference_encoder *encoder, struct ttd_buffer *buffer);

#endif
