/* SPDX-License-Identifier: MIT */
/* ttdanalyze index */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "cli/session/sidecar.h"
#include "cli/traces/input.h"
#include "report/trace/trace_reports.h"

static const char help[] =
    "Usage: ttdanalyze index [OPTIONS] [TRACE]\n"
    "\n"
    "Makes TRACE.idx: states of the heap at many positions, so that commands that are\n"
    "asked for a position start near it, whatever the length of the trace; those that\n"
    "only add up the live blocks, such as state and peak, are there at once.\n"
    "\n"
    "The index can be made again from the trace at any time. Commands make it\n"
    "themselves where that pays, use it only if it belongs to the trace as it is, and work\n"
    "without it where the directory cannot be written. A trace that is damaged or still\n"
    "growing has none. It is always beside the trace: --output is for the "
    "printed text.\n" COMMAND_COMMON_HELP;

static int index_print(struct session *session, const char *path,
                       const struct heap_index_facts *facts)
{
    struct stat file;
    if (stat(path, &file) != 0) {
        message("%s: %s", path, strerror(errno));
        return STATUS_INTERNAL;
    }
    struct report_index data = {.file = path,
                                .events = facts->events,
                                .keyframes = facts->keyframes,
                                .summaries = facts->summaries,
                                .bytes = (uint64_t)file.st_size};
    int status = session_output(session, false);
    if (status == STATUS_OK)
        report_index(&session->report, &data);
    return status;
}

static int index_make(struct session *session)
{
    struct heap_index_facts facts;
    char *path = sidecar_path(session->source.path);
    if (!path) {
        message("%s", strerror(ENOMEM));
        return STATUS_INTERNAL;
    }
    int status = sidecar_make(&session->source, path, false, &facts);
    if (status == STATUS_OK)
        status = index_print(session, path, &facts);
    free(path);
    return status;
}

/* The command does not use session_run(), because it must refuse standard input before that is
 * copied to a temporary file: nobody would find an index beside it. */
static int index_run(const struct command *command, int count, char **arguments)
{
    struct common_options options;
    int status = command_options(&options, command, count, arguments, NULL);
    if (status >= 0)
        return status;
    if (input_is_standard(options.trace))
        return message_usage(command->name, "an index stands beside a trace: name its file");
    struct session session;
    status = session_open(&session, &options);
    if (status != STATUS_OK)
        return status;
    return session_close(&session, index_make(&session), false);
}

const struct command command_index = {
    .name = "index",
    .summary = "make going to positions fast",
    .help = help,
    .run = index_run,
};
