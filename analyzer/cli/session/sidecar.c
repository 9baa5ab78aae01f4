/* SPDX-License-Identifier: MIT */
#include "cli/session/sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/process/message.h"
#include "common/output_path.h"

/* Compares an index that exists with its trace. */

/* Readers of one index: see heap_index_check_init(). */
#define READERS 3

static enum ttd_status sidecar_open_readers(const char *path, struct ttd_reader *readers[READERS],
                                            struct ttd_error *error)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < READERS && status == TTD_OK; i++) {
        struct ttd_input input;
        status = ttd_input_file(path, NULL, &input, error);
        if (status == TTD_OK)
            status = ttd_reader_open(&input, NULL, NULL, &readers[i], error);
    }
    return status;
}

static int sidecar_compare(struct source *source, struct ttd_reader *const readers[READERS],
                           enum sidecar_verdict *verdict, struct ttd_error *difference)
{
    struct heap_index_check check;
    struct heap_trace trace = source_trace(source);
    struct ttd_error error = {.what = NULL};
    enum ttd_status status = heap_index_check_init(&check, readers);
    if (status == TTD_OK)
        status = heap_index_compare(&trace, &check, &error);
    bool differs = check.difference.status != TTD_OK;
    if (status == TTD_ERROR_IO || status == TTD_ERROR_NO_MEMORY || (status != TTD_OK && !differs))
        return source_fail(source, status, &error);
    *verdict = differs ? SIDECAR_DIFFERS : SIDECAR_AGREES;
    *difference = check.difference;
    return STATUS_OK;
}

int sidecar_check(const char *trace, const char *path, enum sidecar_verdict *verdict,
                  struct ttd_error *difference)
{
    struct source source;
    struct ttd_reader *readers[READERS] = {NULL};
    *verdict = SIDECAR_NONE;
    int status = source_open(&source, trace, false);
    if (status != STATUS_OK)
        return status;
    enum ttd_status opened = sidecar_open_readers(path, readers, difference);
    if (opened == TTD_OK && heap_index_belongs_to(readers[0], source.reader))
        status = sidecar_compare(&source, readers, verdict, difference);
    else
        message("warning: %s: is not used: it is not an index of this trace", path);
    for (size_t i = 0; i < READERS; i++)
        ttd_reader_close(readers[i]);
    source_close(&source);
    return status;
}

/* Makes the index of a trace. */

static int sidecar_fail_file(const char *path, bool silent)
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

static int sidecar_open_nameless(const char *path)
{
    size_t size = path_folder_size(path);
    char *directory = size ? strndup(path, size) : strdup(".");
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
    file->descriptor = sidecar_open_nameless(path);
    file->has_name = file->descriptor < 0;
    if (file->has_name) {
        snprintf(file->name, size, "%s.XXXXXX", path);
        file->descriptor = mkstemp(file->name);
    } else if (getrandom(&number, sizeof number, 0) == sizeof number) {
        /* Nobody who can write into the folder takes a name that cannot be guessed. */
        snprintf(file->name, size, "%s.%" PRIx64, path, number);
    } else {
        return false;
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
static enum ttd_status sidecar_write_stamp(const struct source *source, struct ttd_writer *writer)
{
    struct stamp now = stamp_of(source->path);
    if (!stamp_is_same(&source->opened, &now))
        return TTD_OK;
    struct ttd_metadata record = {.key = {HEAP_SOURCE_KEY, strlen(HEAP_SOURCE_KEY)},
                                  .value = {now.text, strlen(now.text)}};
    return ttd_writer_metadata(writer, &record);
}

/* Replays the trace into the index, and closes the writer. */
static enum ttd_status sidecar_fill_index(struct source *source, struct ttd_writer *writer,
                                          struct heap_index_facts *facts, struct failure *reason)
{
    struct heap_trace trace = source_trace(source);
    struct heap_index_spacing spacing = HEAP_INDEX_SPACING;
    enum ttd_status status = heap_index_write(&trace, &spacing, writer, facts, &reason->error);
    if (status == TTD_OK)
        status = sidecar_write_stamp(source, writer);
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

static enum ttd_status sidecar_write_index(struct source *source, int descriptor,
                                           struct heap_index_facts *facts, struct failure *reason)
{
    struct ttd_output file;
    struct ttd_writer *writer;
    struct ttd_trace derived = *ttd_reader_trace(source->reader);
    /* Without its first chunk a trace has no identity that the index could name. */
    if (!source_has_times(source))
        return TTD_ERROR_CORRUPT;
    derived.flags |= TTD_TRACE_DERIVED;
    if (getrandom(&derived.trace_id, sizeof derived.trace_id, 0) != sizeof derived.trace_id ||
        !derived.trace_id)
        derived.trace_id = ~ttd_reader_trace(source->reader)->trace_id | 1;
    enum ttd_status status = ttd_reader_tie(source->reader, &derived);
    if (status == TTD_OK)
        status = ttd_output_descriptor(descriptor, 0, NULL, &file);
    if (status != TTD_OK)
        return status;
    status = ttd_writer_open(&file, &derived, NULL, NULL, &writer, &reason->error);
    reason->is_output = status != TTD_OK;
    return status == TTD_OK ? sidecar_fill_index(source, writer, facts, reason) : status;
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
        message("%s: a damaged trace has no index; 'ttdanalyze recover' saves the intact parts",
                source->path);
    return source_fail(source, status, &reason->error);
}

/* Whether a file may be replaced: it does not exist, is empty, or is an index, even a damaged one.
 */
static bool sidecar_is_replaceable(const char *path)
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
        return sidecar_fail_file(path, silent);
    if (!draft_open(&file, output.path)) {
        status = sidecar_fail_file(path, silent);
    } else {
        enum ttd_status written = sidecar_write_index(source, file.descriptor, facts, &reason);
        if (written != TTD_OK)
            status = sidecar_fail(source, path, silent, written, &reason);
        else if (!draft_publish(&file, output.path))
            status = sidecar_fail_file(path, silent);
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
    if (sidecar_is_replaceable(path))
        return sidecar_make_new(source, path, silent, facts);
    message("%s%s: is not an index, and is not overwritten", silent ? "warning: " : "", path);
    return STATUS_INTERNAL;
}

char *sidecar_path(const char *trace)
{
    size_t size = strlen(trace) + sizeof ".idx";
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s.idx", trace);
    return path;
}

/*
 * Returns why an index is not trusted; NULL if it is. Its content is checked only as far as that
 * takes no replay. So the rest must come from somebody who could have changed the trace as well:
 * the index must belong to this user, the owner of the trace or root, and nobody else may be able
 * to write it.
 */
static const char *sidecar_why_not_ours(const struct stat *index, const char *trace)
{
    struct stat origin;
    if (!S_ISREG(index->st_mode))
        return "is no regular file";
    bool is_origin_known = stat(trace, &origin) == 0;
    if (index->st_uid != geteuid() && index->st_uid != 0 &&
        !(is_origin_known && index->st_uid == origin.st_uid))
        return "belongs to another user";
    if (index->st_mode & (S_IWGRP | S_IWOTH))
        return "can be written by other users";
    return NULL;
}

/* Uses the index if it belongs to this very file. The whole file was intact when the index was
 * made, and not all of it will be read again. */
static bool sidecar_open_index(struct source *source, const char *path)
{
    struct ttd_reader *sidecar;
    struct ttd_input input;
    struct ttd_error error;
    struct stat index;
    /* Reads the checked file, even if another one has its name by now. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0)
        return false;
    if (fstat(descriptor, &index) != 0) {
        close(descriptor);
        return false;
    }
    const char *reason = sidecar_why_not_ours(&index, source->path);
    bool is_input =
        !reason && ttd_input_descriptor(descriptor, true, NULL, &input, &error) == TTD_OK;
    bool is_open = is_input && ttd_reader_open(&input, NULL, NULL, &sidecar, &error) == TTD_OK;
    if (!is_input)
        close(descriptor);
    if (reason && S_ISREG(index.st_mode) && !source->has_refused_index) {
        message("warning: %s: is not used: it %s", path, reason);
        source->has_refused_index = true;
    }
    if (!is_open || heap_keyframes_open(sidecar, source->reader, &source->keyframes) != TTD_OK)
        return false;
    source->has_keyframes =
        source->opened.text[0] && strcmp(source->keyframes.source, source->opened.text) == 0;
    if (!source->has_keyframes)
        heap_keyframes_close(&source->keyframes);
    return source->has_keyframes;
}

void sidecar_refute(struct source *source)
{
    char *path = sidecar_path(source->path);
    progress_end(&source->progress);
    message("warning: %s: is not used: it does not agree with the trace", path ? path : "index");
    free(path);
    heap_keyframes_close(&source->keyframes);
    source->has_keyframes = false;
    source->has_refuted_index = true;
}

bool sidecar_pays(const struct session *session)
{
    const struct source *source = &session->source;
    return session->options.has_index && source->is_closed && source->end.events >= PAYS_EVENTS;
}

/* Finds the keyframes. `pays`: an index may be made if the trace has PAYS_EVENTS events
 * (meson.build has their number): a shorter one is replayed faster than an index is found and
 * checked. */
static const struct heap_keyframes *session_sidecar_use(struct session *session, bool pays)
{
    struct source *source = &session->source;
    if (!session->options.has_index || !source->is_closed || source->has_refuted_index)
        return NULL;
    char *path = source->has_keyframes ? NULL : sidecar_path(source->path);
    struct heap_index_facts facts;
    if (path && !sidecar_open_index(source, path) && pays && source->end.events >= PAYS_EVENTS &&
        !source->has_no_index) {
        source->has_no_index = sidecar_make(source, path, true, &facts) != STATUS_OK;
        if (!source->has_no_index)
            sidecar_open_index(source, path);
    }
    free(path);
    return source->has_keyframes ? &source->keyframes : NULL;
}

const struct heap_keyframes *sidecar_use(struct session *session, struct ttd_position position)
{
    bool is_start = ttd_position_compare(position, ttd_position_min()) == 0;
    bool is_end = heap_is_end(position);
    return is_start || is_end ? NULL : session_sidecar_use(session, true);
}

const struct heap_keyframes *sidecar_use_existing(struct session *session)
{
    return session_sidecar_use(session, false);
}
