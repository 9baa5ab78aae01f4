/* SPDX-License-Identifier: MIT */
#include "cli/options/command.h"

#include <stddef.h>

const struct command *const command_table[] = {
    &command_info,      &command_events,    &command_leaks,
    &command_state,     &command_history,   &command_peak,
    &command_diff,      &command_hot,       &command_temporary,
    &command_lifetimes, &command_timeline,  &command_fragmentation,
    &command_moves,     &command_errors,    &command_verify,
    &command_recover,   &command_redact,    &command_index,
    &command_marks,     &command_memory,    &command_snapshots,
    &command_find,      &command_referrers, &command_retained,
    &command_roots,     &command_report,    NULL};
