/* SPDX-License-Identifier: MIT */
#include "codec/api.h"

#include <string.h>
#include <ttdtrace/model.h>
#include <ttdtrace/reader.h>

struct api {
    const char *name;
    const char *items;
};

#define API(name, value, text, symbol, template, ...) [value] = {text, template},

static const struct api apis[TTD_API_COUNT] = {TTD_APIS(API)};

const char *ttd_api_name(unsigned value)
{
    return value < TTD_API_COUNT && apis[value].name ? apis[value].name : "?";
}

const char *ttd_api_template(unsigned value)
{
    return value < TTD_API_COUNT ? apis[value].items : NULL;
}

size_t ttd_template_stored(const char *items)
{
    size_t count = 0;
    for (; *items; items++)
        count += *items == 'X';
    return count;
}

/** The value of a letter other than X; false if there is none. */
static bool api_item_value(char parameter, const struct ttd_event *event, uint64_t before,
                           uint64_t *value)
{
    switch (parameter) {
    case 'S':
        *value = event->size;
        return true;
    case 'B':
        *value = event->base_address;
        return true;
    case 'F':
        *value = event->flags;
        return true;
    case 'R':
        *value = event->reserve_size;
        return true;
    case 'C':
        *value = event->commit_size;
        return true;
    case 'P':
        *value = event->make_read_only;
        return true;
    default:
        /* The letter stands for a count of elements, whose size was the parameter before. */
        if (before == 0 || event->size % before != 0)
            return false;
        *value = event->size / before;
        return true;
    }
}

bool ttd_template_apply(const char *items, const struct ttd_event *event, const uint64_t *stored,
                        uint64_t *parameters)
{
    for (size_t i = 0; items[i]; i++) {
        if (items[i] == 'X')
            parameters[i] = *stored++;
        else if (!api_item_value(items[i], event, i ? parameters[i - 1] : 0, &parameters[i]))
            return false;
    }
    return true;
}

bool ttd_event_fits_template(const struct ttd_event *event)
{
    const char *items = ttd_api_template(event->api);
    if (!items)
        return false;
    uint32_t i = 0;
    for (; items[i]; i++) {
        uint64_t value;
        if (i == event->parameter_count)
            return false;
        if (items[i] == 'X')
            continue;
        if (!api_item_value(items[i], event, i ? event->parameters[i - 1] : 0, &value) ||
            value != event->parameters[i])
            return false;
    }
    return i == event->parameter_count;
}

size_t ttd_event_parameters(const struct ttd_event *event, uint64_t parameters[TTD_PARAMETERS_MAX])
{
    if (event->parameters) {
        memcpy(parameters, event->parameters, event->parameter_count * sizeof *parameters);
        return event->parameter_count;
    }
    const char *items = ttd_api_template(event->api);
    if (!items || ttd_template_stored(items) != 0 ||
        !ttd_template_apply(items, event, NULL, parameters))
        return 0;
    return strlen(items);
}

const char *ttd_action_name(enum ttd_action action)
{
    static const char *const names[] = {"?",       "Alloc", "ReAlloc", "Free",   "Create",
                                        "Protect", "Lock",  "Unlock",  "Destroy"};
    return (unsigned)action < sizeof names / sizeof *names ? names[action] : "?";
}

const char *ttd_kind_name(unsigned kind)
{
#define KIND_NAME(name, number, text, ...) [number] = text,
    static const char *const names[] = {"?", TTD_KINDS(KIND_NAME, KIND_NAME)};
#undef KIND_NAME
    return kind < sizeof names / sizeof *names ? names[kind] : "?";
}
