/* SPDX-License-Identifier: MIT */
/**
 * Format of the messages that a child writes to its pipe. All numbers are 32-bit in the machine's
 * byte order: both ends are the same program.
 *
 *     message    kind, size of the body, body
 *     MODULE     index of the module that begins; indexes increase
 *     ANSWER     index of the offset, number of frames, frames
 *     VARIABLE   index of the offset; begin and size of the variable, 64 bits each; bytes of its
 * name frame      line, size of function, size of file, bytes of function, bytes of file END enum
 * wire_result of the module FINISHED   empty: all modules are done
 *
 * VARIABLE takes the place of ANSWER in modules whose offsets are data. Only MODULE and FINISHED
 * may stand outside a MODULE and its END. A size of 0 means unknown.
 */
#ifndef RECORDER_SYMBOLIZE_WIRE_WIRE_H
#define RECORDER_SYMBOLIZE_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/symbolize.h"

enum wire_kind { WIRE_MODULE = 1, WIRE_ANSWER, WIRE_END, WIRE_FINISHED, WIRE_VARIABLE };

enum wire_result { WIRE_READ, WIRE_ABSENT, WIRE_FAILED, WIRE_RESULTS };

enum {
    WIRE_NUMBER = 4,
    WIRE_HEADER = 2 * WIRE_NUMBER,
    WIRE_FRAME = 3 * WIRE_NUMBER,
    WIRE_SPAN = 2 * 2 * WIRE_NUMBER,
    WIRE_BODY_MAX = 1024 * 1024,
};

/* Decoder of the child's untrusted messages: passes well-formed answers on. */

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

/** Prepares for another child; it begins with `module`: drops the incomplete message, keeps the
 * list of answered offsets. */
void wire_decoder_restart(struct wire_decoder *decoder);

/** Gives up on the failed `module`, and expects the next one. */
void wire_decoder_skip(struct wire_decoder *decoder);

/** Returns the buffer for the next bytes; sets its size (never 0). */
uint8_t *wire_decoder_room(struct wire_decoder *decoder, size_t *size);

/** Decodes `size` bytes read into that buffer. Returns false if a message is malformed; the child
 * is then to be killed. */
bool wire_decoder_take(struct wire_decoder *decoder, size_t size);

/* Encoder of the child's messages. Ends the process if the parent is gone. */

struct wire_encoder {
    int fd;
    uint8_t *data;
    size_t size;
    size_t capacity;
};

/** Begins a module. Sent at once, so that the parent knows the module that a crash is due to. */
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
