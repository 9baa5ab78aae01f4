/* SPDX-License-Identifier: MIT */
/* The traces of a recording: a group, the launched program's file and one beside it for each child.
 */
#ifndef TTD_COLLECT_GROUP_H
#define TTD_COLLECT_GROUP_H

#include <sys/types.h>

#include "host.h"
#include "trace.h"

struct group {
    const char *output; /* the launched program's file */
    bool is_file;       /* and not a pipe, say: the traces of children have no place beside that */
    struct ttd_group id;
    uint32_t *pids; /* of all children so far */
    size_t pid_count, pid_capacity;
};

void group_init(struct group *group, const char *output);
void group_free(struct group *group);

/* The launched program's trace; NULL with the reason in `error`. */
struct trace *group_open(struct group *group, const struct host *host, pid_t launched,
                         struct ttd_error *error);

/*
 * The trace of the process in a slot, forked by that of `parent` if that is not NULL; one that is
 * written nowhere if there can be no file; NULL without memory.
 */
struct trace *group_open_child(struct group *group, const struct host *host,
                               const struct process_slot *slot, const struct trace *parent);

/* Names the file of a child by the program in its slot, which may be another one than before. */
void group_name_child(const struct process_slot *slot, struct trace *trace);

#endif
