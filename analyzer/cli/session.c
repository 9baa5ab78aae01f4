/* SPDX-License-Identifier: MIT */
#include "cli/session.h"

#include "cli/exit.h"
#include "cli/message.h"

int session_open(session *work, const common *options)
{
    work->options = *options;
    work->has_output = false;
    work->uses_times = false;
    work->report = (report){.output = &work->output.out, .path = options->trace};
    int status = source_open(&work->trace, options->trace);
    if (status != STATUS_OK)
        return status;
    definitions_init(&work->names);
    work->report.names = &work->names;
    return STATUS_OK;
}

int session_output(session *work, bool is_long)
{
    progress_end(&work->trace.progress);
    bool pages = is_long && work->options.has_pager;
    int status = output_open(&work->output, work->options.output, work->options.trace, pages);
    work->has_output = status == STATUS_OK;
    return status;
}

void session_doubts(session *work, const heap_losses *losses, const heap_counts *counts,
                    ttd_position at, bool reached_end, ttd_position last)
{
    doubt_facts facts = {.trace = ttd_reader_trace(work->trace.reader),
                         .is_closed = work->trace.is_closed,
                         .is_truncated = work->trace.is_truncated,
                         .uses_times = work->uses_times,
                         .losses = losses,
                         .counts = counts,
                         .at = at,
                         .reached_end = reached_end,
                         .last = last};
    doubts_find(&work->report.doubts, &facts);
}

void session_outcome(session *work, const heap_outcome *outcome, ttd_position at)
{
    if (outcome->truncated)
        source_truncated(&work->trace, &outcome->error);
    session_doubts(work, &outcome->losses, &outcome->counts, at, outcome->reached_end,
                   outcome->position);
}

int session_close(session *work, int status, bool keep)
{
    if (work->report.status != TTD_OK) {
        message("%s: %s", work->trace.path, ttd_status_text(work->report.status));
        status = exit_for(work->report.status);
        keep = false;
    }
    if (work->has_output)
        status = output_close(&work->output, status, keep || status < STATUS_USAGE);
    frame_list_free(&work->report.frames);
    definitions_free(&work->names);
    source_close(&work->trace);
    return status;
}
