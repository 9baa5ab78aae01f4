/* SPDX-License-Identifier: MIT */
#include <ttdtrace/verify.h>

#include "base/memory.h"
#include "base/status.h"
#include "codec/emitter.h"
#include "codec/rows.h"
#include "read/walk.h"

/** The new file in the making. */
typedef struct recovery {
    ttd_allocator allocator;
    const ttd_output *output;
    ttd_emitter emitter;
    ttd_buffer payload;
    /** The first chunk was written. */
    bool begun;
    /** Loss records written, and the events that they tell of. */
    uint64_t losses;
    uint64_t lost_events;
} recovery;

static int emit(void *context, const void *data, size_t size)
{
    recovery *r = context;
    return r->output->write(r->output->context, data, size);
}

/** Passes the emitter's status on, with its detail. */
static ttd_status finish(ttd_walk *walk, ttd_status status)
{
    recovery *r = walk->context;
    ttd_buffer_clear(&r->payload);
    if (status != TTD_OK && walk->error)
        *walk->error = r->emitter.error;
    return status;
}

static ttd_status put(ttd_walk *walk, const ttd_emission *emission)
{
    recovery *r = walk->context;
    if (r->payload.failed)
        return ttd_fail(walk->error, TTD_ERROR_NO_MEMORY, "memory", TTD_NOWHERE, TTD_NOWHERE);
    return finish(walk, ttd_emitter_put(&r->emitter, emission, r->payload.data, r->payload.size));
}

/** Writes the first chunk: the old one, or what is known of it. */
static ttd_status begin(ttd_walk *walk)
{
    recovery *r = walk->context;
    if (r->begun)
        return TTD_OK;
    r->begun = true;
    ttd_trace trace = walk->reader->trace;
    trace.flags |= TTD_TRACE_RECOVERED;
    if (trace.pointer_size == 0)
        trace.pointer_size = 8;
    r->emitter.trace_id = trace.trace_id;
    ttd_encode_trace(&r->payload, &trace);
    ttd_emission emission = {.kind = TTD_KIND_TRACE, .item_count = 1};
    return put(walk, &emission);
}

static ttd_status copy_chunk(ttd_walk *walk, const ttd_header *header, const uint8_t *stored)
{
    recovery *r = walk->context;
    ttd_status status = begin(walk);
    if (status != TTD_OK || header->kind == TTD_KIND_TRACE || header->kind == TTD_KIND_INDEX ||
        header->kind == TTD_KIND_END)
        return status;
    ttd_header copy = *header;
    if (header->kind == TTD_KIND_LOSSES) {
        copy.first_item = r->losses;
        r->losses += header->item_count;
    }
    return finish(walk, ttd_emitter_copy(&r->emitter, &copy, stored));
}

/** Writes a loss record. */
static ttd_status record_gap(ttd_walk *walk, const ttd_problem *problem)
{
    recovery *r = walk->context;
    ttd_status status = begin(walk);
    if (status != TTD_OK)
        return status;
    ttd_loss loss = {.reason = TTD_LOSS_DAMAGE,
                     .count = problem->missing_events,
                     .last_good = problem->last_good,
                     .first_good = problem->first_good};
    ttd_encode_loss(&r->payload, &loss);
    ttd_emission emission = {TTD_KIND_LOSSES, r->losses++, 1, loss.last_good, loss.last_good};
    return put(walk, &emission);
}

/** Writes index and End. */
static ttd_status end(ttd_walk *walk)
{
    recovery *r = walk->context;
    ttd_end end = {.reason = TTD_END_NOT_RECORDED};
    if (walk->has_end)
        end = walk->end;
    return finish(walk, ttd_emitter_end(&r->emitter, &end, walk->verdict.lost_events));
}

static ttd_status run(ttd_walk *walk, recovery *r, const ttd_input *input)
{
    ttd_emitter_init(&r->emitter, &r->allocator, 0, TTD_CODEC_LZ4, 0, emit, r);
    ttd_buffer_init(&r->payload, &r->allocator);
    ttd_status status = ttd_walk_run(walk, input, &r->allocator);
    if (status == TTD_OK && r->begun)
        status = end(walk);
    ttd_buffer_free(&r->payload);
    ttd_emitter_free(&r->emitter);
    return status;
}

/** What is wrong with the arguments; NULL if nothing. */
static const char *check(const ttd_input *input, const ttd_output *output,
                         const ttd_allocator *allocator, const ttd_verdict *verdict)
{
    if (!input || !output || !output->write || !verdict)
        return "argument";
    return ttd_allocator_is_valid(allocator) ? NULL : "allocator";
}

ttd_status ttd_recover(const ttd_input *input, const ttd_output *output,
                       const ttd_allocator *allocator, ttd_problem_function function, void *context,
                       ttd_verdict *verdict, ttd_error *error)
{
    const char *wrong = check(input, output, allocator, verdict);
    ttd_status status;
    ttd_walk walk = {.function = function,
                     .function_context = context,
                     .chunk = copy_chunk,
                     .gap = record_gap,
                     .error = error};
    if (wrong) {
        status = ttd_fail(error, TTD_ERROR_ARGUMENT, wrong, TTD_NOWHERE, TTD_NOWHERE);
        if (input && input->close)
            input->close(input->context);
    } else {
        recovery r = {.allocator = ttd_allocator_or_default(allocator), .output = output};
        walk.context = &r;
        status = run(&walk, &r, input);
    }
    int reason = output && output->close ? output->close(output->context) : 0;
    if (reason != 0 && status == TTD_OK)
        status = ttd_fail_system(error, reason, "close", TTD_NOWHERE);
    if (status == TTD_OK)
        *verdict = walk.verdict;
    return status;
}
