/* SPDX-License-Identifier: MIT */
#include "cli/traces/trace_group.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <ttdtrace/reader.h>

#include "base/grow.h"
#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/traces/input.h"
#include "report/trace/trace_reports.h"

static enum ttd_status open_trace(const char *path, struct ttd_reader **reader,
                                  struct ttd_error *error)
{
    struct ttd_input input;
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = true;
    enum ttd_status status = ttd_input_file(path, NULL, &input, error);
    return status == TTD_OK ? ttd_reader_open(&input, &options, NULL, reader, error) : status;
}

/* Counts the events of a trace without an End, by the headers of its chunks. */
static uint64_t group_count_events(struct ttd_reader *reader)
{
    struct ttd_chunk chunk;
    struct ttd_error error;
    uint64_t count = 0;
    if (ttd_reader_rewind(reader, TTD_KINDS_ALL) != TTD_OK)
        return 0;
    while (ttd_reader_next_chunk(reader, &chunk, &error) == TTD_OK)
        count += chunk.kind == TTD_KIND_EVENTS ? chunk.record_count : 0;
    return count;
}

static bool group_is_text(struct ttd_string string, const char *text)
{
    return string.size == strlen(text) && memcmp(string.data, text, string.size) == 0;
}

/* Returns the number of processes that "3 child processes of the recording" states; 0 for other
 * texts, which are about calls of the process itself. */
static uint64_t group_count_unrecorded(struct ttd_string text)
{
    uint64_t count = 0;
    while (text.size && *text.data >= '0' && *text.data <= '9' && count < UINT32_MAX) {
        count = 10 * count + (uint64_t)(*text.data++ - '0');
        text.size--;
    }
    bool is_count = group_is_text(text, " child process of the recording") ||
                    group_is_text(text, " child processes of the recording");
    return is_count ? count : 0;
}

/* Reads the command of the process, the children without traces that it states, and how it ended.
 * The last command counts, since a process can execute several programs. */
static enum ttd_status read_rest(struct ttd_reader *reader, struct group *group,
                                 struct report_member *member)
{
    struct ttd_string *command = &member->command;
    struct ttd_batch batch;
    struct ttd_error error;
    enum ttd_status status =
        ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_METADATA) | TTD_KIND_BIT(TTD_KIND_END));
    while (status == TTD_OK && (status = ttd_reader_next(reader, &batch, &error)) == TTD_OK) {
        if (batch.kind == TTD_KIND_END) {
            /* An End with bytes behind it closes nothing. */
            member->is_closed = ttd_reader_offset(reader) == ttd_reader_size(reader);
            member->end = *batch.u.end;
        }
        for (size_t i = 0; batch.kind == TTD_KIND_METADATA && i < batch.count; i++) {
            struct ttd_string value = batch.u.metadata[i].value;
            if (group_is_text(batch.u.metadata[i].key, "unrecorded"))
                member->unrecorded += group_count_unrecorded(value);
            if (!group_is_text(batch.u.metadata[i].key, "command"))
                continue;
            command->data = arena_copy(&group->text, value.data, value.size);
            command->size = value.size;
            if (!command->data)
                return TTD_ERROR_NO_MEMORY;
        }
    }
    return status == TTD_ERROR_NO_MEMORY ? status : TTD_OK;
}

static enum ttd_status add_member(struct group *group, const char *path, struct ttd_reader *reader)
{
    enum ttd_status status = grow_array((void **)&group->members, &group->capacity,
                                        group->count + 1, sizeof *group->members);
    if (status != TTD_OK)
        return status;
    struct report_member *member = &group->members[group->count];
    *member = (struct report_member){.trace = *ttd_reader_trace(reader),
                                     .file_bytes = ttd_reader_size(reader)};
    member->path = arena_copy(&group->text, path, strlen(path) + 1);
    status = member->path ? read_rest(reader, group, member) : TTD_ERROR_NO_MEMORY;
    /* Without an End, the headers of all chunks are counted. */
    member->events = member->is_closed ? member->end.events : group_count_events(reader);
    if (status == TTD_OK)
        group->count++;
    return status;
}

static enum ttd_status group_look_at(struct group *group, const char *path,
                                     const struct stat *trace_file)
{
    const struct ttd_trace *trace = &group->members[0].trace;
    struct stat existing;
    struct ttd_reader *reader;
    struct ttd_error error;
    /* A FIFO would block, and a link may lead anywhere. Most other files are no traces: no error.
     */
    if (lstat(path, &existing) != 0 || !S_ISREG(existing.st_mode) ||
        (existing.st_dev == trace_file->st_dev && existing.st_ino == trace_file->st_ino))
        return TTD_OK;
    enum ttd_status opened = open_trace(path, &reader, &error);
    if (opened == TTD_ERROR_CORRUPT || opened == TTD_ERROR_TRUNCATED ||
        opened == TTD_ERROR_UNSUPPORTED) {
        message("warning: %s: cannot be read, and may be of the same recording", path);
        group->unreadable++;
    }
    if (opened != TTD_OK)
        return TTD_OK;
    const struct ttd_trace *candidate = ttd_reader_trace(reader);
    enum ttd_status status = TTD_OK;
    if (!candidate->time_unit) {
        message("warning: %s: its first chunk is lost, which may be of the same recording", path);
        group->unreadable++;
    }
    /* An index has the group of its trace, and is no member. */
    if (memcmp(&candidate->group, &trace->group, sizeof candidate->group) == 0 &&
        !(candidate->flags & TTD_TRACE_DERIVED))
        status = add_member(group, path, reader);
    ttd_reader_close(reader);
    return status;
}

static enum ttd_status look_beside(struct group *group, const char *path)
{
    const char *slash = strrchr(path, '/');
    int size = slash ? (int)(slash + 1 - path) : 0;
    char *directory_path = strndup(path, (size_t)size);
    DIR *directory = directory_path ? opendir(size ? directory_path : ".") : NULL;
    enum ttd_status status = directory_path ? TTD_OK : TTD_ERROR_NO_MEMORY;
    const struct dirent *entry;
    struct stat trace_file = {.st_ino = 0};
    (void)stat(path, &trace_file);
    if (directory_path && !directory)
        message("warning: %s: its directory cannot be listed: %s", path, strerror(errno));
    while (directory && status == TTD_OK && (entry = readdir(directory))) {
        char *candidate_path;
        if (asprintf(&candidate_path, "%s%s", directory_path, entry->d_name) < 0) {
            status = TTD_ERROR_NO_MEMORY;
            break;
        }
        status = group_look_at(group, candidate_path, &trace_file);
        free(candidate_path);
    }
    if (directory)
        closedir(directory);
    free(directory_path);
    return status;
}

static int compare_members(const void *left, const void *right)
{
    const struct report_member *a = left;
    const struct report_member *b = right;
    if (a->trace.start_time != b->trace.start_time)
        return a->trace.start_time < b->trace.start_time ? -1 : 1;
    if (a->trace.process_id != b->trace.process_id)
        return a->trace.process_id < b->trace.process_id ? -1 : 1;
    /* The order of readdir() must not show. */
    return strcmp(a->path, b->path);
}

int group_find(const char *path, struct group *group)
{
    static const struct ttd_group no_group;
    struct ttd_reader *reader;
    struct ttd_error error = {.offset = TTD_NOWHERE, .chunk = TTD_NOWHERE, .what = ""};
    *group = (struct group){.members = NULL};
    if (input_is_standard(path)) {
        message("--group needs a file name: standard input has no sibling traces");
        return STATUS_USAGE;
    }
    enum ttd_status status = open_trace(path, &reader, &error);
    if (status != TTD_OK)
        return input_fail(path, status, &error);
    status = add_member(group, path, reader);
    ttd_reader_close(reader);
    if (status == TTD_OK && !group->members[0].trace.time_unit)
        message("warning: %s: its first chunk is lost: sibling traces are not known", path);
    /* Then it has no group, and stands alone. */
    if (status == TTD_OK && memcmp(&group->members[0].trace.group, &no_group, sizeof no_group) != 0)
        status = look_beside(group, path);
    if (status != TTD_OK) {
        message("%s: %s", path, ttd_status_text(status));
        return exit_for(status);
    }
    qsort(group->members, group->count, sizeof *group->members, compare_members);
    return STATUS_OK;
}

void group_free(struct group *group)
{
    free(group->members);
    arena_free(&group->text);
}
