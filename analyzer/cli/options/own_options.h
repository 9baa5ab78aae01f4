/* SPDX-License-Identifier: MIT */
/** The options of one command: a table of their names, each with its parser and its member.
 */
#ifndef ANALYZER_CLI_OWN_OPTIONS_H
#define ANALYZER_CLI_OWN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "travel/islands.h"

/* The options --client and --activity, which select islands of recording. */

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

/** Parses an argument, NULL for an option that takes none, into a member; false if it is invalid.
 */
typedef bool (*option_parser)(const char *argument, void *member);

struct own_option {
    const char *name;
    option_parser parse;
    /** Offset of the member in the command's options. */
    size_t offset;
    /** The range of a number, of type uint64_t, if `max` is not 0. */
    uint64_t min;
    uint64_t max;
};

/** The own options of a command; all NULL for none. */
struct own_options {
    /** Ended by OWN_OPTIONS_END. */
    const struct own_option *table;
    /** The values of options that are not given, in the struct that they are parsed into; and its
     * size. NULL for a command that provides the struct itself. */
    const void *defaults;
    size_t size;
};

/** An option that is parsed into a member of a struct; and a number in a range. */
#define OWN_OPTION(NAME, PARSE, TYPE, MEMBER)                                                      \
    {                                                                                              \
        NAME, PARSE, offsetof(TYPE, MEMBER), 0, 0                                                  \
    }
#define OWN_NUMBER(NAME, PARSE, TYPE, MEMBER, LEAST, MOST)                                         \
    {                                                                                              \
        NAME, PARSE, offsetof(TYPE, MEMBER), LEAST, MOST                                           \
    }
/** An option whose argument says several things: `PARSE` gets the whole struct. */
#define OWN_CHOICE(NAME, PARSE)                                                                    \
    {                                                                                              \
        NAME, PARSE, 0, 0, 0                                                                       \
    }
/** Ends a table. */
#define OWN_OPTIONS_END                                                                            \
    {                                                                                              \
        NULL, NULL, 0, 0, 0                                                                        \
    }

/** A number that may be given or not, such as an address. */
struct given_number {
    bool is_given;
    uint64_t value;
};

/** Sets a bool. The one parser whose options take no argument. */
bool option_flag(const char *argument, void *flag);
/** Parses a struct position_spec. */
bool option_position(const char *argument, void *spec);
/** Parses a uint64_t, and one that may have a suffix. */
bool option_number(const char *argument, void *number);
bool option_size(const char *argument, void *number);
/** Parses a struct given_number. */
bool option_given(const char *argument, void *number);
/** Parses a limit, a size_t: 0 stands for SIZE_MAX. */
bool option_limit(const char *argument, void *limit);

/** Finds a name among `count`; false if it is none of them. */
bool option_name(const char *argument, const char *const *names, size_t count, size_t *index);

/** Parses the argument of an option into the command's options; false if it is invalid. */
bool own_option_parse(const struct own_option *option, const char *argument, void *own_values);

#endif
