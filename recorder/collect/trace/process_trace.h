/* SPDX-License-Identifier: MIT */
/** The trace of one process: its file, and its definitions. */
#ifndef RECORDER_COLLECT_TRACE_PROCESS_TRACE_H
#define RECORDER_COLLECT_TRACE_PROCESS_TRACE_H

#include <ttdtrace/advanced.h>
#include <ttdtrace/io.h>
#include <ttdtrace/ttdtrace.h>

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "collect/channel/host.h"
#include "collect/trace/trace_modules.h"
#include "collect/trace/variables.h"
#include "snapshot/calls.h"
#include "snapshot/heap_pages.h"
#include "snapshot/pages/page_store.h"

/*
 * An output in front of a file's: it gathers the chunks (mostly small) of a trace, so that a flush
 * is one call of the system.
 */

struct gathered;

/** Puts the new output in the place of `output`, and takes that over: it closes it when it is
 * closed itself, and is freed then. Returns NULL, with `output` as it was, if memory ran out. */
struct gathered *gathered_put_before(struct ttd_output *output);

/** Writes the gathered bytes. Returns 0 or an errno value. */
int gathered_flush(struct gathered *gathered);

struct kept;
struct live_sizes;
struct symbolize_cache;

struct trace {
    struct ttd_writer *writer; /* NULL once it has failed; later records are ignored */
    struct gathered *gathered; /* the writer's output */
    struct ttd_error error;    /* of that failure */
    char *path;
    size_t stem;   /* length of the path without the program name, in a child's trace */
    char *created; /* the regular file, links followed; NULL for a pipe or the like */
    struct ttd_trace info;
    ttd_id heap;
    struct ttd_position last; /* position of the last event */
    uint64_t clock;           /* wall time of the last event */
    uint64_t events, acquisitions, releases, lost;
    uint64_t lost_told; /* of these, as the last warning said */
    uint64_t
        superseded;  /* acquisitions of blocks that were reallocated, or ended with their heap */
    bool is_damaged; /* invalid records were left out, and the trace states the loss */
    uint64_t size_limit;         /* in bytes; 0 for none */
    struct ttd_writer *at_limit; /* takes the place of `writer` again at the end */
    uint64_t lost_before_limit;  /* value of `lost` when that was set */

    /** Calls that are kept back, in a trace of live blocks only; the live blocks, in a trace that
     * keeps the recent past; otherwise NULL. */
    struct kept *kept;
    struct ring *ring;        /* see trace/ring.h; NULL if the trace keeps all */
    struct live_sizes *sizes; /* NULL but in a session */
    bool is_followed;         /* there is `kept` or `sizes`: all events are noted there */

    struct heap_pages pages;  /* where blocks of the present image have ever been */
    uint32_t snapshots;       /* number of the last one */
    bool is_in_snapshot;      /* parts of it are written, so that the trace must not be cut */
    struct page_store *store; /* of snapshots with contents; NULL before the first */

    uint64_t hooks_begin, hooks_end; /* code whose frames stacks of calls do not have */
    struct stacks stacks;
    struct modules modules;
    size_t frames_prepared;     /* of modules.frames: see trace_prepare() */
    struct variables variables; /* that held references in snapshots, or were released */
    uint32_t strays;            /* released addresses where no block has ever been */
    /** Numbers of frames, words of data and answers at the last trace_write_known_names(); it has
     * nothing to do before one of them grows; and how many frames it left without names. */
    size_t frames_looked_at, words_looked_at, answers_looked_at, frames_unnamed;
    struct ttd_names *names; /* writer of names; NULL before the first name */
};

/**
 * Creates the file, readable by its owner only, in place of any regular file of that name. Anything
 * but a regular file, such as a pipe, is written to: see output_path_resolve().
 * Returns NULL with the reason in `error`. `path` is copied.
 */
struct trace *trace_open(const char *path, const struct ttd_trace *info, struct ttd_error *error);

/** Like trace_open(), for a child's trace. The user did not choose its name: no link is followed.
 */
struct trace *trace_open_child(const char *path, const struct ttd_trace *info,
                               struct ttd_error *error);

/** Renames the file of a child's trace, unless the new name is taken. */
void trace_rename(struct trace *trace, const char *path);

/** Makes a trace that is written nowhere, whose events count as lost. Returns NULL if memory ran
 * out. */
struct trace *trace_none(const char *path, const struct ttd_trace *info,
                         const struct ttd_error *error);

/** Has the file replaced by one in which a cut is applied, which it closes. False, with the reason
 * in `error`, if that is impossible: the trace then goes on as it was, or has failed. */
bool trace_shorten(struct trace *trace, struct ttd_cut *cut, uint64_t *left_out,
                   struct ttd_error *error);

/** Removes the file that a recorder has left which was killed in trace_shorten(). */
void trace_remove_left(const struct trace *trace);

/** Removes the file and releases the memory. */
void trace_discard(struct trace *trace);

/** Releases the memory. The writer must have been closed. */
void trace_free(struct trace *trace);

/** Releases memory and file of a trace that a forked process continues. It must be flushed. */
void trace_abandon(struct trace *trace);

void trace_metadata(struct trace *trace, const char *key, const char *value);
ttd_id trace_thread_begin(struct trace *trace, struct ttd_position position, uint64_t tid,
                          const char *name);
/** The name replaces the one from its begin, unless it is NULL. */
void trace_thread_end(struct trace *trace, struct ttd_position position, ttd_id id,
                      const char *name);

/** Defines the heap of a new process image; destroys the one before, if any, at `position`. */
void trace_new_heap(struct trace *trace, struct ttd_position position, ttd_id thread);

/** Defines another heap, without its id, within `parent` if that is not TTD_NONE. Returns its id;
 * TTD_NONE if it cannot be written. */
ttd_id trace_heap(struct trace *trace, const struct ttd_heap *heap, ttd_id parent);

/** `module->path` is copied; the file that the module keeps is taken over. */
void trace_module_load(struct trace *trace, struct ttd_position position, struct module *module);
void trace_module_unload(struct trace *trace, struct ttd_position position, uint64_t begin);
/** Unloads all modules, when the process image has ended. */
void trace_unload_all(struct trace *trace, struct ttd_position position);

/** Defines a stack. Returns TTD_NONE if that is impossible. */
ttd_id trace_new_stack(struct trace *trace, uint32_t hash, ttd_id parent, uint64_t pc);

/** Returns the stack with the return address `pc` on top of `parent`, defined if it is new;
 * TTD_NONE if that is impossible. `hash` is its stacks_hash(). An address in a hook adds no frame:
 * the stack is `parent`. */
static inline ttd_id trace_stack(struct trace *trace, uint32_t hash, ttd_id parent, uint64_t pc)
{
    ttd_id id = stacks_probe(&trace->stacks, hash, parent, pc)->id;
    return id != TTD_NONE ? id : trace_new_stack(trace, hash, parent, pc);
}

/** Returns the stack with these return addresses, innermost first; TTD_NONE if it has none. */
ttd_id trace_whole_stack(struct trace *trace, const uint64_t *pcs, size_t count);

/** Returns whether a record was written. A record that the writer refuses as invalid is left out.
 * Any other failure is kept in trace->error and ends the file, whose content so far stays. */
bool trace_check(struct trace *trace, enum ttd_status status);

/** Ends the file for want of memory. */
void trace_out_of_memory(struct trace *trace);

/** Ends the file after a failure; its content so far stays. */
void trace_fail(struct trace *trace, const struct ttd_error *error);

/** Makes it a trace of live blocks only, before its first event. */
void trace_keep_blocks(struct trace *trace);

/** Writes the calls that were kept back: before a snapshot, and before the end. */
void trace_write_kept(struct trace *trace);

/** States at the end how many calls were left out. */
void trace_state_left_out(struct trace *trace);

/** Has the sizes of live blocks counted, before the first event; `sizes` may be NULL. */
void trace_count_sizes(struct trace *trace, struct live_sizes *sizes);

/** Like trace_event(), for a trace whose events are noted in tables. */
void trace_follow(struct trace *trace, const struct ttd_event *event, struct ttd_position position);

/** Does so in a trace that keeps not all of its calls. */
void trace_keep(struct trace *trace, const struct ttd_event *event, struct ttd_position position);

/** Does what trace_calls() does there. */
void trace_keep_calls(struct trace *trace, const struct ttd_calls *calls);

/** Makes an empty table of calls; NULL if there is no memory. With `is_live_only` it has only the
 * acquisitions of live blocks, and creations of heaps. */
struct kept *kept_new(bool is_live_only);
void kept_free(struct kept *kept);

/** Hands the calls of a table over, the first of all first, and keeps them. False if there is no
 * memory. */
bool kept_visit(struct kept *kept, void (*take)(void *context, const struct ttd_event *event),
                void *context);

/** Counts an event that was written. */
static inline void trace_count(struct trace *trace, const struct ttd_event *event)
{
    trace->events++;
    trace->acquisitions += event->address != 0;
    trace->releases += event->action == TTD_ACTION_FREE;
    trace->superseded +=
        event->action == TTD_ACTION_REALLOC && event->address != 0 && event->base_address != 0;
}

/** Cold paths of trace_event(): an event that comes too late, and one that cannot be written. */
void trace_late(struct trace *trace, const struct ttd_event *event);
void trace_unwritten(struct trace *trace, enum ttd_status status);

/** Has an address named that lies in a module's data or constants. */
void trace_name_address(struct trace *trace, uint64_t address);

/** The same for one of the first addresses that are released where no block has ever been. */
void trace_name_stray(struct trace *trace, uint64_t address);

/** Notes where an event is, and the memory that it is about. */
static inline void trace_note_event(struct trace *trace, const struct ttd_event *event,
                                    struct ttd_position position)
{
    trace->last = position;
    trace->clock = event->wall_time;
    if (event->address != 0)
        heap_pages_add(&trace->pages, event->address, event->size);
    if (event->base_address != 0 && !heap_pages_has(&trace->pages, event->base_address))
        trace_name_stray(trace, event->base_address);
}

static inline void trace_write_event(struct trace *trace, const struct ttd_event *event,
                                     struct ttd_position position)
{
    enum ttd_status status =
        trace->writer ? ttd_writer_event(trace->writer, event) : TTD_ERROR_MISUSE;
    if (status != TTD_OK) {
        trace_unwritten(trace, status);
        return;
    }
    trace_note_event(trace, event, position);
    trace_count(trace, event);
}

/**
 * Appends an event, or counts it as lost if a later one was already written. `position` is its
 * ttd_event_position().
 */
static inline void trace_event(struct trace *trace, const struct ttd_event *event,
                               struct ttd_position position)
{
    if (ttd_position_compare(position, trace->last) < 0) {
        trace_late(trace, event);
        return;
    }
    if (__builtin_expect(trace->is_followed, 0)) {
        trace_follow(trace, event, position);
        return;
    }
    trace_write_event(trace, event, position);
}

/**
 * Does the same as trace_event() for each of these calls. No event that was written before comes
 * after the first of them.
 */
void trace_calls(struct trace *trace, const struct ttd_calls *calls);

/** Writes that calls are missing between two positions, the first not after the second. */
void trace_loss(struct trace *trace, enum ttd_loss_reason reason, ttd_id thread, uint64_t count,
                struct ttd_position last_good, struct ttd_position first_good);
/** Whether the trace has the size that was asked for, so that it is to be stopped. */
static inline bool trace_is_full(const struct trace *trace)
{
    return trace->size_limit != 0 && trace->writer &&
           ttd_writer_bytes(trace->writer) >= trace->size_limit;
}

/** Stops the trace: all that follows is left out, and its calls count as lost. */
void trace_stop(struct trace *trace);

static inline bool trace_is_stopped(const struct trace *trace)
{
    return trace->at_limit;
}

/** Ends the stop at the end of the process, and states the loss. Returns whether there is one. */
bool trace_state_stop(struct trace *trace);

/** Writes a user event. Returns whether it was written. */
bool trace_user_event(struct trace *trace, const struct ttd_user_event *event);
/** Writes the list of the blocks that the runtimes keep, complete or not. Sorts `addresses`. */
void trace_runtime_blocks(struct trace *trace, uint64_t *addresses, size_t count, bool is_all);
/** Writes a variable, whose `name` member is set here; nothing if it has no name. */
void trace_variable(struct trace *trace, struct ttd_variable *variable, const char *name,
                    size_t name_size);
/** Returns the id of a text, TTD_NONE if it is NULL or cannot be written. */
ttd_id trace_text(struct trace *trace, const char *text);

/** Write parts of a snapshot, its end, and the signal that the program dies of. Return whether that
 * was written. */
bool trace_regions(struct trace *trace, const struct ttd_regions *regions);
bool trace_references(struct trace *trace, struct ttd_reference_pack *pack);
bool trace_classes(struct trace *trace, const struct ttd_classes *classes);
bool trace_block_headers(struct trace *trace, const struct ttd_block_headers *headers);
bool trace_frames(struct trace *trace, uint32_t snapshot, ttd_id thread,
                  const struct stack_frames *found);
bool trace_snapshot(struct trace *trace, const struct ttd_snapshot *snapshot);
bool trace_fatal_signal(struct trace *trace, const struct ttd_fatal_signal *fatal);
void trace_flush(struct trace *trace);

/**
 * Adds the names of all addresses and closes the file. May be called in a forked process if its
 * parent no longer uses the trace. `names` (may be NULL) is shared by all traces of a recording.
 * Returns false, with trace->error, if the file is incomplete.
 */
bool trace_finish(struct trace *trace, const struct ttd_end *end, struct symbolize_cache *names);

/** Writes the names in the cache that the file lacks. Returns how many addresses, and words of
 * data, remain without names. */
size_t trace_write_known_names(struct trace *trace, struct symbolize_cache *names);

/** Starts looking up the names of all addresses that have none; the cache `names` will have them.
 * Returns false if that is impossible: see symbolize_prepare(). */
bool trace_prepare(struct trace *trace, struct symbolize_cache *names);

/* The traces of a recording: the file of the launched program, and one beside it for each child. */

struct group {
    const char *output; /* the launched program's file */
    bool had_run;       /* that program is a process that had run before */
    uint32_t parent;    /* process id of its parent */
    bool is_file; /* not a pipe or the like: only a file can have children's traces beside it */
    struct ttd_group id;
    uint32_t *pids; /* process ids of all children so far */
    size_t pid_count, pid_capacity;
};

void group_init(struct group *group, const char *output, const struct ttd_group *id);
void group_free(struct group *group);

/** Opens the launched program's trace. Returns NULL, with the reason in `error`, on failure. */
struct trace *group_open(struct group *group, const struct host *host, pid_t launched,
                         struct ttd_error *error);

/**
 * Opens the trace of the process in a slot; `parent` is the trace of its parent, or NULL. Returns a
 * trace that is written nowhere if there can be no file, and NULL if memory ran out.
 */
struct trace *group_open_child(struct group *group, const struct host *host,
                               const struct process_slot *slot, const struct trace *parent);

/** Renames the file of a child after the program in its slot: that may have changed. */
void group_name_child(const struct process_slot *slot, struct trace *trace);

#endif
