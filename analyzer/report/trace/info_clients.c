/* SPDX-License-Identifier: MIT */
/* The clients and the activities of a trace as text. */
#include "report/writers/guid.h"
#include "report/trace/info.h"

enum { COLUMN_ACTIVITY = 38, COLUMN_COUNT = 60, COLUMN_FIRST = 72, COLUMN_LAST = 90 };

static void head(struct text_output *output, const char *activity, const char *count)
{
    out_bold(output);
    out_text(output, "\nClient");
    out_tab(output, COLUMN_ACTIVITY);
    out_text(output, activity);
    out_tab(output, COLUMN_COUNT);
    out_text(output, count);
    out_tab(output, COLUMN_FIRST);
    out_text(output, "First");
    out_tab(output, COLUMN_LAST);
    out_text(output, "Last\n");
    out_plain(output);
}

static void rows(struct text_output *output, const struct heap_client_list *list,
                 bool has_activities)
{
    char guid[GUID_TEXT];
    for (size_t i = 0; i < list->count; i++) {
        const struct heap_client *client = &list->items[i];
        out_text(output, guid_is_given(client->client) ? guid_text(client->client, guid) : "none");
        out_tab(output, COLUMN_ACTIVITY);
        if (has_activities)
            out_unsigned(output, client->activity);
        out_tab(output, COLUMN_COUNT);
        out_grouped(output, client->count);
        out_tab(output, COLUMN_FIRST);
        out_position(output, client->first);
        out_tab(output, COLUMN_LAST);
        out_position(output, client->last);
        out_char(output, '\n');
    }
    if (list->is_cut)
        out_text(output, "and others\n");
}

void info_text_clients(struct text_output *output, const struct heap_clients *clients)
{
    if (clients->clients.count) {
        head(output, "", "Marks");
        rows(output, &clients->clients, false);
    }
    if (clients->activities.count) {
        head(output, "Activity", "Islands");
        rows(output, &clients->activities, true);
    }
}
