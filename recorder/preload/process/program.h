/* SPDX-License-Identifier: MIT */
/** Programs that are about to be executed: whether this library can be loaded into them. */
#ifndef RECORDER_PRELOAD_PROCESS_PROGRAM_H
#define RECORDER_PRELOAD_PROCESS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The environment of a new process image: extended so that the image is recorded, or stripped of
 * this library.
 *
 * The child of a vfork may run this, in its parent's memory: all new data is on the caller's stack.
 */

/** Returns the number of variables; 0 for NULL. */
size_t environment_count(char *const *environment);

/** Whether an image with this environment loads this library; also true if nothing is recorded. */
bool environment_is_ours(char *const *environment);

/** Whether LD_PRELOAD in it has a sanitizer's runtime, which ends the program if another library
 * comes first. */
bool environment_is_of_sanitizer(char *const *environment);

/** Whether it belongs to a program that runs another one in valgrind. That one is not to load this
 * library: valgrind would report its accesses, and suppressions would not match its frames. */
bool environment_is_of_valgrind(char *const *environment);

/** Returns the bytes that environment_extend() and environment_strip() need for `joined`. */
size_t environment_joined_size(char *const *environment);

/**
 * Copies the environment and adds the recorder's variables; `channel` names the channel. `copy` has
 * room for two more and the NULL; `joined` takes the new LD_PRELOAD.
 */
void environment_extend(char *const *environment, char **copy, char *joined, char *channel);

enum { ENVIRONMENT_CHANNEL_MAX = 128 };

/** Writes the variable that names the channel: by a descriptor as well, unless that is negative. */
void environment_name_channel(char channel[ENVIRONMENT_CHANNEL_MAX], int descriptor);

/** Copies the environment without this library in LD_PRELOAD. `copy` and `joined` as above. */
void environment_strip(char *const *environment, char **copy, char *joined);

enum program_kind {
    PROGRAM_RECORDED,
    /** It does not look at LD_PRELOAD, such as one that is statically linked, or setuid. */
    PROGRAM_UNRECORDED,
    PROGRAM_CUT_OFF,    /* it cannot reach the channel by itself, as in a container */
    PROGRAM_REFUSES_US, /* its loader would complain or fail */
};

/** Returns the kind of a program. An empty path means the file of the descriptor `directory`. */
enum program_kind program_kind(int directory, const char *path);

/** Returns the kind of a program that is searched for in PATH. */
enum program_kind program_kind_found(const char *name);

/** Counts a program of this kind, started in a new process or in one that has no slot; `count` is
 * 1, or -1 if starting it failed. */
void program_count(enum program_kind kind, int count);

#endif
