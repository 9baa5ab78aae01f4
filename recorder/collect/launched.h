/* SPDX-License-Identifier: MIT */
/* The launched program, a child of the collector's process: its end, and its stops. */
#ifndef RECORDER_COLLECT_LAUNCHED_H
#define RECORDER_COLLECT_LAUNCHED_H

#include "collect/collector.h"

/* Returns the process whose exit status this process waits for; 0 for none. */
uint32_t launched_child(const struct collector *collector);

/* Records that the launched program has stopped, continued or ended, and how. */
void launched_reap(struct collector *collector);

/*
 * Stops this process if the launched program has stopped, so that the shell sees it. All published
 * records are in the files by then. While stopped, it collects nothing, so it does not stop as long
 * as other recorded processes run, unless wants_stop() returns true.
 */
void launched_follow_stop(struct collector *collector);

#endif
