/* SPDX-License-Identifier: MIT */
/* The handler of exit() that runs after all others. */
#ifndef RECORDER_PRELOAD_END_LAST_H
#define RECORDER_PRELOAD_END_LAST_H

#include <stdbool.h>

typedef void last_function(void *unused, int status);

/* Registers the handler, before the program can register any. Libraries may have done so. */
void last_register(last_function *function);

/*
 * Called by that handler. Returns whether exit() runs no other one after it: all that is left is
 * to flush the standard streams, and to end the process. Registers a handler that does nothing.
 */
bool last_is_running(void);

#endif
