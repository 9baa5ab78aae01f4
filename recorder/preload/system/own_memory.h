/* SPDX-License-Identifier: MIT */
/* The list of what the recorder has mapped for itself: see struct own_memory of the channel. */
#ifndef RECORDER_PRELOAD_SYSTEM_OWN_MEMORY_H
#define RECORDER_PRELOAD_SYSTEM_OWN_MEMORY_H

#include "channel.h"

#pragma GCC visibility push(hidden)

/* The first part of the list. */
extern struct own_memory own_memory;

/* Adds memory that was just mapped. It is left out if there is no memory for the list. */
void own_memory_add(uintptr_t begin, size_t size);

/* Removes memory that is about to be unmapped, and may soon be the program's. */
void own_memory_remove(uintptr_t begin);

#pragma GCC visibility pop

#endif
