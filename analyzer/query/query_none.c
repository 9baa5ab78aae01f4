/* SPDX-License-Identifier: MIT */
/* In place of queries, for a build without SQLite. */
#include "cli/process/message.h"
#include "query/query.h"

const struct query_column query_events_columns[] = {{NULL, QUERY_INTEGER}};
const struct query_column query_stacks_columns[] = {{NULL, QUERY_INTEGER}};
const struct query_column query_frames_columns[] = {{NULL, QUERY_INTEGER}};

int query_run(struct session *session, const struct query_options *options,
              const struct query_table *tables)
{
    (void)session;
    (void)options;
    (void)tables;
    message("query: this ttdanalyze was built without SQLite");
    return STATUS_USAGE;
}

int query_print_schema(const struct common_options *options, const struct query_table *tables)
{
    (void)options;
    return query_run(NULL, NULL, tables);
}

struct event_database *event_database_begin(struct session *session)
{
    (void)session;
    message("export: this ttdanalyze was built without SQLite");
    return NULL;
}

bool event_database_add(struct event_database *database, const struct ttd_event *event)
{
    (void)database;
    (void)event;
    return false;
}

int event_database_end(struct event_database *database, bool is_complete)
{
    (void)database;
    (void)is_complete;
    return STATUS_INTERNAL;
}
