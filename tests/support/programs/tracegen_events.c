/* SPDX-License-Identifier: MIT */
/* Words for what happens in time. */
#include <stdlib.h>
#include <string.h>

#include "support/churn.h"
#include "support/programs/tracegen.h"

static uint8_t action_of(const char *name)
{
    for (int i = TTD_ACTION_ALLOC; name && i <= TTD_ACTION_DESTROY; i++) {
        if (strcmp(ttd_action_name((enum ttd_action)i), name) == 0)
            return (uint8_t)i;
    }
    fail("no such action");
    return 0;
}

static void write_event(const struct line *from)
{
    uint64_t parameters[TTD_PARAMETERS_MAX];
    struct ttd_event event = {.time_start = position_of(from, "start"),
                              .time_end = position_of(from, "end"),
                              .wall_time = number_of(from, "wall", 0),
                              .address = number_of(from, "address", 0),
                              .base_address = number_of(from, "base", 0),
                              .size = number_of(from, "size", 0),
                              .flags = number_of(from, "flags", 0),
                              .result = number_of(from, "result", 1),
                              .reserve_size = number_of(from, "reserve", 0),
                              .commit_size = number_of(from, "commit", 0),
                              .make_read_only = number_of(from, "read_only", 0),
                              .thread = id_of(from, "thread", 1),
                              .heap = id_of(from, "heap", 1),
                              .stack = id_of(from, "stack", 0),
                              .action = action_of(text_of(from, "action")),
                              .api = (uint8_t)number_of(from, "api", 0)};
    if (event.action == TTD_ACTION_REALLOC)
        event.previous_address = event.base_address;
    if (!ttd_position_is_valid(event.time_end))
        event.result = 0;
    char *rest = text_of(from, "parameters");
    char *parameter;
    while (rest && event.parameter_count < TTD_PARAMETERS_MAX && (parameter = strsep(&rest, ",")))
        parameters[event.parameter_count++] = strtoull(parameter, NULL, 0);
    if (event.parameter_count)
        event.parameters = parameters;
    check(ttd_writer_event(writer, &event));
}

/* count=N calls, all after the position, that use slots=N addresses; two threads and heaps. */
static void write_churn(const struct line *from)
{
    struct churn churn = {.random = number_of(from, "seed", 1),
                          .now = position_of(from, "position"),
                          .slots = (size_t)number_of(from, "slots", 1000)};
    churn.release_from = calloc(churn.slots, sizeof *churn.release_from);
    if (!churn.release_from)
        fail("no memory");
    for (uint64_t left = number_of(from, "count", 0); left > 0; left--) {
        struct ttd_event event = churn_next(&churn);
        check(ttd_writer_event(writer, &event));
    }
    free(churn.release_from);
}

static void write_loss(const struct line *from)
{
    struct ttd_loss loss = {.reason = (enum ttd_loss_reason)number_of(from, "reason", 0),
                            .thread = id_of(from, "thread", 0),
                            .count = number_of(from, "count", TTD_UNKNOWN),
                            .last_good = position_of(from, "last_good"),
                            .first_good = position_of(from, "first_good")};
    check(ttd_writer_loss(writer, &loss));
}

static void write_user(const struct line *from)
{
    char *client = text_of(from, "client");
    char *data = text_of(from, "data");
    struct ttd_user_event event = {.position = position_of(from, "position"),
                                   .wall_time = number_of(from, "wall", 0),
                                   .thread = id_of(from, "thread", 0),
                                   .flags = (uint32_t)number_of(from, "flags", 0),
                                   .data = (const uint8_t *)data,
                                   .size = data ? decode(data) : 0};
    size_t size = client ? decode(client) : 0;
    if (client)
        memcpy(event.client, client, size < sizeof event.client ? size : sizeof event.client);
    check(ttd_writer_user_event(writer, &event));
}

const struct word event_words[] = {
    {"event", write_event}, {"loss", write_loss}, {"user", write_user},
    {"churn", write_churn}, {NULL, NULL},
};
