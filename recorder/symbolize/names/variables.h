/* SPDX-License-Identifier: MIT */
/** Names of a module's data: variables, or else sections. */
#ifndef RECORDER_SYMBOLIZE_NAMES_VARIABLES_H
#define RECORDER_SYMBOLIZE_NAMES_VARIABLES_H

#include <stdint.h>

#include "symbolize/names/image_cache.h"
#include "symbolize/wire/wire_encoder.h"

/**
 * Encodes the variable that holds each of the module's offsets, once: for the first of them. An
 * offset in no variable is answered by what lies between the variables around it, within its
 * section, and with the section's name; one in no section by itself, without a name. A variable of
 * a function is named with it, if debug information tells.
 *
 * @param answered  for each offset, 1 to skip it; NULL to skip none.
 */
void variables_answer(struct wire_encoder *encoder, struct binary *binary,
                      const struct symbolize_module *module, const uint8_t *answered);

#endif
