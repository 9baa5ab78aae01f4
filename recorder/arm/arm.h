/* SPDX-License-Identifier: MIT */
/**
 * Arms a process that has executed a program and has not run its first instruction: its environment
 * gets the preload library and the channel, as if it had been started by the recorder. Only memory
 * below its stack pointer is written, then that pointer moves: whenever the recorder dies, the
 * process is runnable. All functions are for the thread that traces the process.
 */
#ifndef RECORDER_ARM_ARM_H
#define RECORDER_ARM_ARM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum arm_state {
    ARM_READY,    /* it is traced, and stands before its first instruction */
    ARM_ELSEWHERE /* it is not traced by us: it has run, or cannot be traced */
};

/** Seizes a process that is stopped by job control, if it is before its first instruction. */
enum arm_state arm_seize(uint32_t pid);

/** Whether a traced process is stopped before its first instruction. */
bool arm_is_at_start(uint32_t pid);

/** Gives the traced process its new environment. Returns NULL, or the reason why it cannot: the
 * process is unchanged then. */
const char *arm_environment(uint32_t pid, const char *preload, const char *channel);

/** Lets go of the process: it runs then, or is stopped by job control if it was suspended: this is
 * awaited. */
void arm_release(uint32_t pid, bool is_suspended);

/**
 * A process of ours that has the user of the process to record: users cannot open the descriptors
 * of other users' processes. `path` is then the channel's, for that user.
 */
struct arm_door {
    pid_t pid; /* 0: none is needed */
    char path[64];
};

/** Opens the door to the channel, the descriptor `file`; that becomes the user's. Returns NULL, or
 * the reason why it cannot. */
const char *arm_door_open(struct arm_door *door, uint32_t pid, const char *preload, int file,
                          const char *path);

void arm_door_close(struct arm_door *door);

#endif
