/* SPDX-License-Identifier: MIT */
/** Payload codecs (spec, "Payload"). */
#ifndef TTD_CODEC_CHUNK_PAYLOAD_H
#define TTD_CODEC_CHUNK_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/model.h>
#include <ttdtrace/status.h>

#include "base/buffer.h"

/**
 * Compresses `raw` into `stored` (cleared first), if that makes it smaller.
 *
 * @param codec  the codec wanted; set to the one to use. With TTD_CODEC_RAW `stored` stays empty.
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status ttd_payload_compress(const uint8_t *raw, size_t raw_size, int level,
                                     enum ttd_codec *codec, struct ttd_buffer *stored);

/** Whether payloads of this codec can be decompressed. */
bool ttd_payload_is_known(unsigned codec);

/**
 * Decompresses into exactly `raw_size` bytes. The limits of both sizes were checked before.
 *
 * @param what  set on failure, static
 * @return TTD_OK, TTD_ERROR_CORRUPT, TTD_ERROR_UNSUPPORTED.
 */
enum ttd_status ttd_payload_decompress(unsigned codec, const uint8_t *stored, size_t stored_size,
                                       uint8_t *raw, size_t raw_size, const char **what);

#endif
