/* SPDX-License-Identifier: MIT */
#include "cli/options/view_options.h"

#include <string.h>

#include "cli/process/numbers.h"

#define LIMIT 20

const struct option key_long_options[] = {{"by", required_argument, NULL, OPTION_BY},
                                          {"skip", required_argument, NULL, OPTION_SKIP},
                                          {NULL, 0, NULL, 0}};

const struct option view_long_options[] = {{"limit", required_argument, NULL, OPTION_VIEW_LIMIT},
                                           {"tree", required_argument, NULL, OPTION_TREE},
                                           {"depth", required_argument, NULL, OPTION_DEPTH},
                                           {NULL, 0, NULL, 0}};

const struct option filter_long_options[] = {{"include", required_argument, NULL, OPTION_INCLUDE},
                                             {"exclude", required_argument, NULL, OPTION_EXCLUDE},
                                             {NULL, 0, NULL, 0}};

void view_options_init(struct view_options *options)
{
    *options = (struct view_options){.limit = LIMIT};
}

static bool take_key(const char *name, enum view_key *key)
{
    for (enum view_key i = VIEW_BY_STACK; i <= VIEW_BY_CLASS; i++) {
        if (strcmp(view_key_name(i), name) == 0) {
            *key = i;
            return true;
        }
    }
    return false;
}

static bool take_shape(const char *name, enum view_shape *shape)
{
    if (strcmp(name, "top-down") == 0)
        *shape = VIEW_TOP_DOWN;
    else if (strcmp(name, "bottom-up") == 0)
        *shape = VIEW_BOTTOM_UP;
    else
        return false;
    return true;
}

static bool take_pattern(const char *text, struct view_patterns *patterns)
{
    if (!*text || patterns->count == VIEW_PATTERNS)
        return false;
    patterns->patterns[patterns->count++] = (struct ttd_string){text, strlen(text)};
    return true;
}

bool view_options_parse(struct view_options *options, int option, const char *argument)
{
    uint64_t limit;
    switch (option) {
    case OPTION_BY:
        options->is_by_given = true;
        return take_key(argument, &options->by);
    case OPTION_TREE:
        return take_shape(argument, &options->shape);
    case OPTION_DEPTH:
        return number_parse(argument, &options->depth) && options->depth;
    case OPTION_SKIP:
        return take_pattern(argument, &options->skip);
    case OPTION_INCLUDE:
        return take_pattern(argument, &options->include);
    case OPTION_EXCLUDE:
        return take_pattern(argument, &options->exclude);
    default:
        if (!number_parse(argument, &limit))
            return false;
        options->limit = limit ? (size_t)limit : SIZE_MAX;
        return true;
    }
}

const char *view_options_check(struct view_options *options, enum report_form form)
{
    /* Folded stacks are a tree; who asks for them need not say so. */
    if (form == REPORT_FOLDED && options->shape == VIEW_FLAT)
        options->shape = VIEW_TOP_DOWN;
    if (options->depth && options->shape == VIEW_FLAT)
        return "--depth needs --tree";
    return NULL;
}
