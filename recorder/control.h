/* SPDX-License-Identifier: MIT */
/**
 * Messages between `ttdrecord status PID`, or its like, and the collector: one request, one answer,
 * each a packet of a local socket. The socket has no name in the file system. The kernel chooses
 * its name (it stands in the channel), and names each side to the other: only the user who records,
 * and root, may ask, and only the collector may answer.
 */
#ifndef RECORDER_CONTROL_H
#define RECORDER_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#define CONTROL_MAGIC UINT64_C(0x314c4f5254445454) /* "TTDTROL1" */

enum control_command {
    CONTROL_STATUS = 1,
    CONTROL_SNAPSHOT = 2,
    CONTROL_MARK = 3,
    CONTROL_PAUSE = 4,
    CONTROL_RESUME = 5,
    CONTROL_DETACH = 6,
    CONTROL_SNAPSHOTS = 7, /* the text has the interval in nanoseconds, 64 bits; 0 for none */
    /** The text has 64 bits: enum channel_calls that are to have no stacks, and in the upper half
     * the number of frames of a stack, 0 for all. */
    CONTROL_STACKS = 9,
    CONTROL_COUNTS = 8, /* of the recorder's process of an index, in place of its id */
};

/** CONTROL_UNKNOWN: another collector may record the process. */
enum control_result { CONTROL_DONE, CONTROL_FAILED, CONTROL_UNKNOWN };

enum { CONTROL_TEXT_MAX = 480 };

struct control_request {
    uint64_t magic;
    uint32_t command; /* enum control_command */
    uint32_t pid;     /* of the recorded process */
    uint32_t size; /* of the text, which CONTROL_MARK, CONTROL_SNAPSHOTS and CONTROL_STACKS have */
    char text[CONTROL_TEXT_MAX];
};

struct control_answer {
    uint64_t magic;
    uint32_t result; /* enum control_result */
    uint32_t size;   /* of the text */
    char text[CONTROL_TEXT_MAX];
};

/* Asks the recorder of a process that is being recorded: `ttdrecord status PID` and
 * `ttdrecord snapshot PID`. */

/** Whether the arguments of ttdrecord are a command and the number of a process, and not a program.
 */
bool control_is_command(int argc, char **argv);

/** Asks a recorder, by its own process id. `answer` is set unless the result is CONTROL_UNKNOWN:
 * there is no such recorder, or it does not know the process. */
enum control_result control_ask_collector(uint32_t collector, const struct control_request *request,
                                          struct control_answer *answer);

/** Sends the command, and prints the answer. Returns an exit status. */
int control_ask(char **argv);

#endif
