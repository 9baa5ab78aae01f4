/* SPDX-License-Identifier: MIT */
#include "cli/traces/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ttdtrace/reader.h>

#include "cli/process/exit.h"
#include "cli/process/message.h"

#define BASELINE_BEGIN "ttdanalyze baseline"

enum { COPY_SIZE = 256 * 1024, SNIFF_SIZE = 64 };

bool input_is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
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

static int write_all(int descriptor, const char *data, size_t size)
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
        int reason = write_all(target, data, (size_t)size);
        if (reason)
            status = input_set_error(error, reason, "temporary file");
    }
    free(data);
    return status;
}

/* Whether a trace is found in the beginning of an input, with damage or without. */
static enum ttd_status check_begin(const char *path, struct ttd_error *error)
{
    struct ttd_input input;
    struct ttd_reader *reader = NULL;
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = true;
    enum ttd_status status = ttd_input_file(path, NULL, &input, error);
    if (status == TTD_OK)
        status = ttd_reader_open(&input, &options, NULL, &reader, error);
    ttd_reader_close(reader);
    return status == TTD_ERROR_NOT_A_TRACE ? status : TTD_OK;
}

/* Copies an input, but of one that is no trace only as much as is searched for a good header: the
 * input might never end. */
static enum ttd_status copy_trace(int source, int target, const char *path, struct ttd_error *error)
{
    uint64_t remaining = TTD_SEARCH_MAX + COPY_SIZE;
    enum ttd_status status = input_copy(source, target, &remaining, error);
    if (status != TTD_OK || remaining)
        return status;
    status = check_begin(path, error);
    remaining = UINT64_MAX;
    return status == TTD_OK ? input_copy(source, target, &remaining, error) : status;
}

/* Copies an input that cannot be read at an offset, such as a pipe, to a file. */
static enum ttd_status open_copy(int source, struct ttd_input *input, struct ttd_error *error)
{
    int target = input_open_temporary();
    if (target < 0)
        return input_set_error(error, errno, "temporary file");
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", target);
    enum ttd_status status = copy_trace(source, target, path, error);
    if (status == TTD_OK)
        status = ttd_input_file(path, NULL, input, error);
    close(target);
    return status;
}

static bool has_offsets(int descriptor)
{
    return lseek(descriptor, 0, SEEK_CUR) >= 0;
}

enum ttd_status input_open(const char *path, struct ttd_input *input, struct ttd_error *error)
{
    struct stat status;
    bool is_standard = input_is_standard(path);
    if (is_standard && has_offsets(STDIN_FILENO))
        return ttd_input_file("/proc/self/fd/0", NULL, input, error);
    if (!is_standard && (stat(path, &status) != 0 || !S_ISFIFO(status.st_mode)))
        return ttd_input_file(path, NULL, input, error);
    int descriptor = is_standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return input_set_error(error, errno, "open");
    enum ttd_status result = open_copy(descriptor, input, error);
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
static bool is_heaptrack(const char *text)
{
    unsigned version, format;
    return sscanf(text, "v %x %x", &version, &format) == 2;
}

static ssize_t read_begin(const char *path, char *text, size_t size)
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
    ssize_t size = read_begin(path, text, SNIFF_SIZE);
    if (size == 0)
        return "an empty file";
    for (size_t i = 0; size > 0 && i < sizeof formats / sizeof formats[0]; i++) {
        if ((size_t)size >= formats[i].size && !memcmp(text, formats[i].begin, formats[i].size))
            return formats[i].description;
    }
    return size > 0 && is_heaptrack(text) ? "a trace of heaptrack; ttdanalyze reads its own only"
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
