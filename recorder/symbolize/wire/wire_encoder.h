/* SPDX-License-Identifier: MIT */
/** Encoder of the child's messages (wire.h). Ends the process if the parent is gone. */
#ifndef RECORDER_SYMBOLIZE_WIRE_WIRE_ENCODER_H
#define RECORDER_SYMBOLIZE_WIRE_WIRE_ENCODER_H

#include <stddef.h>
#include <stdint.h>

#include "symbolize/symbolize.h"
#include "symbolize/wire/wire.h"

struct wire_encoder {
    int fd;
    uint8_t *data;
    size_t size;
    size_t capacity;
};

/** Begins a module. Sent at once, so that the parent knows which module a crash is due to. */
void wire_encoder_module(struct wire_encoder *encoder, uint32_t module);

/** Encodes the names of the offset `index` of the module; frames that do not fit are left out. */
void wire_encoder_answer(struct wire_encoder *encoder, uint32_t index,
                         const struct symbolize_frame *frames, size_t count);

/** Encodes the variable that holds the offset `index` of the module, and those after it up to its
 * end. Its name may be unknown. */
void wire_encoder_variable(struct wire_encoder *encoder, uint32_t index,
                           const struct symbolize_frame *variable);

/** Ends the module. */
void wire_encoder_end(struct wire_encoder *encoder, enum wire_result result);

/** Says that all modules are done, and sends everything. */
void wire_encoder_finished(struct wire_encoder *encoder);

#endif
