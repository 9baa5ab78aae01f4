/* SPDX-License-Identifier: MIT */
/* Makes the index of a trace. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/session/sidecar.h"
#include "common/output_path.h"

static int fail_file(const char *path, bool silent)
{
    if (!silent)
        message("%s: %s", path, strerror(errno));
    return STATUS_INTERNAL;
}

/* A file that gets its name when it is complete, so that no incomplete file remains even if this
 * process is killed. Where the file system cannot do that, it has another name until then. */
struct draft {
    int descriptor;
    /** The other name; for a file without a name, the one that it has for a moment before rename().
     */
    char *name;
    bool has_name;
};

static int open_nameless(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int descriptor =
        directory ? open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR) : -1;
    free(directory);
    return descriptor;
}

static bool draft_open(struct draft *file, const char *path)
{
    uint64_t number = 0;
    size_t size = strlen(path) + sizeof ".0123456789abcdef";
    *file = (struct draft){.descriptor = -1, .name = malloc(size)};
    if (!file->name)
        return false;
    file->descriptor = open_nameless(path);
    file->has_name = file->descriptor < 0;
    if (file->has_name) {
        snprintf(file->name, size, "%s.XXXXXX", path);
        file->descriptor = mkstemp(file->name);
    } else {
        /* On failure `number` stays 0, and the name may be taken. */
        (void)getrandom(&number, sizeof number, 0);
        snprintf(file->name, size, "%s.%" PRIx64, path, number);
    }
    /* The umask may have removed these permissions. */
    return file->descriptor >= 0 && fchmod(file->descriptor, S_IRUSR | S_IWUSR) == 0;
}

/* Gives the file its name, in place of an existing file. */
static bool draft_publish(struct draft *file, const char *path)
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", file->descriptor);
    if (!file->has_name)
        file->has_name = linkat(AT_FDCWD, self, AT_FDCWD, file->name, AT_SYMLINK_FOLLOW) == 0;
    if (!file->has_name || rename(file->name, path) != 0)
        return false;
    file->has_name = false;
    return true;
}

/* Releases everything. A file that was not published is removed. */
static void draft_close(struct draft *file)
{
    if (file->has_name)
        unlink(file->name);
    if (file->descriptor >= 0)
        close(file->descriptor);
    free(file->name);
}

/* The cause of a failure, and whether it is in the index or in the trace. */
struct failure {
    struct ttd_error error;
    bool is_output;
};

/* Writes the stamp of the trace, unless the trace was changed since it was opened: an index without
 * a stamp is not used. */
static enum ttd_status write_stamp(const struct source *source, struct ttd_writer *writer)
{
    struct stamp now = stamp_of(source->path);
    if (!stamp_is_same(&source->opened, &now))
        return TTD_OK;
    struct ttd_metadata record = {.key = {HEAP_SOURCE_KEY, strlen(HEAP_SOURCE_KEY)},
                                  .value = {now.text, strlen(now.text)}};
    return ttd_writer_metadata(writer, &record);
}

/* Replays the trace into the index, and closes the writer. */
static enum ttd_status fill_index(struct source *source, struct ttd_writer *writer,
                                  struct heap_index_facts *facts, struct failure *reason)
{
    struct heap_trace trace = source_trace(source);
    struct heap_index_spacing spacing = HEAP_INDEX_SPACING;
    enum ttd_status status = heap_index_write(&trace, &spacing, writer, facts, &reason->error);
    if (status == TTD_OK)
        status = write_stamp(source, writer);
    struct ttd_end end = {.reason = TTD_END_REASON_NOT_RECORDED};
    struct ttd_error writer_error = ttd_writer_error(writer);
    struct ttd_error closing;
    enum ttd_status closed = ttd_writer_close(writer, status == TTD_OK ? &end : NULL, &closing);
    if (status == TTD_OK && closed != TTD_OK)
        writer_error = closing;
    reason->is_output = writer_error.status != TTD_OK;
    if (reason->is_output)
        reason->error = writer_error;
    return status == TTD_OK ? closed : status;
}

static enum ttd_status write_index(struct source *source, int descriptor,
                                   struct heap_index_facts *facts, struct failure *reason)
{
    struct ttd_output file;
    struct ttd_writer *writer;
    struct ttd_trace derived = *ttd_reader_trace(source->reader);
    /* Without its first chunk a trace has no identity that the index could name. */
    if (!source_has_times(source))
        return TTD_ERROR_CORRUPT;
    derived.flags |= TTD_TRACE_DERIVED;
    if (getrandom(&derived.trace_id, sizeof derived.trace_id, 0) < 0 || !derived.trace_id)
        derived.trace_id = ~ttd_reader_trace(source->reader)->trace_id | 1;
    enum ttd_status status = ttd_reader_tie(source->reader, &derived);
    if (status == TTD_OK)
        status = ttd_output_descriptor(descriptor, 0, NULL, &file);
    if (status != TTD_OK)
        return status;
    status = ttd_writer_open(&file, &derived, NULL, NULL, &writer, &reason->error);
    reason->is_output = status != TTD_OK;
    return status == TTD_OK ? fill_index(source, writer, facts, reason) : status;
}

static int sidecar_fail(struct source *source, const char *path, bool silent,
                        enum ttd_status status, const struct failure *reason)
{
    progress_end(&source->progress);
    if (silent)
        return exit_for(status);
    if (reason->is_output) {
        message_error("", path, &reason->error);
        return STATUS_INTERNAL;
    }
    if (status == TTD_ERROR_CORRUPT || status == TTD_ERROR_TRUNCATED)
        message("%s: a damaged trace has no index; 'ttdanalyze recover' saves what is intact",
                source->path);
    return source_fail(source, status, &reason->error);
}

/* Whether a file may be replaced: it does not exist, is empty, or is an index, even a damaged one.
 */
static bool is_replaceable(const char *path)
{
    struct ttd_input input;
    struct ttd_reader *reader;
    struct stat existing;
    if (stat(path, &existing) != 0)
        return errno == ENOENT;
    if (!S_ISREG(existing.st_mode))
        return false;
    if (!existing.st_size)
        return true;
    enum ttd_status status = ttd_input_file(path, NULL, &input, NULL);
    if (status != TTD_OK)
        return false;
    status = ttd_reader_open(&input, NULL, NULL, &reader, NULL);
    if (status != TTD_OK)
        return status == TTD_ERROR_CORRUPT || status == TTD_ERROR_TRUNCATED;
    bool is_index = ttd_reader_trace(reader)->flags & TTD_TRACE_DERIVED;
    ttd_reader_close(reader);
    return is_index;
}

static int sidecar_make_new(struct source *source, const char *path, bool silent,
                            struct heap_index_facts *facts)
{
    struct failure reason = {.error = {.what = NULL}};
    struct draft file;
    int status = STATUS_OK;
    struct output_path output;
    errno = output_path_resolve(path, &output);
    if (errno == 0 && !output.path) {
        close(output.descriptor);
        errno = EINVAL; /* the name leads to standard output */
    }
    if (errno != 0)
        return fail_file(path, silent);
    if (!draft_open(&file, output.path)) {
        status = fail_file(path, silent);
    } else {
        enum ttd_status written = write_index(source, file.descriptor, facts, &reason);
        if (written != TTD_OK)
            status = sidecar_fail(source, path, silent, written, &reason);
        else if (!draft_publish(&file, output.path))
            status = fail_file(path, silent);
    }
    draft_close(&file);
    output_path_free(&output);
    return status;
}

int sidecar_make(struct source *source, const char *path, bool silent,
                 struct heap_index_facts *facts)
{
    if (!source->is_closed) {
        if (!silent)
            message("%s: the trace is not closed, and has no index until it is: when the program "
                    "ends, or by 'ttdanalyze recover' where the end is lost",
                    source->path);
        return STATUS_DAMAGED;
    }
    if (is_replaceable(path))
        return sidecar_make_new(source, path, silent, facts);
    message("%s%s: is not an index, and is not overwritten", silent ? "warning: " : "", path);
    return STATUS_INTERNAL;
}
