/* SPDX-License-Identifier: MIT */
/* Code for system calls that the collector makes a thread execute: see struct borrowed_code. */
#ifndef TTD_PRELOAD_SYSTEM_BORROWED_H
#define TTD_PRELOAD_SYSTEM_BORROWED_H

#include "../../channel.h"

/* Says where the code is. */
void borrowed_publish(struct borrowed_code *code);

#endif
