/* SPDX-License-Identifier: MIT */
/* The trace of one process: its file, and all that was defined in it. */
#ifndef TTD_COLLECT_TRACE_H
#define TTD_COLLECT_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include <ttdtrace/ttdtrace.h>

#include "modules.h"
#include "stacks.h"

struct symbolize_cache;

struct trace {
    struct ttd_writer *writer; /* NULL once it has failed; all calls are then ignored */
    struct ttd_error error;    /* why */
    char *path;
    size_t stem;   /* of the path, without the program that a child's file is named by */
    char *created; /* the file, links followed; NULL for what is no file, such as a pipe */
    struct ttd_trace info;
    ttd_id heap;
    struct ttd_position last; /* position of the last event */
    uint64_t clock;           /* wall time of the last event */
    uint64_t events, acquisitions, releases, lost;
    bool is_damaged; /* something in it could not be written, which it says */

    struct stacks stacks;
    struct modules modules;
    size_t frames_prepared; /* of modules.frames: see trace_prepare() */
    /* Counts at the last trace_write_known_names(), which waits until there are more, and how many
     * frames it has left without names. */
    size_t frames_looked_at, answers_looked_at, frames_unnamed;
    struct ttd_names *names; /* the strings of names that are defined; NULL before the first */
};

/*
 * Creates the file, which only its owner can read, in place of any regular file of that name; what
 * is no regular file, such as a pipe, is written to: see output_path_resolve().
 * Returns NULL with the reason in `error`. `path` is copied.
 */
struct trace *trace_open(const char *path, const struct ttd_trace *info, struct ttd_error *error);

/* As trace_open(), for a child's trace. Nobody has asked for that name, so no link is followed. */
struct trace *trace_open_child(const char *path, const struct ttd_trace *info,
                               struct ttd_error *error);

/* Gives the file, that of a child, another name, unless that is taken. */
void trace_rename(struct trace *trace, const char *path);

/* A trace that is written nowhere, and whose events are counted as lost. NULL without memory. */
struct trace *trace_none(const char *path, const struct ttd_trace *info,
                         const struct ttd_error *error);

/* Removes the file, which is of no use, and releases the memory. */
void trace_discard(struct trace *trace);

/* Releases the memory. The writer must have been closed. */
void trace_free(struct trace *trace);

/* Releases memory and file of a trace that a forked process goes on with. All must be flushed. */
void trace_abandon(struct trace *trace);

void trace_metadata(struct trace *trace, const char *key, const char *value);
ttd_id trace_thread_begin(struct trace *trace, struct ttd_position position, uint64_t tid,
                          const char *name);
void trace_thread_end(struct trace *trace, struct ttd_position position, ttd_id thread);

/* The heap of a new process image; the one before, if any, is destroyed at `position`. */
void trace_new_heap(struct trace *trace, struct ttd_position position, ttd_id thread);

/* `module->path` is copied. */
void trace_module_load(struct trace *trace, struct ttd_position position,
                       const struct module *module);
void trace_module_unload(struct trace *trace, struct ttd_position position, uint64_t begin);
/* All modules: the process image is gone. */
void trace_unload_all(struct trace *trace, struct ttd_position position);

/* Defines a stack. TTD_NONE if it cannot be had. */
ttd_id trace_new_stack(struct trace *trace, ttd_id parent, uint64_t pc);

/* The stack with the return address `pc` on top of `parent`. TTD_NONE if it cannot be had. */
static inline ttd_id trace_stack(struct trace *trace, ttd_id parent, uint64_t pc)
{
    ttd_id known = stacks_probe(&trace->stacks, parent, pc)->id;
    return known != TTD_NONE ? known : trace_new_stack(trace, parent, pc);
}

/* What trace_event() does with an event that comes too late, and with one that it cannot write. */
void trace_late(struct trace *trace, const struct ttd_event *event);
void trace_unwritten(struct trace *trace, enum ttd_status status);

/*
 * Appends an event, or counts it as lost if it comes too late to be put in order. `position` is
 * ttd_event_position() of it.
 */
static inline void trace_event(struct trace *trace, const struct ttd_event *event,
                               struct ttd_position position)
{
    if (ttd_position_compare(position, trace->last) < 0) {
        trace_late(trace, event);
        return;
    }
    enum ttd_status status =
        trace->writer != NULL ? ttd_writer_event(trace->writer, event) : TTD_ERROR_MISUSE;
    if (status != TTD_OK) {
        trace_unwritten(trace, status);
        return;
    }
    trace->last = position;
    trace->clock = event->wall_time;
    trace->events++;
    trace->acquisitions += event->address != 0;
    trace->releases += event->action == TTD_ACTION_FREE;
}

/* Calls are missing between two positions, the first of which is not behind the second. */
void trace_loss(struct trace *trace, enum ttd_loss_reason reason, ttd_id thread, uint64_t count,
                struct ttd_position last_good, struct ttd_position first_good);
/* The blocks that the runtimes keep for themselves, or some of them; sorts `addresses`. */
void trace_runtime_blocks(struct trace *trace, uint64_t *addresses, size_t count, bool is_all);
void trace_flush(struct trace *trace);

/*
 * Adds the names of all addresses, and closes the file. May be called in a forked process, when
 * the one that it was forked from does not use the trace any more. `names`, which may be NULL, is
 * shared by all traces of a recording. Returns false, with trace->error, when the file is not
 * whole.
 */
bool trace_finish(struct trace *trace, const struct ttd_end *end, struct symbolize_cache *names);

/* Writes the names that somebody has looked up by now, and that the file does not have yet. Returns
 * how many addresses have none then. */
size_t trace_write_known_names(struct trace *trace, struct symbolize_cache *names);

/* Has the names looked up of all addresses that have none, for whoever asks `names` later. False
 * if that is not possible: see symbolize_prepare(). */
bool trace_prepare(struct trace *trace, struct symbolize_cache *names);

#endif
