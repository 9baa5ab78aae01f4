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

enum wire_kind { WIRE_MODULE = 1, WIRE_ANSWER, WIRE_END, WIRE_FINISHED, WIRE_VARIABLE };

enum wire_result { WIRE_READ, WIRE_ABSENT, WIRE_FAILED, WIRE_RESULTS };

enum {
    WIRE_NUMBER = 4,
    WIRE_HEADER = 2 * WIRE_NUMBER,
    WIRE_FRAME = 3 * WIRE_NUMBER,
    WIRE_SPAN = 2 * 2 * WIRE_NUMBER,
    WIRE_BODY_MAX = 1024 * 1024,
};

#endif
