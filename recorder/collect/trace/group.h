/* SPDX-License-Identifier: MIT */
/* The traces of a recording: the file of the launched program, and one beside it for each child. */
#ifndef RECORDER_COLLECT_TRACE_GROUP_H
#define RECORDER_COLLECT_TRACE_GROUP_H

#include <sys/types.h>

#include "collect/channel/host.h"
#include "collect/trace/process_trace.h"

struct group {
    const char *output; /* the launched program's file */
    bool had_run;       /* that program is a process that had run before */
    uint32_t parent;    /* process id of its parent */
    bool is_file; /* not a pipe or the like: only a file can have children's traces beside it */
    struct ttd_group id;
    uint32_t *pids; /* process ids of all children so far */
    size_t pid_count, pid_capacity;
};

void group_init(struct group *group, const char *output);
void group_free(struct group *group);

/* Opens the launched program's trace. Returns NULL, with the reason in `error`, on failure. */
struct trace *group_open(struct group *group, const struct host *host, pid_t launched,
                         struct ttd_error *error);

/*
 * Opens the trace of the process in a slot; `parent` is the trace of its parent, or NULL. Returns a
 * trace that is written nowhere if there can be no file, and NULL if memory ran out.
 */
struct trace *group_open_child(struct group *group, const struct host *host,
                               const struct process_slot *slot, const struct trace *parent);

/* Renames the file of a child after the program in its slot, which may have changed. */
void group_name_child(const struct process_slot *slot, struct trace *trace);

#endif
