/* SPDX-License-Identifier: MIT */
#include "report/trace/event_properties.h"

bool event_has_address(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC;
}

bool event_has_base_address(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_FREE || event->action == TTD_ACTION_REALLOC;
}

bool event_has_previous_address(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_REALLOC;
}

/* A Free has a size only if the function takes it as an argument, such as sized operator delete. */
bool event_has_size(const struct ttd_event *event)
{
    return event_has_address(event) || (event->action == TTD_ACTION_FREE && event->size);
}

bool event_has_limits(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_CREATE;
}

bool event_has_read_only(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_PROTECT;
}
