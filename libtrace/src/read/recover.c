/* SPDX-License-Identifier: MIT */
#include <ttdtrace/verify.h>

#include "base/memory.h"
#include "base/status.h"
#include "codec/emitter.h"
#include "codec/fixed.h"
#include "codec/records.h"
#include "read/walk.h"

/** The new file in the making. */
struct recovery {
    struct ttd_allocator allocator;
    const struct ttd_output *output;
    struct ttd_emitter emitter;
    struct ttd_buffer payload;
    struct ttd_error *error;
    /** The first chunk was written. */
    bool begun;
    /** Loss records written. */
    uint64_t losses;
    /** The old End. */
    struct ttd_end end;
};

static int emit(void *context, const void *data, size_t size)
{
    struct recovery *r = context;
    return r->output->write(r->output->context, data, size);
}

/** Passes the emitter's status on, with its detail. */
static enum ttd_status finish(struct recovery *r, enum ttd_status status)
{
    ttd_buffer_clear(&r->payload);
    if (status != TTD_OK && r->error)
        *r->error = r->emitter.error;
    return status;
}

static enum ttd_status put(struct recovery *r, const struct ttd_emission *emission)
{
    if (r->payload.failed)
        return ttd_fail(r->error, TTD_ERROR_NO_MEMORY, "memory", TTD_NOWHERE, TTD_NOWHERE);
    return finish(r, ttd_emitter_put(&r->emitter, emission, r->payload.data, r->payload.size));
}

/** Writes the first chunk: the old one, or what is known of it. */
static enum ttd_status begin(struct recovery *r, const struct ttd_reader *reader)
{
    if (r->begun)
        return TTD_OK;
    r->begun = true;
    struct ttd_trace trace = reader->trace;
    trace.flags |= TTD_TRACE_RECOVERED;
    if (trace.pointer_size == 0)
        trace.pointer_size = 8;
    r->emitter.trace_id = trace.trace_id;
    ttd_encode_trace(&r->payload, &trace);
    struct ttd_emission emission = {.kind = TTD_KIND_TRACE, .record_count = 1};
    return put(r, &emission);
}

/** Writes a loss record. */
static enum ttd_status record_loss(void *context, struct ttd_reader *reader,
                                   const struct ttd_loss *loss)
{
    struct recovery *r = context;
    enum ttd_status status = begin(r, reader);
    if (status != TTD_OK)
        return status;
    ttd_encode_loss(&r->payload, loss);
    struct ttd_emission emission = {TTD_KIND_LOSSES, r->losses++, 1, loss->last_good,
                                    loss->last_good};
    return put(r, &emission);
}

static enum ttd_status copy_chunk(void *context, struct ttd_reader *reader,
                                  const struct ttd_header *header, const uint8_t *stored,
                                  bool redefines)
{
    struct recovery *r = context;
    enum ttd_status status = begin(r, reader);
    if (header->kind == TTD_KIND_END)
        r->end = reader->check.end;
    if (status != TTD_OK || header->kind == TTD_KIND_TRACE || header->kind == TTD_KIND_INDEX ||
        header->kind == TTD_KIND_END)
        return status;
    /* A file in which an id means two things cannot be repaired: the chunk is left out. */
    if (redefines) {
        struct ttd_loss loss = {.reason = TTD_LOSS_DAMAGE,
                                .last_good = reader->position,
                                .first_good = ttd_position_invalid()};
        return record_loss(r, reader, &loss);
    }
    struct ttd_header copy = *header;
    if (header->kind == TTD_KIND_LOSSES) {
        copy.first_record = r->losses;
        r->losses += header->record_count;
    }
    return finish(r, ttd_emitter_copy(&r->emitter, &copy, stored));
}

static enum ttd_status run(struct ttd_check *check, struct recovery *r,
                           const struct ttd_input *input, struct ttd_verdict *verdict)
{
    ttd_emitter_init(&r->emitter, &r->allocator, 0, TTD_CODEC_LZ4, 0,
                     (struct ttd_emitter_sink){emit, r});
    ttd_buffer_init(&r->payload, &r->allocator);
    enum ttd_status status = ttd_walk_run(check, input, &r->allocator, verdict, r->error);
    if (status == TTD_OK && r->begun)
        status = finish(r, ttd_emitter_end(&r->emitter, &r->end, verdict->lost_events));
    ttd_buffer_free(&r->payload);
    ttd_emitter_free(&r->emitter);
    return status;
}

/** Validates the arguments. Returns a description of the first violation, or NULL. */
static const char *check(const struct ttd_input *input, const struct ttd_output *output,
                         const struct ttd_allocator *allocator, const struct ttd_verdict *verdict)
{
    if (!input || !output || !output->write || !verdict)
        return "argument";
    return ttd_allocator_is_valid(allocator) ? NULL : "allocator";
}

enum ttd_status ttd_recover(const struct ttd_input *input, const struct ttd_output *output,
                            const struct ttd_allocator *allocator,
                            const struct ttd_problem_observer *observer,
                            struct ttd_verdict *verdict, struct ttd_error *error)
{
    const char *wrong = check(input, output, allocator, verdict);
    enum ttd_status status;
    struct ttd_verdict result;
    if (wrong) {
        status = ttd_fail(error, TTD_ERROR_ARGUMENT, wrong, TTD_NOWHERE, TTD_NOWHERE);
        if (input && input->close)
            input->close(input->context);
    } else {
        struct recovery r = {.allocator = ttd_allocator_or_default(allocator),
                             .output = output,
                             .error = error,
                             .end = {.reason = TTD_END_REASON_NOT_RECORDED}};
        struct ttd_check check = {.observer = ttd_observer_or_none(observer),
                                  .chunk = copy_chunk,
                                  .loss = record_loss,
                                  .context = &r};
        status = run(&check, &r, input, &result);
    }
    int reason = output && output->close ? output->close(output->context) : 0;
    if (reason != 0 && status == TTD_OK)
        status = ttd_fail_system(error, reason, "close", TTD_NOWHERE);
    if (status == TTD_OK)
        *verdict = result;
    return status;
}
