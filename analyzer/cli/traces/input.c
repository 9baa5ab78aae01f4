/* SPDX-License-Identifier: MIT */
#include "cli/traces/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ttdtrace/reader.h>

#include "base/grow.h"
#include "cli/process/message.h"
#include "common/output_path.h"
#include "report/trace/trace_reports.h"

#define BASELINE_BEGIN "ttdanalyze baseline"

enum { COPY_SIZE = 256 * 1024, SNIFF_SIZE = 64 };

bool input_is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

const char *input_name(const char *path)
{
    return path + path_folder_size(path);
}

static enum ttd_status input_set_error(struct ttd_error *error, int reason, const char *description)
{
    *error = (struct ttd_error){TTD_ERROR_IO, reason, TTD_NOWHERE, TTD_NOWHERE, description};
    return TTD_ERROR_IO;
}

/* Opens a file without a name; where the file system has none, a file whose name is removed at
 * once. */
static int input_open_temporary(void)
{
    const char *directory = getenv("TMPDIR");
    char path[4096];
    if (!directory || !*directory)
        directory = "/tmp";
    int descriptor = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (descriptor >= 0 ||
        snprintf(path, sizeof path, "%s/ttdanalyze.XXXXXX", directory) >= (int)sizeof path)
        return descriptor;
    descriptor = mkostemp(path, O_CLOEXEC);
    if (descriptor >= 0)
        unlink(path);
    return descriptor;
}

static int input_write_all(int descriptor, const char *data, size_t size)
{
    while (size) {
        ssize_t n = write(descriptor, data, size);
        if (n < 0 && errno != EINTR)
            return errno;
        data += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Copies an input up to its end, or up to the first read that makes it at least `*remaining` bytes;
 * subtracts the copied bytes from `*remaining`. */
static enum ttd_status input_copy(int source, int target, uint64_t *remaining,
                                  struct ttd_error *error)
{
    enum ttd_status status = TTD_OK;
    char *data = malloc(COPY_SIZE);
    if (!data)
        return input_set_error(error, ENOMEM, "copy");
    while (status == TTD_OK && *remaining) {
        ssize_t size = read(source, data, COPY_SIZE);
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            status = input_set_error(error, errno, "read");
        if (size <= 0)
            break;
        *remaining -= (uint64_t)size < *remaining ? (uint64_t)size : *remaining;
        int reason = input_write_all(target, data, (size_t)size);
        if (reason)
            status = input_set_error(error, reason, "temporary file");
    }
    free(data);
    return status;
}

/* Whether a trace is found in the beginning of an input, with damage or without. */
static enum ttd_status input_check_begin(int target, struct ttd_error *error)
{
    struct ttd_input input;
    struct ttd_reader *reader = NULL;
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = true;
    enum ttd_status status = ttd_input_descriptor(target, false, NULL, &input, error);
    if (status == TTD_OK)
        status = ttd_reader_open(&input, &options, NULL, &reader, error);
    ttd_reader_close(reader);
    return status == TTD_ERROR_NOT_A_TRACE ? status : TTD_OK;
}

/* Copies an input, but of one that is no trace only as much as is searched for a good header: the
 * input might never end. */
static enum ttd_status copy_trace(int source, int target, struct ttd_error *error)
{
    uint64_t remaining = TTD_SEARCH_MAX + COPY_SIZE;
    enum ttd_status status = input_copy(source, target, &remaining, error);
    if (status != TTD_OK || remaining)
        return status;
    status = input_check_begin(target, error);
    remaining = UINT64_MAX;
    return status == TTD_OK ? input_copy(source, target, &remaining, error) : status;
}

/* Opens an input over a descriptor, which it takes over. */
static enum ttd_status input_take(int descriptor, struct ttd_input *input, struct ttd_error *error)
{
    if (descriptor < 0)
        return input_set_error(error, errno, "open");
    enum ttd_status status = ttd_input_descriptor(descriptor, true, NULL, input, error);
    if (status != TTD_OK)
        close(descriptor);
    return status;
}

/* Copies an input that cannot be read at an offset, such as a pipe, to a file. */
static enum ttd_status input_open_copy(int source, struct ttd_input *input, struct ttd_error *error)
{
    int target = input_open_temporary();
    if (target < 0)
        return input_set_error(error, errno, "temporary file");
    enum ttd_status status = copy_trace(source, target, error);
    if (status == TTD_OK)
        return input_take(target, input, error);
    close(target);
    return status;
}

enum ttd_status input_open(const char *path, struct ttd_input *input, struct ttd_error *error)
{
    struct stat status;
    bool is_standard = input_is_standard(path);
    if (is_standard && lseek(STDIN_FILENO, 0, SEEK_CUR) >= 0)
        return input_take(dup(STDIN_FILENO), input, error);
    if (!is_standard && (stat(path, &status) != 0 || !S_ISFIFO(status.st_mode)))
        return ttd_input_file(path, NULL, input, error);
    int descriptor = is_standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return input_set_error(error, errno, "open");
    enum ttd_status result = input_open_copy(descriptor, input, error);
    close(descriptor);
    return result;
}

/* Other kinds of files that people may name, by their first bytes. */
static const struct {
    const char *begin;
    size_t size;
    const char *description;
} formats[] = {
    {"\x1f\x8b", 2, "a gzip file; unpack it first, with gzip -d"},
    {"\x28\xb5\x2f\xfd", 4, "a zstd file, such as heaptrack writes; a trace is not compressed"},
    {"\xfd\x37zXZ", 5, "an xz file; unpack it first, with xz -d"},
    {"BZh", 3, "a bzip2 file; unpack it first, with bzip2 -d"},
    {"PK\x03\x04", 4, "a zip archive; unpack it first"},
    {"\x7f"
     "ELF",
     4, "a program; record it with ttdrecord"},
    {"#!", 2, "a script; record it with ttdrecord"},
    {"{", 1, "JSON"},
    {"[", 1, "JSON"},
    {"desc: ", 6, "output of valgrind's massif"},
    {"==", 2, "output of valgrind or a sanitizer"},
    {BASELINE_BEGIN, sizeof BASELINE_BEGIN - 1, "a baseline; it goes with --baseline"},
};

/* Whether a text is heaptrack's own format, unpacked: "v VERSION FORMAT", both in hexadecimal. */
static bool input_is_heaptrack(const char *text)
{
    unsigned version, format;
    return sscanf(text, "v %x %x", &version, &format) == 2;
}

static ssize_t input_read_begin(const char *path, char *text, size_t size)
{
    int descriptor = input_is_standard(path)
                         ? dup(STDIN_FILENO)
                         : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t read_size = descriptor >= 0 ? pread(descriptor, text, size, 0) : -1;
    if (descriptor >= 0)
        close(descriptor);
    return read_size;
}

const char *input_recognise(const char *path)
{
    char text[SNIFF_SIZE + 1] = "";
    ssize_t size = input_read_begin(path, text, SNIFF_SIZE);
    if (size == 0)
        return "an empty file";
    for (size_t i = 0; size > 0 && i < sizeof formats / sizeof formats[0]; i++) {
        if ((size_t)size >= formats[i].size && !memcmp(text, formats[i].begin, formats[i].size))
            return formats[i].description;
    }
    return size > 0 && input_is_heaptrack(text)
               ? "a trace of heaptrack; 'ttdanalyze import' reads raw ones"
               : NULL;
}

int input_fail(const char *path, enum ttd_status status, const struct ttd_error *error)
{
    const char *name = input_is_standard(path) ? "standard input" : path;
    const char *match = status == TTD_ERROR_NOT_A_TRACE ? input_recognise(path) : NULL;
    if (match)
        message("%s: not a trace, but %s", name, match);
    else if (error->status == status && error->what)
        message_error("", name, error);
    else
        return message_status(name, status);
    return exit_for(status);
}

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
static uint64_t input_group_count_events(struct ttd_reader *reader)
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

static bool input_group_is_text(struct ttd_string string, const char *text)
{
    return string.size == strlen(text) && memcmp(string.data, text, string.size) == 0;
}

/* Returns the number of processes that "3 child processes of the recording" states; 0 for other
 * texts: they are about calls of the process itself. */
static uint64_t input_group_count_unrecorded(struct ttd_string text)
{
    uint64_t count = 0;
    while (text.size && *text.data >= '0' && *text.data <= '9' && count < UINT32_MAX) {
        count = 10 * count + (uint64_t)(*text.data++ - '0');
        text.size--;
    }
    bool is_count = input_group_is_text(text, " child process of the recording") ||
                    input_group_is_text(text, " child processes of the recording");
    return is_count ? count : 0;
}

/* Reads the command of the process, the children without traces that it states, and how it ended.
 * The last command counts, since a process can execute several programs. */
static enum ttd_status input_read_rest(struct ttd_reader *reader, struct group *group,
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
            if (input_group_is_text(batch.u.metadata[i].key, "unrecorded"))
                member->unrecorded += input_group_count_unrecorded(value);
            if (!input_group_is_text(batch.u.metadata[i].key, "command"))
                continue;
            command->data = arena_copy(&group->text, value.data, value.size);
            command->size = value.size;
            if (!command->data)
                return TTD_ERROR_NO_MEMORY;
        }
    }
    return status == TTD_ERROR_NO_MEMORY ? status : TTD_OK;
}

static enum ttd_status input_add_member(struct group *group, const char *path,
                                        struct ttd_reader *reader)
{
    enum ttd_status status = grow_array((void **)&group->members, &group->capacity,
                                        group->count + 1, sizeof *group->members);
    if (status != TTD_OK)
        return status;
    struct report_member *member = &group->members[group->count];
    *member = (struct report_member){.trace = *ttd_reader_trace(reader),
                                     .file_bytes = ttd_reader_size(reader)};
    member->path = arena_copy(&group->text, path, strlen(path) + 1);
    status = member->path ? input_read_rest(reader, group, member) : TTD_ERROR_NO_MEMORY;
    /* Without an End, the headers of all chunks are counted. */
    member->events = member->is_closed ? member->end.events : input_group_count_events(reader);
    if (status == TTD_OK)
        group->count++;
    return status;
}

static enum ttd_status input_group_look_at(struct group *group, const char *path,
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
        status = input_add_member(group, path, reader);
    ttd_reader_close(reader);
    return status;
}

static enum ttd_status input_look_beside(struct group *group, const char *path)
{
    size_t size = path_folder_size(path);
    char *directory_path = strndup(path, size);
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
        status = input_group_look_at(group, candidate_path, &trace_file);
        free(candidate_path);
    }
    if (directory)
        closedir(directory);
    free(directory_path);
    return status;
}

static int input_compare_members(const void *left, const void *right)
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
    status = input_add_member(group, path, reader);
    ttd_reader_close(reader);
    if (status == TTD_OK && !group->members[0].trace.time_unit)
        message("warning: %s: its first chunk is lost: sibling traces are not known", path);
    /* Then it has no group, and stands alone. */
    if (status == TTD_OK && memcmp(&group->members[0].trace.group, &no_group, sizeof no_group) != 0)
        status = input_look_beside(group, path);
    if (status != TTD_OK) {
        message("%s: %s", path, ttd_status_text(status));
        return exit_for(status);
    }
    qsort(group->members, group->count, sizeof *group->members, input_compare_members);
    return STATUS_OK;
}

void group_free(struct group *group)
{
    free(group->members);
    arena_free(&group->text);
}
