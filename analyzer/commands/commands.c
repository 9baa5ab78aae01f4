/* SPDX-License-Identifier: MIT */
/* The table of commands, apart from each of them: the program and its tests walk it. */
#include "cli/options/command.h"

#include <stddef.h>

const struct command_entry command_table[] = {{&command_summary, "Start here"},
                                              {&command_report, NULL},
                                              {&command_leaks, "What is wrong"},
                                              {&command_errors, NULL},
                                              {&command_moves, NULL},
                                              {&command_temporary, NULL},
                                              {&command_fragmentation, NULL},
                                              {&command_peak, "Whose memory it is, and when"},
                                              {&command_state, NULL},
                                              {&command_hot, NULL},
                                              {&command_diff, NULL},
                                              {&command_timeline, NULL},
                                              {&command_lifetimes, NULL},
                                              {&command_referrers, "What holds a block"},
                                              {&command_retained, NULL},
                                              {&command_roots, NULL},
                                              {&command_history, "One block, one moment"},
                                              {&command_events, NULL},
                                              {&command_marks, NULL},
                                              {&command_snapshots, NULL},
                                              {&command_memory, NULL},
                                              {&command_find, NULL},
                                              {&command_query, NULL},
                                              {&command_info, "The trace as a file"},
                                              {&command_verify, NULL},
                                              {&command_recover, NULL},
                                              {&command_redact, NULL},
                                              {&command_index, NULL},
                                              {&command_export, NULL},
                                              {&command_import, NULL},
                                              {NULL, NULL}};
