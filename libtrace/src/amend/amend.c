/* SPDX-License-Identifier: MIT */
/* Traces that are made of one that was written: with names added, or with its past cut off. */
#include <ttdtrace/amend.h>

#include <errno.h>

#include <ttdtrace/advanced.h>

#include "base/fail.h"
#include "base/memory.h"
#include "codec/chunk/header.h"
#include "codec/records.h"
#include "read/read_internal.h"
#include "write/write_internal.h"

/** Behind damage, strings may be in use whose definitions are lost. Their ids are not known, but
 * they are fewer than these. */
#define FIRST_SAFE_STRING (UINT32_C(1) << 31)

/** Ordinals beyond this are made up: the ordinals of records to come must not overflow. */
#define ORDINAL_MAX (UINT64_C(1) << 62)

/** A copy that names are added to. `recovery` is the first member: see amend_add_names(). */
struct amending {
    struct ttd_recovery recovery;
    const struct ttd_amendment *amendment;
};

static uint64_t amend_ordinal(const struct ttd_recovery *recovery, enum ttd_kind kind)
{
    return recovery->ordinals[kind] < ORDINAL_MAX ? recovery->ordinals[kind] : 0;
}

static struct ttd_written amend_written_by(struct ttd_recovery *recovery)
{
    bool is_unsafe = recovery->has_gaps && recovery->strings < FIRST_SAFE_STRING;
    return (struct ttd_written){.emitter = &recovery->copy.emitter,
                                .strings = is_unsafe ? FIRST_SAFE_STRING - 1 : recovery->strings,
                                .modules = recovery->modules,
                                .symbols = amend_ordinal(recovery, TTD_KIND_SYMBOLS),
                                .variables = amend_ordinal(recovery, TTD_KIND_VARIABLES)};
}

static enum ttd_status amend_add_names(void *context)
{
    struct amending *amending = context;
    struct ttd_copy *copy = &amending->recovery.copy;
    struct ttd_written written = amend_written_by(&amending->recovery);
    struct ttd_writer *writer;
    enum ttd_status status = ttd_writer_begin_names(&written, &copy->allocator, &writer);
    if (status != TTD_OK)
        return ttd_fail(copy->error, status, "memory", TTD_NOWHERE, TTD_NOWHERE);
    status = amending->amendment->function(amending->amendment->context, writer);
    enum ttd_status end_status = ttd_writer_end_names(writer, &written);
    if (end_status != TTD_OK && copy->error)
        *copy->error = copy->emitter.error;
    return end_status != TTD_OK ? end_status : status;
}

/** Stops copying when an intact chunk has become damaged meanwhile. */
static bool amend_see_change(void *context, const struct ttd_problem *problem)
{
    (void)context, (void)problem;
    return false;
}

/** Copies the trace of the verdict; the input is closed in any case. */
static enum ttd_status amend_copy_amended(struct amending *amending, const struct ttd_input *input,
                                          const struct ttd_output *output,
                                          const struct ttd_allocator *allocator,
                                          const struct ttd_verdict *verdict)
{
    const struct ttd_problem_observer strict = {amend_see_change, NULL};
    struct ttd_verdict copied;
    struct ttd_copy *copy = &amending->recovery.copy;
    copy->before_end = amend_add_names;
    copy->trace_flags = verdict->ok ? 0 : TTD_TRACE_RECOVERED;
    enum ttd_status status = ttd_recovery_run(&amending->recovery, input, output, allocator,
                                              verdict->ok ? &strict : NULL, &copied);
    return status != TTD_END ? status
                             : ttd_fail(copy->error, TTD_ERROR_CORRUPT, "changed while it was read",
                                        TTD_NOWHERE, TTD_NOWHERE);
}

/** Checks the whole trace; it must not be a derived one. The input stays open. */
static enum ttd_status amend_check_input(const struct ttd_input *input,
                                         const struct ttd_allocator *allocator,
                                         struct ttd_verdict *verdict, struct ttd_error *error)
{
    struct ttd_input borrowed = *input;
    struct ttd_reader *reader;
    borrowed.close = NULL;
    enum ttd_status status = ttd_verify(&borrowed, allocator, NULL, verdict, error);
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = true;
    if (status == TTD_OK)
        status = ttd_reader_open(&borrowed, &options, allocator, &reader, error);
    if (status != TTD_OK)
        return status;
    bool is_derived = (ttd_reader_trace(reader)->flags & TTD_TRACE_DERIVED) != 0;
    ttd_reader_close(reader);
    return is_derived
               ? ttd_fail(error, TTD_ERROR_ARGUMENT, "derived file", TTD_NOWHERE, TTD_NOWHERE)
               : TTD_OK;
}

/** Closes both files of a call that does nothing else. */
static enum ttd_status amend_close_both(const struct ttd_input *input,
                                        const struct ttd_output *output, enum ttd_status status)
{
    if (input && input->close)
        input->close(input->context);
    if (output && output->close)
        output->close(output->context);
    return status;
}

enum ttd_status ttd_amend(const struct ttd_input *input, const struct ttd_output *output,
                          const struct ttd_allocator *allocator,
                          const struct ttd_amendment *amendment, struct ttd_verdict *verdict,
                          struct ttd_error *error)
{
    struct amending amending = {.recovery = {.copy = {.error = error}}, .amendment = amendment};
    struct ttd_verdict checked;
    if (!input || !output || !output->write || !amendment || !amendment->function || !verdict)
        return amend_close_both(
            input, output,
            ttd_fail(error, TTD_ERROR_ARGUMENT, "argument", TTD_NOWHERE, TTD_NOWHERE));
    enum ttd_status status = amend_check_input(input, allocator, &checked, error);
    if (status != TTD_OK)
        return amend_close_both(input, output, status);
    status = amend_copy_amended(&amending, input, output, allocator, &checked);
    if (status == TTD_OK)
        *verdict = checked;
    return status;
}

struct ttd_cut {
    struct ttd_allocator allocator;
    struct ttd_writer *writer;
    /** Writes the calls of ttd_cut_event() into `kept`. */
    struct ttd_writer *part;
    struct ttd_buffer kept;
    /** End of the trace at the moment of the cut: offset, number of events, position of the last
     * one. */
    uint64_t offset;
    uint64_t events;
    struct ttd_position position;
};

static int cut_emit(void *context, const void *data, size_t size)
{
    struct ttd_cut *cut = context;
    /* One failure of the buffer makes it fail for good. */
    ttd_buffer_put(&cut->kept, data, size);
    return cut->kept.failed ? ENOMEM : 0;
}

/** Makes the writer of the calls that are kept, which knows the ids of the trace. */
static enum ttd_status cut_make_part(struct ttd_cut *cut)
{
    const struct ttd_writer *writer = cut->writer;
    struct ttd_writer *part = ttd_allocate_zeroed(&cut->allocator, sizeof *part);
    if (!part)
        return TTD_ERROR_NO_MEMORY;
    part->allocator = cut->allocator;
    part->options = writer->options;
    ttd_writer_init_buffers(part, writer->time_unit);
    ttd_emitter_init(&part->emitter, &part->allocator, writer->emitter.trace_id,
                     writer->options.codec, writer->options.level,
                     (struct ttd_emitter_sink){cut_emit, cut});
    part->stack_count = writer->stack_count;
    part->threads = writer->threads;
    part->heaps = writer->heaps;
    cut->part = part;
    return TTD_OK;
}

enum ttd_status ttd_cut_open(struct ttd_writer *writer, struct ttd_cut **cut)
{
    if (!writer || !cut)
        return TTD_ERROR_ARGUMENT;
    enum ttd_status status = ttd_writer_flush(writer);
    if (status != TTD_OK)
        return status;
    struct ttd_cut *result = ttd_allocate_zeroed(&writer->allocator, sizeof *result);
    if (!result)
        return TTD_ERROR_NO_MEMORY;
    result->allocator = writer->allocator;
    result->writer = writer;
    result->offset = writer->emitter.offset;
    result->events = writer->event_count;
    result->position = writer->position;
    ttd_buffer_init(&result->kept, &result->allocator);
    status = cut_make_part(result);
    if (status != TTD_OK)
        ttd_cut_close(result);
    else
        *cut = result;
    return status;
}

enum ttd_status ttd_cut_event(struct ttd_cut *cut, const struct ttd_event *event)
{
    return ttd_writer_event(cut->part, event);
}

void ttd_cut_close(struct ttd_cut *cut)
{
    if (!cut)
        return;
    if (cut->part)
        ttd_writer_release(cut->part);
    ttd_buffer_free(&cut->kept);
    struct ttd_allocator allocator = cut->allocator;
    ttd_release(&allocator, cut);
}

/** A new file in the making. */
struct cutting {
    const struct ttd_cut *cut;
    const struct ttd_input *input;
    const struct ttd_output *output;
    enum ttd_loss_reason reason;
    struct ttd_emitter emitter;
    struct ttd_buffer payload;
    struct ttd_cut_record replaced;
    struct ttd_error *error;
};

static int cutting_emit(void *context, const void *data, size_t size)
{
    const struct cutting *cutting = context;
    return cutting->output->write(cutting->output->context, data, size);
}

static enum ttd_status cutting_finish(struct cutting *cutting, enum ttd_status status)
{
    if (status != TTD_OK && cutting->error)
        *cutting->error = cutting->emitter.error;
    return status;
}

/** Reads bytes of the trace, all of which were written. */
static enum ttd_status cutting_read(struct cutting *cutting, uint64_t offset, void *data,
                                    size_t size)
{
    size_t got = 0;
    int reason = cutting->input->read_at(cutting->input->context, offset, data, size, &got);
    if (reason != 0)
        return ttd_fail_system(cutting->error, reason, "read", offset);
    return got == size ? TTD_OK
                       : ttd_fail(cutting->error, TTD_ERROR_TRUNCATED, "read", offset, TTD_NOWHERE);
}

/** Copies the chunk at an offset; its header was read. */
static enum ttd_status cutting_copy(struct cutting *cutting, const struct ttd_header *header)
{
    struct ttd_buffer *payload = &cutting->payload;
    ttd_buffer_clear(payload);
    if (!ttd_buffer_reserve(payload, header->stored_size))
        return ttd_fail(cutting->error, TTD_ERROR_NO_MEMORY, "memory", TTD_NOWHERE, TTD_NOWHERE);
    enum ttd_status status =
        cutting_read(cutting, header->offset + TTD_HEADER_SIZE, payload->data, header->stored_size);
    return status == TTD_OK
               ? cutting_finish(cutting, ttd_emitter_copy(&cutting->emitter, header, payload->data))
               : status;
}

/** Whether a chunk from before the cut stays: definitions, facts about all of the trace, and
 * losses, but not the one that an earlier cut has made. */
static bool cutting_keeps(const struct cutting *cutting, const struct ttd_header *header)
{
    if (header->kind == TTD_KIND_LOSSES)
        return header->offset != cutting->cut->writer->replaced.offset;
    return ttd_kind_has(header->kind, TTD_KIND_IS_LASTING);
}

/** Decodes the header at an offset, which must be the writer's. */
static enum ttd_status cutting_decode(struct cutting *cutting, const uint8_t *bytes,
                                      uint64_t offset, struct ttd_header *header)
{
    const char *what = "not the trace that is written";
    enum ttd_status status = ttd_header_decode(bytes, header, &what);
    if (status == TTD_OK &&
        (header->trace_id != cutting->emitter.trace_id || header->offset != offset))
        status = TTD_ERROR_CORRUPT;
    return status == TTD_OK ? TTD_OK : ttd_fail(cutting->error, status, what, offset, TTD_NOWHERE);
}

/** Copies the chunks in a range of the trace, of those before the cut the ones that stay. */
static enum ttd_status cutting_copy_range(struct cutting *cutting, uint64_t begin, uint64_t end)
{
    bool is_before = begin < cutting->cut->offset;
    uint64_t events = cutting->cut->part->event_count;
    uint8_t bytes[TTD_HEADER_SIZE];
    struct ttd_header header;
    for (uint64_t offset = begin; offset < end; offset += ttd_chunk_size(&header)) {
        enum ttd_status status = cutting_read(cutting, offset, bytes, sizeof bytes);
        if (status == TTD_OK)
            status = cutting_decode(cutting, bytes, offset, &header);
        if (status != TTD_OK)
            return status;
        if (is_before ? !cutting_keeps(cutting, &header) : header.kind == TTD_KIND_INDEX)
            continue;
        if (header.kind == TTD_KIND_EVENTS)
            header.first_record = header.first_record - cutting->cut->events + events;
        status = cutting_copy(cutting, &header);
        if (status != TTD_OK)
            return status;
    }
    return TTD_OK;
}

/** Writes how many events the trace has lost by this cut and all before it. */
static enum ttd_status cutting_put_loss(struct cutting *cutting)
{
    const struct ttd_cut *cut = cutting->cut;
    struct ttd_cut_record *replaced = &cutting->replaced;
    *replaced = cut->writer->replaced;
    replaced->events += cut->events - cut->part->event_count;
    if (replaced->events == 0)
        return TTD_OK;
    replaced->offset = cutting->emitter.offset;
    struct ttd_loss loss = {.reason = cutting->reason,
                            .count = replaced->events,
                            .last_good = ttd_position_min(),
                            .first_good = cut->position};
    ttd_buffer_clear(&cutting->payload);
    ttd_encode_loss(&cutting->payload, &loss);
    if (cutting->payload.failed)
        return ttd_fail(cutting->error, TTD_ERROR_NO_MEMORY, "memory", TTD_NOWHERE, TTD_NOWHERE);
    struct ttd_emission emission = {TTD_KIND_LOSSES, 0, 1, loss.last_good, loss.first_good};
    return cutting_finish(cutting, ttd_emitter_put(&cutting->emitter, &emission,
                                                   cutting->payload.data, cutting->payload.size));
}

/** Writes the calls that are kept of those before the cut. */
static enum ttd_status cutting_put_kept(struct cutting *cutting)
{
    const struct ttd_buffer *kept = &cutting->cut->kept;
    struct ttd_header header;
    const char *what;
    for (size_t i = 0; i < kept->size; i += (size_t)ttd_chunk_size(&header)) {
        enum ttd_status status = ttd_header_decode(kept->data + i, &header, &what);
        if (status == TTD_OK && header.kind == TTD_KIND_EVENTS)
            status = cutting_finish(cutting, ttd_emitter_copy(&cutting->emitter, &header,
                                                              kept->data + i + TTD_HEADER_SIZE));
        if (status != TTD_OK)
            return status;
    }
    return TTD_OK;
}

static enum ttd_status cutting_run(struct cutting *cutting)
{
    const struct ttd_cut *cut = cutting->cut;
    const struct ttd_emitter *old = &cut->writer->emitter;
    enum ttd_status status = cutting_copy_range(cutting, 0, cut->offset);
    if (status == TTD_OK)
        status = cutting_put_loss(cutting);
    if (status == TTD_OK)
        status = cutting_put_kept(cutting);
    return status == TTD_OK ? cutting_copy_range(cutting, cut->offset, old->offset) : status;
}

/** Has the writer continue in the new file. */
static void cutting_take_over(struct cutting *cutting)
{
    struct ttd_writer *writer = cutting->cut->writer;
    writer->lost_events += cutting->replaced.events - writer->replaced.events;
    writer->event_count =
        writer->event_count - cutting->cut->events + cutting->cut->part->event_count;
    writer->replaced = cutting->replaced;
    cutting->emitter.emit = writer->emitter.emit;
    cutting->emitter.context = writer->emitter.context;
    ttd_emitter_free(&writer->emitter);
    writer->emitter = cutting->emitter;
    if (writer->output.close)
        writer->output.close(writer->output.context);
    writer->output = *cutting->output;
}

enum ttd_status ttd_cut_apply(struct ttd_cut *cut, const struct ttd_input *input,
                              const struct ttd_output *output, enum ttd_loss_reason reason,
                              uint64_t *left_out, struct ttd_error *error)
{
    struct ttd_writer *writer = cut->writer;
    struct cutting cutting = {
        .cut = cut, .input = input, .output = output, .reason = reason, .error = error};
    enum ttd_status status = ttd_writer_flush(cut->part);
    if (status == TTD_OK)
        status = ttd_writer_flush(writer);
    if (status != TTD_OK) {
        if (error)
            *error = (struct ttd_error){
                .status = status, .offset = TTD_NOWHERE, .chunk = TTD_NOWHERE, .what = "cut"};
    } else {
        ttd_emitter_init(&cutting.emitter, &writer->allocator, writer->emitter.trace_id,
                         writer->options.codec, writer->options.level,
                         (struct ttd_emitter_sink){cutting_emit, &cutting});
        ttd_buffer_init(&cutting.payload, &writer->allocator);
        status = cutting_run(&cutting);
        ttd_buffer_free(&cutting.payload);
        if (status == TTD_OK)
            cutting_take_over(&cutting);
        else
            ttd_emitter_free(&cutting.emitter);
    }
    if (status == TTD_OK)
        *left_out = writer->replaced.events;
    else if (output->close)
        output->close(output->context);
    ttd_cut_close(cut);
    return status;
}
