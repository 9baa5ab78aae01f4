/* SPDX-License-Identifier: MIT */
/* The frames of a stack. */
#ifndef RECORDER_SNAPSHOT_STACKS_FRAMES_H
#define RECORDER_SNAPSHOT_STACKS_FRAMES_H

#include "channel.h"

enum { STACK_FRAMES = SNAPSHOT_FRAMES /* as many as of a thread that waits */ };

/* Innermost first: where each goes on, as in stacks of calls. */
struct stack_frames {
    size_t count;
    uint64_t pcs[STACK_FRAMES];
    uint64_t cfas[STACK_FRAMES]; /* canonical frame addresses; 0 where it is not known */
};

#endif
