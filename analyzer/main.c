/* SPDX-License-Identifier: MIT */
/* ttdanalyze: the analyzer's command line. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <ttdtrace/version.h>

#include "base/table.h"
#include "cli/options/command.h"
#include "cli/process/message.h"
#include "cli/process/output.h"
#include "cli/session/session.h"
#include "common/output_path.h"

static const struct command *main_find_command(const char *name)
{
    const struct command_entry *entry = command_table;
    while (entry->command && strcmp(entry->command->name, name) != 0)
        entry++;
    return entry->command;
}

/* Reports a name that is neither a command nor a file, and suggests the nearest command. */
static int main_refuse_name(const char *name)
{
    struct suggestion best = {.typed = name};
    for (size_t i = 0; command_table[i].command; i++)
        suggest(&best, command_table[i].command->name);
    if (best.name)
        return message_usage(NULL, "no such command: '%s'; did you mean '%s'?", name, best.name);
    return message_usage(NULL, "no such command or file: '%s'", name);
}

/* Returns the command behind options, where it does not belong; NULL if there is none. The name of
 * one may be an option's value. */
static const char *main_find_late_command(int count, char **arguments)
{
    for (int i = 2; i < count; i++) {
        const char *before = arguments[i - 1];
        bool has_value =
            before[0] == '-' && strncmp(before, "--no-", 5) != 0 && !strchr(before, '=');
        if (!has_value && main_find_command(arguments[i]) && access(arguments[i], F_OK) != 0)
            return arguments[i];
    }
    return NULL;
}

static void main_print_commands(void)
{
    puts("Usage: ttdanalyze TRACE                      a summary\n"
         "       ttdanalyze COMMAND [OPTIONS] [TRACE]\n"
         "\n"
         "Answers questions about a heap trace: 'trace.bin' if none is named, standard\n"
         "input if it is '-'. The trace is only read, never changed.");
    for (size_t i = 0; command_table[i].command; i++) {
        const struct command *command = command_table[i].command;
        if (command_table[i].group)
            printf("\n%s:\n", command_table[i].group);
        printf("  %-13s %s\n", command->name, command->summary);
    }
    puts("\n'ttdanalyze COMMAND --help' says more; 'ttdanalyze --version' is the version.");
}

static int main_print_help(void)
{
    main_print_commands();
    puts("A damaged trace is read as far as possible; 'verify' lists its problems.\n"
         "\n"
         "Exit status: 0 fine, 1 problems found (verify) or growth (--fail-on-growth), 2\n"
         "wrong usage, 3 the trace cannot be opened or is none, 4 damaged beyond use, 5\n"
         "out of memory, more than --max-memory needed, or output failed, 6 no answer\n"
         "(--error-exitcode).");
    return output_end_standard();
}

/* `help` alone, or `help COMMAND`. */
static int main_run_help(int count, char **arguments)
{
    if (count < 3)
        return main_print_help();
    const struct command *command = main_find_command(arguments[2]);
    if (!command)
        return main_refuse_name(arguments[2]);
    fputs(command->help, stdout);
    return output_end_standard();
}

int main(int count, char **arguments)
{
    standard_descriptors_open();
    if (count < 2) {
        main_print_commands();
        int status = output_end_standard();
        return status == STATUS_OK ? STATUS_USAGE : status;
    }
    const char *name = arguments[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return main_run_help(count, arguments);
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("ttdanalyze %s\n", ttd_version());
        return output_end_standard();
    }
    const struct command *command = main_find_command(name);
    const char *late = name[0] == '-' ? main_find_late_command(count, arguments) : NULL;
    if (late)
        return message_usage(late, "the command comes before its options");
    pages_prepare();
    /* Without a command the arguments are of the summary. */
    if (!command && (name[0] == '-' || access(name, F_OK) == 0))
        return command_summary.run(&command_summary, count, arguments);
    if (!command)
        return main_refuse_name(name);
    return command->run ? command->run(command, count - 1, arguments + 1)
                        : session_run_defaults(command, count - 1, arguments + 1);
}
