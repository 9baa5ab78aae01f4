/* SPDX-License-Identifier: MIT */
/* A strict C11 compiler hides the additions of POSIX to the headers. */
#define _POSIX_C_SOURCE 200809L
#include <ttdtrace/io.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/fail.h"

struct file {
    int descriptor;
    int own;
    struct ttd_allocator allocator;
};

static enum ttd_status posix_new_file(int descriptor, int own,
                                      const struct ttd_allocator *allocator, struct file **result)
{
    struct file *handle = ttd_allocate_zeroed(allocator, sizeof *handle);
    if (!handle)
        return TTD_ERROR_NO_MEMORY;
    *handle = (struct file){descriptor, own, *allocator};
    *result = handle;
    return TTD_OK;
}

static int io_read_at(void *context, uint64_t offset, void *data, size_t size, size_t *got)
{
    const struct file *handle = context;
    *got = 0;
    while (*got < size) {
        /* off_t is signed. */
        if (offset > (uint64_t)INT64_MAX - *got)
            return EOVERFLOW;
        size_t remaining = size - *got;
        ssize_t n = pread(handle->descriptor, (char *)data + *got,
                          remaining < SSIZE_MAX ? remaining : SSIZE_MAX, (off_t)(offset + *got));
        /* The end of the file: the caller decides whether that is too early. */
        if (n == 0)
            break;
        if (n > 0)
            *got += (size_t)n;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

static int io_size(void *context, uint64_t *size)
{
    const struct file *handle = context;
    struct stat status;
    if (fstat(handle->descriptor, &status) != 0)
        return errno;
    if (S_ISREG(status.st_mode)) {
        *size = (uint64_t)status.st_size;
        return 0;
    }
    /* st_size says nothing of a block device. */
    off_t end = lseek(handle->descriptor, 0, SEEK_END);
    if (end < 0)
        return errno;
    *size = (uint64_t)end;
    return 0;
}

static int io_write(void *context, const void *data, size_t size)
{
    const struct file *handle = context;
    const char *bytes = data;
    while (size > 0) {
        ssize_t n = write(handle->descriptor, bytes, size < SSIZE_MAX ? size : SSIZE_MAX);
        if (n > 0) {
            bytes += n;
            size -= (size_t)n;
            /* No error, but no progress either: going on might never end. */
        } else if (n == 0) {
            return EIO;
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

static int io_close(void *context)
{
    struct file *handle = context;
    struct ttd_allocator allocator = handle->allocator;
    int result = 0;
    /* After EINTR the descriptor is closed on Linux; to close again might hit one of another
     * thread. */
    if (handle->own && close(handle->descriptor) != 0 && errno != EINTR)
        result = errno;
    ttd_release(&allocator, handle);
    return result;
}

static void io_close_input(void *context)
{
    (void)io_close(context);
}

/** Refuses files that cannot be read at an offset. */
static int posix_check_seekable(int descriptor)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return errno;
    if (S_ISDIR(status.st_mode))
        return EISDIR;
    if (lseek(descriptor, 0, SEEK_CUR) < 0)
        return errno;
    return 0;
}

enum ttd_status ttd_input_file(const char *path, const struct ttd_allocator *allocator,
                               struct ttd_input *input, struct ttd_error *error)
{
    if (!path || !input || !ttd_allocator_is_valid(allocator))
        return ttd_fail(error, TTD_ERROR_ARGUMENT, "argument", TTD_NOWHERE, TTD_NOWHERE);
    struct ttd_allocator table = ttd_allocator_or_default(allocator);
    /* Not to hang on a FIFO without a writer; it is refused below. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0)
        return ttd_fail_system(error, errno, "open", TTD_NOWHERE);
    int refused = posix_check_seekable(descriptor);
    if (refused) {
        close(descriptor);
        return ttd_fail_system(error, refused, "open", TTD_NOWHERE);
    }
    struct file *handle;
    if (posix_new_file(descriptor, 1, &table, &handle) != TTD_OK) {
        close(descriptor);
        return ttd_fail(error, TTD_ERROR_NO_MEMORY, "memory", TTD_NOWHERE, TTD_NOWHERE);
    }
    *input = (struct ttd_input){handle, io_read_at, io_size, io_close_input};
    return TTD_OK;
}

enum ttd_status ttd_input_descriptor(int descriptor, int own, const struct ttd_allocator *allocator,
                                     struct ttd_input *input, struct ttd_error *error)
{
    if (descriptor < 0 || !input || !ttd_allocator_is_valid(allocator))
        return ttd_fail(error, TTD_ERROR_ARGUMENT, "argument", TTD_NOWHERE, TTD_NOWHERE);
    int refused = posix_check_seekable(descriptor);
    if (refused)
        return ttd_fail_system(error, refused, "open", TTD_NOWHERE);
    struct ttd_allocator table = ttd_allocator_or_default(allocator);
    struct file *handle;
    if (posix_new_file(descriptor, own, &table, &handle) != TTD_OK)
        return ttd_fail(error, TTD_ERROR_NO_MEMORY, "memory", TTD_NOWHERE, TTD_NOWHERE);
    *input = (struct ttd_input){handle, io_read_at, io_size, io_close_input};
    return TTD_OK;
}

enum ttd_status ttd_output_file(const char *path, const struct ttd_allocator *allocator,
                                struct ttd_output *output, struct ttd_error *error)
{
    if (!path || !output || !ttd_allocator_is_valid(allocator))
        return ttd_fail(error, TTD_ERROR_ARGUMENT, "argument", TTD_NOWHERE, TTD_NOWHERE);
    struct ttd_allocator table = ttd_allocator_or_default(allocator);
    struct file *handle;
    if (posix_new_file(-1, 1, &table, &handle) != TTD_OK)
        return ttd_fail(error, TTD_ERROR_NO_MEMORY, "memory", TTD_NOWHERE, TTD_NOWHERE);
    /* Neither replaces a file nor follows a link; readable by the owner only, since a trace may
     * hold the program's secrets. The handle comes first: no file is left if memory runs out. */
    handle->descriptor =
        open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (handle->descriptor < 0) {
        int reason = errno;
        ttd_release(&table, handle);
        return ttd_fail_system(error, reason, "create", TTD_NOWHERE);
    }
    *output = (struct ttd_output){handle, io_write, io_close};
    return TTD_OK;
}

enum ttd_status ttd_output_descriptor(int descriptor, int own,
                                      const struct ttd_allocator *allocator,
                                      struct ttd_output *output)
{
    if (descriptor < 0 || !output || !ttd_allocator_is_valid(allocator))
        return TTD_ERROR_ARGUMENT;
    struct ttd_allocator table = ttd_allocator_or_default(allocator);
    struct file *handle;
    enum ttd_status status = posix_new_file(descriptor, own, &table, &handle);
    if (status == TTD_OK)
        *output = (struct ttd_output){handle, io_write, io_close};
    return status;
}
