/* SPDX-License-Identifier: MIT */
/** Code for system calls that the collector makes a thread execute: see struct borrowed_code.
 * Tests link this code by itself, and make threads of their own execute it. */
#ifndef RECORDER_PRELOAD_SYSTEM_BORROWED_H
#define RECORDER_PRELOAD_SYSTEM_BORROWED_H

#include "channel.h"

/** Room for a signal handler (it runs here only if the collector has died), and for the answer
 * about 16,384 pages, a byte each. */
enum { BORROWED_STACK_SIZE = 32 * 1024 };
extern unsigned char borrowed_stack[BORROWED_STACK_SIZE];
extern const unsigned char borrowed_copy[], borrowed_call[];

/** Where the code is, as an initialiser. */
#define BORROWED_CODE                                                                              \
    {                                                                                              \
        (uintptr_t) borrowed_copy, (uintptr_t)borrowed_call, (uintptr_t)borrowed_stack,            \
            (uintptr_t)borrowed_stack + BORROWED_STACK_SIZE                                        \
    }

/** Says where the code is. */
void borrowed_publish(struct borrowed_code *code);

#endif
