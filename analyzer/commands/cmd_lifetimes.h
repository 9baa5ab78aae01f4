/* SPDX-License-Identifier: MIT */
/** Printing lifetimes, for a command that has found them beside other things. */
#ifndef ANALYZER_COMMANDS_CMD_LIFETIMES_H
#define ANALYZER_COMMANDS_CMD_LIFETIMES_H

#include "analyses/activity/usage.h"
#include "cli/session/session.h"

/** Filters a usage with lifetimes, and prints these. Returns an exit status. */
int lifetimes_print(struct session *session, struct heap_usage *usage);

#endif
