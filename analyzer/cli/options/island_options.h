/* SPDX-License-Identifier: MIT */
/** The options --client and --activity, which select islands of recording. */
#ifndef ANALYZER_CLI_ISLAND_OPTIONS_H
#define ANALYZER_CLI_ISLAND_OPTIONS_H

#include "cli/options/own_options.h"
#include "travel/islands.h"

/** Lines for the help text of a command that has these options. */
#define ISLAND_OPTIONS_HELP                                                                        \
    "      --client GUID       only from islands of this client\n"                                 \
    "      --activity N        only from islands of this activity\n"

/** Parse into a struct heap_island_filter: a GUID with or without hyphens, and a number. */
bool option_client(const char *argument, void *member);
bool option_activity(const char *argument, void *member);

/** Whether an option is one of the two, by its name without hyphens: a command that has neither
 * says that they do not apply. */
bool option_is_of_islands(const char *name);

/** The entries of both options in the table of a command's own options. */
#define ISLAND_OPTIONS(TYPE, MEMBER)                                                               \
    OWN_OPTION("client", option_client, TYPE, MEMBER),                                             \
        OWN_OPTION("activity", option_activity, TYPE, MEMBER)

#endif
