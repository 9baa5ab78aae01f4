/* SPDX-License-Identifier: MIT */
#include "read/read_internal.h"

#include <ttdtrace/verify.h>

#include "base/fail.h"
#include "base/memory.h"
#include "codec/chunk/header.h"
#include "codec/records.h"

/** Reads to the end, whatever that is. */
static enum ttd_status copy_walk_all(struct ttd_reader *reader, struct ttd_error *error)
{
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && reader->check.status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(reader, &batch, error);
    }
    if (reader->check.status != TTD_OK)
        return reader->check.status;
    /* Damage was reported as a problem on the way; only failures of the reading itself remain. */
    bool is_over = status == TTD_END || status == TTD_ERROR_TRUNCATED ||
                   status == TTD_ERROR_LIMIT || status == TTD_ERROR_UNSUPPORTED;
    return is_over ? TTD_OK : status;
}

enum ttd_status ttd_walk_run(const struct ttd_check *check, const struct ttd_input *input,
                             const struct ttd_allocator *allocator, struct ttd_verdict *verdict,
                             struct ttd_error *error)
{
    struct ttd_reader *reader;
    struct ttd_reader_options options = ttd_reader_options_default();
    /* Damage must not end the walk: the chunks behind it are checked as well. */
    options.tolerant = true;
    enum ttd_status status = ttd_reader_open(input, &options, allocator, &reader, error);
    if (status != TTD_OK)
        return status;
    reader->check = *check;
    status = ttd_reader_rewind_checked(reader, TTD_KINDS_ALL);
    if (status == TTD_OK)
        status = copy_walk_all(reader, error);
    if (status == TTD_OK)
        *verdict = reader->check.verdict;
    ttd_reader_close(reader);
    return status;
}

static int copy_emit(void *context, const void *data, size_t size)
{
    struct ttd_copy *copy = context;
    return copy->output->write(copy->output->context, data, size);
}

/** Passes the emitter's status on, with its detail. */
static enum ttd_status copy_finish(struct ttd_copy *copy, enum ttd_status status)
{
    ttd_buffer_clear(&copy->payload);
    if (status != TTD_OK && copy->error)
        *copy->error = copy->emitter.error;
    return status;
}

enum ttd_status ttd_copy_put(struct ttd_copy *copy, const struct ttd_emission *emission)
{
    if (copy->payload.failed)
        return ttd_fail(copy->error, TTD_ERROR_NO_MEMORY, "memory", TTD_NOWHERE, TTD_NOWHERE);
    return copy_finish(
        copy, ttd_emitter_put(&copy->emitter, emission, copy->payload.data, copy->payload.size));
}

enum ttd_status ttd_copy_stored(struct ttd_copy *copy, const struct ttd_header *header,
                                const uint8_t *stored)
{
    return copy_finish(copy, ttd_emitter_copy(&copy->emitter, header, stored));
}

enum ttd_status ttd_copy_begin(struct ttd_copy *copy, const struct ttd_reader *reader)
{
    if (copy->has_begun)
        return TTD_OK;
    copy->has_begun = true;
    struct ttd_trace trace = reader->trace;
    trace.flags |= copy->trace_flags;
    /* The first chunk is lost, and with it the size: one that the format allows is put in its
     * place. */
    if (trace.pointer_size == 0)
        trace.pointer_size = 8;
    copy->emitter.trace_id = trace.trace_id;
    ttd_encode_trace(&copy->payload, &trace);
    struct ttd_emission emission = {.kind = TTD_KIND_TRACE, .record_count = 1};
    return ttd_copy_put(copy, &emission);
}

bool ttd_copy_is_made(struct ttd_copy *copy, const struct ttd_reader *reader,
                      const struct ttd_header *header)
{
    if (header->kind == TTD_KIND_END)
        copy->end = reader->check.end;
    /* The emitter makes these anew: they depend on the places of the others. */
    return header->kind == TTD_KIND_TRACE || header->kind == TTD_KIND_INDEX ||
           header->kind == TTD_KIND_END;
}

static enum ttd_status copy_run(struct ttd_copy *copy, const struct ttd_check *check,
                                const struct ttd_input *input, struct ttd_verdict *verdict)
{
    copy->end = (struct ttd_end){.reason = TTD_END_REASON_NOT_RECORDED};
    ttd_emitter_init(&copy->emitter, &copy->allocator, 0, TTD_CODEC_LZ4, 0,
                     (struct ttd_emitter_sink){copy_emit, copy});
    ttd_buffer_init(&copy->payload, &copy->allocator);
    enum ttd_status status = ttd_walk_run(check, input, &copy->allocator, verdict, copy->error);
    if (status == TTD_OK && copy->before_end)
        status = copy->before_end(check->context);
    if (status == TTD_OK && copy->has_begun)
        status =
            copy_finish(copy, ttd_emitter_end(&copy->emitter, &copy->end, verdict->lost_events));
    ttd_buffer_free(&copy->payload);
    ttd_emitter_free(&copy->emitter);
    return status;
}

/** Validates the arguments. Returns a description of the first violation, or NULL. */
static const char *copy_check_arguments(const struct ttd_input *input,
                                        const struct ttd_output *output,
                                        const struct ttd_allocator *allocator,
                                        const struct ttd_verdict *verdict)
{
    if (!input || !output || !output->write || !verdict)
        return "argument";
    return ttd_allocator_is_valid(allocator) ? NULL : "allocator";
}

enum ttd_status ttd_copy_run(struct ttd_copy *copy, const struct ttd_check *check,
                             const struct ttd_input *input, const struct ttd_output *output,
                             const struct ttd_allocator *allocator, struct ttd_verdict *verdict)
{
    const char *violation = copy_check_arguments(input, output, allocator, verdict);
    enum ttd_status status;
    struct ttd_verdict result;
    if (violation) {
        status = ttd_fail(copy->error, TTD_ERROR_ARGUMENT, violation, TTD_NOWHERE, TTD_NOWHERE);
        if (input && input->close)
            input->close(input->context);
    } else {
        copy->allocator = ttd_allocator_or_default(allocator);
        copy->output = output;
        status = copy_run(copy, check, input, &result);
    }
    /* Closed in any case: the output was taken over. */
    int reason = output && output->close ? output->close(output->context) : 0;
    if (reason != 0 && status == TTD_OK)
        status = ttd_fail_system(copy->error, reason, "close", TTD_NOWHERE);
    if (status == TTD_OK)
        *verdict = result;
    return status;
}

enum ttd_status ttd_verify(const struct ttd_input *input, const struct ttd_allocator *allocator,
                           const struct ttd_problem_observer *observer, struct ttd_verdict *verdict,
                           struct ttd_error *error)
{
    if (!input || !verdict) {
        /* The input is taken over, also on failure. */
        if (input && input->close)
            input->close(input->context);
        return ttd_fail(error, TTD_ERROR_ARGUMENT, "argument", TTD_NOWHERE, TTD_NOWHERE);
    }
    struct ttd_check check = {.observer = ttd_observer_or_none(observer)};
    return ttd_walk_run(&check, input, allocator, verdict, error);
}

/** Writes a loss record. */
static enum ttd_status copy_record_loss(void *context, struct ttd_reader *reader,
                                        const struct ttd_loss *loss)
{
    struct ttd_recovery *r = context;
    enum ttd_status status = ttd_copy_begin(&r->copy, reader);
    if (status != TTD_OK)
        return status;
    ttd_encode_loss(&r->copy.payload, loss);
    struct ttd_emission emission = {TTD_KIND_LOSSES, r->losses++, 1, loss->last_good,
                                    loss->last_good};
    return ttd_copy_put(&r->copy, &emission);
}

/** Takes in the ids and ordinals in use. */
static void copy_recover_note(struct ttd_recovery *r, const struct ttd_reader *reader,
                              const struct ttd_header *header)
{
    const struct ttd_id_check *ids = &reader->check.ids;
    r->strings = ids->strings;
    r->modules = ids->modules;
    r->has_gaps |= ids->unknown;
    if (header->kind <= TTD_KIND_LAST)
        r->ordinals[header->kind] = header->first_record + header->record_count;
}

static enum ttd_status recover_copy_chunk(void *context, struct ttd_reader *reader,
                                          const struct ttd_header *header, const uint8_t *stored,
                                          bool redefines)
{
    struct ttd_recovery *r = context;
    enum ttd_status status = ttd_copy_begin(&r->copy, reader);
    copy_recover_note(r, reader, header);
    if (status != TTD_OK || ttd_copy_is_made(&r->copy, reader, header))
        return status;
    /* A file where an id means two things cannot be repaired: the chunk is left out. */
    if (redefines) {
        struct ttd_loss loss = {.reason = TTD_LOSS_DAMAGE,
                                .last_good = reader->position,
                                .first_good = ttd_position_invalid()};
        return copy_record_loss(r, reader, &loss);
    }
    struct ttd_header copy = *header;
    if (header->kind == TTD_KIND_LOSSES) {
        copy.first_record = r->losses;
        r->losses += header->record_count;
    }
    return ttd_copy_stored(&r->copy, &copy, stored);
}

enum ttd_status ttd_recovery_run(struct ttd_recovery *recovery, const struct ttd_input *input,
                                 const struct ttd_output *output,
                                 const struct ttd_allocator *allocator,
                                 const struct ttd_problem_observer *observer,
                                 struct ttd_verdict *verdict)
{
    struct ttd_check check = {.observer = ttd_observer_or_none(observer),
                              .chunk = recover_copy_chunk,
                              .loss = copy_record_loss,
                              .context = recovery};
    return ttd_copy_run(&recovery->copy, &check, input, output, allocator, verdict);
}

enum ttd_status ttd_recover(const struct ttd_input *input, const struct ttd_output *output,
                            const struct ttd_allocator *allocator,
                            const struct ttd_problem_observer *observer,
                            struct ttd_verdict *verdict, struct ttd_error *error)
{
    struct ttd_recovery recovery = {.copy = {.error = error, .trace_flags = TTD_TRACE_RECOVERED}};
    return ttd_recovery_run(&recovery, input, output, allocator, observer, verdict);
}
