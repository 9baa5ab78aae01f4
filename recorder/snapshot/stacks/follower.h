/* SPDX-License-Identifier: MIT */
/**
 * Follows the stacks of threads of another process, by the call frame information in its memory,
 * and where that says nothing, by the .debug_frame of the module's file. Neither is trusted: words
 * are read from the thread's stack alone, and rules from the segments of its modules and from
 * copies of sections. Every walk ends. The only header of this folder.
 */
#ifndef RECORDER_SNAPSHOT_STACKS_FOLLOWER_H
#define RECORDER_SNAPSHOT_STACKS_FOLLOWER_H

#include "snapshot/layout/process_layout.h"
#include "snapshot/calls.h"

enum { FOLLOWER_REGISTERS = 17 /* DWARF numbers 0 to 16 of x86-64 */ };

struct follower;

/** Returns NULL if memory ran out. The memory and the modules must stay as they are, and the
 * process as well. */
struct follower *follower_new(const struct memory *memory, const struct snapshot_subject *subject);
void follower_free(struct follower *follower);

/** Lists the frames of a thread with these registers, all of whose stack in use is `stack`. It ends
 * early where the information does, or when the deadline of the memory has passed. */
void follower_list(struct follower *follower, const uint64_t registers[FOLLOWER_REGISTERS],
                   struct memory_span stack, struct stack_frames *frames);

/** Calls `visit` for the address where each frame of a thread goes on, the innermost first, until
 * it returns false. Returns whether the outermost frame was reached: all frames were visited.
 */
bool follower_visit(struct follower *follower, const uint64_t registers[FOLLOWER_REGISTERS],
                    struct memory_span stack, bool (*visit)(void *context, uint64_t pc),
                    void *context);

#endif
