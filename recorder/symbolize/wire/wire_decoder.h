/* SPDX-License-Identifier: MIT */
/** Decoder of the child's messages (wire.h), which are untrusted: passes well-formed answers on. */
#ifndef RECORDER_SYMBOLIZE_WIRE_WIRE_DECODER_H
#define RECORDER_SYMBOLIZE_WIRE_WIRE_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/symbolize.h"
#include "symbolize/wire/wire.h"

struct wire_decoder {
    const struct symbolize_module *modules;
    size_t count;
    symbolize_function *function;
    void *context;
    /** Index of the current module, or of the next one expected. */
    size_t module;
    /** Between a MODULE and its END. */
    bool is_in_module;
    bool is_finished;
    /** How many modules ended with each result; reduced_count has those read in reduced form. */
    size_t results[WIRE_RESULTS];
    size_t reduced_count;
    /** Only the symbol table of `reduced_module` is read. */
    bool is_reduced;
    size_t reduced_module;
    /** The `results` of symbolize_options; set by the owner, and may be NULL. */
    enum symbolize_result *module_results;
    void (*begin)(void *context, size_t module);
    /** Number of addresses with names. */
    size_t named;
    /** For each offset of `module`: 1 if it was answered. */
    uint8_t *answered;
    /** Bytes of an incomplete message. */
    uint8_t *data;
    size_t size;
};

/** Returns 0 or ENOMEM. The caller calls wire_decoder_free() in either case. */
int wire_decoder_init(struct wire_decoder *decoder, const struct symbolize_module *modules,
                      size_t count, symbolize_function *function, void *context);
void wire_decoder_free(struct wire_decoder *decoder);

/** Prepares for another child, which begins with `module`: drops the incomplete message, keeps
 * which offsets were answered. */
void wire_decoder_restart(struct wire_decoder *decoder);

/** Gives up on `module`, which has failed, and expects the next one. */
void wire_decoder_skip(struct wire_decoder *decoder);

/** Returns the buffer for the next bytes; sets its size, which is never 0. */
uint8_t *wire_decoder_room(struct wire_decoder *decoder, size_t *size);

/** Decodes `size` bytes read into that buffer. Returns false if a message is malformed; the child
 * is then to be killed. */
bool wire_decoder_take(struct wire_decoder *decoder, size_t size);

#endif
