/* SPDX-License-Identifier: MIT */
/** Records of derived files: states of the heap, and sums (spec, "States", "Sums"). */
#ifndef TTD_CODEC_HEAP_STATE_HEAP_STATES_H
#define TTD_CODEC_HEAP_STATE_HEAP_STATES_H

#include <ttdtrace/model.h>

#include "base/buffer.h"
#include "base/cursor.h"

void ttd_encode_state(struct ttd_buffer *buffer, const struct ttd_state *state);
void ttd_decode_state(struct ttd_cursor *cursor, struct ttd_state *state);
/** Validates the values of a state. Returns a static description of the first violation, or NULL.
 */
const char *ttd_check_state(const struct ttd_state *state);

void ttd_encode_sum(struct ttd_buffer *buffer, const struct ttd_sum *sum);
void ttd_decode_sum(struct ttd_cursor *cursor, struct ttd_sum *sum);
/** Validates the values of a sum. Returns a static description of the first violation, or NULL. */
const char *ttd_check_sum(const struct ttd_sum *sum);

#endif
