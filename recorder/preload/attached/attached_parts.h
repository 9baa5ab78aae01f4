/* SPDX-License-Identifier: MIT */
/** Functions that assembly calls, and that stand in for the loader's: all that the files of the
 * library which is attached to a process share by themselves. */
#ifndef RECORDER_PRELOAD_ATTACHED_ATTACHED_PARTS_H
#define RECORDER_PRELOAD_ATTACHED_ATTACHED_PARTS_H

#include <dlfcn.h>

#include "preload/hooks/patched.h"
#include "preload/threads/internal.h"

/** Begins to record the process; runs in a thread that the recorder has stopped, and puts back
 * afterwards. */
void attached_start(void);
void attached_wait(void);

/** Lets calls of the live API in, if an earlier recording of the process has made its memory. */
void attached_live_begin(void);

/** Finds the module at an address, perhaps this library: takes the place of _dl_find_object()
 * here. */
int attached_find_object(void *address, struct dl_find_object *object);

#endif
