/* SPDX-License-Identifier: MIT */
/*
 * The environment of a new process image: extended so that the image is recorded, or without us.
 *
 * Here may run a vfork's child, in its parent's memory: everything new lives on the caller's stack.
 */
#ifndef TTD_PRELOAD_ENVIRONMENT_H
#define TTD_PRELOAD_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* The number of variables; 0 for NULL. */
size_t environment_count(char *const *environment);

/* Whether the new image finds us with this environment; true as well when we do not record. */
bool environment_is_ours(char *const *environment);

/* Bytes for `joined` of environment_extend() and environment_strip(). */
size_t environment_joined_size(char *const *environment);

/*
 * Copies the environment, with our variables. `copy` has room for two more and the NULL; `joined`
 * takes the new LD_PRELOAD.
 */
void environment_extend(char *const *environment, char **copy, char *joined);

/* Copies the environment, without us in LD_PRELOAD; the same of `copy` and `joined`. */
void environment_strip(char *const *environment, char **copy, char *joined);

#endif
