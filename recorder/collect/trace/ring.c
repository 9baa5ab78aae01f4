/* SPDX-License-Identifier: MIT */
#include "collect/trace/ring.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "collect/trace/process_trace.h"
#include "messages.h"

struct ring {
    struct ring_limit limit;
    struct ttd_cut *cut; /* NULL if there is none yet */
    bool has_failed;     /* the cut that is open, or that is due */
    /* Sizes of the file, or times: where the part begins that is kept, and the cut. */
    uint64_t begin, cut_at;
    uint64_t left_out;
};

void ring_begin(struct trace *trace, const struct ring_limit *limit, uint64_t now)
{
    trace->kept = kept_new(true);
    trace->is_followed = true;
    trace->ring = calloc(1, sizeof *trace->ring);
    if (!trace->kept || !trace->ring) {
        trace_fail(trace, &(struct ttd_error){TTD_ERROR_NO_MEMORY, 0, TTD_NOWHERE, TTD_NOWHERE,
                                              "no memory for live blocks"});
        return;
    }
    trace_remove_left(trace);
    trace->ring->limit = *limit;
    trace->ring->begin = limit->time != 0 ? now : 0;
}

void ring_free(struct ring *ring)
{
    if (!ring)
        return;
    ttd_cut_close(ring->cut);
    free(ring);
}

uint64_t ring_left_out(const struct trace *trace)
{
    return trace->ring ? trace->ring->left_out : 0;
}

/* Returns how long the trace is between two cuts. The parts that are always there may leave little
 * room. */
static uint64_t ring_half(const struct ring *ring)
{
    enum { LEAST_PART = 8 };
    const struct ring_limit *limit = &ring->limit;
    if (limit->time != 0)
        return limit->time;
    uint64_t room = limit->bytes > ring->begin ? (limit->bytes - ring->begin) / 2 : 0;
    return room > limit->bytes / LEAST_PART ? room : limit->bytes / LEAST_PART;
}

/* Says once why the trace cannot be shortened, and tries again after as much again. */
static void ring_fail(struct trace *trace, const struct ttd_error *error)
{
    struct ring *ring = trace->ring;
    if (!ring->has_failed)
        message_error(trace->path, error);
    ring->has_failed = true;
    /* A trace that cannot be shortened must not fill the disk. */
    if (ring->limit.bytes != 0)
        trace->size_limit = 2 * ring->limit.bytes;
}

static void ring_keep(void *context, const struct ttd_event *event)
{
    struct ring *ring = context;
    ring->has_failed |= ttd_cut_event(ring->cut, event) != TTD_OK;
}

static void ring_cut(struct trace *trace, uint64_t at)
{
    struct ring *ring = trace->ring;
    bool had_failed = ring->has_failed;
    ring->has_failed = false;
    ring->cut_at = at;
    bool is_kept = ttd_cut_open(trace->writer, &ring->cut) == TTD_OK &&
                   kept_visit(trace->kept, ring_keep, ring) && !ring->has_failed;
    ring->has_failed = had_failed;
    if (is_kept)
        return;
    ttd_cut_close(ring->cut);
    ring->cut = NULL;
    ring->begin = at;
    ring_fail(trace, &(struct ttd_error){TTD_ERROR_NO_MEMORY, 0, TTD_NOWHERE, TTD_NOWHERE,
                                         "no memory for a cut"});
}

/* States once in the metadata which calls the trace lacks. */
static void ring_state(struct trace *trace)
{
    char text[96];
    const struct ring_limit *limit = &trace->ring->limit;
    bool is_time = limit->time != 0;
    snprintf(text, sizeof text,
             "calls before the last %.*f %s, but for blocks that were live then (--keep)",
             is_time ? 1 : 0, is_time ? (double)limit->time / 1e9 : (double)limit->bytes,
             is_time ? "seconds" : "bytes of the trace");
    trace_metadata(trace, "unrecorded", text);
}

static void ring_shorten(struct trace *trace, uint64_t now)
{
    struct ring *ring = trace->ring;
    struct ttd_error error;
    bool is_first = ring->left_out == 0;
    trace_flush(trace);
    if (!trace->writer)
        return;
    uint64_t before = ttd_writer_bytes(trace->writer);
    struct ttd_cut *cut = ring->cut;
    ring->cut = NULL;
    if (!trace_shorten(trace, cut, &ring->left_out, &error)) {
        ring->begin = ring->limit.time != 0 ? now : before;
        ring_fail(trace, &error);
        return;
    }
    uint64_t after = ttd_writer_bytes(trace->writer);
    ring->begin = ring->limit.time != 0 ? ring->cut_at : after - (before - ring->cut_at);
    ring->has_failed = false;
    if (is_first && ring->left_out != 0)
        ring_state(trace);
}

void ring_step(struct trace *trace, uint64_t now)
{
    struct ring *ring = trace->ring;
    if (!ring || !trace->writer || trace->is_in_snapshot)
        return;
    uint64_t at = ring->limit.time != 0 ? now : ttd_writer_bytes(trace->writer);
    if (ring->cut && at >= ring->cut_at + ring_half(ring)) {
        ring_shorten(trace, now);
        at = ring->limit.time != 0 || !trace->writer ? now : ttd_writer_bytes(trace->writer);
    }
    if (!ring->cut && trace->writer && at >= ring->begin + ring_half(ring))
        ring_cut(trace, at);
}
