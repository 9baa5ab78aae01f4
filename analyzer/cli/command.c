/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ttdtrace/version.h>

#include "cli/exit.h"
#include "cli/message.h"

#define OWN_MAX 32

enum { OPTION_NO_PAGER = 1000, OPTION_NO_INDEX };

static const struct option common_options[] = {{"format", required_argument, NULL, 'f'},
                                               {"output", required_argument, NULL, 'o'},
                                               {"no-pager", no_argument, NULL, OPTION_NO_PAGER},
                                               {"no-index", no_argument, NULL, OPTION_NO_INDEX},
                                               {"help", no_argument, NULL, 'h'},
                                               {"version", no_argument, NULL, 'V'},
                                               {NULL, 0, NULL, 0}};

/* All options of a command, its own first. */
static void merge(struct option *all, const struct option *own)
{
    size_t count = 0;
    while (own && own[count].name && count < OWN_MAX) {
        all[count] = own[count];
        count++;
    }
    memcpy(all + count, common_options, sizeof common_options);
}

static int take_format(common *result, const char *name)
{
    result->format = report_format_find(name);
    if (result->format)
        return -1;
    return message_usage(result->command->name, "unknown format '%s' (text, json or csv)", name);
}

/* Takes a common option; -1 to go on. */
static int take_common(common *result, int option, char *const *arguments)
{
    switch (option) {
    case 'f':
        return take_format(result, optarg);
    case 'o':
        result->output = optarg;
        return -1;
    case OPTION_NO_PAGER:
        result->has_pager = false;
        return -1;
    case OPTION_NO_INDEX:
        result->has_index = false;
        return -1;
    case 'h':
        fputs(result->command->help, stdout);
        return fflush(stdout) == 0 ? STATUS_OK : STATUS_INTERNAL;
    case 'V':
        printf("ttdanalyze %s\n", ttd_version());
        return fflush(stdout) == 0 ? STATUS_OK : STATUS_INTERNAL;
    case ':':
        return message_usage(result->command->name, "option '%s' needs an argument",
                             arguments[optind - 1]);
    default:
        return message_usage(result->command->name, "unknown or ambiguous option '%s'",
                             arguments[optind - 1]);
    }
}

static const char *name_of(const struct option *all, int value)
{
    while (all->name && all->val != value)
        all++;
    return all->name ? all->name : "?";
}

static int take_operands(common *result, int most, int count, char **arguments)
{
    const char *name = result->command->name;
    if (optind == count)
        return message_usage(name, "which trace? A file name is missing");
    if (optind + most < count)
        return message_usage(name, "%s at a time: '%s' is too much",
                             most == 1 ? "one trace" : "two traces", arguments[optind + most]);
    result->trace = arguments[optind];
    result->other = optind + 1 < count ? arguments[optind + 1] : NULL;
    return -1;
}

/* Takes all options; -1 to go on. */
static int take_options(common *result, const command *which, int count, char **arguments,
                        const struct option *own, option_function take, void *context)
{
    struct option all[OWN_MAX + sizeof common_options / sizeof common_options[0]];
    merge(all, own);
    *result = (common){.command = which,
                       .format = report_format_find("text"),
                       .has_pager = true,
                       .has_index = true};
    opterr = 0;
    optind = 1;
    int option;
    while ((option = getopt_long(count, arguments, ":f:o:h", all, NULL)) != -1) {
        int status = -1;
        if (option < OPTION_FIRST || option >= OPTION_NO_PAGER)
            status = take_common(result, option, arguments);
        else if (!take(context, option, optarg))
            status = message_usage(which->name, "invalid argument '%s' of --%s",
                                   optarg ? optarg : "", name_of(all, option));
        if (status >= 0)
            return status;
    }
    return -1;
}

int command_options(common *result, const command *which, int count, char **arguments,
                    const struct option *own, option_function take, void *context)
{
    int status = take_options(result, which, count, arguments, own, take, context);
    return status >= 0 ? status : take_operands(result, 1, count, arguments);
}

int command_options_pair(common *result, const command *which, int count, char **arguments,
                         const struct option *own, option_function take, void *context)
{
    int status = take_options(result, which, count, arguments, own, take, context);
    return status >= 0 ? status : take_operands(result, 2, count, arguments);
}
