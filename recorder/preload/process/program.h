/* SPDX-License-Identifier: MIT */
/* Programs that are about to be executed: whether this library can be loaded into them. */
#ifndef RECORDER_PRELOAD_PROCESS_PROGRAM_H
#define RECORDER_PRELOAD_PROCESS_PROGRAM_H

enum program_kind {
    PROGRAM_RECORDED,
    /* It does not look at LD_PRELOAD, such as one that is statically linked, or setuid. */
    PROGRAM_UNRECORDED,
    PROGRAM_CUT_OFF,    /* it cannot reach the channel by itself, as in a container */
    PROGRAM_REFUSES_US, /* its loader would complain or fail */
};

/* Returns the kind of a program. An empty path means the file of the descriptor `directory`. */
enum program_kind program_kind(int directory, const char *path);

/* Returns the kind of a program that is searched for in PATH. */
enum program_kind program_kind_found(const char *name);

/* Counts a program of this kind, started in a new process or in one that has no slot; `count` is 1,
 * or -1 if starting it failed. */
void program_count(enum program_kind kind, int count);

#endif
