/* SPDX-License-Identifier: MIT */
#include "cli/options/own_options.h"

#include <ctype.h>
#include <string.h>

#include "cli/process/numbers.h"
#include "cli/traces/position_spec.h"

static int island_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *digit = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return digit ? (int)(digit - digits) : -1;
}

bool option_client(const char *argument, void *member)
{
    struct heap_island_filter *filter = member;
    size_t count = 0;
    for (; *argument; argument++) {
        int digit = island_digit(*argument);
        if (*argument == '-')
            continue;
        if (digit < 0 || count == 32)
            return false;
        filter->client[count / 2] = (uint8_t)(filter->client[count / 2] << 4 | digit);
        count++;
    }
    filter->has_client = count == 32;
    return filter->has_client;
}

bool option_activity(const char *argument, void *member)
{
    struct heap_island_filter *filter = member;
    filter->has_activity = number_parse(argument, &filter->activity);
    return filter->has_activity;
}

bool option_is_of_islands(const char *name)
{
    return strcmp(name, "client") == 0 || strcmp(name, "activity") == 0;
}

bool option_flag(const char *argument, void *flag)
{
    (void)argument;
    *(bool *)flag = true;
    return true;
}

bool option_position(const char *argument, void *spec)
{
    return position_spec_parse(argument, spec);
}

bool option_number(const char *argument, void *number)
{
    return number_parse(argument, number);
}

bool option_size(const char *argument, void *number)
{
    return number_parse_size(argument, number);
}

bool option_given(const char *argument, void *number)
{
    struct given_number *member = number;
    member->is_given = true;
    return number_parse(argument, &member->value);
}

bool option_limit(const char *argument, void *limit)
{
    uint64_t number;
    if (!number_parse(argument, &number))
        return false;
    /* "All" as the largest size: no place that compares with a limit needs a case for it. */
    *(size_t *)limit = number ? (size_t)number : SIZE_MAX;
    return true;
}

bool option_name(const char *argument, const char *const *names, size_t count, size_t *index)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(argument, names[i]) == 0) {
            *index = i;
            return true;
        }
    }
    return false;
}

bool own_option_parse(const struct own_option *option, const char *argument, void *own_values)
{
    void *member = (char *)own_values + option->offset;
    if (!option->parse(argument, member))
        return false;
    if (!option->max)
        return true;
    uint64_t number = *(const uint64_t *)member;
    return number >= option->min && number <= option->max;
}
