/* SPDX-License-Identifier: MIT */
/** The command-line options of views: groups, trees and filters. */
#ifndef ANALYZER_CLI_VIEW_OPTIONS_H
#define ANALYZER_CLI_VIEW_OPTIONS_H

#include <getopt.h>

#include "report/sections/report.h"
#include "view/view.h"

/** Range of the values of the options; OPTION_VIEW_END is none of them. */
#define OPTION_VIEW 900

enum {
    OPTION_BY = OPTION_VIEW,
    OPTION_TREE,
    OPTION_DEPTH,
    OPTION_SKIP,
    OPTION_INCLUDE,
    OPTION_EXCLUDE,
    OPTION_VIEW_LIMIT,
    OPTION_VIEW_END
};

/** Options of keys to group by, of lists and trees, and of filters; each ended by an option of
 * zeros. */
extern const struct option key_long_options[];
extern const struct option view_long_options[];
extern const struct option filter_long_options[];

void view_options_init(struct view_options *options);

/** Parses one of the options; false if its argument is invalid. */
bool view_options_parse(struct view_options *options, int option, const char *argument);

/** Checks the options together. Returns a description of the first fault, or NULL. Chooses a tree
 * for a format that needs one. */
const char *view_options_check(struct view_options *options, enum report_form form);

/** Help texts of groups, trees and filters; and of all. */
#define VIEW_LIMIT_HELP                                                                            \
    "      --limit N           show at most N groups, or N branches of each in a tree (20;\n"      \
    "                          0 for all). Totals count all\n"

#define VIEW_KEYS_HELP                                                                             \
    "      --by KEY            group by stack (the default), function, file, module, thread\n"     \
    "                          or heap. Function, file and module belong to the last\n"

/** For commands with COMMAND_CLASSES. */
#define VIEW_KEYS_AND_CLASS_HELP                                                                   \
    "      --by KEY            group by stack (the default), function, file, module, thread,\n"    \
    "                          heap or class (of objects with virtual functions, by a\n"           \
    "                          snapshot). Function, file and module belong to the last\n"

#define VIEW_SKIP_HELP                                                                             \
    "                          call that is of the program: of no C or C++ library and\n"          \
    "                          no common wrapper of malloc()\n"                                    \
    "      --skip FUNCTION     take FUNCTION for one that allocates, and begin stacks with\n"      \
    "                          its caller; may have '*' and '?', and be repeated\n"

#define VIEW_TREES_HELP                                                                            \
    "      --tree ORDER        a tree of calls: top-down, from main() on, or bottom-up, from\n"    \
    "                          those that allocate to their callers. --format folded\n"            \
    "                          writes it as folded stacks, for flame graphs\n"                     \
    "      --depth N           cut the tree after N levels\n"

#define VIEW_FILTERS_HELP                                                                          \
    "      --include PATTERN   only stacks with a function, file or module that has PATTERN\n"     \
    "                          in its name, or matches it as a whole if it has '*' or '?';\n"      \
    "                          may be repeated\n"                                                  \
    "      --exclude PATTERN   no stacks with such a one; may be repeated\n"

#define VIEW_HELP VIEW_LIMIT_HELP VIEW_KEYS_HELP VIEW_SKIP_HELP VIEW_TREES_HELP VIEW_FILTERS_HELP
#define VIEW_HELP_WITH_CLASS                                                                       \
    VIEW_LIMIT_HELP VIEW_KEYS_AND_CLASS_HELP VIEW_SKIP_HELP VIEW_TREES_HELP VIEW_FILTERS_HELP

#endif
