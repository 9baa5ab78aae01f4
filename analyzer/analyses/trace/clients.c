/* SPDX-License-Identifier: MIT */
#include "analyses/trace/clients.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

static int clients_compare(const struct heap_client *a, const struct heap_client *b)
{
    int order = memcmp(a->client, b->client, sizeof a->client);
    return order ? order : (a->activity > b->activity) - (a->activity < b->activity);
}

/* Returns the index of a record, or where it belongs. */
static size_t clients_lower_bound(const struct heap_client_list *list,
                                  const struct heap_client *record)
{
    size_t first = 0, count = list->count;
    while (count) {
        size_t half = count / 2;
        bool is_before = clients_compare(&list->items[first + half], record) < 0;
        first += is_before ? half + 1 : 0;
        count = is_before ? count - half - 1 : half;
    }
    return first;
}

static enum ttd_status clients_add(struct heap_client_list *list, const struct heap_client *record)
{
    size_t index = clients_lower_bound(list, record);
    struct heap_client *client = index < list->count ? &list->items[index] : NULL;
    if (client && clients_compare(client, record) == 0) {
        client->count++;
        if (ttd_position_compare(record->first, client->first) < 0)
            client->first = record->first;
        if (ttd_position_compare(record->last, client->last) > 0)
            client->last = record->last;
        return TTD_OK;
    }
    if (list->count == HEAP_CLIENTS_MAX) {
        list->is_cut = true;
        return TTD_OK;
    }
    enum ttd_status status =
        grow_array((void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items);
    if (status != TTD_OK)
        return status;
    client = &list->items[index];
    memmove(client + 1, client, (list->count - index) * sizeof *client);
    *client = *record;
    list->count++;
    return TTD_OK;
}

enum ttd_status heap_clients_add(struct heap_clients *clients, const struct heap_mark *mark)
{
    static const uint8_t nobody[16];
    struct heap_client record = {
        .count = 1, .first = mark->event->position, .last = mark->event->position};
    memcpy(record.client, mark->client, sizeof record.client);
    enum ttd_status status = TTD_OK;
    if (memcmp(mark->client, nobody, sizeof nobody) != 0)
        status = clients_add(&clients->clients, &record);
    record.activity = mark->activity;
    return status == TTD_OK && mark->kind == HEAP_MARK_STARTED
               ? clients_add(&clients->activities, &record)
               : status;
}

void heap_clients_free(struct heap_clients *clients)
{
    free(clients->clients.items);
    free(clients->activities.items);
    *clients = (struct heap_clients){.clients.items = NULL};
}
