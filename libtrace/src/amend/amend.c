/* SPDX-License-Identifier: MIT */
#include <ttdtrace/amend.h>

#include "base/fail.h"
#include "read/read_copy.h"
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
