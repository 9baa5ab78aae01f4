/* SPDX-License-Identifier: MIT */
/** The child's end of the pipe. Failing to write ends the process: nobody listens any more. */
#ifndef TTD_SYMBOLIZE_OUTBOX_H
#define TTD_SYMBOLIZE_OUTBOX_H

#include <stddef.h>
#include <stdint.h>

#include "symbolize.h"
#include "wire.h"

struct outbox {
    int fd;
    uint8_t *data;
    size_t size;
    size_t capacity;
};

/** Tells at once, so that the parent knows whom to blame. */
void outbox_module(struct outbox *box, uint32_t module);
void outbox_answer(struct outbox *box, uint32_t index, const struct symbolize_frame *frames,
                   size_t count);
void outbox_end(struct outbox *box, enum wire_result result);
void outbox_finished(struct outbox *box);

#endif
