/* SPDX-License-Identifier: MIT */
#include "cli/options/island_options.h"

#include <ctype.h>
#include <string.h>

#include "cli/process/numbers.h"

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
