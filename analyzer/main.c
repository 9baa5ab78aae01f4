/* SPDX-License-Identifier: MIT */
/* ttdanalyze: the analyzer's command line. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <ttdtrace/version.h>

#include "base/pages.h"
#include "cli/options/command.h"
#include "cli/options/suggest.h"
#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/process/output.h"
#include "cli/session/session.h"
#include "common/standard_descriptors.h"

static const struct command *find(const char *name)
{
    const struct command *const *command = command_table;
    while (*command && strcmp((*command)->name, name) != 0)
        command++;
    return *command;
}

/* Reports a name that is no command: suggests the nearest command, or how to ask about a trace. */
static int refuse(const char *name)
{
    struct suggestion best = {.typed = name};
    for (size_t i = 0; command_table[i]; i++)
        suggest(&best, command_table[i]->name);
    if (best.name)
        return message_usage(NULL, "no such command: '%s'; did you mean '%s'?", name, best.name);
    if (access(name, F_OK) == 0)
        return message_usage(NULL,
                             "'%s' is a file, not a command; 'ttdanalyze leaks %s' shows what was "
                             "never released, 'ttdanalyze info %s' what is in it",
                             name, name, name);
    return message_usage(NULL, "no such command: '%s'", name);
}

static int print_help(void)
{
    puts("Usage: ttdanalyze COMMAND [OPTIONS] [TRACE]\n"
         "\n"
         "Answers questions about a heap trace: 'trace.bin' if none is named, standard input if\n"
         "it is '-'. The trace is only read, never changed.\n"
         "\n"
         "Commands:");
    for (size_t i = 0; command_table[i]; i++)
        printf("  %-13s %s\n", command_table[i]->name, command_table[i]->summary);
    puts("\n"
         "'ttdanalyze COMMAND --help' says more; 'ttdanalyze --version' prints the version.\n"
         "A damaged trace is read as far as possible; 'verify' says what is wrong with it.\n"
         "\n"
         "Exit status: 0 fine, 1 problems found (verify) or growth (--fail-on-growth), 2 wrong\n"
         "usage, 3 the trace cannot be opened or is none, 4 damaged beyond use, 5 out of memory,\n"
         "more than --max-memory needed, or output failed.");
    return output_end_standard();
}

/* `help` alone, or `help COMMAND`. */
static int run_help(int count, char **arguments)
{
    if (count < 3)
        return print_help();
    const struct command *command = find(arguments[2]);
    if (!command)
        return refuse(arguments[2]);
    fputs(command->help, stdout);
    return output_end_standard();
}

int main(int count, char **arguments)
{
    standard_descriptors_open();
    if (count < 2)
        return message_usage(NULL, "a command is missing");
    const char *name = arguments[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return run_help(count, arguments);
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("ttdanalyze %s\n", ttd_version());
        return output_end_standard();
    }
    const struct command *command = find(name);
    if (!command)
        return refuse(name);
    pages_prepare();
    return command->run ? command->run(command, count - 1, arguments + 1)
                        : session_run_defaults(command, count - 1, arguments + 1);
}
