/* SPDX-License-Identifier: MIT */
/* The launched program, a child of the collector's process: its end, and its stops. */
#ifndef TTD_COLLECT_LAUNCHED_H
#define TTD_COLLECT_LAUNCHED_H

#include "collector.h"

/* Notes how the launched program stopped or ended, if it has. */
void launched_reap(struct collector *collector);

/*
 * Stops this process if the launched program has stopped, so that the shell sees it; everything
 * published is in the files by then. Nobody collects meanwhile, so it does not stop while other
 * recorded processes run, unless wants_stop() says so.
 */
void launched_follow_stop(struct collector *collector);

#endif
