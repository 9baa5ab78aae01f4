/* SPDX-License-Identifier: MIT */
/** Pseudorandom command lines of the analyzer: every command, with the options that it has. */
#ifndef FUZZ_COMMAND_LINE_H
#define FUZZ_COMMAND_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options/command.h"

enum { COMMAND_LINE_ARGUMENTS_MAX = 24 };

/** The exit code that command lines choose for findings. */
#define COMMAND_LINE_ERROR_EXITCODE 77

struct command_line {
    const struct command *command;
    /** The form of the output: the value of --format, or "pprof"; NULL for a text of any form. */
    const char *format;
    int count;
    /** The arguments, the command's name first; ends with NULL. */
    char *arguments[COMMAND_LINE_ARGUMENTS_MAX + 1];
    /** Whether the trace is to be indexed before. */
    bool makes_index;
};

/**
 * Draws a command line; the same one for the same state.
 *
 * @param trace_path   the trace, or both traces, that the command reads; borrowed
 * @param output_path  the value of --output where it is given; borrowed
 */
struct command_line command_line_draw(uint64_t state, const char *trace_path,
                                      const char *output_path);

#endif
