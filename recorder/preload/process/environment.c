/* SPDX-License-Identifier: MIT */
#include "preload/process/environment.h"

#include <string.h>

#include "preload/channel/target.h"

static const char preload_name[] = "LD_PRELOAD=";
static const char channel_name[] = CHANNEL_ENV "=";

static bool is_preload(const char *variable)
{
    return strncmp(variable, preload_name, sizeof preload_name - 1) == 0;
}

/* Returns the value of LD_PRELOAD, or NULL. The loader takes the last one of several. */
static const char *find_preload(char *const *environment)
{
    const char *last = NULL;
    for (; environment != NULL && *environment != NULL; environment++)
        if (is_preload(*environment))
            last = *environment + sizeof preload_name - 1;
    return last;
}

static bool has_variable(char *const *environment, const char *variable)
{
    for (; environment != NULL && *environment != NULL; environment++)
        if (strcmp(*environment, variable) == 0)
            return true;
    return false;
}

size_t environment_count(char *const *environment)
{
    size_t count = 0;
    while (environment != NULL && environment[count] != NULL)
        count++;
    return count;
}

bool environment_is_ours(char *const *environment)
{
    const char *preload = process_preload(), *channel = process_channel();
    if (preload == NULL || channel == NULL)
        return true;
    const char *value = find_preload(environment);
    return value != NULL && strstr(value, preload + sizeof preload_name - 1) != NULL &&
           has_variable(environment, channel);
}

bool environment_is_of_valgrind(char *const *environment)
{
    static const char launcher[] = "VALGRIND_LAUNCHER=";
    for (; environment != NULL && *environment != NULL; environment++)
        if (strncmp(*environment, launcher, sizeof launcher - 1) == 0)
            return true;
    return false;
}

size_t environment_joined_size(char *const *environment)
{
    const char *value = find_preload(environment);
    return strlen(process_preload()) + 2 + (value != NULL ? strlen(value) : 0);
}

void environment_name_channel(char channel[ENVIRONMENT_CHANNEL_MAX], int descriptor)
{
    char digits[12];
    size_t count = 0;
    char *end = strcpy(channel, process_channel()) + strlen(process_channel());
    if (descriptor < 0)
        return;
    *end++ = '=';
    do
        digits[count++] = (char)('0' + descriptor % 10);
    while ((descriptor /= 10) != 0);
    while (count > 0)
        *end++ = digits[--count];
    *end = '\0';
}

void environment_extend(char *const *environment, char **copy, char *joined, char *channel)
{
    const char *value = find_preload(environment);
    for (; environment != NULL && *environment != NULL; environment++)
        if (!is_preload(*environment) &&
            strncmp(*environment, channel_name, sizeof channel_name - 1) != 0)
            *copy++ = *environment;
    strcpy(joined, process_preload());
    if (value != NULL)
        strcat(strcat(joined, ":"), value);
    *copy++ = joined;
    *copy++ = channel;
    *copy = NULL;
}

/* Writes the variable without this library. False if nothing is left of it. */
static bool write_stripped(const char *value, char *joined)
{
    const char *preload = process_preload() + sizeof preload_name - 1;
    size_t size = strlen(preload);
    char *end = strcpy(joined, preload_name) + sizeof preload_name - 1;
    while (*value != '\0') {
        size_t length = strcspn(value, ": ");
        if (length != 0 && (length != size || memcmp(value, preload, size) != 0)) {
            if (end[-1] != '=')
                *end++ = ':';
            memcpy(end, value, length);
            end += length;
        }
        value += length + (value[length] != '\0');
    }
    *end = '\0';
    return end[-1] != '=';
}

void environment_strip(char *const *environment, char **copy, char *joined)
{
    const char *value = find_preload(environment);
    for (; *environment != NULL; environment++)
        if (!is_preload(*environment))
            *copy++ = *environment;
    if (value != NULL && write_stripped(value, joined))
        *copy++ = joined;
    *copy = NULL;
}
