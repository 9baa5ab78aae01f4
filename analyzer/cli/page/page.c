/* SPDX-License-Identifier: MIT */
#include "cli/page/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/process/exit.h"
#include "cli/process/limits.h"
#include "cli/process/message.h"
#include "cli/page/page_compress.h"
#include "cli/page/page_exact.h"
#include "report/page/model.h"

bool page_is_built(void)
{
    return page_frame[0].size;
}

int page_begin(struct session *session)
{
    int descriptor = memfd_create("page", MFD_CLOEXEC);
    if (descriptor < 0) {
        message("a file in memory: %s", strerror(errno));
        return STATUS_INTERNAL;
    }
    session->output = (struct output_file){.path = NULL};
    out_init(&session->output.text, descriptor, false);
    session->output.text.room = limits_output();
    session->has_output = true;
    return STATUS_OK;
}

void page_drop(struct session *session)
{
    if (session->has_output)
        close(session->output.text.descriptor);
    session->has_output = false;
}

static int fail(const struct session *session, int error)
{
    message("%s: %s", session->options.output ? session->options.output : "standard output",
            strerror(error));
    return STATUS_INTERNAL;
}

static void write_piece(struct text_output *output, size_t i)
{
    out_write(output, (const char *)page_frame[i].text, page_frame[i].size);
}

static int write_packed(struct session *session, const struct page_packed *packed,
                        const struct page_trace *trace)
{
    if (!page_fits(packed->size)) {
        message("the page would be too large for browsers: --from and --to, --include and "
                "--exclude make it smaller");
        return STATUS_INTERNAL;
    }
    int status = session_output(session, false);
    if (status != STATUS_OK)
        return status;
    struct text_output *output = &session->output.text;
    write_piece(output, 0);
    if (trace)
        page_write_policy(output);
    write_piece(output, 1);
    page_write_packed(output, packed);
    write_piece(output, 2);
    if (trace)
        page_write_trace(output, trace);
    write_piece(output, 3);
    return STATUS_OK;
}

int page_write(struct session *session, const struct page_trace *trace)
{
    int descriptor = session->output.text.descriptor;
    struct stat file;
    bool is_written = out_flush(&session->output.text);
    if (session->output.text.is_full) {
        page_drop(session);
        return message_output(session->options.output);
    }
    if (!is_written || fstat(descriptor, &file) != 0) {
        int error = is_written ? errno : session->output.text.error;
        page_drop(session);
        return fail(session, error);
    }
    size_t size = (size_t)file.st_size;
    unsigned char *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    int error = errno;
    page_drop(session);
    if (data == MAP_FAILED)
        return fail(session, error);
    struct page_packed packed;
    bool is_packed = page_pack(data, size, &packed);
    munmap(data, size);
    if (!is_packed)
        return message_status(session->source.path, TTD_ERROR_NO_MEMORY);
    int status = write_packed(session, &packed, trace);
    free(packed.data);
    return status;
}

void page_begin_report(struct session *session, const struct command *command)
{
    page_begin_part(&session->output.text, command->name);
    session->uses_times = false;
    session->report.runtime = (struct report_runtime){.groups = NULL};
    session->report.certainty.count = 0;
}

int page_run_part(struct session *session, const struct command *command)
{
    uint64_t room = session->output.text.room;
    page_begin_report(session, command);
    int status = command->execute(session, command->own.defaults);
    session->output.text.room = room < session->output.text.room ? room : session->output.text.room;
    session->has_reasons = true;
    return status;
}
