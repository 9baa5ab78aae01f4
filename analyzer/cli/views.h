/* SPDX-License-Identifier: MIT */
/** The options of all commands that group by call site, or leave some out. */
#ifndef ANALYZER_CLI_VIEWS_H
#define ANALYZER_CLI_VIEWS_H

#include <getopt.h>

#include "report/format.h"
#include "view/view.h"

/** Their values are from here to OPTION_VIEWS_END, which is none of them. */
#define OPTION_VIEWS 900

enum {
    OPTION_BY = OPTION_VIEWS,
    OPTION_TREE,
    OPTION_DEPTH,
    OPTION_SKIP,
    OPTION_INCLUDE,
    OPTION_EXCLUDE,
    OPTION_VIEW_LIMIT,
    OPTION_VIEWS_END
};

/** Of groups and trees, and of filters; each ended by an entry of zeros. */
extern const struct option views_options[];
extern const struct option filter_options[];

void views_init(struct view_options *options);

/** Takes one of the options; false if its argument is invalid. */
bool views_take(struct view_options *options, int option, const char *argument);

/** What is wrong with the options together, or NULL. Chooses a tree for a format that needs one. */
const char *views_check(struct view_options *options, const struct report_format *format);

/** For help texts: of groups, trees and filters; and of all. */
#define VIEWS_GROUPS_HELP                                                                          \
    "      --limit N           show at most N groups, or N branches of each in a tree (20;\n"      \
    "                          0 for all). Totals count all\n"                                     \
    "      --by KEY            group by stack (the default), function, file, module, thread\n"     \
    "                          or heap. Function, file and module are those of the last\n"         \
    "                          call that is of the program: of no C or C++ library and\n"          \
    "                          no common wrapper of malloc()\n"                                    \
    "      --skip FUNCTION     take FUNCTION for one that allocates, and begin stacks with\n"      \
    "                          what calls it; may have '*' and '?', and be repeated\n"

#define VIEWS_TREES_HELP                                                                           \
    "      --tree ORDER        a tree of calls: top-down, from main() on, or bottom-up, from\n"    \
    "                          those that allocate to their callers. --format folded\n"            \
    "                          writes it as folded stacks, for flame graphs\n"                     \
    "      --depth N           cut the tree after N levels\n"

#define VIEWS_FILTERS_HELP                                                                         \
    "      --include PATTERN   only stacks with a function, file or module that has PATTERN\n"     \
    "                          in its name, or matches it as a whole if it has '*' or '?';\n"      \
    "                          may be repeated\n"                                                  \
    "      --exclude PATTERN   no stacks with such a one; may be repeated\n"

#define VIEWS_HELP VIEWS_GROUPS_HELP VIEWS_TREES_HELP VIEWS_FILTERS_HELP

#endif
